//! The files that documents name are there.

use crate::runner::Failure;
use std::fs;
use std::path::{Path, PathBuf};

/// The document whose paths are whole: from the root, or from the engine's source.
const WHOLE: &str = "CONTRIBUTING.md";
const ENGINE: &str = "crates/azekura/src";

/// The folders with documents that name a file by the end of its path.
const FOLDERS: [&str; 2] = ["", "docs"];

/// Folders without source.
const PASSED_OVER: [&str; 2] = ["target", ".git"];

/// The names in documents that no file has.
pub fn missing(root: &Path) -> Result<Vec<String>, Failure> {
    let mut sources = Vec::new();
    walk(root, &mut sources)?;
    let mut wrong = Vec::new();
    for folder in FOLDERS {
        for path in entries(&root.join(folder))?.iter().filter(|path| has_ending(path, "md")) {
            let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let name = path.strip_prefix(root).unwrap_or(path);
            let is_there = |file: &str| match name == Path::new(WHOLE) {
                true => root.join(file).exists() || root.join(ENGINE).join(file).exists(),
                false => sources.iter().any(|source| source.ends_with(file)),
            };
            let named = named(&text, name == Path::new(WHOLE)).filter(|(_, file)| !is_there(file));
            wrong.extend(named.map(|(line, file)| format!("{}:{line} names {file}", name.display())));
        }
    }
    Ok(wrong)
}

/// All files below a folder whose names end as those of source do.
fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for path in entries(folder)? {
        if path.is_dir() {
            if !PASSED_OVER.iter().any(|name| path.ends_with(name)) {
                walk(&path, found)?;
            }
        } else if has_ending(&path, "rs") {
            found.push(path);
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::read_dir(folder).map_err(failed)?.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|found| found == ending)
}

/// The files of Rust that stand in backquotes, with the numbers of their lines; all paths if `whole`.
fn named(text: &str, whole: bool) -> impl Iterator<Item = (usize, &str)> {
    let is_path = move |span: &str| {
        let plain = span.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
        let is_source = Path::new(span).extension().is_some_and(|ending| ending == "rs");
        plain && (is_source || whole && span.contains('/') && !span.starts_with("target/"))
    };
    let spans =
        (1..).zip(text.lines()).flat_map(|(number, line)| spans(line).map(move |span| (number, span)));
    spans.filter(move |(_, span)| is_path(span))
}

/// What stands in backquotes.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn paths_are_found_in_text() {
        let text =
            "see `a/b.rs` and `c.rs`,\n`docs/` or `cargo test -p x/y`, `v./born`; b.rs `target/x` `f(x)`";
        let found = |whole| named(text, whole).collect::<Vec<_>>();
        assert_eq!(found(false), [(1, "a/b.rs"), (1, "c.rs")]);
        assert_eq!(found(true), [(1, "a/b.rs"), (1, "c.rs"), (2, "docs/"), (2, "v./born")]);
    }
}
