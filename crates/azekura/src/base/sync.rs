//! Locks, atomics and threads, named in one place so that model checkers can replace them.
//!
//! Normally these are the standard library's and `parking_lot`'s. The mutexes get a rank (`sync/ranked.rs`).
//! Under `--cfg loom` and `--cfg shuttle` they are those of that checker, in the same shape
//! (`sync/model.rs`), and so is time. The engine's own code runs on them. Two sorts are not replaced, for
//! they order nothing: atomics that only count, and those locks of `storage/` under which nothing else is
//! locked.

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

    /// What `ArcSwap::load` gives.
    pub(crate) type Loaded<T> = arc_swap::Guard<std::sync::Arc<T>>;

    /// Sets an atomic that no other thread shares. It is a plain store.
    pub(crate) trait SetAlone<T> {
        fn set_alone(&mut self, value: T);
    }

    impl SetAlone<u32> for atomic::AtomicU32 {
        #[inline(always)]
        fn set_alone(&mut self, value: u32) {
            *self.get_mut() = value;
        }
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

/// The locks of the engine, in the order in which a thread may take them. A thread takes only a lock that
/// stands below all that it holds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Rank {
    /// A follower that catches up.
    Following,
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
    /// The durable commits that wait for a group sync.
    Waiting,
    /// One of those commits.
    Ticket,
    /// What the background does, and what is due.
    Work,
    /// Writing the log.
    LogIo,
    /// The queue of the log.
    LogQueue,
    /// The open value segment.
    ValuesOpen,
    /// The open segment's last bytes.
    ValuesTail,
    /// The values that wait to be written to segments.
    ValuesQueue,
    /// The file's length.
    Growing,
    /// Locks that are held for a moment, and under which no other is taken.
    #[default]
    Leaf,
}

/// Reports accesses to plain memory that threads share. Under loom, which knows the order of memory accesses,
/// it finds races. Without loom it does nothing.
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

/// An atomic inside an arena's bytes. It is the standard library's under shuttle too: shuttle's threads do
/// not switch inside the list, whose steps loom tries.
#[cfg(not(loom))]
pub(crate) type Link = std::sync::atomic::AtomicU32;

/// The links of an arena. Under loom they stand beside the arena, since loom's atomics cannot stand inside
/// its bytes.
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
    /// As `AtomicU32::from_ptr`, for that place.
    #[inline(always)]
    pub(crate) unsafe fn at(&self, arena: NonNull<u8>, offset: usize) -> &Link {
        // SAFETY: the caller's promise.
        unsafe { Link::from_ptr(arena.add(offset).cast().as_ptr()) }
    }

    /// To be called after the head was zeroed. Other links are written before they are read.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {}
}

#[cfg(any(loom, shuttle))]
pub(crate) use model::*;
#[cfg(not(any(loom, shuttle)))]
pub(crate) use plain::*;
