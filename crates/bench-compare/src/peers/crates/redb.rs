//! redb: a copy-on-write B-tree in one file.

use super::locked::locked_version;
use crate::failure::{Failure, Result};
use crate::peers::{About, Open, Peer, Reader, Store, Way, Writer};
use crate::records::ScanSum;
use redb::{
    AccessGuard, Database, Durability, Range, ReadOnlyTable, ReadableDatabase as _, TableDefinition,
    WriteTransaction,
};
use std::ops::Bound;

const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("bench");

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
         and made at its commit, with the table open once; one read transaction a phase, a new one at each get beside a writer"
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
        let store = RedbStore { name, db, durability };
        if how.create {
            let txn = store.begin(Durability::Immediate)?;
            txn.open_table(TABLE).map_err(store.failed("open_table"))?;
            txn.commit().map_err(store.failed("commit"))?;
        }
        Ok(Box::new(store))
    }
}

struct RedbStore {
    name: &'static str,
    db: Database,
    durability: Durability,
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

/// A change in a transaction: where its key and value lie in the kept bytes.
struct Change {
    key: std::ops::Range<usize>,
    /// `None` if the key is removed.
    value: Option<std::ops::Range<usize>>,
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
            match &change.value {
                Some(value) => {
                    table.insert(key, &self.bytes[value.clone()]).map_err(self.store.failed("insert"))?;
                }
                None => {
                    table.remove(key).map_err(self.store.failed("remove"))?;
                }
            }
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
        self.changes.push(Change { key, value: Some(value) });
        Ok(())
    }

    #[inline]
    fn remove(&mut self, key: &[u8]) -> Result<()> {
        let key = self.keep(key);
        self.changes.push(Change { key, value: None });
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let txn = self.store.begin(self.store.durability)?;
        self.make_changes(&txn)?;
        txn.commit().map_err(self.store.failed("commit"))
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
