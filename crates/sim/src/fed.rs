//! Who keeps a copy of tables by the feed of changes: what it was told, and whether the tables are that.

use crate::rng::Rng;
use azekura::{Change, ChangeKind, Db, Error, FeedContent};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// What a script feeds, while its tables are empty: their numbers, what is told, and how many bytes of it are
/// kept.
pub fn plan(seed: u64) -> Vec<(usize, FeedContent, u64)> {
    let mut rng = Rng(seed ^ 0xfeed);
    let tables = 0..rng.below(3) as usize;
    let contents = [FeedContent::Both, FeedContent::Values, FeedContent::Keys];
    let kept = if rng.one_in(3) { 64 << 10 } else { 1 << 30 };
    tables.map(|table| (table, *rng.pick(&contents), kept)).collect()
}

/// Feeds a table.
///
/// # Errors
/// As the engine's.
pub fn begin(db: &Db, table: &str, content: FeedContent, kept: u64) -> Result<(), Error> {
    db.open_table(table)?.set_feed(Some(content))?;
    db.set_feed_limits(kept, None)
}

/// The tables that are fed, as they were told. Those that were fed when they had records already are known
/// once they were [copied](Replica::copy).
#[derive(Clone, Debug, Default)]
pub struct Replica {
    tables: BTreeMap<String, Copied>,
    /// The renames of the commit that is being told: they happen at once.
    renamed: Vec<(String, Copied)>,
    commit: u64,
}

