//! The model checkers' locks, atomics and threads, in the shape that the engine uses.

#[cfg(loom)]
pub(crate) use loom::sync::atomic;

/// loom's threads. loom has no clock, so sleeping is a yield.
#[cfg(loom)]
pub(crate) mod thread {
    pub(crate) use loom::thread::*;

    pub(crate) fn sleep(_time: std::time::Duration) {
        yield_now();
    }
}
#[cfg(shuttle)]
pub(crate) use clock::Instant;
#[cfg(shuttle)]
pub(crate) use shuttle::{sync::atomic, thread};
#[cfg(loom)]
pub(crate) use std::time::Instant;

/// A reference count whose memory order the checker knows.
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
use std::time::Duration;

/// `parking_lot::Mutex`, as far as the engine uses it.
#[derive(Default)]
pub(crate) struct Mutex<T>(base::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Mutex<T> {
        Mutex(base::Mutex::new(value))
    }

    pub(crate) fn ranked(_rank: super::Rank, value: T) -> Mutex<T> {
        Mutex::new(value)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)), &self.0)
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok().map(|guard| MutexGuard(Some(guard), &self.0))
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The guard of a [`Mutex`]. It is empty only while a [`Condvar`] waits, and in `unlocked`.
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
    /// Lets a waiting thread have the lock, and takes it again.
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

/// `parking_lot::Condvar`, as far as the engine uses it.
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

    /// Waits for a while. loom has no clock, so the time never comes.
    #[cfg(loom)]
    pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _time: Duration) {
        self.wait(guard);
    }

    /// Waits for a while: other threads have a turn, then the wait may be over. A thread that waits with a
    /// limit looks again in any case, so waking too early shows all that waking in time would.
    #[cfg(shuttle)]
    pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _time: Duration) {
        MutexGuard::unlocked(guard, thread::yield_now);
    }

    /// As `wait_for`. Also says whether the time has come.
    pub(crate) fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, until: Instant) -> Waited {
        self.wait_for(guard, Duration::ZERO);
        Waited { over: cfg!(shuttle) && Instant::now() >= until }
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// How a wait with a limit ended.
pub(crate) struct Waited {
    over: bool,
}

impl Waited {
    pub(crate) fn timed_out(&self) -> bool {
        self.over
    }
}

/// shuttle's time. It advances with the threads' steps, so that a repeated schedule takes the same course.
#[cfg(shuttle)]
mod clock {
    use std::ops::Add;
    use std::time::Duration;

    /// What a step takes. Large enough that the delays of the engine's threads pass within a schedule.
    const STEP: Duration = Duration::from_micros(200);

    /// `std::time::Instant`, as far as the engine uses it.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) struct Instant(Duration);

    impl Instant {
        /// As that of `std`.
        pub(crate) fn checked_sub(self, time: Duration) -> Option<Instant> {
            self.0.checked_sub(time).map(Instant)
        }

        pub(crate) fn now() -> Instant {
            Instant(STEP * u32::try_from(shuttle::current::context_switches()).unwrap_or(u32::MAX))
        }

        pub(crate) fn elapsed(self) -> Duration {
            Instant::now().0.saturating_sub(self.0)
        }

        pub(crate) fn saturating_duration_since(self, earlier: Instant) -> Duration {
            self.0.saturating_sub(earlier.0)
        }
    }

    impl Add<Duration> for Instant {
        type Output = Instant;

        fn add(self, time: Duration) -> Instant {
            Instant(self.0 + time)
        }
    }
}

/// `parking_lot::RwLock`, as far as the engine uses it.
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

/// Sets an atomic that no other thread shares.
pub(crate) trait SetAlone<T> {
    fn set_alone(&mut self, value: T);
}

impl SetAlone<u32> for super::Link {
    fn set_alone(&mut self, value: u32) {
        self.store(value, atomic::Ordering::Relaxed);
    }
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

/// `arc_swap::ArcSwap`, as far as the engine uses it: a pointer that is swapped with `Release` and read with
/// `Acquire`. Its users have no other order between them. No other thread runs between the read of the
/// pointer and the new reference, so what is swapped out may be freed at once. (`arc_swap` has its own way to
/// reclaim.)
pub(crate) struct ArcSwap<T>(atomic::AtomicPtr<T>);

/// What `ArcSwap::load` gives.
pub(crate) type Loaded<T> = Arc<T>;

impl<T> ArcSwap<T> {
    pub(crate) fn from_pointee(value: T) -> ArcSwap<T> {
        ArcSwap(atomic::AtomicPtr::new(Arc::into_raw(Arc::new(value)).cast_mut()))
    }

    pub(crate) fn load_full(&self) -> Arc<T> {
        let null = std::ptr::null_mut();
        // An exchange that fails reads the newest pointer. A load might read an older one, which is freed.
        let (Ok(now) | Err(now)) =
            self.0.compare_exchange(null, null, atomic::Ordering::Relaxed, atomic::Ordering::Acquire);
        // SAFETY: the pointer came from `Arc::into_raw`. The cell's own reference to it goes only when
        // another thread runs, and none runs before the next operation of the checker.
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
        // SAFETY: the pointer came from `Arc::into_raw`, and only this call takes the cell's reference.
        drop(unsafe { Arc::from_raw(old) });
    }
}

impl<T> Drop for ArcSwap<T> {
    fn drop(&mut self) {
        // SAFETY: as in `store`. The cell is being dropped, so nobody else uses it.
        drop(unsafe { Arc::from_raw(self.0.load(atomic::Ordering::Acquire)) });
    }
}

#[cfg(loom)]
pub(crate) use watched::{Link, Links, Shadow};

/// What loom needs to watch plain memory.
#[cfg(loom)]
mod watched {
    use super::atomic::Ordering;
    use loom::cell::UnsafeCell;
    use std::ops::Range;
    use std::ptr::NonNull;

    /// Bytes that are watched as one.
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
    pub(crate) type Link = loom::sync::atomic::AtomicU32;

    /// See `sync.rs`.
    pub(crate) struct Links(Box<[Link]>);

    impl Links {
        pub(crate) fn new(arena_bytes: usize) -> Links {
            Links((0..arena_bytes / size_of::<u32>()).map(|_| Link::new(0)).collect())
        }

        /// The link at an offset of the arena.
        ///
        /// # Safety
        /// None here; see `sync.rs`.
        pub(crate) unsafe fn at(&self, _arena: NonNull<u8>, offset: usize) -> &Link {
            &self.0[offset / size_of::<u32>()]
        }

        /// The head was zeroed, and nobody reads other links before they are written.
        pub(crate) fn clear(&mut self) {
            self.0.iter().for_each(|link| link.store(0, Ordering::Relaxed));
        }
    }
}
