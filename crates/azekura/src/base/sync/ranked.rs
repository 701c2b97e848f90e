//! Locks that know their place in the order in which a thread may take them.
//!
//! In builds with debug assertions each thread has a list of the ranks that it holds. Taking a lock panics
//! unless its rank is above all of these. In other builds a rank is nothing, and these are `parking_lot`'s
//! locks.

use super::Rank;
use parking_lot as base;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

/// `parking_lot::Mutex`, with a rank.
#[derive(Default)]
pub(crate) struct Mutex<T> {
    rank: Held,
    inner: base::Mutex<T>,
}

impl<T> Mutex<T> {
    /// A lock under which no other is taken.
    pub(crate) const fn new(value: T) -> Mutex<T> {
        Mutex::ranked(Rank::Leaf, value)
    }

    pub(crate) const fn ranked(rank: Rank, value: T) -> Mutex<T> {
        Mutex { rank: Held::new(rank), inner: base::Mutex::new(value) }
    }

    #[inline(always)]
    #[track_caller]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.rank.take();
        MutexGuard { guard: self.inner.lock(), rank: Holding(self.rank) }
    }

    /// The lock, if nobody has it.
    #[track_caller]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let guard = self.inner.try_lock()?;
        self.rank.take();
        Some(MutexGuard { guard, rank: Holding(self.rank) })
    }

    #[cfg(test)]
    pub(crate) fn is_locked(&self) -> bool {
        self.inner.is_locked()
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut()
    }
}

/// The guard of a [`Mutex`]. Its fields are dropped in order: first the lock, then the rank.
pub(crate) struct MutexGuard<'a, T> {
    guard: base::MutexGuard<'a, T>,
    rank: Holding,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<'a, T> MutexGuard<'a, T> {
    /// Lets a waiting thread have the lock, and takes it again.
    pub(crate) fn bump(held: &mut MutexGuard<'a, T>) {
        base::MutexGuard::bump(&mut held.guard);
    }

    /// Calls `f` while the lock is free.
    pub(crate) fn unlocked<R>(held: &mut MutexGuard<'a, T>, f: impl FnOnce() -> R) -> R {
        let rank = held.rank.0;
        base::MutexGuard::unlocked(&mut held.guard, || {
            rank.give();
            let out = f();
            rank.take();
            out
        })
    }
}

/// `parking_lot::Condvar`.
#[derive(Default)]
pub(crate) struct Condvar(base::Condvar);

impl Condvar {
    pub(crate) const fn new() -> Condvar {
        Condvar(base::Condvar::new())
    }

    pub(crate) fn wait<T>(&self, held: &mut MutexGuard<'_, T>) {
        self.0.wait(&mut held.guard);
    }

    pub(crate) fn wait_for<T>(
        &self,
        held: &mut MutexGuard<'_, T>,
        time: Duration,
    ) -> base::WaitTimeoutResult {
        self.0.wait_for(&mut held.guard, time)
    }

    pub(crate) fn wait_until<T>(
        &self,
        held: &mut MutexGuard<'_, T>,
        until: Instant,
    ) -> base::WaitTimeoutResult {
        self.0.wait_until(&mut held.guard, until)
    }

    pub(crate) fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    pub(crate) fn notify_all(&self) -> usize {
        self.0.notify_all()
    }
}

/// On drop, takes the rank from the thread's list.
struct Holding(Held);

impl Drop for Holding {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.give();
    }
}

#[cfg(not(debug_assertions))]
mod held {
    use super::Rank;

    #[derive(Clone, Copy, Default)]
    pub(super) struct Held;

    impl Held {
        pub(super) const fn new(_rank: Rank) -> Held {
            Held
        }

        #[inline(always)]
        pub(super) fn take(self) {}

        #[inline(always)]
        pub(super) fn give(self) {}
    }
}

#[cfg(debug_assertions)]
mod held {
    use super::Rank;
    use std::cell::Cell;

    thread_local! {
        /// A bit for each rank that the thread holds.
        static HELD: Cell<u32> = const { Cell::new(0) };
    }

    #[derive(Clone, Copy, Default)]
    pub(super) struct Held(Rank);

    impl Held {
        pub(super) const fn new(rank: Rank) -> Held {
            Held(rank)
        }

        fn bit(self) -> u32 {
            1 << self.0 as u32
        }

        /// REQUIRES: nothing of this rank or above is held.
        #[track_caller]
        pub(super) fn take(self) {
            // A thread that is ending has no list.
            let _ = HELD.try_with(|held| {
                let above = held.get() >> (self.0 as u32);
                assert!(above == 0, "a lock of rank {:?} is taken while {:#b} are held", self.0, held.get());
                held.set(held.get() | self.bit());
            });
        }

        pub(super) fn give(self) {
            let _ = HELD.try_with(|held| held.set(held.get() & !self.bit()));
        }
    }
}

use held::Held;

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn locks_in_their_order() {
        let (outer, inner) = (Mutex::ranked(Rank::Commit, 1), Mutex::new(2));
        let sum = *outer.lock() + *inner.lock();
        let mut held = outer.lock();
        assert_eq!(sum + MutexGuard::unlocked(&mut held, || *outer.lock()), 4);
        drop((inner.lock(), held));
    }

    #[test]
    #[should_panic(expected = "a lock of rank Commit is taken")]
    fn locks_out_of_their_order() {
        let (outer, inner) = (Mutex::ranked(Rank::Commit, 1), Mutex::new(2));
        let _held = inner.lock();
        let _ = *outer.lock();
    }
}
