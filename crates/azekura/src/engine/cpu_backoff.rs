//! Keeping out of readers' way: a writer makes pauses if others read beside it and processors are short.
//! (`state/readers.rs` tells who are others.)
//!
//! A writer at full speed keeps the flush and the merges busy too. Together they want more processors than a
//! small machine has left beside its readers, and then everybody waits for everybody. The system tells each
//! thread how long it was ready to run and did not. When that is more than a small part of a writer's time,
//! the writer sleeps for a part of the time that it has worked. The part grows as long as processors are
//! short (additive increase, and decrease in proportion, as for congestion in networks). Where nobody reads,
//! or processors are idle, this costs nothing. Where all writers together write little, and do not wait for
//! flush and merges either (`commit/rate.rs`), nobody makes pauses. Nor does one of little beside others,
//! however busy its thread is with other things.

use super::commit::WriteRate;
use std::cell::RefCell;
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a writer works at least before it looks around.
const WINDOW: Duration = Duration::from_millis(1);
/// Waiting for more than this part of its time means that processors are short.
const WAITING_MAX: f64 = 0.05;
/// The pause, in hundredths of the time worked: how it grows, and its limit.
const PAUSE_STEP: u32 = 20;
const PAUSE_MAX: u32 = 300;
/// A thread that writes fewer bytes in a microsecond of processor time is no use to pause.
const BYTES_PER_US: u64 = 1;
/// Shorter sleeps would not be kept to.
const SLEEP_MIN: Duration = Duration::from_micros(100);
/// Of a window that was longer than a third of this, the pause is a smaller part.
const SLEEP_MAX: Duration = Duration::from_millis(10);

/// How long writers pause at present.
pub(super) struct CpuBackoff {
    /// In hundredths of the time worked.
    pause: AtomicU32,
}

/// What the system says of a thread: nanoseconds that it ran, and that it was ready to and did not.
#[derive(Clone, Copy, PartialEq)]
struct Times {
    ran_ns: u64,
    waited_ns: u64,
}

/// A thread's file of its times, and what it said at the beginning of the window.
struct Window {
    file: File,
    began: Instant,
    looked: Instant,
    times: Times,
    /// What its commits cost since then.
    bytes: u64,
}

/// The system does not tell: nobody need ask again. (In a model nobody waits for a processor.)
static IS_UNTOLD: AtomicBool = AtomicBool::new(cfg!(any(loom, shuttle)));

thread_local! {
    static WINDOW_OF_THREAD: RefCell<Option<Window>> = const { RefCell::new(None) };
}

impl Window {
    /// Begins with a commit of so many bytes. None where the system does not tell.
    fn open(bytes: u64) -> Option<Window> {
        let file = File::open("/proc/thread-self/schedstat").ok();
        let window = file.and_then(|file| {
            let times = Times::read(&file)?;
            let now = Instant::now();
            Some(Window { file, began: now, looked: now, times, bytes })
        });
        IS_UNTOLD.store(window.is_none(), Ordering::Relaxed);
        window
    }

    /// What the system says, and how long the window took, if it is over. The system counts at its ticks, and
    /// when threads of the processor stop or wake. Until then the window goes on.
    fn look(&mut self) -> Option<(Times, Duration)> {
        if self.looked.elapsed() < WINDOW {
            return None;
        }
        self.looked = Instant::now();
        let times = Times::read(&self.file)?;
        (times != self.times).then(|| (times, self.began.elapsed()))
    }

    /// Begins anew. (`bytes` is the caller's.)
    fn begin(&mut self, times: Times) {
        let now = Instant::now();
        (self.times, self.began, self.looked) = (times, now, now);
    }
}

impl Times {
    #[cfg(unix)]
    fn read(file: &File) -> Option<Times> {
        let mut text = [0; 80];
        let n = std::os::unix::fs::FileExt::read_at(file, &mut text, 0).ok()?;
        let mut fields = std::str::from_utf8(&text[..n]).ok()?.split_ascii_whitespace();
        let mut field = || fields.next()?.parse().ok();
        Some(Times { ran_ns: field()?, waited_ns: field()? })
    }

    #[cfg(not(unix))]
    fn read(_file: &File) -> Option<Times> {
        None
    }
}

/// Whether a thread has written little for the time that it ran.
fn is_little(bytes: u64, ran_ns: u64) -> bool {
    bytes < ran_ns / 1000 * BYTES_PER_US
}

impl CpuBackoff {
    pub(super) fn new() -> CpuBackoff {
        CpuBackoff { pause: AtomicU32::new(0) }
    }

