//! No circle of files: the imports of a file, and theirs, and so on, never lead back to it.
//!
//! A file imports another if it names something that is defined there, by a `use` line or by a path. What a
//! file only hands on (`pub use`) leads to where it is defined. Declaring a module is no import.

mod paths;
mod resolve;
mod words;

use super::source::Source;
use resolve::{Import, Modules};

/// The circles of a crate.
pub fn circles(folder: &str, files: &[Source]) -> Vec<String> {
    let imports = Modules::new(files).imports();
    strong(&imports).iter().map(|circle| described(folder, files, circle, &imports)).collect()
}

/// A file's path below its crate's folder.
fn below(folder: &str, file: &Source) -> String {
    file.path.strip_prefix(folder).unwrap_or(&file.path).display().to_string()
}

/// The files of a circle, and a shortest way round.
fn described(folder: &str, files: &[Source], circle: &[usize], imports: &[Vec<Import>]) -> String {
    let name = |file: usize| below(folder, &files[file]);
    let rounds = circle.iter().map(|&file| round(file, imports));
    let shortest = rounds.min_by_key(Vec::len).unwrap_or_default();
    let steps: Vec<String> = shortest
        .iter()
        .map(|&(file, ref import)| format!("{}:{} imports {}", name(file), import.line, name(import.file)))
        .collect();
    let names: Vec<String> = circle.iter().map(|&file| name(file)).collect();
    format!("{folder}: a circle of {} files ({}): {}", names.len(), names.join(", "), steps.join(", "))
}

/// A shortest way from a file back to it.
fn round(start: usize, imports: &[Vec<Import>]) -> Vec<(usize, Import)> {
    let mut came: Vec<Option<(usize, Import)>> = vec![None; imports.len()];
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(file) = queue.pop_front() {
        for &import in &imports[file] {
            if came[import.file].is_none() {
                came[import.file] = Some((file, import));
                queue.push_back(import.file);
            }
        }
    }
    let mut way = Vec::new();
    let mut at = start;
    while let Some((file, import)) = came[at] {
        way.push((file, import));
        at = file;
        if at == start {
            break;
        }
    }
    way.reverse();
    way
}

/// The sets of more than one file of which each leads to each other.
fn strong(imports: &[Vec<Import>]) -> Vec<Vec<usize>> {
    let reached: Vec<Vec<bool>> = (0..imports.len()).map(|file| reach(file, imports)).collect();
    let mut placed = vec![false; imports.len()];
    let mut circles = Vec::new();
    for file in 0..imports.len() {
        if placed[file] {
            continue;
        }
        let circle: Vec<usize> =
            (file..imports.len()).filter(|&other| reached[file][other] && reached[other][file]).collect();
        for &other in &circle {
            placed[other] = true;
        }
        if circle.len() > 1 {
            circles.push(circle);
        }
    }
    circles
}

/// Which files one leads to.
fn reach(start: usize, imports: &[Vec<Import>]) -> Vec<bool> {
    let mut reached = vec![false; imports.len()];
    let mut left = vec![start];
    while let Some(file) = left.pop() {
        for import in &imports[file] {
            if !std::mem::replace(&mut reached[import.file], true) {
                left.push(import.file);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests;
