//! Azekura's two table kinds.

use super::{About, Changes, Each, Open, Peer, Reader, Store, Way, Writer};
use crate::failure::{Failure, Result};
use crate::records::ScanSum;
use azekura::{
    ChangeKind, Cursor, Db, Durability, Feed, FeedContent, Index, Merge, Options, ReadTxn, Repository, Table,
    TableKind, Which, WriteTxn,
};
use std::ops::Bound;
use std::path::Path;

const TABLE: &str = "bench";
const FILE: &str = "data.azk";

/// Both kinds.
pub fn peers() -> Vec<(About, Option<Box<dyn Peer>>)> {
    let ordered = ("azekura-ordered", "Azekura ordered", TableKind::Ordered);
    let hash = ("azekura-hash", "Azekura hash", TableKind::Hash);
    [ordered, hash]
        .into_iter()
        .map(|(name, title, kind)| {
            let about = About {
                ours: true,
                indexes: true,
                expires: true,
                feeds: true,
                backs_up: true,
                ordered: kind == TableKind::Ordered,
                ..About::new(name, title)
            };
            let peer: Box<dyn Peer> = Box::new(AzekuraPeer { about, kind });
            (about, Some(peer))
        })
        .collect()
}

struct AzekuraPeer {
    about: About,
    kind: TableKind,
}

impl Peer for AzekuraPeer {
    fn about(&self) -> &About {
        &self.about
    }

    fn version(&self) -> String {
        // One version for the whole workspace.
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn configuration(&self) -> String {
        "memory_bytes(budget), durability Eventual, or Sync when durable; nothing else set; db.flush() \
         before closing; one read snapshot a phase, the table's own get beside a writer; for the index \
         workload an index of v[0..8]:u64be, and WriteTxn::put_many of 256 records; for the ttl workload a table that says how long records live; \
         WriteTxn::merge for the counters; for the feed workload set_feed(Values), read by Db::feed; \
         Db::backup and Repository::restore"
            .to_owned()
    }

    fn open(&self, how: &Open) -> Result<Box<dyn Store>> {
        let name = self.about.name;
        let durability = if how.durable { Durability::Sync } else { Durability::Eventual };
        let options = Options::new()
            .create(how.create)
            .exclusive(how.create)
            .memory_bytes(how.budget_bytes)
            .durability(durability);
        let db =
            Db::open(how.dir.join(FILE), options).map_err(|error| Failure::peer(name, "Db::open", &error))?;
        let table = match how.lives {
            None => db.table(TABLE, self.kind),
            Some(lives) => db.expiring_table(TABLE, self.kind, lives),
        };
        let table = table.map_err(|error| Failure::peer(name, "Db::table", &error))?;
        if how.fed && how.create {
            let fed = table.set_feed(Some(FeedContent::Values));
            fed.map_err(|error| Failure::peer(name, "Table::set_feed", &error))?;
        }
        let index = how.indexed.then(|| table.create_index("field", "v[0..8]:u64be")).transpose();
        let index = index.map_err(|error| Failure::peer(name, "Table::create_index", &error))?;
        Ok(Box::new(AzekuraStore { name, db, table, index }))
    }

    fn restore(&self, from: &Path, dir: &Path) -> Result<()> {
        let failed = |call| move |error| Failure::peer(self.about.name, call, &error);
        let repository = Repository::open(from).map_err(failed("Repository::open"))?;
        let restored = repository.restore(Which::Newest, dir.join(FILE), |_| {});
        restored.map_err(failed("Repository::restore")).map(|_| ())
    }
}

struct AzekuraStore {
    name: &'static str,
    db: Db,
    table: Table,
    index: Option<Index>,
}

impl AzekuraStore {
    fn failed(&self, call: &'static str) -> impl FnOnce(azekura::Error) -> Failure {
        let name = self.name;
        move |error| Failure::peer(name, call, &error)
    }
}

impl Store for AzekuraStore {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(AzekuraWriter { store: self, txn: None, waiting: Vec::new(), ends: Vec::new() }))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        let snapshot = Some(self.db.read());
        Ok(Box::new(AzekuraReader { store: self, snapshot, value: Vec::new() }))
    }

    fn changes(&self) -> Result<Option<Box<dyn Changes + '_>>> {
        let info = self.db.feed_info().map_err(self.failed("Db::feed_info"))?;
        let Some(info) = info else { return Ok(None) };
        let feed = self.db.feed(info.oldest).map_err(self.failed("Db::feed"))?;
        Ok(Some(Box::new(AzekuraChanges { store: self, feed })))
    }

    fn back_up(&self, to: &Path) -> Result<bool> {
        self.db.backup(to, |_| {}).map_err(self.failed("Db::backup"))?;
        Ok(true)
    }

    fn sync(&self) -> Result<()> {
        // What is committed goes to a run at once, and not to the log first.
        self.db.flush().map_err(self.failed("Db::flush"))
    }

    fn settle(&self) -> Result<bool> {
        self.db.compact().map_err(self.failed("Db::settle"))?;
        Ok(true)
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { name, db, table, index } = *self;
        drop((table, index));
        db.close().map_err(|error| Failure::peer(name, "Db::close", &error))
    }
}

