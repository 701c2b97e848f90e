//! Documents have short lines, so that a change of one is seen where it is.

use crate::runner::Failure;
use std::fs;
use std::path::{Path, PathBuf};

/// The most characters of a line. Tables, examples and what programs write have no limit.
const CHARACTERS_MAX: usize = 100;

/// The folders with documents, from the project's root. Crates have theirs in their folders.
const FOLDERS: [&str; 3] = ["", "docs", "python"];

/// The lines of documents that are too long.
pub fn long(root: &Path) -> Result<Vec<String>, Failure> {
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|folder| root.join(folder)).collect();
    folders.extend(entries(&root.join("crates"))?);
    let mut wrong = Vec::new();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        for path in entries(folder)?.iter().filter(|path| path.extension().is_some_and(|e| e == "md")) {
            let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let name = path.strip_prefix(root).unwrap_or(path).display();
            wrong.extend(long_lines(&text).map(|(line, length)| {
                format!("{name}:{line} has {length} characters, {CHARACTERS_MAX} are allowed")
            }));
        }
    }
    Ok(wrong)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(failed)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    found.sort();
    Ok(found)
}

/// The numbers and lengths of lines that are too long.
fn long_lines(text: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    let (mut is_example, mut is_written) = (false, false);
    (1..).zip(text.lines()).filter_map(move |(number, line)| {
        let line = line.trim_end();
        is_example ^= line.trim_start().starts_with("```");
        // Between `<!-- name -->` and `<!-- /name -->` stands what a program has written.
        if line.starts_with("<!-- ") && line.ends_with(" -->") {
            is_written = !line.starts_with("<!-- /");
        }
        let length = line.chars().count();
        let is_free = is_example || is_written || line.trim_start().starts_with('|');
        (length > CHARACTERS_MAX && !is_free).then_some((number, length))
    })
}

#[cfg(test)]
mod tests {
    use super::{CHARACTERS_MAX, long_lines};

    #[test]
    fn lines_of_prose_have_a_limit() {
        let (most, more) = ("ü".repeat(CHARACTERS_MAX), "u".repeat(CHARACTERS_MAX + 1));
        let written = format!("<!-- figures -->\n{more}\n<!-- /figures -->");
        let text = format!("{most}\n{more}\n| {more} |\n```sh\n{more}\n```\n{written}\n- {most}\n");
        let found: Vec<_> = long_lines(&text).collect();
        assert_eq!(found, [(2, CHARACTERS_MAX + 1), (10, CHARACTERS_MAX + 2)]);
    }
}
