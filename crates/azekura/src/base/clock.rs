//! The clock of a file, by which its records expire. It never runs backwards, over a restart neither.
//!
//! It shows the system's time. The largest time that it has shown stands in checkpoints, and in frames of the
//! log in seconds, rounded up. If the system's time is behind that when the file is opened, or is set back
//! later, this clock goes on by the system's monotonic one. It shows the system's time again once that has
//! caught up. So a machine that begins in 1970, and learns the time later, expires nothing too early. (If
//! less than `WAIT_MS` is missing, that may be the rounding. Then this clock waits.)
//!
//! A program's own clock has no monotonic one beside it. If it is behind what the file says when that is
//! opened, this clock stays ahead of it by as much. If it is set back later, this clock waits.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// If less is missing, the clock waits for the system's.
const WAIT_MS: u64 = 2_000;

/// Where a clock has its time from.
pub(crate) type TimeSource = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// The time by which records expire, in milliseconds since the beginning of 1970.
pub(crate) struct Clock {
    source: Option<TimeSource>,
    /// Whether something expires in the file, or has.
    is_used: AtomicBool,
    /// The largest time that was shown or found.
    last_ms: AtomicU64,
    /// The time that the file says.
    saved_ms: AtomicU64,
    /// How far it is ahead of a program's own clock.
    ahead_ms: AtomicU64,
    began: Instant,
    /// What the monotonic clock counts from: it shows this and what has passed since `began`.
    base_ms: AtomicU64,
}

/// A length of time in milliseconds; the largest number for all that are longer.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A time in milliseconds since 1970.
pub(crate) fn time_of(ms: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_millis(ms)).unwrap_or(UNIX_EPOCH)
}

impl Clock {
    /// A clock by the system's time, or by what a program gives instead.
    pub(crate) fn new(source: Option<TimeSource>) -> Clock {
        let clock = Clock {
            source,
            is_used: AtomicBool::new(false),
            last_ms: AtomicU64::new(0),
            saved_ms: AtomicU64::new(0),
            ahead_ms: AtomicU64::new(0),
            began: Instant::now(),
            base_ms: AtomicU64::new(0),
        };
        clock.base_ms.store(clock.system_ms(), Ordering::Relaxed);
        clock
    }

    fn system_ms(&self) -> u64 {
        let now = self.source.as_ref().map_or_else(SystemTime::now, |source| source());
        now.duration_since(UNIX_EPOCH).map_or(0, millis)
    }

    /// The time. No later call shows an earlier one, in whatever thread.
    pub(crate) fn now(&self) -> u64 {
        let last = self.last_ms.load(Ordering::Relaxed);
        let system = self.system_ms().saturating_add(self.ahead_ms.load(Ordering::Relaxed));
        if system == last {
            return last;
        }
        let now = if system < last { self.went_on(last, system) } else { system };
        self.last_ms.fetch_max(now, Ordering::Relaxed).max(now)
    }

    /// What it shows where the system's time is less than what it has shown last.
    #[cold]
    fn went_on(&self, last: u64, system: u64) -> u64 {
        if self.source.is_some() || last - system <= WAIT_MS {
            return last;
        }
        last.max(self.monotonic_from(last))
    }

    /// The time by the monotonic clock, which shows at least `least` now.
    fn monotonic_from(&self, least: u64) -> u64 {
        let passed = millis(self.began.elapsed());
        let base = least.saturating_sub(passed);
        self.base_ms.fetch_max(base, Ordering::Relaxed).max(base).saturating_add(passed)
    }

