//! A file in memory for the schedules: other threads may have their turn at each call, and it is known what a
//! power cut would leave.

use crate::forward::{forward_file, forward_names};
use azekura::storage::{File, MemStorage, OpenMode, Storage};
use shuttle::rand::{RngCore, thread_rng};
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// The one file that a disk holds in the end. (It is made under another name.)
pub const PATH: &str = "schedules.azk";

/// A disk with one file. Clones share it.
#[derive(Clone)]
pub struct Disk {
    files: MemStorage,
    below: Arc<Below>,
}

/// What is known of the file's bytes.
struct Below {
    safe: Mutex<Safe>,
    /// Touched by each call, for nothing but the checker's choice of who goes on.
    calls: AtomicUsize,
}

#[derive(Default)]
struct Safe {
    bytes: Vec<u8>,
    /// What no sync has made safe yet, in order; the first has the number `first`.
    waiting: VecDeque<Waiting>,
    first: u64,
}

/// A change in the queue.
struct Waiting {
    change: Change,
    /// It is safe by itself. It stays in its place, so that an older one there does not undo it.
    is_safe: bool,
}

/// A change of the file.
#[derive(Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Len(u64),
    Grow(u64),
    Zero(u64, u64),
}

impl Change {
    fn make(&self, bytes: &mut Vec<u8>) {
        let at = |n: u64| usize::try_from(n).unwrap();
        match self {
            Change::Write(offset, new) => {
                let (from, to) = (at(*offset), at(*offset) + new.len());
                bytes.resize(bytes.len().max(to), 0);
                bytes[from..to].copy_from_slice(new);
            }
            Change::Len(len) => bytes.resize(at(*len), 0),
            Change::Grow(end) => bytes.resize(bytes.len().max(at(*end)), 0),
            Change::Zero(offset, end) => {
                let (from, to) = (at(*offset).min(bytes.len()), at(*end).min(bytes.len()));
                bytes[from..to].fill(0);
            }
        }
    }
}

impl Safe {
    /// Makes safe what came before number `before`.
    fn settle(&mut self, before: u64) {
        while self.first < before {
            let Some(waiting) = self.waiting.pop_front() else { return };
            waiting.change.make(&mut self.bytes);
            self.first += 1;
        }
    }

    fn next(&self) -> u64 {
        self.first + self.waiting.len() as u64
    }
}

impl Disk {
    /// An empty one.
    pub fn new() -> Disk {
        let below = Below { safe: Mutex::default(), calls: AtomicUsize::new(0) };
        Disk { files: MemStorage::default(), below: Arc::new(below) }
    }

    /// The disk as it would be if the power went now: what was not synced is there or not, each for itself.
    /// No other thread runs meanwhile.
    pub fn cut(&self) -> Disk {
        let (mode, mut odds) = (thread_rng().next_u64() % 4, Odds(thread_rng().next_u64() | 1));
        let safe = self.below.safe();
        let mut bytes = safe.bytes.clone();
        for Waiting { change, is_safe } in &safe.waiting {
            let kept = match mode {
                0 => false,
                1 => true,
                _ => odds.even(),
            };
            if kept || *is_safe {
                change.make(&mut bytes);
            }
        }
        drop(safe);
        let cut = Disk::new();
        let file = cut.files.open(Path::new(PATH), OpenMode::CreateNew).unwrap();
        file.write_at(&bytes, 0).unwrap();
        cut.below.safe().bytes = bytes;
        cut
    }
}

/// A few random numbers that are none of the schedule's steps.
struct Odds(u64);

impl Odds {
    fn even(&mut self) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.is_multiple_of(2)
    }
}

impl Below {
    fn safe(&self) -> MutexGuard<'_, Safe> {
        self.safe.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Whoever the checker chooses goes on.
    fn give_way(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a change to the queue, and gives its number.
    fn note(&self, change: Change) -> u64 {
        let mut safe = self.safe();
        safe.waiting.push_back(Waiting { change, is_safe: false });
        safe.next() - 1
    }

    /// The change of that number is safe by itself.
    fn note_safe(&self, number: u64) {
        let mut safe = self.safe();
        // A sync may have been faster.
        let Some(place) = number.checked_sub(safe.first) else { return };
        if let Some(waiting) = safe.waiting.get_mut(usize::try_from(place).unwrap()) {
            waiting.is_safe = true;
        }
    }

    /// Makes safe all that was there at the call, not what came while it went on.
    fn sync(&self) {
        self.give_way();
        let before = self.safe().next();
        self.give_way();
        self.safe().settle(before);
    }
}

impl Storage for Disk {
    forward_names!(files);

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(Handle { file: self.files.open(path, mode)?, below: self.below.clone() }))
    }

    fn random(&self) -> io::Result<u64> {
        Ok(thread_rng().next_u64())
    }
}

struct Handle {
    file: Arc<dyn File>,
    below: Arc<Below>,
}

impl File for Handle {
    forward_file!(file: len, try_lock, unlock);

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.below.give_way();
        let read = self.file.read_at(buf, offset);
        // Others may go on before anything is believed of it.
        self.below.give_way();
        read
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.below.give_way();
        self.below.note(Change::Write(offset, buf.to_vec()));
        self.file.write_at(buf, offset)
    }

    fn write_durable_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.below.give_way();
        let number = self.below.note(Change::Write(offset, buf.to_vec()));
        self.file.write_at(buf, offset)?;
        self.below.give_way();
        self.below.note_safe(number);
        Ok(())
    }

    fn write_back(&self, _: u64, _: u64) {}

    fn wait_written(&self, _: u64, _: u64) {}

    fn sync_data(&self) -> io::Result<()> {
        self.below.sync();
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.below.sync();
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.below.give_way();
        self.below.note(Change::Len(len));
        self.file.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<bool> {
        self.below.give_way();
        self.below.note(Change::Grow(offset + len));
        self.file.allocate(offset, len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.below.give_way();
        self.below.note(Change::Zero(offset, offset + len));
        self.file.punch(offset, len)
    }

    fn forget(&self, offset: u64, len: u64) {
        self.below.give_way();
        self.below.note(Change::Zero(offset, offset + len));
        self.file.forget(offset, len);
    }

    fn pin(&self, number: u64) -> io::Result<()> {
        self.below.give_way();
        self.file.pin(number)?;
        self.below.give_way();
        Ok(())
    }

    fn unpin(&self, number: u64) {
        self.below.give_way();
        self.file.unpin(number);
    }

    fn pins(&self) -> io::Result<Vec<RangeInclusive<u64>>> {
        self.below.give_way();
        let pins = self.file.pins();
        self.below.give_way();
        pins
    }
}
