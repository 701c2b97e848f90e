//! The model checkers' locks, atomics and threads in the shape of those that the engine uses.

#[cfg(loom)]
pub(crate) use loom::sync::atomic;

/// loom's threads, which have no clock to sleep by.
#[cfg(loom)]
pub(crate) mod thread {
    pub(crate) use loom::thread::*;

    pub(crate) fn sleep(_time: std::time::Duration) {
        yield_now();
    }
}
#[cfg(shuttle)]
pub(crate) use shuttle::{sync::atomic, thread};

/// A reference count whose order the checker knows.
#[cfg(loom)]
pub(crate) use loom::sync::Arc as CountedArc;
#[cfg(shuttle)]
pub(crate) use std::sync::Arc as CountedArc;

#[cfg(loom)]
use loom::sync as base;
#[cfg(shuttle)]
use shuttle::sync as base;

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// `parking_lot::Mutex` as far as the engine uses it.
#[derive(Default)]
pub(crate) struct Mutex<T>(base::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Mutex<T> {
        Mutex(base::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)), &self.0)
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Holds a [`Mutex`]. It is empty only while a [`Condvar`] waits, or in `unlocked`.
pub(crate) struct MutexGuard<'a, T>(Option<base::MutexGuard<'a, T>>, &'a base::Mutex<T>);

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("the lock is held again when a wait is over")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("the lock is held again when a wait is over")
    }
}

impl<'a, T> MutexGuard<'a, T> {
    /// Gives the lock to whoever waits for it, and takes it again.
    pub(crate) fn bump(guard: &mut MutexGuard<'a, T>) {
        MutexGuard::unlocked(guard, || ());
    }

    /// Calls `f` while the lock is free.
    pub(crate) fn unlocked<R>(guard: &mut MutexGuard<'a, T>, f: impl FnOnce() -> R) -> R {
        guard.0 = None;
        let out = f();
        guard.0 = Some(guard.1.lock().unwrap_or_else(PoisonError::into_inner));
        out
    }
}

/// `parking_lot::Condvar` as far as the engine uses it.
pub(crate) struct Condvar(base::Condvar);

impl Default for Condvar {
    fn default() -> Condvar {
        Condvar::new()
    }
}

impl Condvar {
    pub(crate) fn new() -> Condvar {
        Condvar(base::Condvar::new())
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        if let Some(held) = guard.0.take() {
            guard.0 = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Waits for a while. No clock runs in a model: the time may be over at once, or never come.
    pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _time: Duration) {
        self.wait(guard);
    }

    /// As `wait_for`. The time was never over.
    pub(crate) fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, _until: Instant) -> Waited {
        self.wait(guard);
        Waited
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// How a wait with a limit ended.
pub(crate) struct Waited;

impl Waited {
    pub(crate) fn timed_out(&self) -> bool {
        false
    }
}

/// `parking_lot::RwLock` as far as the engine uses it.
#[derive(Default)]
pub(crate) struct RwLock<T>(base::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) fn read(&self) -> base::RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> base::RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Setting an atomic that nobody shares, which is a plain store.
pub(crate) trait SetAlone<T> {
    fn set_alone(&mut self, value: T);
}

impl SetAlone<u64> for atomic::AtomicU64 {
    fn set_alone(&mut self, value: u64) {
        self.store(value, atomic::Ordering::Relaxed);
    }
}

impl SetAlone<usize> for atomic::AtomicUsize {
    fn set_alone(&mut self, value: usize) {
        self.store(value, atomic::Ordering::Relaxed);
    }
}

/// `arc_swap::ArcSwap` as far as the engine uses it: a pointer that is swapped with `Release` and read
/// with `Acquire`, and no other order between its users. Between the read of the pointer and the new
/// reference to what it points to no other thread runs, so that what is swapped out may go at once:
/// reclaiming is `arc_swap`'s own affair.
pub(crate) struct ArcSwap<T>(atomic::AtomicPtr<T>);

impl<T> ArcSwap<T> {
    pub(crate) fn from_pointee(value: T) -> ArcSwap<T> {
        ArcSwap(atomic::AtomicPtr::new(Arc::into_raw(Arc::new(value)).cast_mut()))
    }

    pub(crate) fn load_full(&self) -> Arc<T> {
        let null = std::ptr::null_mut();
        // An exchange that fails reads the newest pointer, which a load need not: an older one is gone.
        let (Ok(now) | Err(now)) =
            self.0.compare_exchange(null, null, atomic::Ordering::Relaxed, atomic::Ordering::Acquire);
        // SAFETY: the pointer came from `Arc::into_raw`, and the cell's own reference to it goes only when
        // another thread runs, which none does before the next operation of the checker.
        unsafe {
            Arc::increment_strong_count(now);
            Arc::from_raw(now)
        }
    }

    pub(crate) fn load(&self) -> Arc<T> {
        self.load_full()
    }

    pub(crate) fn store(&self, value: Arc<T>) {
        let old = self.0.swap(Arc::into_raw(value).cast_mut(), atomic::Ordering::AcqRel);
        // SAFETY: the pointer came from `Arc::into_raw`, and nobody else takes the cell's reference.
        drop(unsafe { Arc::from_raw(old) });
    }
}

impl<T> Drop for ArcSwap<T> {
    fn drop(&mut self) {
        // SAFETY: as in `store`; the cell is going, so nobody else uses it.
        drop(unsafe { Arc::from_raw(self.0.load(atomic::Ordering::Acquire)) });
    }
}

#[cfg(loom)]
pub(crate) use watched::{Links, Shadow};

/// What loom needs to watch plain memory.
#[cfg(loom)]
mod watched {
    use super::atomic::{AtomicU32, Ordering};
    use loom::cell::UnsafeCell;
    use std::ops::Range;
    use std::ptr::NonNull;

    /// Bytes that are watched together.
    const GRAIN_BYTES: usize = 8;

    /// See `sync.rs`.
    pub(crate) struct Shadow(Box<[UnsafeCell<()>]>);

    impl Shadow {
        pub(crate) fn new(bytes: usize) -> Shadow {
            Shadow((0..bytes.div_ceil(GRAIN_BYTES)).map(|_| UnsafeCell::new(())).collect())
        }

        fn cells(&self, bytes: Range<usize>) -> &[UnsafeCell<()>] {
            &self.0[bytes.start / GRAIN_BYTES..bytes.end.div_ceil(GRAIN_BYTES)]
        }

        pub(crate) fn read(&self, bytes: Range<usize>) {
            self.cells(bytes).iter().for_each(|cell| cell.with(|_| ()));
        }

        pub(crate) fn write(&self, bytes: Range<usize>) {
            self.cells(bytes).iter().for_each(|cell| cell.with_mut(|_| ()));
        }
    }

    /// See `sync.rs`.
    pub(crate) struct Links(Box<[AtomicU32]>);

    impl Links {
        pub(crate) fn new(arena_bytes: usize) -> Links {
            Links((0..arena_bytes / size_of::<u32>()).map(|_| AtomicU32::new(0)).collect())
        }

        /// The link at an offset of the arena.
        ///
        /// # Safety
        /// None here; see `sync.rs`.
        pub(crate) unsafe fn at(&self, _arena: NonNull<u8>, offset: usize) -> &AtomicU32 {
            &self.0[offset / size_of::<u32>()]
        }

        /// The arena's bytes were zeroed.
        pub(crate) fn clear(&mut self) {
            self.0.iter().for_each(|link| link.store(0, Ordering::Relaxed));
        }
    }
}
