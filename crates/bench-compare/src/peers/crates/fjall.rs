//! fjall: a log-structured merge tree, in a directory of files.

use super::locked::locked_version;
use crate::failure::{Failure, Result};
use crate::peers::{About, Open, Peer, Reader, Store, Way, Writer};
use crate::records::ScanSum;
use fjall::config::{BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, OwnedWriteBatch,
    PersistMode, UserValue,
};
use std::ops::Bound;

const MEMTABLE_BYTES: u64 = 16 << 20;
/// Values of this many bytes or more are stored apart from their keys.
const SEPARATED_BYTES: u64 = 1024;

pub struct FjallPeer {
    pub about: About,
}

impl Peer for FjallPeer {
    fn about(&self) -> &About {
        &self.about
    }

    fn version(&self) -> String {
        locked_version("fjall")
    }

    fn configuration(&self) -> String {
        "cache_size of the budget less two memtables of 16 MiB, 10-bit Bloom filter, values kept apart from keys for \
         records of 1,024 bytes and more, no compression; a batch a transaction, PersistMode::SyncData only when \
         durable; settled by major_compact"
            .to_owned()
    }

    fn open(&self, how: &Open) -> Result<Box<dyn Store>> {
        let name = self.about.name;
        let cache_bytes = how.budget_bytes.saturating_sub(2 * MEMTABLE_BYTES).max(8 << 20);
        if !how.create && !how.dir.exists() {
            return Err(Failure::peer(name, "open", &"no database is there"));
        }
        let db = Database::builder(how.dir.join("fjall"))
            .cache_size(cache_bytes)
            .journal_compression(CompressionType::None)
            .open()
            .map_err(|error| Failure::peer(name, "open", &error))?;
        let apart = how.raw_bytes / how.records.max(1) >= SEPARATED_BYTES;
        let table = db
            .keyspace("bench", || options(apart))
            .map_err(|error| Failure::peer(name, "open: keyspace", &error))?;
        Ok(Box::new(FjallStore { name, db, table, durable: how.durable }))
    }
}

fn options(apart: bool) -> KeyspaceCreateOptions {
    let filter = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0));
    let separation = KvSeparationOptions::default().compression(CompressionType::None);
    KeyspaceCreateOptions::default()
        .max_memtable_size(MEMTABLE_BYTES)
        .filter_policy(FilterPolicy::all(filter))
        .with_kv_separation(apart.then_some(separation))
}

struct FjallStore {
    name: &'static str,
    db: Database,
    table: Keyspace,
    durable: bool,
}

impl FjallStore {
    fn failed(&self, call: &'static str) -> impl FnOnce(fjall::Error) -> Failure {
        let name = self.name;
        move |error| Failure::peer(name, call, &error)
    }
}

impl Store for FjallStore {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(FjallWriter { store: self, batch: self.db.batch() }))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(FjallReader { store: self, value: None }))
    }

    fn sync(&self) -> Result<()> {
        self.db.persist(PersistMode::SyncAll).map_err(self.failed("persist"))
    }

    fn settle(&self) -> Result<bool> {
        self.table.rotate_memtable_and_wait().map_err(self.failed("rotate_memtable_and_wait"))?;
        self.table.major_compact().map_err(self.failed("major_compact"))?;
        Ok(true)
    }

    fn close(self: Box<Self>) -> Result<()> {
        // There is no call to close it: dropping the last handle ends its threads.
        Ok(())
    }
}

struct FjallWriter<'store> {
    store: &'store FjallStore,
    batch: OwnedWriteBatch,
}

impl Writer for FjallWriter<'_> {
    fn begin(&mut self) -> Result<()> {
        let mode = self.store.durable.then_some(PersistMode::SyncData);
        self.batch = self.store.db.batch().durability(mode);
        Ok(())
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.insert(&self.store.table, key, value);
        Ok(())
    }

    #[inline]
    fn remove(&mut self, key: &[u8]) -> Result<()> {
        self.batch.remove(&self.store.table, key);
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let batch = std::mem::replace(&mut self.batch, self.store.db.batch());
        batch.commit().map_err(self.store.failed("WriteBatch::commit"))
    }
}

struct FjallReader<'store> {
    store: &'store FjallStore,
    /// Keeps the last value that was returned in place.
    value: Option<UserValue>,
}

impl Reader for FjallReader<'_> {
    fn refresh(&mut self) -> Result<()> {
        Ok(())
    }

    #[inline]
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.value = self.store.table.get(key).map_err(self.store.failed("get"))?;
        Ok(self.value.as_deref())
    }

    fn scan(&mut self) -> Result<ScanSum> {
        Ok(self.range(None, u64::MAX, Way::Up)?.unwrap_or_default())
    }

    fn range(&mut self, from: Option<&[u8]>, limit: u64, way: Way) -> Result<Option<ScanSum>> {
        let from = from.map_or(Bound::Unbounded, Bound::Included);
        let mut records = match way {
            Way::Up => self.store.table.range::<&[u8], _>((from, Bound::Unbounded)),
            Way::Down => self.store.table.range::<&[u8], _>((Bound::Unbounded, from)),
        };
        let mut seen = ScanSum::default();
        while seen.records < limit {
            let record = if way == Way::Up { records.next() } else { records.next_back() };
            let Some(record) = record else { break };
            let (key, value) = record.into_inner().map_err(self.store.failed("Iter::next"))?;
            seen.add(&key, &value);
        }
        Ok(Some(seen))
    }
}
