//! Files are short enough to read at one sitting, functions to see at once.

use super::source::{self, Source};
use crate::runner::Failure;
use std::fs;
use std::path::Path;

/// The most lines of a file, without its tests and with its comments.
const LINES_MAX: usize = 500;

/// The most lines of a function, without blank lines and comments.
const FUNCTION_LINES_MAX: usize = 60;

/// The folders with benches, which are no part of a crate's modules.
const BENCHES: [&str; 2] = ["crates/azekura/benches", "crates/capi/benches"];

/// The folders with files in other languages, and how the names of these end. Only whole files are counted.
const OTHERS: [(&str, &[&str]); 2] =
    [("python/azekura", &["py"]), ("crates/bench-compare/shim", &["c", "cc", "h"])];

/// The files and functions beside the crates' sources that are too long.
pub fn long_beside(root: &Path) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    for folder in BENCHES {
        found.extend(long(&source::files(root, folder)?));
    }
    for (folder, endings) in OTHERS {
        found.extend(long_texts(root, folder, endings)?);
    }
    Ok(found)
}

/// The files of a folder that are too long, of those whose names end so.
fn long_texts(root: &Path, folder: &str, endings: &[&str]) -> Result<Vec<String>, Failure> {
    let failed = |error: std::io::Error| format!("{folder}: {error}");
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(folder)).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if !path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known)) {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        found.extend(too_long(path.strip_prefix(root).unwrap_or(&path), text.lines().count()));
    }
    found.sort();
    Ok(found)
}

fn too_long(path: &Path, lines: usize) -> Option<String> {
    (lines > LINES_MAX).then(|| format!("{} has {lines} lines, {LINES_MAX} are allowed", path.display()))
}

/// The files and functions that are longer.
pub fn long(files: &[Source]) -> Vec<String> {
    let files_found = files.iter().filter_map(|file| too_long(&file.path, file.lines.len()));
    files_found.chain(files.iter().flat_map(long_functions)).collect()
}

fn long_functions(file: &Source) -> Vec<String> {
    let begins = (0..file.lines.len()).filter_map(|at| Some((at, name_of(&file.lines[at])?)));
    let lengths = begins.map(|(at, name)| (at, name, length(&file.lines[at..])));
    lengths
        .filter(|(_, _, lines)| *lines > FUNCTION_LINES_MAX)
        .map(|(at, name, lines)| {
            let place = format!("{}:{}", file.path.display(), at + 1);
            format!("{place}: `{name}` has {lines} lines, {FUNCTION_LINES_MAX} are allowed")
        })
        .collect()
}

/// The name of the function whose first line it is.
fn name_of(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_first = before.split_whitespace().all(|word| {
        word.starts_with("pub")
            || ["const", "unsafe", "extern", "\"C\"", "async"].contains(&word)
            || word.ends_with(')')
    });
    let name = after.split(['(', '<']).next().filter(|name| is_first && !name.is_empty());
    name.filter(|name| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
}

/// The lines of a function that begins with the first of `lines`: up to the brace or semicolon that stands as
/// far to the right as its beginning.
fn length(lines: &[String]) -> usize {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let margin = indent(&lines[0]);
    let is_end = |line: &String| {
        let ends = line.trim_end().ends_with(['}', ';']);
        ends && indent(line) == margin
    };
    let end = lines.iter().position(is_end).map_or(lines.len(), |at| at + 1);
    lines[..end].iter().filter(|line| !line.trim().is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::{FUNCTION_LINES_MAX, LINES_MAX, length, long_beside, name_of};
    use std::fs;

    #[test]
    fn files_beside_the_crates_are_looked_at() {
        let root = std::env::temp_dir().join(format!("azekura-house-{}", std::process::id()));
        let put = |path: &str, text: String| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("python/azekura/short.py", "x = 1\n".repeat(LINES_MAX));
        put("python/azekura/long.py", "x = 1\n".repeat(LINES_MAX + 1));
        put("crates/bench-compare/shim/long.cc", "int x;\n".repeat(LINES_MAX + 1));
        put("crates/bench-compare/shim/long.md", "word\n".repeat(LINES_MAX + 1));
        put(
            "crates/azekura/benches/a.rs",
            format!("fn f() {{\n{}}}\n", "    a();\n".repeat(FUNCTION_LINES_MAX)),
        );
        put("crates/capi/benches/a.rs", "fn f() {}\n".to_owned());
        let found = long_beside(&root).unwrap();
        fs::remove_dir_all(&root).unwrap();
        let begins = [
            "crates/azekura/benches/a.rs:1",
            "python/azekura/long.py ",
            "crates/bench-compare/shim/long.cc ",
        ];
        assert!(
            found.len() == 3 && found.iter().zip(begins).all(|(one, begin)| one.starts_with(begin)),
            "{found:?}"
        );
    }

    #[test]
    fn functions_are_found_and_counted() {
        let text = "    pub(crate) unsafe fn long<'a>(\n        a: &'a u8,\n    ) {\n\n        a;\n    }\n}";
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        assert_eq!(name_of(&lines[0]), Some("long"));
        assert_eq!(length(&lines), 5);
        assert_eq!(name_of("pub extern \"C\" fn azk_get() {"), Some("azk_get"));
        assert_eq!(name_of("type Get = unsafe extern \"C\" fn(*const u8);"), None);
        assert_eq!(name_of("let f = |x: fn (u8)| x;"), None);
        assert_eq!(length(&["    fn short();".to_owned()]), 1);
    }
}
