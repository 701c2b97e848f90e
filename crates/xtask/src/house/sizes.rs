//! Files are short enough to read at one sitting, functions to see at once.

use super::source::Source;

/// The most lines of a file, without its tests and with its comments.
const LINES_MAX: usize = 500;

/// The most lines of a function, without blank lines and comments.
const FUNCTION_LINES_MAX: usize = 60;

/// The files and functions that are longer.
pub fn long(files: &[Source]) -> Vec<String> {
    let too_long = files.iter().filter(|file| file.lines.len() > LINES_MAX);
    let files_found = too_long.map(|file| {
        format!("{} has {} lines, {LINES_MAX} are allowed", file.path.display(), file.lines.len())
    });
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
    use super::{length, name_of};

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