/// So many records of a table with an index are put by one call.
const TOGETHER: usize = 256;

struct AzekuraWriter<'store> {
    store: &'store AzekuraStore,
    txn: Option<WriteTxn>,
    /// Records of a table with an index, to be put together: their keys and values, and where each ends.
    waiting: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

impl AzekuraWriter<'_> {
    fn no_transaction(&self) -> Failure {
        Failure::peer(self.store.name, "WriteTxn", &"no transaction was begun")
    }

    fn put_waiting(&mut self) -> Result<()> {
        let Some(txn) = &mut self.txn else { return Err(self.no_transaction()) };
        let mut start = 0;
        let records = self.ends.drain(..).map(|(key_end, end)| {
            let key = &self.waiting[start..key_end];
            start = end;
            (key, &self.waiting[key_end..end])
        });
        let put = txn.put_many(&self.store.table, records);
        self.waiting.clear();
        put.map_err(self.store.failed("WriteTxn::put_many"))
    }
}

impl Writer for AzekuraWriter<'_> {
    #[inline]
    fn begin(&mut self) -> Result<()> {
        self.waiting.clear();
        self.ends.clear();
        self.txn = Some(self.store.db.write());
        Ok(())
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.store.index.is_some() {
            self.waiting.extend_from_slice(key);
            let key_end = self.waiting.len();
            self.waiting.extend_from_slice(value);
            self.ends.push((key_end, self.waiting.len()));
            return if self.ends.len() < TOGETHER { Ok(()) } else { self.put_waiting() };
        }
        match &mut self.txn {
            Some(txn) => txn.put(&self.store.table, key, value).map_err(self.store.failed("WriteTxn::put")),
            None => Err(self.no_transaction()),
        }
    }

    fn add(&mut self, key: &[u8], n: u64) -> Result<bool> {
        match &mut self.txn {
            Some(txn) => {
                let added = txn.merge(&self.store.table, key, Merge::AddU64(n));
                added.map_err(self.store.failed("WriteTxn::merge")).map(|()| true)
            }
            None => Err(self.no_transaction()),
        }
    }

    #[inline]
    fn remove(&mut self, key: &[u8]) -> Result<()> {
        if !self.ends.is_empty() {
            self.put_waiting()?;
        }
        match &mut self.txn {
            Some(txn) => txn.remove(&self.store.table, key).map_err(self.store.failed("WriteTxn::remove")),
            None => Err(self.no_transaction()),
        }
    }

    #[inline]
    fn commit(&mut self) -> Result<()> {
        if !self.ends.is_empty() {
            self.put_waiting()?;
        }
        match self.txn.take() {
            Some(txn) => txn.commit().map_err(self.store.failed("WriteTxn::commit")),
            None => Err(self.no_transaction()),
        }
    }
}

struct AzekuraChanges<'store> {
    store: &'store AzekuraStore,
    feed: Feed,
}

impl Changes for AzekuraChanges<'_> {
    fn take(&mut self, limit: u64) -> Result<ScanSum> {
        let mut seen = ScanSum::default();
        while seen.records < limit {
            let change = self.feed.next().map_err(self.store.failed("Feed::next"))?;
            match change.map(|change| change.kind) {
                None => break,
                Some(ChangeKind::Put { key, value, .. }) => seen.add(key, value.unwrap_or_default()),
                Some(ChangeKind::Remove { key, .. }) => seen.add(key, &[]),
                // That the table is fed.
                Some(_) => {}
            }
        }
        Ok(seen)
    }
}

