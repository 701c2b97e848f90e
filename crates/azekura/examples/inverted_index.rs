//! A search in texts: which documents have all of some words, those that have them most often first.
//!
//! Two tables that change together: the texts, and for each word the documents in which it stands.

use azekura::{Db, Options, Result, TableDefinition, TypedTable};
use std::collections::BTreeMap;

/// The texts by their number.
const TEXTS: TableDefinition<u64, str> = TableDefinition::hash("texts");
/// How often a word stands in a text. All texts of a word are side by side.
const WORDS: TableDefinition<(String, u64), u32> = TableDefinition::ordered("words");

struct Index {
    db: Db,
    texts: TypedTable<u64, str>,
    words: TypedTable<(String, u64), u32>,
}

impl Index {
    fn open(path: &std::path::Path) -> Result<Index> {
        let db = Db::open(path, Options::new())?;
        Ok(Index { texts: db.typed_table(&TEXTS)?, words: db.typed_table(&WORDS)?, db })
    }

    /// Puts a text, in place of the one that had its number.
    fn put(&self, id: u64, text: &str) -> Result<()> {
        self.db.transact(|txn| {
            if let Some(old) = self.texts.write_in(txn).take(id)? {
                for word in counted(&old).into_keys() {
                    self.words.write_in(txn).remove((&word, id))?;
                }
            }
            for (word, times) in counted(text) {
                self.words.write_in(txn).put((&word, id), times)?;
            }
            self.texts.write_in(txn).put(id, text)
        })
    }

    /// The texts that have all the words, and how often they have them in all. One snapshot shows both
    /// tables.
    fn find(&self, wanted: &[&str]) -> Result<Vec<(u64, u32)>> {
        let snapshot = self.db.read();
        let words = self.words.read_in(&snapshot);
        let Some((first, others)) = wanted.split_first() else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        'texts: for record in words.prefix((*first,))? {
            let ((_, id), mut times) = record?;
            for other in others {
                let Some(more) = words.get((other, id))? else { continue 'texts };
                times += more;
            }
            found.push((id, times));
        }
        found.sort_by_key(|&(id, times)| (std::cmp::Reverse(times), id));
        Ok(found)
    }

    /// The words that begin so, as somebody types them.
    fn complete(&self, beginning: &str) -> Result<Vec<String>> {
        let mut words: Vec<String> = Vec::new();
        for record in self.words.range((beginning, 0)..)? {
            let ((word, _), _) = record?;
            if !word.starts_with(beginning) {
                break;
            }
            if words.last() != Some(&word) {
                words.push(word);
            }
        }
        Ok(words)
    }
}

/// The words of a text, and how often each stands there.
fn counted(text: &str) -> BTreeMap<String, u32> {
    let mut times = BTreeMap::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        *times.entry(word.to_lowercase()).or_default() += 1;
    }
    times
}

fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("azekura-inverted-index-{}.azk", std::process::id()));
    let index = Index::open(&path)?;
    index.put(1, "The store stands on piles; the logs of the store are cypress.")?;
    index.put(2, "A log is written before the store.")?;
    index.put(3, "Cypress grows slowly.")?;

    assert_eq!(index.find(&["store"])?, [(1, 2), (2, 1)]);
    assert_eq!(index.find(&["store", "cypress"])?, [(1, 3)]);
    assert_eq!(index.find(&["store", "oak"])?, []);
    assert_eq!(index.complete("lo")?, ["log", "logs"]);

    index.put(1, "Oak.")?;
    assert_eq!(index.find(&["store"])?, [(2, 1)]);
    assert_eq!(index.find(&["cypress"])?, [(3, 1)]);
    assert_eq!(index.texts.get(1)?.as_deref(), Some("Oak."));

    // All of it is there again after the program has ended.
    drop(index);
    let index = Index::open(&path)?;
    assert_eq!(index.find(&["oak"])?, [(1, 1)]);
    assert_eq!(index.texts.count()?, 3);
    drop(index);
    std::fs::remove_file(&path).expect("the example's file");
    Ok(())
}
