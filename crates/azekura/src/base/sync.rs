//! Locks, atomics and threads, named in one place so that model checkers can put theirs here.
//!
//! Normally these are the standard library's and `parking_lot`'s, whose locks get a rank (`sync/ranked.rs`).
//! Under `--cfg loom` and `--cfg shuttle` they are those of the checker of that name, in the same shape
//! (`sync/model.rs`), and the engine's own code runs on them; time is the checker's too. Atomics that only
//! count, and locks under which nothing else is locked in `storage/`, stay what they are: they order nothing.

#[cfg(any(loom, shuttle))]
mod model;
#[cfg(not(any(loom, shuttle)))]
mod ranked;
#[cfg(not(loom))]
use std::{ops::Range, ptr::NonNull};

#[cfg(not(any(loom, shuttle)))]
mod plain {
    pub(crate) use super::ranked::{Condvar, Mutex, MutexGuard};
    pub(crate) use arc_swap::ArcSwap;
    pub(crate) use parking_lot::RwLock;
    pub(crate) use std::sync::Arc as CountedArc;
    pub(crate) use std::sync::atomic;
    pub(crate) use std::thread;
    pub(crate) use std::time::Instant;

    /// Setting an atomic that nobody shares, which is a plain store.
    pub(crate) trait SetAlone<T> {
        fn set_alone(&mut self, value: T);
    }

    impl SetAlone<u64> for atomic::AtomicU64 {
        #[inline(always)]
        fn set_alone(&mut self, value: u64) {
            *self.get_mut() = value;
        }
    }

    impl SetAlone<usize> for atomic::AtomicUsize {
        #[inline(always)]
        fn set_alone(&mut self, value: usize) {
            *self.get_mut() = value;
        }
    }
}

/// The locks of the engine in the order in which a thread may take them: only one that stands behind all that
/// it holds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Rank {
    /// Making, renaming and dropping tables.
    ChangingTables,
    /// Making room on a full disk.
    Relieving,
    /// A flush.
    Flushing,
    /// A checkpoint.
    Checkpoint,
    /// Commits: numbers, memtables, changes of the state.
    Commit,
    /// The durable commits that wait for a group.
    Waiting,
    /// One of these.
    Ticket,
    /// What the background is doing, and what it is to do.
    Work,
    /// Writing the log.
    LogIo,
    /// What waits for the log.
    LogQueue,
    /// The value segment that is being filled.
    ValuesOpen,
    /// Its last bytes.
    ValuesTail,
    /// What waits to be written to value segments.
    ValuesQueue,
    /// The file's length.
    Growing,
    /// What is held for a moment, and under which nothing else is taken.
    #[default]
    Leaf,
}

/// Watches over plain memory that threads share: a checker that knows the order of memory accesses
/// (loom) learns here who reads and writes what, and finds races. Nothing otherwise.
#[cfg(not(loom))]
pub(crate) struct Shadow;

#[cfg(not(loom))]
impl Shadow {
    #[inline(always)]
    pub(crate) fn new(_bytes: usize) -> Shadow {
        Shadow
    }

    #[inline(always)]
    pub(crate) fn read(&self, _bytes: Range<usize>) {}

    #[inline(always)]
    pub(crate) fn write(&self, _bytes: Range<usize>) {}
}

/// An atomic that stands in the middle of an arena's bytes. (shuttle cannot have its own there: its threads
/// do not change within the list, whose steps are loom's to try.)
#[cfg(not(loom))]
pub(crate) type Link = std::sync::atomic::AtomicU32;

/// The links of an arena. loom cannot have them in the middle of its bytes, and keeps them beside it.
#[cfg(not(loom))]
pub(crate) struct Links;

#[cfg(not(loom))]
impl Links {
    #[inline(always)]
    pub(crate) fn new(_arena_bytes: usize) -> Links {
        Links
    }

    /// The link at an offset of the arena.
    ///
    /// # Safety
    /// As `AtomicU32::from_ptr` for that place.
    #[inline(always)]
    pub(crate) unsafe fn at(&self, arena: NonNull<u8>, offset: usize) -> &Link {
        // SAFETY: the caller's promise.
        unsafe { Link::from_ptr(arena.add(offset).cast().as_ptr()) }
    }

    /// The arena's bytes were zeroed.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {}
}

#[cfg(any(loom, shuttle))]
pub(crate) use model::*;
#[cfg(not(any(loom, shuttle)))]
pub(crate) use plain::*;