    /// Learns from a window of `took`, and gives how long to sleep after it. A writer that slept for half
    /// of the window by itself takes nobody's processor. (Each time it wakes it waits a little, which would
    /// count.) Nor do writers that write little together: `is_low`.
    fn adjust_pause(&self, ran_ns: u64, waited_ns: u64, took: Duration, is_low: bool) -> Duration {
        let wanted_ns = ran_ns + waited_ns;
        let part = waited_ns as f64 / wanted_ns.max(1) as f64;
        let is_busy = !is_low && u128::from(wanted_ns) * 2 >= took.as_nanos();
        let pause = self.pause.load(Ordering::Relaxed);
        let pause =
            if is_busy && part > WAITING_MAX { (pause + PAUSE_STEP).min(PAUSE_MAX) } else { pause * 15 / 16 };
        self.pause.store(pause, Ordering::Relaxed);
        if !is_busy {
            return Duration::ZERO;
        }
        let sleep = Duration::from_nanos(ran_ns / 100 * u64::from(pause)).min(SLEEP_MAX);
        if sleep < SLEEP_MIN { Duration::ZERO } else { sleep }
    }

    /// Pauses the calling writer, beside whom others read, if they need its processor. `bytes`: what its
    /// commit costs.
    pub(super) fn yield_to_readers(&self, bytes: u64, rate: &WriteRate) {
        if !IS_UNTOLD.load(Ordering::Relaxed) {
            WINDOW_OF_THREAD.with_borrow_mut(|window| self.look_around(window, bytes, rate));
        }
    }

    fn look_around(&self, window: &mut Option<Window>, bytes: u64, rate: &WriteRate) {
        let Some(now) = window else {
            *window = Window::open(bytes);
            return;
        };
        let Some((times, took)) = now.look() else {
            now.bytes += bytes;
            return;
        };
        let ran_ns = times.ran_ns.saturating_sub(now.times.ran_ns);
        let waited_ns = times.waited_ns.saturating_sub(now.times.waited_ns);
        // The commit that ends the window is work of the next.
        let written = std::mem::replace(&mut now.bytes, bytes);
        now.begin(times);
        // One of little says nothing of the others.
        if is_little(written, ran_ns) {
            return;
        }
        let sleep = self.adjust_pause(ran_ns, waited_ns, took, rate.is_low());
        if !sleep.is_zero() {
            std::thread::sleep(sleep);
            rate.note_pause(written, took, now.began.elapsed());
            now.begin(Times::read(&now.file).unwrap_or(times));
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const WINDOW_NS: u64 = 1_000_000;

    #[test]
    fn a_busy_writer_that_waits_pauses_longer_and_longer() {
        let cpu_backoff = CpuBackoff::new();
        let pauses: Vec<_> =
            (0..40).map(|_| cpu_backoff.adjust_pause(WINDOW_NS, WINDOW_NS, 2 * WINDOW, false)).collect();
        assert!(pauses[0] >= SLEEP_MIN && pauses.is_sorted());
        assert_eq!(pauses[39], 3 * WINDOW, "but not for ever");
        let later = (0..100).map(|_| cpu_backoff.adjust_pause(WINDOW_NS, 0, WINDOW, false)).last();
        assert_eq!(later, Some(Duration::ZERO), "processors are there again");
    }

    #[test]
    fn a_writer_that_sleeps_by_itself_never_pauses() {
        let cpu_backoff = CpuBackoff::new();
        for _ in 0..100 {
            assert_eq!(
                cpu_backoff.adjust_pause(WINDOW_NS / 10, WINDOW_NS / 10, WINDOW, false),
                Duration::ZERO
            );
        }
        assert!(
            cpu_backoff.adjust_pause(WINDOW_NS, WINDOW_NS, 2 * WINDOW, false) <= WINDOW / 4,
            "and has learned nothing"
        );
    }

    #[test]
    fn a_window_ends_when_the_system_has_counted() {
        let Some(mut window) = Window::open(0) else { return };
        std::thread::sleep(2 * WINDOW);
        let (times, took) = window.look().expect("the thread has stopped");
        assert!(times.ran_ns > window.times.ran_ns && took >= 2 * WINDOW);
    }

    #[test]
    fn who_writes_little_for_its_work_is_no_use_to_pause() {
        assert!(is_little(999, WINDOW_NS) && !is_little(1000, WINDOW_NS));
        assert!(!is_little(0, 0), "it only waited");
    }

    #[test]
    fn where_all_write_little_nobody_pauses_and_the_pause_is_forgotten() {
        let cpu_backoff = CpuBackoff::new();
        let window = |is_low| cpu_backoff.adjust_pause(WINDOW_NS, WINDOW_NS, 2 * WINDOW, is_low);
        (0..40).for_each(|_| assert!(window(false) > Duration::ZERO));
        (0..100).for_each(|_| assert_eq!(window(true), Duration::ZERO));
        assert!(window(false) <= WINDOW / 4, "a burst does not sleep for what was before");
    }
}