#[derive(Clone, Debug)]
struct Copied {
    content: FeedContent,
    /// Where only keys are told the values are empty.
    records: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Replica {
    /// Makes a change. `is_exact`: nothing was told before, so the value before is that which is known.
    ///
    /// # Errors
    /// What cannot be: an old value that is another, or a commit that comes too late.
    pub fn apply(&mut self, change: &Change<'_>, is_exact: bool) -> Result<(), String> {
        let Change { commit, table: name, kind, .. } = *change;
        if commit < self.commit {
            return Err(format!("commit {commit} is told after commit {}", self.commit));
        }
        if commit > self.commit {
            self.settle();
        }
        self.commit = commit;
        if let ChangeKind::Begin { content } = kind {
            self.tables.insert(name.to_owned(), Copied { content, records: BTreeMap::new() });
            return Ok(());
        }
        if let ChangeKind::Rename { to } = kind {
            self.renamed.extend(self.tables.remove(name).map(|table| (to.to_owned(), table)));
            return Ok(());
        }
        let Some(table) = self.tables.get_mut(name) else { return Ok(()) };
        let wrong = |what: &str, key: &[u8]| format!("commit {commit}, table {name}: {what} of {key:02x?}");
        match kind {
            // Nobody is told that it has gone.
            ChangeKind::Put { key, old, .. } if has_gone(change) => {
                let before = table.records.remove(key);
                if is_exact && table.content == FeedContent::Both && before.as_deref() != old {
                    return Err(wrong("another old value", key));
                }
            }
            ChangeKind::Put { key, value, old } => {
                if value.is_none() != (table.content == FeedContent::Keys) {
                    return Err(wrong("a put with or without a value", key));
                }
                let before = table.records.insert(key.to_vec(), value.unwrap_or_default().to_vec());
                if is_exact && table.content == FeedContent::Both && before.as_deref() != old {
                    return Err(wrong("another old value", key));
                }
            }
            ChangeKind::Remove { key, old } => {
                let before = table.records.remove(key);
                if is_exact && table.content == FeedContent::Both && before.as_deref() != old {
                    return Err(wrong("another old value", key));
                }
            }
            ChangeKind::RemoveRange { start, end } => {
                table.records.retain(|key, _| &key[..] < start || end.is_some_and(|end| &key[..] >= end));
            }
            ChangeKind::Clear => table.records.clear(),
            ChangeKind::Drop | ChangeKind::Stop => drop(self.tables.remove(name)),
            other => return Err(format!("commit {commit}, table {name}: {other:?}")),
        }
        Ok(())
    }

    /// Tables have their new names when all of a commit was told.
    fn settle(&mut self) {
        self.tables.extend(self.renamed.drain(..));
    }

    /// Takes all changes after a commit that there are at present. Gives the commit up to which that is.
    ///
    /// # Errors
    /// As [`apply`](Replica::apply), and those of the feed, `FeedGap` apart.
    pub fn catch_up(&mut self, db: &Db, after: u64) -> Result<Option<u64>, String> {
        let mut told = || -> Result<Result<u64, String>, Error> {
            let mut feed = db.feed(after)?;
            while let Some(change) = feed.next()? {
                if let Err(e) = self.apply(&change, true) {
                    return Ok(Err(e));
                }
            }
            self.settle();
            Ok(Ok(feed.position()))
        };
        match told() {
            Err(Error::FeedGap { .. }) => Ok(None),
            Err(e) => Err(format!("the feed after commit {after}: {e}")),
            Ok(told) => told.map(Some),
        }
    }

    /// Copies the tables that are fed. Gives the commit after which the feed goes on from there.
    ///
    /// # Errors
    /// As the engine's.
    pub fn copy(&mut self, db: &Db) -> Result<Option<u64>, Error> {
        *self = Replica::default();
        let Some(info) = db.feed_info()? else { return Ok(None) };
        for fed in &info.tables {
            let mut records = BTreeMap::new();
            for record in db.open_table(&fed.name)?.cursor()?.owned() {
                let (key, value) = record?;
                records.insert(key, if fed.content == FeedContent::Keys { Vec::new() } else { value });
            }
            self.tables.insert(fed.name.clone(), Copied { content: fed.content, records });
        }
        Ok(Some(info.newest))
    }

    /// Whether the database has exactly these records in the tables that are known, and feeds each of them.
    ///
    /// # Errors
    /// Where they differ.
    pub fn expect(&self, db: &Db) -> Result<(), String> {
        let info = db.feed_info().map_err(|e| format!("what is fed: {e}"))?;
        for (name, told) in &self.tables {
            let is_fed = info.iter().flat_map(|info| &info.tables).any(|fed| fed.name == *name);
            if !is_fed {
                return Err(format!("table {name} is not fed any more, and nobody was told"));
            }
            let mut left = told.records.len();
            let cursor = db.open_table(name).and_then(|table| table.cursor());
            for record in cursor.map_err(|e| format!("table {name}: {e}"))?.owned() {
                let (key, value) = record.map_err(|e| format!("table {name}: {e}"))?;
                let is_told = match told.records.get(&key) {
                    Some(known) => told.content == FeedContent::Keys || *known == value,
                    None => false,
                };
                if !is_told {
                    return Err(format!("table {name}: the feed has not told the value of {key:02x?}"));
                }
                left -= 1;
            }
            if left > 0 {
                return Err(format!("table {name}: the feed has {left} records that are not there"));
            }
        }
        Ok(())
    }
}

/// Whether a record that was put has expired. In scripts it has at once, or lives for years. The clock of a
/// database may be ahead of the system's.
fn has_gone(change: &Change<'_>) -> bool {
    let soon = SystemTime::now() + Duration::from_secs(86_400);
    change.expires.is_some_and(|time| time <= soon)
}

/// Compares the tables that were fed from the beginning with what all of the feed tells of them.
///
/// # Errors
/// Where they differ.
pub fn compare(db: &Db) -> Result<(), String> {
    let Some(info) = db.feed_info().map_err(|e| format!("what is fed: {e}"))? else { return Ok(()) };
    let mut replica = Replica::default();
    match replica.catch_up(db, info.oldest)? {
        Some(commit) if commit == info.newest => replica.expect(db),
        end => Err(format!("the feed ends at commit {end:?}, the newest is {}", info.newest)),
    }
}