    /// Something expires from now on, or may already have.
    #[inline(always)]
    pub(crate) fn use_it(&self) {
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Release);
        }
    }

    /// Whether something expires in the file, or has.
    #[inline(always)]
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// The time, or 0 where nothing expires: nothing has expired then.
    #[inline(always)]
    pub(crate) fn now_if_used(&self) -> u64 {
        if self.is_used() { self.now() } else { 0 }
    }

    /// A time that was found in the file: it is no earlier now.
    pub(crate) fn found(&self, ms: u64) {
        self.use_it();
        self.last_ms.fetch_max(ms, Ordering::Relaxed);
        self.saved(ms);
        let system = self.system_ms();
        if ms <= system.saturating_add(self.ahead_ms.load(Ordering::Relaxed)).saturating_add(WAIT_MS) {
            return;
        }
        match self.source {
            Some(_) => _ = self.ahead_ms.fetch_max(ms - system, Ordering::Relaxed),
            None => _ = self.monotonic_from(ms),
        }
    }

    /// The file says this time now.
    pub(crate) fn saved(&self, ms: u64) {
        self.saved_ms.fetch_max(ms, Ordering::Relaxed);
    }

    /// Whether a later time was shown than the file says.
    pub(crate) fn is_ahead_of_file(&self) -> bool {
        self.is_used() && self.last_ms.load(Ordering::Relaxed) > self.saved_ms.load(Ordering::Relaxed)
    }

    /// The time in seconds, rounded up; 0 where nothing expires.
    pub(crate) fn seconds(&self) -> u32 {
        if !self.is_used() {
            return 0;
        }
        u32::try_from(self.now().div_ceil(1000)).unwrap_or(u32::MAX)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({} ms)", self.last_ms.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn of(time: &Arc<AtomicU64>) -> Clock {
        let time = time.clone();
        let source = move || UNIX_EPOCH + Duration::from_millis(time.load(Ordering::Relaxed));
        Clock::new(Some(Arc::new(source)))
    }

    #[test]
    fn it_never_runs_backwards() {
        let time = Arc::new(AtomicU64::new(10_000));
        let clock = of(&time);
        assert_eq!((clock.now_if_used(), clock.seconds(), clock.now()), (0, 0, 10_000));
        time.store(5_000, Ordering::Relaxed);
        assert_eq!(clock.now(), 10_000);
        time.store(10_001, Ordering::Relaxed);
        clock.use_it();
        assert_eq!((clock.now_if_used(), clock.seconds()), (10_001, 11));
    }

    #[test]
    fn it_goes_on_from_what_it_finds() {
        let time = Arc::new(AtomicU64::new(10_000));
        let clock = of(&time);
        // A little is the rounding of seconds: it waits.
        clock.found(11_000);
        assert_eq!(clock.now(), 11_000);
        time.store(11_500, Ordering::Relaxed);
        assert_eq!(clock.now(), 11_500);
        // Much is a clock that was set back: it stays ahead.
        clock.found(1_000_000);
        assert_eq!(clock.now(), 1_000_000);
        time.store(12_000, Ordering::Relaxed);
        assert_eq!(clock.now(), 1_000_500);
        clock.found(500);
        assert_eq!(clock.now(), 1_000_500);
    }

    #[test]
    fn the_systems_time_is_used_where_there_is_no_other() {
        let clock = Clock::new(None);
        let (system, now) = (clock.system_ms(), clock.now());
        assert!(now >= system && now < system + 60_000);
        // The system's clock was an hour ahead for a moment, as it seems to this one, or the file says so.
        clock.last_ms.store(now + 3_600_000, Ordering::Relaxed);
        assert!(clock.now() >= now + 3_600_000);
        std::thread::sleep(Duration::from_millis(20));
        let later = clock.now();
        assert!(later >= now + 3_600_015 && later < now + 3_660_000, "{}", later - now);
        clock.found(now + 7_200_000);
        std::thread::sleep(Duration::from_millis(20));
        let later = clock.now();
        assert!(later >= now + 7_200_015 && later < now + 7_260_000, "{}", later - now);
    }

    /// A machine without a battery begins in 1970, and learns the time when the file is open already. If what
    /// was missing were added to the right time, all would have expired.
    #[test]
    fn what_the_systems_time_was_behind_is_not_added_to_it() {
        let clock = Clock::new(None);
        let real = clock.system_ms();
        clock.found(real + 3_600_000);
        // The system's time is right from now on.
        clock.last_ms.store(real, Ordering::Relaxed);
        let now = clock.now();
        assert!(now >= real && now < real + 60_000, "{}", now - real);
    }
}