struct AzekuraReader<'store> {
    store: &'store AzekuraStore,
    /// `None` after a refresh. From then on each get reads what is committed at that time.
    snapshot: Option<ReadTxn>,
    value: Vec<u8>,
}

impl Reader for AzekuraReader<'_> {
    #[inline]
    fn refresh(&mut self) -> Result<()> {
        self.snapshot = None;
        Ok(())
    }

    #[inline]
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        let table = &self.store.table;
        let found = match &self.snapshot {
            Some(txn) => txn.get_into(table, key, &mut self.value),
            None => table.get_into(key, &mut self.value),
        }
        .map_err(self.store.failed("get_into"))?;
        Ok(found.then_some(self.value.as_slice()))
    }

    fn get_many(&mut self, keys: &[&[u8]], each: Each<'_>) -> Result<bool> {
        let table = &self.store.table;
        match &self.snapshot {
            Some(txn) => txn.get_many_with(table, keys, each),
            None => table.get_many_with(keys, each),
        }
        .map_err(self.store.failed("get_many_with"))?;
        Ok(true)
    }

    fn scan(&mut self) -> Result<ScanSum> {
        let mut cursor = self.cursor()?;
        let mut seen = ScanSum::default();
        while let Some((key, value)) = cursor.next().map_err(self.store.failed("Cursor::next"))? {
            seen.add(key, value.bytes().map_err(self.store.failed("LazyValue::bytes"))?);
        }
        Ok(seen)
    }

    fn range(&mut self, from: Option<&[u8]>, limit: u64, way: Way) -> Result<Option<ScanSum>> {
        let store = self.store;
        if store.table.kind() == TableKind::Hash {
            return Ok(None);
        }
        let mut cursor = match (from, way) {
            (Some(key), Way::Up) => {
                let mut cursor = self.cursor()?;
                cursor.seek(key).map_err(store.failed("Cursor::seek"))?;
                cursor
            }
            (Some(key), Way::Down) => {
                let mut cursor = self.range_up_to(key)?;
                cursor.seek_last();
                cursor
            }
            (None, way) => {
                let mut cursor = self.cursor()?;
                if way == Way::Down {
                    cursor.seek_last();
                }
                cursor
            }
        };
        let mut seen = ScanSum::default();
        while seen.records < limit {
            let record = match way {
                Way::Up => cursor.next().map_err(store.failed("Cursor::next"))?,
                Way::Down => cursor.prev().map_err(store.failed("Cursor::prev"))?,
            };
            let Some((key, value)) = record else { break };
            seen.add(key, value.bytes().map_err(store.failed("LazyValue::bytes"))?);
        }
        Ok(Some(seen))
    }

    fn find(&mut self, field: &[u8; 8]) -> Result<Option<ScanSum>> {
        let Some(index) = &self.store.index else { return Ok(None) };
        let field = [u64::from_be_bytes(*field).into()];
        let mut seen = ScanSum::default();
        let mut see =
            |record: azekura::Result<(Vec<u8>, Vec<u8>)>| record.map(|(key, value)| seen.add(&key, &value));
        match &self.snapshot {
            Some(txn) => index.read_in(txn).get(&field).and_then(|mut found| found.try_for_each(&mut see)),
            None => index.get(&field).and_then(|mut found| found.try_for_each(&mut see)),
        }
        .map_err(self.store.failed("Index::get"))?;
        Ok(Some(seen))
    }
}

impl AzekuraReader<'_> {
    fn cursor(&self) -> Result<Cursor> {
        let table = &self.store.table;
        match &self.snapshot {
            Some(txn) => txn.cursor(table),
            None => table.cursor(),
        }
        .map_err(self.store.failed("cursor"))
    }

    /// A cursor over the keys up to and including this one.
    fn range_up_to(&self, key: &[u8]) -> Result<Cursor> {
        let (table, bounds) = (&self.store.table, (Bound::Unbounded, Bound::Included(key)));
        match &self.snapshot {
            Some(txn) => txn.range(table, bounds),
            None => table.range(bounds),
        }
        .map_err(self.store.failed("range"))
    }
}
