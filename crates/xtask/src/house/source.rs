//! The files of a crate, without their tests and comments.

use crate::runner::Failure;
use std::fs;
use std::path::{Path, PathBuf};

/// A file of a crate.
pub struct Source {
    /// Its path from the project's root.
    pub path: PathBuf,
    /// The modules from the crate's root to this file, such as `engine`, `commit`.
    pub modules: Vec<String>,
    /// Its lines before the tests. Comment lines are empty.
    pub lines: Vec<String>,
}

/// Where a file's tests begin.
const TESTS: &str = "#[cfg(test)]";
/// Files that hold only tests.
const TEST_FILES: [&str; 2] = ["tests", "models"];

/// The files of a folder, without those that hold only tests.
pub fn files(root: &Path, folder: &str) -> Result<Vec<Source>, Failure> {
    let mut found = Vec::new();
    gather(root, &root.join(folder), &mut Vec::new(), &mut found)?;
    Ok(found)
}

fn gather(
    root: &Path,
    folder: &Path,
    modules: &mut Vec<String>,
    found: &mut Vec<Source>,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(failed)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    entries.sort();
    for path in entries {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        if TEST_FILES.contains(&stem.as_str()) {
            continue;
        }
        let is_root = ["mod", "lib", "main"].contains(&stem.as_str());
        if !is_root {
            modules.push(stem);
        }
        if path.is_dir() {
            gather(root, &path, modules, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let path = path.strip_prefix(root).unwrap_or(&path).to_owned();
            found.push(Source { path, modules: modules.clone(), lines: code_of(&text) });
        }
        if !is_root {
            modules.pop();
        }
    }
    Ok(())
}

/// The lines before the tests, which come last in a file.
pub fn code_of(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let begins = |at: usize| {
        lines[at] == TESTS
            && lines.get(at + 1).is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'))
    };
    let end = (0..lines.len()).find(|&at| begins(at)).unwrap_or(lines.len());
    let code =
        |line: &&str| if line.trim_start().starts_with("//") { String::new() } else { (*line).to_owned() };
    lines[..end].iter().map(code).collect()
}

#[cfg(test)]
mod tests {
    use super::code_of;

    #[test]
    fn tests_and_comments_are_left_out() {
        let text = "//! Doc.\nuse a;\n#[cfg(test)]\nmod tests;\n    // b\nfn f() {}\n#[cfg(test)]\nmod tests {\n    c\n}\n";
        assert_eq!(code_of(text), ["", "use a;", "#[cfg(test)]", "mod tests;", "", "fn f() {}"]);
    }
}
