//! From a path to the file where what it names is defined.

use super::paths::{Path, Paths, paths};
use super::words::words;
use crate::house::source::Source;
use std::collections::HashMap;

/// What a file imports of another.
#[derive(Clone, Copy, Debug)]
pub struct Import {
    /// The first line that names it.
    pub line: usize,
    pub file: usize,
}

/// The files of a crate by the names of their modules.
pub struct Modules<'a> {
    files: &'a [Source],
    paths: Vec<Paths>,
    by_name: HashMap<&'a [String], usize>,
}

/// What a path leads to.
#[derive(PartialEq)]
enum Found {
    /// Something that the file defines.
    In(usize),
    /// The module itself.
    Module(usize),
    /// Nothing of this crate.
    Elsewhere,
}

/// A chain of names handed on that is longer turns in itself.
const HANDED_ON_MAX: u32 = 16;

impl<'a> Modules<'a> {
    pub fn new(files: &'a [Source]) -> Modules<'a> {
        let texts = files.iter().map(|file| file.lines.join("\n"));
        let paths = texts.map(|text| paths(&words(&text))).collect();
        let mut by_name = HashMap::new();
        for (at, file) in files.iter().enumerate() {
            // A crate's library comes before its program.
            by_name.entry(file.modules.as_slice()).or_insert(at);
        }
        Modules { files, paths, by_name }
    }

    /// What each file imports.
    pub fn imports(&self) -> Vec<Vec<Import>> {
        (0..self.files.len()).map(|file| self.imports_of(file)).collect()
    }

    fn imports_of(&self, file: usize) -> Vec<Import> {
        let own = &self.paths[file];
        // What is only handed on is no import. A trait's methods are used without its name.
        let used = own.uses.iter().filter(|one| !one.public || own.names.contains(&one.name));
        let brought = used.map(|one| (one.line, self.resolve(file, &one.path, 0)));
        let named = own.code.iter().map(|Path { line, path }| (*line, self.resolve(file, path, 0)));
        let mut imports: Vec<Import> = brought
            .chain(named)
            .filter_map(|(line, found)| match found {
                Found::In(other) if other != file => Some(Import { line, file: other }),
                _ => None,
            })
            .collect();
        imports.sort_by_key(|import| (import.file, import.line));
        imports.dedup_by_key(|import| import.file);
        imports
    }

    /// What a path means in a file.
    fn resolve(&self, file: usize, path: &[String], depth: u32) -> Found {
        let mut at = file;
        let mut rest = path;
        while let [first, others @ ..] = rest {
            let up = match first.as_str() {
                "crate" => self.by_name.get(&[] as &[String]).copied(),
                "super" => self.above(at),
                "self" => Some(at),
                _ => break,
            };
            let Some(up) = up else { return Found::Elsewhere };
            at = up;
            rest = others;
        }
        if rest.is_empty() { Found::Module(at) } else { self.within(at, rest, depth) }
    }

    /// What a path means that begins in a module.
    fn within(&self, module: usize, path: &[String], depth: u32) -> Found {
        let [first, rest @ ..] = path else { return Found::Module(module) };
        if depth > HANDED_ON_MAX {
            return Found::Elsewhere;
        }
        if let Some(child) = self.child(module, first) {
            return if rest.is_empty() { Found::Module(child) } else { self.within(child, rest, depth) };
        }
        let uses = &self.paths[module].uses;
        if let Some(handed) = uses.iter().find(|one| one.name == *first) {
            if handed.path.first() == Some(first) {
                // `use first;` of another crate.
                return Found::Elsewhere;
            }
            let path = [handed.path.as_slice(), rest].concat();
            return self.resolve(module, &path, depth + 1);
        }
        if self.paths[module].names.contains(first) {
            return Found::In(module);
        }
        let all = uses.iter().filter(|one| one.name == "*" && one.public);
        all.map(|one| self.resolve(module, &[one.path.as_slice(), path].concat(), depth + 1))
            .find(|found| *found != Found::Elsewhere)
            .unwrap_or(Found::Elsewhere)
    }

    fn child(&self, module: usize, name: &String) -> Option<usize> {
        let path = [self.files[module].modules.as_slice(), std::slice::from_ref(name)].concat();
        self.by_name.get(path.as_slice()).copied()
    }

    fn above(&self, module: usize) -> Option<usize> {
        let (_, above) = self.files[module].modules.split_last()?;
        self.by_name.get(above).copied()
    }
}
