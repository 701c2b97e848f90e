//! fjall: a log-structured merge tree, in a directory of files.

use super::locked::locked_version;
use crate::failure::{Failure, Result};
use crate::peers::{About, Changes, Open, Peer, Reader, Store, Way, Writer};
use crate::records::ScanSum;
use fjall::config::{BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, OwnedWriteBatch,
    PersistMode, UserValue,
};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

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
         durable; settled by major_compact; \
         for the feed workload a second keyspace by a number, inserted into in the same batch"
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
        let changes = how.fed.then(|| Told::open(name, &db)).transpose()?;
        Ok(Box::new(FjallStore { name, db, table, durable: how.durable, changes }))
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

/// What was changed, by a number that ascends: four bytes for the length of the key, the key, the new value.
/// The numbers are in the order of the commits, for only one writer takes some.
struct Told {
    table: Keyspace,
    next: AtomicU64,
}

impl Told {
    fn open(name: &'static str, db: &Database) -> Result<Self> {
        let failed = |error| Failure::peer(name, "open: keyspace", &error);
        let table = db.keyspace("changes", || options(false)).map_err(failed)?;
        let last = table.last_key_value().map(fjall::Guard::key).transpose().map_err(failed)?;
        let last = last.and_then(|key| Some(u64::from_be_bytes(key.as_ref().try_into().ok()?)));
        Ok(Self { table, next: AtomicU64::new(last.map_or(0, |last| last + 1)) })
    }

    fn tell(&self, batch: &mut OwnedWriteBatch, key: &[u8], value: &[u8]) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let length = u32::try_from(key.len()).unwrap_or(u32::MAX);
        let change = [&length.to_le_bytes(), key, value].concat();
        batch.insert(&self.table, number.to_be_bytes(), change);
    }
}

struct FjallStore {
    name: &'static str,
    db: Database,
    table: Keyspace,
    durable: bool,
    changes: Option<Told>,
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

    fn changes(&self) -> Result<Option<Box<dyn Changes + '_>>> {
        let changes = |told| -> Box<dyn Changes> { Box::new(FjallChanges { store: self, told, next: 0 }) };
        Ok(self.changes.as_ref().map(changes))
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
        if let Some(told) = &self.store.changes {
            told.tell(&mut self.batch, key, value);
        }
        Ok(())
    }

    #[inline]
    fn remove(&mut self, key: &[u8]) -> Result<()> {
        self.batch.remove(&self.store.table, key);
        if let Some(told) = &self.store.changes {
            told.tell(&mut self.batch, key, &[]);
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let batch = std::mem::replace(&mut self.batch, self.store.db.batch());
        batch.commit().map_err(self.store.failed("WriteBatch::commit"))
    }
}

struct FjallChanges<'store> {
    store: &'store FjallStore,
    told: &'store Told,
    next: u64,
}

impl Changes for FjallChanges<'_> {
    fn take(&mut self, limit: u64) -> Result<ScanSum> {
        let mut seen = ScanSum::default();
        for record in self.told.table.range(self.next.to_be_bytes()..) {
            let (number, change) = record.into_inner().map_err(self.store.failed("Iter::next"))?;
            let wrong = || Failure::peer(self.store.name, "Iter::next", &"a change that is none");
            let number = number.as_ref().try_into().map_err(|_| wrong())?;
            let (length, rest) = change.split_first_chunk().ok_or_else(wrong)?;
            let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| wrong())?;
            let (key, value) = rest.split_at_checked(length).ok_or_else(wrong)?;
            seen.add(key, value);
            self.next = u64::from_be_bytes(number) + 1;
            if seen.records >= limit {
                break;
            }
        }
        Ok(seen)
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
