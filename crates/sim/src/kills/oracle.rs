//! The witness of a child that is killed: a file that both processes map. The child notes there what it
//! begins and what is acknowledged. Stores to a shared mapping survive the process that made them.
//!
//! # Layout, in words of eight bytes
//!
//! ```text
//! 0 clock | 1 opened | 2 quiet | 3 steps begun | 4 steps done | 8 … per writer: begun, acknowledged,
//! durable, base, then a ring of (stamp when begun, stamp when acknowledged) for the newest commits
//! ```
//!
//! Stamps come from one clock. So of any two commits it is known whether one was acknowledged before the
//! other began.

use memmap2::{MmapOptions, MmapRaw};
use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::plan::WRITERS;

/// For how many commits of a writer the stamps are kept: more than fit between two syncs.
const RING: usize = 1 << 16;
const HEADER_WORDS: usize = 8;
const WRITER_WORDS: usize = 4 + 2 * RING;
const WORDS: usize = HEADER_WORDS + WRITERS * WRITER_WORDS;

/// What is known of one writer's commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The newest commit that was begun.
    pub begun: u64,
    /// The newest commit that was acknowledged.
    pub acknowledged: u64,
    /// The newest commit that was acknowledged as durable.
    pub durable: u64,
    /// The newest commit that was there when the process began.
    pub base: u64,
}

/// The mapped file.
pub struct Oracle {
    map: MmapRaw,
}

impl Oracle {
    /// Maps the file, and makes it if necessary.
    pub fn open(path: &Path) -> io::Result<Oracle> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        file.set_len((WORDS * 8) as u64)?;
        Ok(Oracle { map: MmapOptions::new().len(WORDS * 8).map_raw(&file)? })
    }

    fn word(&self, i: usize) -> &AtomicU64 {
        assert!(i < WORDS);
        // SAFETY: the mapping has WORDS words, begins at a page and lives as long as `self`. Both processes
        // access it only by atomics.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().cast::<u64>().add(i)) }
    }

    fn of(&self, writer: usize, i: usize) -> &AtomicU64 {
        self.word(HEADER_WORDS + writer * WRITER_WORDS + i)
    }

    fn ring(&self, writer: usize, commit: u64, which: usize) -> &AtomicU64 {
        let at = usize::try_from(commit % RING as u64).unwrap_or(0);
        self.of(writer, 4 + 2 * at + which)
    }

    fn tick(&self) -> u64 {
        self.word(0).fetch_add(1, Ordering::SeqCst) + 1
    }

    /// How often the child has opened the database.
    pub fn opened(&self) -> &AtomicU64 {
        self.word(1)
    }

    /// Not zero if the child has stopped writing and only waits to be killed.
    pub fn quiet(&self) -> &AtomicU64 {
        self.word(2)
    }

    /// How many creations and drops of tables have begun.
    pub fn steps_begun(&self) -> &AtomicU64 {
        self.word(3)
    }

    /// How many creations and drops of tables were acknowledged.
    pub fn steps_done(&self) -> &AtomicU64 {
        self.word(4)
    }

    /// Notes that the child begins a commit.
    pub fn begin(&self, writer: usize, commit: u64) {
        self.ring(writer, commit, 0).store(self.tick(), Ordering::SeqCst);
        self.of(writer, 0).store(commit, Ordering::SeqCst);
    }

    /// Notes that a commit was acknowledged, perhaps as durable.
    pub fn acknowledge(&self, writer: usize, commit: u64, durable: bool) {
        self.ring(writer, commit, 1).store(self.tick(), Ordering::SeqCst);
        self.of(writer, 1).store(commit, Ordering::SeqCst);
        if durable {
            self.of(writer, 2).fetch_max(commit, Ordering::SeqCst);
        }
    }

    /// The newest acknowledged commit of each writer, for [`Oracle::synced`].
    pub fn acknowledged(&self) -> [u64; WRITERS] {
        std::array::from_fn(|w| self.of(w, 1).load(Ordering::SeqCst))
    }

    /// Notes that all commits up to `then` were acknowledged as durable.
    pub fn synced(&self, then: [u64; WRITERS]) {
        for (w, commit) in then.into_iter().enumerate() {
            self.of(w, 2).fetch_max(commit, Ordering::SeqCst);
        }
    }

    /// What is known of a writer.
    pub fn known(&self, writer: usize) -> Known {
        let get = |i| self.of(writer, i).load(Ordering::SeqCst);
        Known { begun: get(0), acknowledged: get(1), durable: get(2), base: get(3) }
    }

    /// Notes that a process begins with these commits.
    pub fn restart(&self, writer: usize, commits: u64) {
        (0..4).for_each(|i| self.of(writer, i).store(commits, Ordering::SeqCst));
    }

    /// When a commit of this process was begun. None if its stamp is not kept.
    pub fn begun_at(&self, writer: usize, commit: u64) -> Option<u64> {
        self.stamp(writer, commit, 0)
    }

    /// When a commit of this process was acknowledged. None if its stamp is not kept.
    pub fn acknowledged_at(&self, writer: usize, commit: u64) -> Option<u64> {
        self.stamp(writer, commit, 1)
    }

    fn stamp(&self, writer: usize, commit: u64, which: usize) -> Option<u64> {
        let known = self.known(writer);
        let kept = commit > known.base && commit <= known.begun && known.begun - commit < RING as u64;
        kept.then(|| self.ring(writer, commit, which).load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_of_the_file_are_one_memory() {
        let path = std::env::temp_dir().join(format!("sim-oracle-{}", std::process::id()));
        let (one, other) = (Oracle::open(&path).unwrap(), Oracle::open(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        one.restart(1, 5);
        one.begin(1, 6);
        one.acknowledge(1, 6, false);
        one.begin(1, 7);
        assert_eq!(other.known(1), Known { begun: 7, acknowledged: 6, durable: 5, base: 5 });
        assert!(other.begun_at(1, 6) < other.acknowledged_at(1, 6));
        assert!(other.acknowledged_at(1, 6) < other.begun_at(1, 7));
        assert_eq!(other.begun_at(1, 5), None, "not of this process");
        other.synced(other.acknowledged());
        assert_eq!(one.known(1).durable, 6);
    }
}
