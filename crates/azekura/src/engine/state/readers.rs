//! Who looks into a table's memtables, and which threads only read or only write.
//!
//! A writer that keeps readers from their processor makes pauses. Threads that read and write would only keep
//! themselves waiting by that. So each thread counts how often it has looked since it last committed, and
//! committed since it last looked.

use crate::base::sync::atomic::{AtomicU32, Ordering};
use std::cell::Cell;

/// Who has looked into the memtables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReadBy {
    #[default]
    Nobody,
    /// Threads that write too.
    Writers,
    /// Also threads that only read.
    Readers,
}

impl ReadBy {
    /// The one whose number is `n`.
    pub(in crate::engine) fn of(n: u32) -> ReadBy {
        match n {
            0 => ReadBy::Nobody,
            1 => ReadBy::Writers,
            _ => ReadBy::Readers,
        }
    }

    /// Whether a writer keeps others from reading. `only_writes`: the writer does not read itself.
    pub(in crate::engine) fn are_others(self, only_writes: bool) -> bool {
        self == ReadBy::Readers || self == ReadBy::Writers && only_writes
    }
}

/// A thread that has looked so often since it last committed only reads. A transaction may well look up some
/// ten thousand keys before it commits.
pub(super) const LOOKS_WITHOUT_COMMIT: u32 = 100_000;
/// A thread that has committed so often since it last looked only writes. (Of operations half of which are
/// reads, so many in a row never are commits.)
const COMMITS_WITHOUT_LOOK: u32 = 64;

thread_local! {
    static LOOKS: Cell<u32> = const { Cell::new(0) };
    static COMMITS: Cell<u32> = const { Cell::new(0) };
}

/// Notes that this thread commits. True if it only writes.
pub(in crate::engine) fn note_commit() -> bool {
    LOOKS.set(0);
    COMMITS.set(COMMITS.get().saturating_add(1));
    COMMITS.get() > COMMITS_WITHOUT_LOOK
}

/// Who has looked into one memtable so far.
#[derive(Debug, Default)]
pub(crate) struct MemtableReaders {
    /// A `ReadBy`.
    by: AtomicU32,
}

impl MemtableReaders {
    /// Notes that this thread looks.
    #[inline(always)]
    pub(crate) fn note(&self) {
        if self.by.load(Ordering::Relaxed) != ReadBy::Readers as u32 {
            self.note_look();
        }
    }

    /// In a model it must not matter what threads of earlier executions have done.
    #[inline(never)]
    fn note_look(&self) {
        COMMITS.set(0);
        LOOKS.set(LOOKS.get().saturating_add(1));
        let only_reads = LOOKS.get() > LOOKS_WITHOUT_COMMIT || cfg!(any(loom, shuttle));
        let by = if only_reads { ReadBy::Readers } else { ReadBy::Writers } as u32;
        if self.by.load(Ordering::Relaxed) < by {
            self.by.fetch_max(by, Ordering::Relaxed);
        }
    }

    pub(crate) fn by(&self) -> ReadBy {
        ReadBy::of(self.by.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn threads_that_write_too_are_told_from_those_that_only_read() {
        let readers = MemtableReaders::default();
        assert_eq!(readers.by(), ReadBy::Nobody);
        for _ in 0..3 {
            note_commit();
            (0..LOOKS_WITHOUT_COMMIT).for_each(|_| readers.note());
            assert_eq!(readers.by(), ReadBy::Writers);
        }
        readers.note();
        assert_eq!(readers.by(), ReadBy::Readers);
        note_commit();
        readers.note();
        assert_eq!(readers.by(), ReadBy::Readers, "somebody did");
    }

    #[test]
    fn a_thread_that_looks_now_and_then_does_not_only_write() {
        let readers = MemtableReaders::default();
        for _ in 0..3 {
            assert!((0..COMMITS_WITHOUT_LOOK).all(|_| !note_commit()));
            readers.note();
        }
        assert_eq!((0..=COMMITS_WITHOUT_LOOK).filter(|_| note_commit()).count(), 1);
    }

    #[test]
    fn writers_pause_for_others_only() {
        let pause = |by: ReadBy| [false, true].map(|only_writes| by.are_others(only_writes));
        assert_eq!(pause(ReadBy::Nobody), [false, false]);
        assert_eq!(pause(ReadBy::Writers), [false, true]);
        assert_eq!(pause(ReadBy::Readers), [true, true]);
    }
}
