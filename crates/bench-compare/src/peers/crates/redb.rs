//! redb: a copy-on-write B-tree in one file.

use super::locked::locked_version;
use crate::failure::{Failure, Result};
use crate::peers::{About, Changes, Open, Peer, Reader, Store, Way, Writer};
use crate::records::ScanSum;
use redb::{
    AccessGuard, Database, Durability, Range, ReadOnlyTable, ReadableDatabase as _, ReadableTable as _,
    Table, TableDefinition, WriteTransaction,
};
use std::ops::Bound;

const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("bench");
/// What was changed, if it is told: key and new value, by a number that ascends.
const CHANGES: TableDefinition<u64, (&[u8], &[u8])> = TableDefinition::new("changes");

pub struct RedbPeer {
    pub about: About,
}

impl Peer for RedbPeer {
    fn about(&self) -> &About {
        &self.about
    }

    fn version(&self) -> String {
        locked_version("redb")
    }

    fn configuration(&self) -> String {
        "set_cache_size(budget), Durability::None, or Immediate when durable; a transaction's changes are kept here \
         and made at its commit, with the table open once; one read transaction a phase, a new one at each get beside a writer; \
         counters are got and inserted at the commit; for the feed workload a second table by a u64, inserted into in \
         the same transaction"
            .to_owned()
    }

    fn open(&self, how: &Open) -> Result<Box<dyn Store>> {
        let name = self.about.name;
        let path = how.dir.join("data.redb");
        let mut builder = Database::builder();
        builder.set_cache_size(usize::try_from(how.budget_bytes).unwrap_or(usize::MAX));
        let opened = if how.create { builder.create(path) } else { builder.open(path) };
        let db = opened.map_err(|error| Failure::peer(name, "Database::open", &error))?;
        let durability = if how.durable { Durability::Immediate } else { Durability::None };
        let store = RedbStore { name, db, durability, fed: how.fed };
        if how.create {
            let txn = store.begin(Durability::Immediate)?;
            txn.open_table(TABLE).map_err(store.failed("open_table"))?;
            if how.fed {
                txn.open_table(CHANGES).map_err(store.failed("open_table"))?;
            }
            txn.commit().map_err(store.failed("commit"))?;
        }
        Ok(Box::new(store))
    }
}

struct RedbStore {
    name: &'static str,
    db: Database,
    durability: Durability,
    fed: bool,
}

impl RedbStore {
    fn failed<E: std::fmt::Display>(&self, call: &'static str) -> impl FnOnce(E) -> Failure {
        let name = self.name;
        move |error| Failure::peer(name, call, &error)
    }

    fn begin(&self, durability: Durability) -> Result<WriteTransaction> {
        let mut txn = self.db.begin_write().map_err(self.failed("begin_write"))?;
        txn.set_durability(durability).map_err(self.failed("set_durability"))?;
        Ok(txn)
    }

    fn read(&self) -> Result<ReadOnlyTable<&'static [u8], &'static [u8]>> {
        let txn = self.db.begin_read().map_err(self.failed("begin_read"))?;
        txn.open_table(TABLE).map_err(self.failed("open_table"))
    }
}

impl Store for RedbStore {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(RedbWriter { store: self, bytes: Vec::new(), changes: Vec::new() }))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(RedbReader { store: self, table: self.read()?, value: None }))
    }

    fn changes(&self) -> Result<Option<Box<dyn Changes + '_>>> {
        let changes = RedbChanges { store: self, next: 0 };
        Ok(self.fed.then(|| -> Box<dyn Changes> { Box::new(changes) }))
    }

    fn sync(&self) -> Result<()> {
        self.begin(Durability::Immediate)?.commit().map_err(self.failed("commit"))
    }

    fn settle(&self) -> Result<bool> {
        // `compact` needs the database to itself, and there is no background work.
        Ok(false)
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { name, db, .. } = *self;
        db.close().map_err(|error| Failure::peer(name, "Database::close", &error))
    }
}

/// What becomes of a key.
enum Becomes {
    /// Where its value lies in the kept bytes.
    Value(std::ops::Range<usize>),
    Removed,
    /// So much is added to the number that it has.
    More(u64),
}

/// A change in a transaction: where its key lies in the kept bytes.
struct Change {
    key: std::ops::Range<usize>,
    becomes: Becomes,
}

/// An open table borrows its transaction, so one cannot keep both. The changes are made at the commit.
struct RedbWriter<'store> {
    store: &'store RedbStore,
    bytes: Vec<u8>,
    changes: Vec<Change>,
}

