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
            let wide = (1..).zip(text.lines()).filter(|(_, line)| is_wide(line));
            found.extend(wide.map(|(number, _)| {
                format!("{name}:{number}: a comment is wider than {COLUMNS_MAX} columns")
            }));
        }
    }
    Ok(())
}

/// Whether a line is a comment in prose that is too wide. What is in columns (it begins with a blank or a
/// bar), and code, cannot be broken anywhere.
fn is_wide(line: &str) -> bool {
    let Some(comment) = line.trim_start().strip_prefix("//") else { return false };
    let text = comment.trim_start_matches(['/', '!']);
    let text = text.strip_prefix(' ').unwrap_or(text);
    let is_prose = !text.starts_with([' ', '|', '#']) && !text.ends_with([';', '{', '}', '?']);
    line.chars().count() > COLUMNS_MAX && is_prose && text.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::is_wide;

    #[test]
    fn wide_prose_is_found() {
        let words = "word ".repeat(22);
        for begin in ["// ", "    /// ", "//! ", "        // "] {
            assert!(is_wide(&format!("{begin}{words}")), "{begin:?}");
        }
        assert!(!is_wide(&format!("// {}", &words[..100])));
        for other in ["let x = \"// ", "/// | ", "///     ", "/// # let "] {
            assert!(!is_wide(&format!("{other}{words}")), "{other:?}");
        }
        assert!(!is_wide(&format!("/// let path = {words};")));
    }
}
