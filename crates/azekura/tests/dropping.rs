//! A table is dropped while the flush that writes it is under way, and others are committed to and frozen
//! meanwhile: that flush says nothing of those.

mod common;

use azekura::storage::{File, MemStorage, OpenMode, Storage};
use azekura::{Db, Durability, Kind, Options};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const PATH: &str = "dropping.azk";
/// The superblocks end here; behind them are runs.
const RUNS_FROM: u64 = 8192;

/// Lets the flushing thread's writes through.
const OPEN: u32 = 0;
/// Its next write of a run waits.
const SHUT: u32 = 1;
/// Its writes go on until it has written a superblock, and then the gate is shut again.
const ONE_CHECKPOINT: u32 = 2;

/// Files in memory, with a gate before what the engine's flushing thread writes.
#[derive(Clone, Default)]
struct Gated {
    storage: MemStorage,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    state: AtomicU32,
    /// How many times somebody has come to the shut gate.
    waits: AtomicU32,
}

struct GatedFile {
    file: Arc<dyn File>,
    gate: Arc<Gate>,
}

fn is_flusher() -> bool {
    std::thread::current().name() == Some("azekura-flush")
}

impl Gate {
    fn set(&self, state: u32) {
        self.state.store(state, Ordering::SeqCst);
    }

    fn pass(&self) {
        if self.state.load(Ordering::SeqCst) == SHUT {
            self.waits.fetch_add(1, Ordering::SeqCst);
        }
        while self.state.load(Ordering::SeqCst) == SHUT {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until somebody has come to the shut gate for the `nth` time.
    fn await_wait(&self, nth: u32) {
        while self.waits.load(Ordering::SeqCst) < nth {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Storage for Gated {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(GatedFile { file: self.storage.open(path, mode)?, gate: self.gate.clone() }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.storage.exists(path)
    }

    fn rename(&self, from: &Path, to: &Path, replace: bool) -> io::Result<()> {
        self.storage.rename(from, to, replace)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.storage.remove(path)
    }

    fn sync_dir_of(&self, path: &Path) -> io::Result<()> {
        self.storage.sync_dir_of(path)
    }
}

impl File for GatedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        if is_flusher() && offset >= RUNS_FROM {
            self.gate.pass();
        }
        self.file.write_at(buf, offset)
    }

    fn write_durable_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let done = self.file.write_durable_at(buf, offset);
        if is_flusher() && offset < RUNS_FROM && self.gate.state.load(Ordering::SeqCst) == ONE_CHECKPOINT {
            self.gate.set(SHUT);
        }
        done
    }

    fn write_back(&self, offset: u64, len: u64) {
        self.file.write_back(offset, len);
    }

    fn wait_written(&self, offset: u64, len: u64) {
        self.file.wait_written(offset, len);
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<bool> {
        self.file.allocate(offset, len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.file.punch(offset, len)
    }

    fn try_lock(&self, exclusive: bool) -> io::Result<bool> {
        self.file.try_lock(exclusive)
    }
}

/// Another disk with all the bytes that were written, as after a kill.
fn copy(disk: &MemStorage) -> MemStorage {
    let old = disk.open(Path::new(PATH), OpenMode::ReadWrite).unwrap();
    let mut bytes = vec![0; usize::try_from(old.len().unwrap()).unwrap()];
    old.read_at(&mut bytes, 0).unwrap();
    let copy = MemStorage::default();
    copy.open(Path::new(PATH), OpenMode::CreateNew).unwrap().write_at(&bytes, 0).unwrap();
    copy
}

#[test]
fn a_flush_of_a_dropped_table_says_nothing_of_what_was_frozen_since() {
    common::watch(Duration::from_secs(60));
    let disk = Gated::default();
    let options = || Options::new().background_merges(false).durability(Durability::Sync);
    let db = Db::open_on(&disk, PATH, options()).unwrap();
    let gone = db.create_table("gone", Kind::Ordered).unwrap();
    let kept = db.create_table("kept", Kind::Ordered).unwrap();
    gone.put_many((0..100_000u64).map(|i| (i.to_be_bytes(), i.to_be_bytes()))).unwrap();
    disk.gate.set(SHUT);
    let flush = |begun: mpsc::Sender<()>| {
        let db = db.clone();
        std::thread::spawn(move || {
            begun.send(()).unwrap();
            db.flush()
        })
    };
    let (begun, begins) = mpsc::channel();
    let first = flush(begun.clone());
    disk.gate.await_wait(1);
    db.drop_table("gone").unwrap();
    kept.put(b"key", b"acknowledged").unwrap();
    let second = flush(begun);
    begins.iter().take(2).for_each(drop);
    // Long enough to freeze what is in memory; if not, this test finds nothing, and nothing else.
    std::thread::sleep(Duration::from_millis(200));
    // The first flush's checkpoint is durable when the second comes to its run.
    disk.gate.set(ONE_CHECKPOINT);
    disk.gate.await_wait(2);
    let after = Db::open_on(&copy(&disk.storage), PATH, options()).unwrap();
    let found = after.open_table("kept").unwrap().get(b"key").unwrap();
    disk.gate.set(OPEN);
    first.join().unwrap().unwrap();
    second.join().unwrap().unwrap();
    assert_eq!(found.as_deref(), Some(&b"acknowledged"[..]));
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
    drop((gone, kept));
    db.close().unwrap();
}
