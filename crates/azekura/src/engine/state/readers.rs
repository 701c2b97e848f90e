//! Who looks into a table's memtables.

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
}

/// A thread that has looked so often since it last wrote only reads. (Where one in twenty operations writes,
/// nobody looks so often in between.)
const LOOKS_WITHOUT_WRITE: u32 = 1000;

thread_local! {
    static LOOKS_SINCE_WRITE: Cell<u32> = const { Cell::new(0) };
}

/// Notes that this thread writes.
pub(in crate::engine) fn note_write() {
    LOOKS_SINCE_WRITE.set(0);
}

/// Who has looked into one memtable so far.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    /// A `ReadBy`.
    by: AtomicU32,
}

impl Readers {
    /// Notes that this thread looks.
    #[inline(always)]
    pub(crate) fn note(&self) {
        let by = self.by.load(Ordering::Relaxed);
        if by != ReadBy::Readers as u32 {
            self.note_first(by);
        }
    }

    /// What another thread notes meanwhile may be lost, and is noted at a later look. In a model it must not
    /// matter what threads of earlier executions have done.
    #[inline(never)]
    fn note_first(&self, by: u32) {
        let looks = LOOKS_SINCE_WRITE.get().saturating_add(1);
        LOOKS_SINCE_WRITE.set(looks);
        let only_reads = looks > LOOKS_WITHOUT_WRITE || cfg!(any(loom, shuttle));
        let now = if only_reads { ReadBy::Readers } else { ReadBy::Writers } as u32;
        if now > by {
            self.by.store(now, Ordering::Relaxed);
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
        let readers = Readers::default();
        assert_eq!(readers.by(), ReadBy::Nobody);
        for _ in 0..100 {
            note_write();
            (0..LOOKS_WITHOUT_WRITE).for_each(|_| readers.note());
            assert_eq!(readers.by(), ReadBy::Writers);
        }
        readers.note();
        assert_eq!(readers.by(), ReadBy::Readers);
        note_write();
        readers.note();
        assert_eq!(readers.by(), ReadBy::Readers, "somebody did");
    }

    #[test]
    fn a_thread_that_has_never_written_reads() {
        let readers = Readers::default();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..=LOOKS_WITHOUT_WRITE).for_each(|_| readers.note()));
        });
        assert_eq!(readers.by(), ReadBy::Readers);
    }
}
