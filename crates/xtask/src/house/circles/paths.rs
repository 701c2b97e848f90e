//! The paths of a file: what its `use` lines bring in, and what it names by a path elsewhere.

use super::words::Word;
use std::collections::HashSet;

/// One name that a `use` line brings in.
#[derive(Debug)]
pub struct Use {
    pub line: usize,
    pub path: Vec<String>,
    /// What it is called here; `*` for all names of a module.
    pub name: String,
    /// Whether other files may take it from here.
    pub public: bool,
}

/// A path in the code, such as `crate::log::Log`.
#[derive(Debug)]
pub struct Path {
    pub line: usize,
    pub path: Vec<String>,
}

/// What a file names.
#[derive(Debug, Default)]
pub struct Paths {
    pub uses: Vec<Use>,
    pub code: Vec<Path>,
    /// Every name outside `use` lines.
    pub names: HashSet<String>,
}

/// The paths of a file's words.
pub fn paths(words: &[Word<'_>]) -> Paths {
    let mut found = Paths::default();
    let mut at = 0;
    while at < words.len() {
        let text = |at: usize| words.get(at).map_or("", |word| word.text);
        if text(at) == "use" && text(at + 1) != "<" {
            let end = (at..words.len()).find(|&end| text(end) == ";").unwrap_or(words.len());
            let public = at > 0 && ["pub", ")"].contains(&text(at - 1));
            Tree { words: &words[at + 1..end], at: 0, public, uses: &mut found.uses }.branch(&[]);
            at = end + 1;
        } else if text(at) == "mod" {
            at += 2;
        } else if words[at].is_name() {
            let path = path(&words[at..]);
            let of_a_macro = at > 0 && text(at - 1) == "$";
            found.names.extend(path.iter().cloned());
            at += 2 * path.len() - 1;
            if path.len() > 1 && !of_a_macro {
                found.code.push(Path { line: words[at - 1].line, path });
            }
        } else {
            at += 1;
        }
    }
    found
}

/// The names at the beginning of `words`, as far as `::` joins them.
fn path(words: &[Word<'_>]) -> Vec<String> {
    let mut names = vec![words[0].text.to_owned()];
    let mut rest = &words[1..];
    while let [sign, name, others @ ..] = rest {
        if sign.text != "::" || !name.is_name() {
            break;
        }
        names.push(name.text.to_owned());
        rest = others;
    }
    names
}

/// The tree of a `use` line.
struct Tree<'a, 'w> {
    words: &'a [Word<'w>],
    at: usize,
    public: bool,
    uses: &'a mut Vec<Use>,
}

impl Tree<'_, '_> {
    /// A path with what it ends in: a name, a name with another name, `*`, or a list of branches.
    fn branch(&mut self, before: &[String]) {
        let mut path = before.to_vec();
        while let Some(word) = self.words.get(self.at).copied() {
            self.at += 1;
            match word.text {
                "::" => {}
                "{" => return self.list(&path),
                "*" => return self.bring(word.line, path, "*".to_owned()),
                name => {
                    // `self` in a list is the module before it.
                    if name != "self" || path.is_empty() {
                        path.push(name.to_owned());
                    }
                    if self.next() != "::" {
                        let name = self.renamed().or_else(|| path.last().cloned()).unwrap_or_default();
                        return self.bring(word.line, path, name);
                    }
                }
            }
        }
    }

    fn list(&mut self, path: &[String]) {
        while !["}", ""].contains(&self.next()) {
            if self.next() == "," {
                self.at += 1;
            } else {
                self.branch(path);
            }
        }
        self.at += 1;
    }

    fn renamed(&mut self) -> Option<String> {
        let renamed = self.next() == "as";
        self.at += 2 * usize::from(renamed);
        renamed.then(|| self.words.get(self.at - 1).map_or("_", |word| word.text).to_owned())
    }

    fn next(&self) -> &str {
        self.words.get(self.at).map_or("", |word| word.text)
    }

    fn bring(&mut self, line: usize, path: Vec<String>, name: String) {
        self.uses.push(Use { line, path, name, public: self.public });
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::paths;

    #[test]
    fn every_form_of_a_use_line_is_read() {
        let text = "use a::b;\npub(crate) use c::{self, d::{E, F as G},\n h::*,};\nuse ::i as j;";
        let found = paths(&words(text));
        let seen: Vec<_> = found
            .uses
            .iter()
            .map(|one| format!("{} {} {} {}", one.line, one.path.join("::"), one.name, one.public))
            .collect();
        let wanted = [
            "1 a::b b false",
            "2 c c true",
            "2 c::d::E E true",
            "2 c::d::F G true",
            "3 c::h * true",
            "4 i j false",
        ];
        assert_eq!(seen, wanted);
    }

    #[test]
    fn paths_in_the_code_are_found() {
        let found =
            paths(&words("fn f() -> impl X + use<'_> { a::b::<C>(crate::d::E::new()); $crate::g() }"));
        let seen: Vec<_> = found.code.iter().map(|path| path.path.join("::")).collect();
        assert_eq!(seen, ["a::b", "crate::d::E::new"]);
        assert!(found.names.contains("X") && found.names.contains("C"));
    }
}
