//! Comments are as wide as code may be: the formatter leaves them as they are.

use crate::runner::Failure;
use std::fs;
use std::path::Path;

/// The widest line.
const COLUMNS_MAX: usize = 110;

/// The folders with Rust code, tests and examples included.
const FOLDERS: [&str; 2] = ["crates", "python/src"];

/// The lines of comments that are wider.
pub fn wide(root: &Path) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        gather(root, &root.join(folder), &mut found)?;
    }
    Ok(found)
}

fn gather(root: &Path, folder: &Path, found: &mut Vec<String>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            gather(root, &path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            found.extend(
                wide_lines(&text)
                    .map(|number| format!("{name}:{number}: a comment is wider than {COLUMNS_MAX} columns")),
            );
        }
    }
    Ok(())
}

/// The numbers of the lines with prose that is too wide. What is in columns, and code, cannot be broken
/// anywhere: it stands between fences, or begins with a blank, a bar or a prompt.
fn wide_lines(text: &str) -> impl Iterator<Item = usize> + '_ {
    let mut is_fenced = false;
    (1..).zip(text.lines()).filter_map(move |(number, line)| {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            is_fenced = false;
            return None;
        };
        let words = comment.trim_start_matches(['/', '!']);
        let words = words.strip_prefix(' ').unwrap_or(words);
        is_fenced ^= words.starts_with("```");
        let is_prose = !is_fenced && !words.starts_with([' ', '|', '>']) && words.contains(' ');
        (is_prose && line.chars().count() > COLUMNS_MAX).then_some(number)
    })
}

#[cfg(test)]
mod tests {
    use super::wide_lines;

    fn found(text: &str) -> Vec<usize> {
        wide_lines(text).collect()
    }

    #[test]
    fn wide_prose_is_found() {
        let words = "word ".repeat(22);
        for begin in ["// ", "    /// ", "//! ", "        // "] {
            assert_eq!(found(&format!("use a;\n{begin}{words}")), [2], "{begin:?}");
        }
        assert!(found(&format!("// {}", &words[..100])).is_empty());
        for other in ["let x = \"// ", "/// | ", "///     ", "/// >>> "] {
            assert!(found(&format!("{other}{words}")).is_empty(), "{other:?}");
        }
        assert_eq!(found(&format!("/// ```text\n/// {words}\n/// ```\n/// {words}")), [4]);
    }
}
