//! A peer in memory, for tests. It is honest, or lies in a chosen way.

use super::{About, Open, Peer, Reader, Store, Way, Writer};
use crate::failure::{Failure, Result};
use crate::records::ScanSum;
use std::collections::BTreeMap;
use std::mem;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The name of a backup.
const SAVED: &str = "saved";

/// What to get wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// Nothing.
    None,
    /// One bit is wrong in one value of 64.
    FlippedBit,
    /// One record of 64 is not found.
    Forgotten,
    /// Absent keys are found.
    Invented,
    /// A scan or a range leaves out a record.
    ShortScan,
    /// One removed record of 64 stays.
    Kept,
}

/// The peer. It keeps the content of its stores after they are closed.
pub struct MemoryPeer {
    about: About,
    lie: Lie,
    closed: &'static Mutex<BTreeMap<PathBuf, Map>>,
}

static CLOSED: Mutex<BTreeMap<PathBuf, Map>> = Mutex::new(BTreeMap::new());

impl MemoryPeer {
    /// A peer with a lie.
    pub fn new(lie: Lie) -> Self {
        Self { about: About::new("memory", "Memory"), lie, closed: &CLOSED }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no test panics with the lock held")
}

impl Peer for MemoryPeer {
    fn about(&self) -> &About {
        &self.about
    }

    fn version(&self) -> String {
        String::new()
    }

    fn configuration(&self) -> String {
        String::new()
    }

    fn open(&self, how: &Open) -> Result<Box<dyn Store>> {
        let map = if how.create {
            Map::new()
        } else {
            locked(self.closed)
                .remove(&how.dir)
                .ok_or_else(|| Failure::peer(self.about.name, "open", &"no such store"))?
        };
        let (lie, closed, dir) = (self.lie, self.closed, how.dir.clone());
        Ok(Box::new(MemoryStore { map: Mutex::new(map), lie, closed, dir }))
    }

    fn restore(&self, from: &Path, to: &Path) -> Result<()> {
        let mut closed = locked(self.closed);
        let map = closed.get(&from.join(SAVED)).cloned();
        let map = map.ok_or_else(|| Failure::peer(self.about.name, "restore", &"no such backup"))?;
        closed.insert(to.to_owned(), map);
        Ok(())
    }
}

struct MemoryStore {
    map: Mutex<Map>,
    lie: Lie,
    closed: &'static Mutex<BTreeMap<PathBuf, Map>>,
    dir: PathBuf,
}

impl Store for MemoryStore {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(MemoryWriter { store: self, batch: Vec::new(), removes: 0 }))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(MemoryReader { store: self, value: Vec::new(), gets: 0 }))
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn settle(&self) -> Result<bool> {
        Ok(false)
    }

    fn backup(&self, to: &Path) -> Result<()> {
        let map = locked(&self.map).clone();
        // Something that has a size.
        std::fs::write(to.join(format!("{}", map.len())), b"saved")
            .and_then(|()| {
                std::fs::write(to.join(format!("again-{:?}", std::time::Instant::now())), b"saved")
            })
            .map_err(|error| Failure::peer("memory", "backup", &error))?;
        locked(self.closed).insert(to.join(SAVED), map);
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        let map = mem::take(&mut *locked(&self.map));
        locked(self.closed).insert(self.dir.clone(), map);
        Ok(())
    }
}

struct MemoryWriter<'store> {
    store: &'store MemoryStore,
    batch: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    removes: u64,
}

impl Writer for MemoryWriter<'_> {
    fn begin(&mut self) -> Result<()> {
        self.batch.clear();
        Ok(())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.push((key.to_vec(), Some(value.to_vec())));
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        self.removes += 1;
        if self.store.lie != Lie::Kept || !self.removes.is_multiple_of(64) {
            self.batch.push((key.to_vec(), None));
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let mut map = locked(&self.store.map);
        for (key, value) in self.batch.drain(..) {
            match value {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
        }
        Ok(())
    }
}

struct MemoryReader<'store> {
    store: &'store MemoryStore,
    value: Vec<u8>,
    gets: u64,
}

impl Reader for MemoryReader<'_> {
    fn refresh(&mut self) -> Result<()> {
        Ok(())
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.gets += 1;
        let now = self.gets.is_multiple_of(64);
        self.value.clear();
        match locked(&self.store.map).get(key) {
            Some(_) if now && self.store.lie == Lie::Forgotten => return Ok(None),
            Some(value) => self.value.extend_from_slice(value),
            None if self.store.lie == Lie::Invented => self.value.extend_from_slice(b"invented"),
            None => return Ok(None),
        }
        if now
            && self.store.lie == Lie::FlippedBit
            && let Some(last) = self.value.last_mut()
        {
            *last ^= 1;
        }
        Ok(Some(&self.value))
    }

    fn scan(&mut self) -> Result<ScanSum> {
        Ok(self.sum(locked(&self.store.map).iter(), u64::MAX))
    }

    fn range(&mut self, from: Option<&[u8]>, limit: u64, way: Way) -> Result<Option<ScanSum>> {
        let map = locked(&self.store.map);
        let from = from.map_or(Bound::Unbounded, Bound::Included);
        Ok(Some(match way {
            Way::Up => self.sum(map.range::<[u8], _>((from, Bound::Unbounded)), limit),
            Way::Down => self.sum(map.range::<[u8], _>((Bound::Unbounded, from)).rev(), limit),
        }))
    }

    fn find(&mut self, field: &[u8; 8]) -> Result<Option<ScanSum>> {
        Ok(Some(self.found(field)))
    }
}

impl MemoryReader<'_> {
    fn found(&self, field: &[u8; 8]) -> ScanSum {
        let map = locked(&self.store.map);
        self.sum(map.iter().filter(|(_, value)| value.starts_with(field)), u64::MAX)
    }

    fn sum<'a>(&self, records: impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)>, limit: u64) -> ScanSum {
        let left_out = usize::from(self.store.lie == Lie::ShortScan);
        let limit = usize::try_from(limit).expect("a limit as wide as an address");
        let mut seen = ScanSum::default();
        for (key, value) in records.take(limit).skip(left_out) {
            seen.add(key, value);
        }
        seen
    }
}
