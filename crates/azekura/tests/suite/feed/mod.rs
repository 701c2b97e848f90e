//! The feed of changes: whoever applies it has the tables that are fed, whatever is done, and after every
//! cut.

mod begin;
mod old;
mod random;
mod rules;
mod threads;

use azekura::{ChangeKind, Db, Feed, Options};
use std::collections::BTreeMap;
use std::time::Duration;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Without threads, so that nothing is written but when a test says so.
fn options() -> Options {
    crate::common::watch(Duration::from_secs(120));
    Options::new().memory_bytes(8 << 20).threads(false)
}

/// Tables as the feed tells of them.
#[derive(Default, Clone, Debug, PartialEq)]
struct Replica {
    tables: BTreeMap<String, Map>,
    commit: u64,
}

impl Replica {
    /// Applies all that the feed has at present.
    fn catch_up(&mut self, feed: &mut Feed) -> azekura::Result<()> {
        while let Some(change) = feed.next()? {
            assert!(change.commit >= self.commit, "commit {} after {}", change.commit, self.commit);
            self.commit = change.commit;
            if let ChangeKind::Rename { to } = change.kind {
                let table = self.tables.remove(change.table).unwrap_or_default();
                self.tables.insert(to.to_owned(), table);
                continue;
            }
            let table = self.tables.entry(change.table.to_owned()).or_default();
            match change.kind {
                ChangeKind::Put { key, value, old } => {
                    let before = table.insert(key.to_vec(), value.unwrap_or(b"(no value)").to_vec());
                    assert!(old.is_none() || before.as_deref() == old, "the value before {key:?}");
                }
                ChangeKind::Remove { key, old } => {
                    let before = table.remove(key);
                    assert!(old.is_none() || before.as_deref() == old, "the value before {key:?}");
                }
                // In these tests a table is empty when it begins to be fed.
                ChangeKind::Begin { .. } | ChangeKind::Stop => {}
                ChangeKind::RemoveRange { start, end } => {
                    table.retain(|key, _| &key[..] < start || end.is_some_and(|end| &key[..] >= end));
                }
                ChangeKind::Clear | ChangeKind::Drop => table.clear(),
                other => panic!("{other:?}"),
            }
        }
        Ok(())
    }

    fn table(&self, name: &str) -> Map {
        self.tables.get(name).cloned().unwrap_or_default()
    }
}

/// A table as it is.
fn contents(db: &Db, name: &str) -> Map {
    let table = db.open_table(name).unwrap();
    let all = table.iter().unwrap().map(|record| record.unwrap());
    all.collect()
}

fn newest(db: &Db) -> u64 {
    db.feed_info().unwrap().unwrap().newest
}
