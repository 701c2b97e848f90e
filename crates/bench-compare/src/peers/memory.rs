//! A peer in memory, for tests. It is honest, or lies in a chosen way.

use super::{About, Changes, Open, Peer, Reader, Store, Way, Writer};
use crate::failure::{Failure, Result};
use crate::records::ScanSum;
use std::collections::BTreeMap;
use std::mem;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a store has.
#[derive(Clone, Default)]
struct Content {
    map: Map,
    /// Keys with their new values, if they are kept.
    changes: Option<Vec<(Vec<u8>, Vec<u8>)>>,
}

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
    /// One change of 64 is not told.
    Untold,
    /// A second backup to a directory changes nothing.
    OldBackup,
}

/// The peer. It keeps the content of its stores after they are closed.
pub struct MemoryPeer {
    about: About,
    lie: Lie,
    closed: &'static Mutex<BTreeMap<PathBuf, Content>>,
}

static CLOSED: Mutex<BTreeMap<PathBuf, Content>> = Mutex::new(BTreeMap::new());

impl MemoryPeer {
    /// A peer with a lie.
    pub fn new(lie: Lie) -> Self {
        Self {
            about: About { feeds: true, backs_up: true, ..About::new("memory", "Memory") },
            lie,
            closed: &CLOSED,
        }
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
        let content = if how.create {
            Content { map: Map::new(), changes: how.fed.then(Vec::new) }
        } else {
            locked(self.closed)
                .remove(&how.dir)
                .ok_or_else(|| Failure::peer(self.about.name, "open", &"no such store"))?
        };
        let (lie, closed, dir) = (self.lie, self.closed, how.dir.clone());
        Ok(Box::new(MemoryStore { content: Mutex::new(content), lie, closed, dir }))
    }

    fn restore(&self, from: &Path, dir: &Path) -> Result<()> {
        let mut closed = locked(self.closed);
        let none = || Failure::peer(self.about.name, "restore", &"no such backup");
        let content = closed.get(from).cloned().ok_or_else(none)?;
        closed.insert(dir.to_owned(), content);
        Ok(())
    }
}

struct MemoryStore {
    content: Mutex<Content>,
    lie: Lie,
    closed: &'static Mutex<BTreeMap<PathBuf, Content>>,
    dir: PathBuf,
}

impl Store for MemoryStore {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(MemoryWriter { store: self, batch: Vec::new(), removes: 0 }))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(MemoryReader { store: self, value: Vec::new(), gets: 0 }))
    }

    fn changes(&self) -> Result<Option<Box<dyn Changes + '_>>> {
        let changes = MemoryChanges { store: self, taken: 0 };
        let kept = locked(&self.content).changes.is_some();
        Ok(kept.then(|| -> Box<dyn Changes> { Box::new(changes) }))
    }

    fn back_up(&self, to: &Path) -> Result<bool> {
        let mut closed = locked(self.closed);
        if self.lie != Lie::OldBackup || !closed.contains_key(to) {
            closed.insert(to.to_owned(), locked(&self.content).clone());
        }
        Ok(true)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn settle(&self) -> Result<bool> {
        Ok(false)
    }

    fn close(self: Box<Self>) -> Result<()> {
        let content = mem::take(&mut *locked(&self.content));
        locked(self.closed).insert(self.dir.clone(), content);
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
        let Content { map, changes } = &mut *locked(&self.store.content);
        for (key, value) in self.batch.drain(..) {
            if let Some(changes) = changes {
                changes.push((key.clone(), value.clone().unwrap_or_default()));
            }
            match value {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
        }
        Ok(())
    }
}

struct MemoryChanges<'store> {
    store: &'store MemoryStore,
    taken: usize,
}

impl Changes for MemoryChanges<'_> {
    fn take(&mut self, limit: u64) -> Result<ScanSum> {
        let content = locked(&self.store.content);
        let mut seen = ScanSum::default();
        for (key, value) in content.changes.iter().flatten().skip(self.taken) {
            self.taken += 1;
            let lie = if self.taken.is_multiple_of(64) { self.store.lie } else { Lie::None };
            match (lie, value.split_last()) {
                (Lie::Untold, _) => {}
                (Lie::FlippedBit, Some((last, rest))) => seen.add(key, &[rest, &[*last ^ 1]].concat()),
                _ => seen.add(key, value),
            }
            if seen.records >= limit {
                break;
            }
        }
        Ok(seen)
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
        match locked(&self.store.content).map.get(key) {
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
        Ok(self.sum(locked(&self.store.content).map.iter(), u64::MAX))
    }

    fn range(&mut self, from: Option<&[u8]>, limit: u64, way: Way) -> Result<Option<ScanSum>> {
        let map = &locked(&self.store.content).map;
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
        let map = &locked(&self.store.content).map;
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
