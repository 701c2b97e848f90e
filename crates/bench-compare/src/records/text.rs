//! Text keys that look like addresses of pages: 8 to 40 bytes, many with a common prefix.

use super::buffer::KeyBuffer;
use super::mix::mix;

/// How many prefixes there are. Each stands for a directory of a site.
const PREFIXES: u64 = 4096;
const PREFIX_BYTES_MIN: usize = 4;
const PREFIX_BYTES_MAX: usize = 32;
/// The least and most base-36 digits at the end, which tell the keys of a prefix apart.
const DIGITS_MIN: usize = 4;
const DIGITS_MAX: usize = 8;

const SITES: [&str; 16] = [
    "a.jp",
    "kura.jp",
    "mori.or.jp",
    "tera.example",
    "www.shoso.jp",
    "hinoki.net",
    "ise.jp",
    "www.todai.example",
    "nara.lg.jp",
    "wiki.example.org",
    "kiln.io",
    "rice.store",
    "cdn.yayoi.net",
    "b.tv",
    "azuma.ac.jp",
    "log.house",
];
const WORDS: [&str; 16] = [
    "", "img", "news", "p", "user", "archive", "2026", "en", "ja", "item", "tag", "search", "docs", "blog",
    "api", "v",
];

/// Makes text keys from identifiers.
#[derive(Debug)]
pub struct TextKeys {
    prefixes: Vec<String>,
}

impl TextKeys {
    /// Always makes the same keys.
    pub fn new() -> Self {
        let prefixes = (0..PREFIXES).map(prefix).collect();
        Self { prefixes }
    }

    /// The key of an identifier below 36⁸. Distinct identifiers give distinct keys, because the identifier
    /// follows the last slash.
    #[inline]
    pub fn write(&self, id: u64, key: &mut KeyBuffer) {
        const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
        let prefix = &self.prefixes[index(mix(id) % PREFIXES)];
        let mut digits = [b'0'; DIGITS_MAX];
        let mut at = DIGITS_MAX;
        let mut left = id;
        while left > 0 || at > DIGITS_MAX - DIGITS_MIN {
            at -= 1;
            digits[at] = DIGITS[index(left % 36)];
            left /= 36;
        }
        key.clear();
        key.push(prefix.as_bytes());
        key.push(&digits[at..]);
    }
}

fn index(small: u64) -> usize {
    usize::try_from(small).expect("an index below a few thousand")
}

/// One prefix. It ends in a slash.
fn prefix(number: u64) -> String {
    let mut random = mix(number ^ 0x7E87);
    let mut take = |below: usize| {
        let below = u64::try_from(below).expect("a small count");
        let choice = random % below;
        random = mix(random);
        index(choice)
    };
    let mut text = String::from(SITES[take(SITES.len())]);
    for _ in 0..take(4) {
        text.push('/');
        text.push_str(WORDS[take(WORDS.len())]);
    }
    text.push('/');
    if text.len() > PREFIX_BYTES_MAX {
        text.truncate(PREFIX_BYTES_MAX - 1);
        text.push('/');
    }
    debug_assert!(text.len() >= PREFIX_BYTES_MIN);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_are_distinct_and_within_their_lengths() {
        let text = TextKeys::new();
        let mut seen = HashSet::new();
        let mut key = KeyBuffer::default();
        for id in (0..20_000).chain((1 << 33)..(1 << 33) + 20_000) {
            text.write(id, &mut key);
            assert!((8..=40).contains(&key.bytes().len()));
            assert!(seen.insert(key.bytes().to_vec()), "twice: {:?}", key.bytes());
        }
    }
}
