//! The words of a file: names and signs, each with its line. Strings, comments and lifetimes are left out,
//! and so is what is compiled for tests only.

/// A name, `::`, or another sign.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    pub line: usize,
    pub text: &'a str,
}

impl Word<'_> {
    pub fn is_name(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphabetic() || c == '_')
    }
}

/// The words of the program's own code.
pub fn words(text: &str) -> Vec<Word<'_>> {
    without_tests(&all_words(text))
}

fn all_words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut line = 1;
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let len = length(rest, first);
        let word = &rest[..len];
        if !first.is_whitespace() && !passed_over(word) {
            words.push(Word { line, text: word });
        }
        line += word.matches('\n').count();
        at += len;
    }
    words
}

/// Whether a word says nothing about imports.
fn passed_over(word: &str) -> bool {
    word.starts_with("//") || word.starts_with("/*") || word.contains(['"', '\''])
}

/// The length of the word at the beginning of `rest`, in bytes.
fn length(rest: &str, first: char) -> usize {
    let up_to = |end: &str| rest.find(end).map_or(rest.len(), |at| at + end.len());
    if rest.starts_with("//") {
        rest.find('\n').unwrap_or(rest.len())
    } else if rest.starts_with("/*") {
        up_to("*/")
    } else if first == '"' {
        string(rest)
    } else if first == '\'' {
        character(rest)
    } else if first.is_alphanumeric() || first == '_' {
        let len = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        len + after_prefix(&rest[..len], &rest[len..])
    } else if rest.starts_with("::") {
        2
    } else {
        first.len_utf8()
    }
}

/// The length of a string whose prefix ends here: `b"..."`, `r#"..."#`.
fn after_prefix(name: &str, rest: &str) -> usize {
    if !["b", "c", "r", "br", "cr"].contains(&name) {
        return 0;
    }
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    if !rest[hashes..].starts_with('"') {
        return 0;
    }
    if !name.ends_with('r') {
        return string(rest);
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let body = hashes + 1;
    rest[body..].find(&end).map_or(rest.len(), |at| body + at + end.len())
}

fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == '"' && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    rest.len()
}

/// A character, or the name of a lifetime.
fn character(rest: &str) -> usize {
    let mut inside = rest.chars().skip(1);
    let first = inside.next().unwrap_or_default();
    if first == '\\' {
        // The character after the backslash is no end.
        return rest[3..].find('\'').map_or(rest.len(), |at| 3 + at + 1);
    }
    if inside.next() == Some('\'') {
        return 2 + first.len_utf8();
    }
    rest[1..].find(|c: char| !c.is_alphanumeric() && c != '_').map_or(rest.len(), |at| 1 + at)
}

/// Leaves out each item after `#[cfg(test)]`.
fn without_tests<'a>(words: &[Word<'a>]) -> Vec<Word<'a>> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let marked = words[at..].iter().take(MARK.len()).map(|word| word.text).eq(MARK)
            && at + MARK.len() < words.len();
        if marked {
            at += MARK.len();
            at += item(&words[at..]);
        } else {
            kept.push(words[at]);
            at += 1;
        }
    }
    kept
}

/// How many words an item has: to its body's end, or to the sign that ends it.
fn item(words: &[Word<'_>]) -> usize {
    let mut depth = 0;
    for (at, word) in words.iter().enumerate() {
        match word.text {
            "{" | "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            "}" if depth == 1 => return at + 1,
            "}" => depth -= 1,
            ";" | "," if depth == 0 => return at + 1,
            _ => {}
        }
    }
    words.len()
}

#[cfg(test)]
mod tests {
    use super::words;

    fn texts(text: &str) -> Vec<&str> {
        words(text).iter().map(|word| word.text).collect()
    }

    #[test]
    fn strings_comments_and_lifetimes_are_left_out() {
        let text = "a // b::c\n/* d\n */ e(\"f \\\" g\", 'h', '\\'', r#\"i \" j\"#, b\"k\") & 'l m";
        assert_eq!(texts(text), ["a", "e", "(", ",", ",", ",", ",", ")", "&", "m"]);
        assert_eq!(words(text)[1].line, 3);
    }

    #[test]
    fn what_is_for_tests_is_left_out() {
        let text = "#[cfg(test)]\nuse a::b;\nc { #[cfg(test)] d: E, f }\n#[cfg(test)]\nfn g(h: I) { {} }\nj";
        assert_eq!(texts(text), ["c", "{", "f", "}", "j"]);
        assert_eq!(texts("#[cfg(not(test))] use a;").last(), Some(&";"));
    }
}