impl RedbWriter<'_> {
    fn keep(&mut self, bytes: &[u8]) -> std::ops::Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    fn make_changes(&self, txn: &WriteTransaction) -> Result<()> {
        let mut table = txn.open_table(TABLE).map_err(self.store.failed("open_table"))?;
        for change in &self.changes {
            let key = &self.bytes[change.key.clone()];
            match &change.becomes {
                Becomes::Value(value) => {
                    table.insert(key, &self.bytes[value.clone()]).map_err(self.store.failed("insert"))?;
                }
                Becomes::Removed => {
                    table.remove(key).map_err(self.store.failed("remove"))?;
                }
                Becomes::More(n) => self.add_to(&mut table, key, *n)?,
            }
        }
        if self.store.fed { self.tell(txn) } else { Ok(()) }
    }

    fn add_to(&self, table: &mut Table<'_, &[u8], &[u8]>, key: &[u8], n: u64) -> Result<()> {
        let old = table.get(key).map_err(self.store.failed("get"))?;
        let old = old.and_then(|old| Some(u64::from_le_bytes(old.value().try_into().ok()?))).unwrap_or(0);
        let sum = old.wrapping_add(n).to_le_bytes();
        table.insert(key, sum.as_slice()).map_err(self.store.failed("insert"))?;
        Ok(())
    }

    fn tell(&self, txn: &WriteTransaction) -> Result<()> {
        let mut told = txn.open_table(CHANGES).map_err(self.store.failed("open_table"))?;
        let last = told.last().map_err(self.store.failed("last"))?;
        let next = last.map_or(0, |(number, _)| number.value() + 1);
        for (number, change) in (next..).zip(&self.changes) {
            let value = match &change.becomes {
                Becomes::Value(value) => &self.bytes[value.clone()],
                Becomes::Removed | Becomes::More(_) => &[],
            };
            let told = told.insert(number, (&self.bytes[change.key.clone()], value));
            told.map_err(self.store.failed("insert"))?;
        }
        Ok(())
    }
}

impl Writer for RedbWriter<'_> {
    fn begin(&mut self) -> Result<()> {
        self.bytes.clear();
        self.changes.clear();
        Ok(())
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (key, value) = (self.keep(key), self.keep(value));
        self.changes.push(Change { key, becomes: Becomes::Value(value) });
        Ok(())
    }

    #[inline]
    fn add(&mut self, key: &[u8], n: u64) -> Result<bool> {
        let key = self.keep(key);
        self.changes.push(Change { key, becomes: Becomes::More(n) });
        Ok(true)
    }

    #[inline]
    fn remove(&mut self, key: &[u8]) -> Result<()> {
        let key = self.keep(key);
        self.changes.push(Change { key, becomes: Becomes::Removed });
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let txn = self.store.begin(self.store.durability)?;
        self.make_changes(&txn)?;
        txn.commit().map_err(self.store.failed("commit"))
    }
}

struct RedbChanges<'store> {
    store: &'store RedbStore,
    next: u64,
}

impl Changes for RedbChanges<'_> {
    fn take(&mut self, limit: u64) -> Result<ScanSum> {
        let txn = self.store.db.begin_read().map_err(self.store.failed("begin_read"))?;
        let table = txn.open_table(CHANGES).map_err(self.store.failed("open_table"))?;
        let mut seen = ScanSum::default();
        for change in table.range(self.next..).map_err(self.store.failed("range"))? {
            let (number, change) = change.map_err(self.store.failed("Range::next"))?;
            let (key, value) = change.value();
            seen.add(key, value);
            self.next = number.value() + 1;
            if seen.records >= limit {
                break;
            }
        }
        Ok(seen)
    }
}

struct RedbReader<'store> {
    store: &'store RedbStore,
    table: ReadOnlyTable<&'static [u8], &'static [u8]>,
    /// Keeps the last value that was returned in place.
    value: Option<AccessGuard<'static, &'static [u8]>>,
}

impl RedbReader<'_> {
    fn between(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
    ) -> Result<Range<'static, &'static [u8], &'static [u8]>> {
        self.table.range::<&[u8]>(bounds).map_err(self.store.failed("range"))
    }
}

impl Reader for RedbReader<'_> {
    fn refresh(&mut self) -> Result<()> {
        self.value = None;
        self.table = self.store.read()?;
        Ok(())
    }

    #[inline]
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.value = self.table.get(key).map_err(self.store.failed("get"))?;
        Ok(self.value.as_ref().map(AccessGuard::value))
    }

    fn scan(&mut self) -> Result<ScanSum> {
        Ok(self.range(None, u64::MAX, Way::Up)?.unwrap_or_default())
    }

    fn range(&mut self, from: Option<&[u8]>, limit: u64, way: Way) -> Result<Option<ScanSum>> {
        let from = from.map_or(Bound::Unbounded, Bound::Included);
        let mut records = match way {
            Way::Up => self.between((from, Bound::Unbounded))?,
            Way::Down => self.between((Bound::Unbounded, from))?,
        };
        let mut seen = ScanSum::default();
        while seen.records < limit {
            let record = if way == Way::Up { records.next() } else { records.next_back() };
            let Some(record) = record else { break };
            let (key, value) = record.map_err(self.store.failed("Range::next"))?;
            seen.add(key.value(), value.value());
        }
        Ok(Some(seen))
    }
}
