//! How fast a copy is made, so that others have the rest of the disk and of the processors.

use crate::base::error::{Error, Result};
use crate::base::sync::Instant;
use crate::base::sync::thread::sleep;
use crate::engine::Engine;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How a backup or a copy is made.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("azekura-doc-rate-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// use azekura::{CopyOptions, Db, Options};
/// let db = Db::open(dir.join("people.azk"), Options::new())?;
/// let slowly = CopyOptions { bytes_per_second: Some(100_000_000), ..CopyOptions::default() };
/// db.backup_with(dir.join("saved"), slowly, |_| {})?;
/// # db.close()?; std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopyOptions {
    /// How many bytes a second are copied at most, from 4,096 on. Default: as many as the disks can take.
    /// What a repository has already does not count. A slower copy keeps the space of replaced records for
    /// longer. (While its handle commits, a copy uses a processor for about a quarter of the time at most.)
    pub bytes_per_second: Option<u64>,
}

/// A step of a copy with a limit takes about so long. Others wait for no longer step.
const STEPS_A_SECOND: u64 = 20;
/// The bounds of their lengths.
const STEP_BYTES_MIN: u64 = 4 << 10;
const STEP_BYTES_MAX: u64 = 256 << 10;
/// A copy that was held up by others catches up on at most this much time.
const CATCH_UP: Duration = Duration::from_millis(100);

/// A copy rests for so many times as long as it has used a processor.
const REST_TIMES: u32 = 3;
/// It rests no longer than this at once.
const REST_MAX: Duration = Duration::from_millis(100);
/// So long after its last commit a writer still counts as busy: it may be at work on a large one.
const BUSY: Duration = Duration::from_millis(250);

/// Holds a copy back.
pub(crate) struct Pace<'a> {
    bytes_per_second: Option<u64>,
    /// When the next step may begin.
    next: Option<Instant>,
    writer: Option<Writer<'a>>,
}

/// Who commits in the meantime.
struct Writer<'a> {
    commits: &'a AtomicU64,
    /// How many there were when that was last looked up, and when there were more than before.
    seen: (u64, Option<Instant>),
    /// How much of a processor this thread had used when the last step began.
    step: Option<Duration>,
}

impl Writer<'_> {
    /// How long the copy is to rest after its last step, if somebody commits. (`BENCHMARKS.md`, Backup, has
    /// what that buys.)
    fn rest(&mut self) -> Duration {
        let commits = self.commits.load(Ordering::Relaxed);
        if commits != self.seen.0 {
            self.seen = (commits, Some(Instant::now()));
        }
        let is_busy = self.seen.1.is_some_and(|since| since.elapsed() < BUSY);
        let used = self.step.map_or(Duration::ZERO, |then| processor_time().saturating_sub(then));
        if is_busy { (used * REST_TIMES).min(REST_MAX) } else { Duration::ZERO }
    }
}

/// How much of a processor this thread has used.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

impl<'a> Pace<'a> {
    /// # Errors
    /// `Invalid` if nothing could be copied.
    pub(crate) fn new(options: CopyOptions) -> Result<Pace<'a>> {
        match options.bytes_per_second {
            Some(rate) if rate < STEP_BYTES_MIN => Err(Error::Invalid {
                detail: format!("{rate} bytes a second; a copy takes {STEP_BYTES_MIN} at least"),
            }),
            bytes_per_second => Ok(Pace { bytes_per_second, next: None, writer: None }),
        }
    }

    /// The pace of a copy of what an engine has, which may be written meanwhile.
    ///
    /// # Errors
    /// As `new`.
    pub(crate) fn beside(engine: &'a Engine, options: CopyOptions) -> Result<Pace<'a>> {
        Ok(Pace::new(options)?.beside_commits(&engine.counters.commits))
    }

    fn beside_commits(self, commits: &'a AtomicU64) -> Pace<'a> {
        let seen = (commits.load(Ordering::Relaxed), None);
        Pace { writer: Some(Writer { commits, seen, step: None }), ..self }
    }

    /// The length of a step, if there is a limit.
    pub(crate) fn step_bytes(&self) -> Option<u64> {
        self.bytes_per_second.map(|rate| (rate / STEPS_A_SECOND).clamp(STEP_BYTES_MIN, STEP_BYTES_MAX))
    }

    /// Waits until so many more bytes may be copied. The thread that copies calls it before each step.
    pub(crate) fn wait(&mut self, bytes: u64) {
        let turn = self.time_to_turn(bytes);
        let rest = self.writer.as_mut().map_or(Duration::ZERO, Writer::rest);
        let wait = turn.max(rest);
        if !wait.is_zero() {
            sleep(wait);
        }
        if let Some(writer) = &mut self.writer {
            writer.step = Some(processor_time());
        }
    }

    /// How long it is until a step of so many bytes may begin.
    fn time_to_turn(&mut self, bytes: u64) -> Duration {
        let Some(rate) = self.bytes_per_second else { return Duration::ZERO };
        let now = Instant::now();
        let begin = self.next.map_or(now, |next| next.max(now.checked_sub(CATCH_UP).unwrap_or(now)));
        self.next = Some(begin + time_of(bytes, rate));
        begin.saturating_duration_since(now)
    }
}

fn time_of(bytes: u64, rate: u64) -> Duration {
    let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(rate: u64) -> Pace<'static> {
        Pace::new(CopyOptions { bytes_per_second: Some(rate) }).unwrap()
    }

    #[test]
    fn a_copy_is_no_faster_than_it_may_be() {
        let (mut pace, began) = (pace(10_000_000), Instant::now());
        let step = pace.step_bytes().unwrap();
        assert_eq!(step, STEP_BYTES_MAX);
        // The first begins at once, and one more may be on its way.
        (0..9).for_each(|_| pace.wait(step));
        assert!(began.elapsed() >= time_of(8 * step, 10_000_000), "{:?}", began.elapsed());
    }

    #[test]
    fn who_was_held_up_catches_up_a_little() {
        let mut pace = pace(1_000_000);
        pace.wait(4096);
        sleep(Duration::from_millis(300));
        let began = Instant::now();
        // At a megabyte a second these are 200 ms, of which it has been held up for longer.
        pace.wait(100_000);
        pace.wait(100_000);
        pace.wait(1);
        assert!(began.elapsed() >= Duration::from_millis(99), "{:?}", began.elapsed());
    }

    /// Uses a processor for ten milliseconds, and gives how long the copy waits then.
    fn step(pace: &mut Pace<'_>) -> Duration {
        let then = processor_time();
        while processor_time() < then + Duration::from_millis(10) {}
        let began = Instant::now();
        pace.wait(4096);
        began.elapsed()
    }

    #[test]
    fn a_copy_rests_while_there_are_commits() {
        let commits = AtomicU64::new(7);
        for rate in [None, Some(u64::MAX)] {
            let options = CopyOptions { bytes_per_second: rate };
            let mut pace = Pace::new(options).unwrap().beside_commits(&commits);
            pace.wait(4096);
            let alone: Duration = (0..5).map(|_| step(&mut pace)).sum();
            assert!(alone < Duration::from_millis(40), "nobody commits: {alone:?}");
            let mut beside = |commit| {
                commits.fetch_add(commit, Ordering::Relaxed);
                step(&mut pace)
            };
            let beside = beside(1) + beside(1) + beside(0) + beside(1);
            assert!(beside >= REST_TIMES * Duration::from_millis(40), "{beside:?}");
        }
    }

    /// What waits for a slow disk or a pipe uses no processor, and keeps nobody from one.
    #[test]
    fn a_copy_that_waits_anyway_does_not_rest() {
        let commits = AtomicU64::new(0);
        let mut pace = Pace::new(CopyOptions::default()).unwrap().beside_commits(&commits);
        pace.wait(4096);
        let waits = (0..5).map(|_| {
            commits.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_millis(50));
            let began = Instant::now();
            pace.wait(4096);
            began.elapsed()
        });
        let waited: Duration = waits.sum();
        assert!(waited < Duration::from_millis(125), "{waited:?}");
    }

    #[test]
    fn steps_are_neither_long_nor_tiny() {
        assert_eq!(pace(4096).step_bytes(), Some(STEP_BYTES_MIN));
        assert_eq!(pace(1_000_000).step_bytes(), Some(50_000));
        assert_eq!(pace(u64::MAX).step_bytes(), Some(STEP_BYTES_MAX));
        assert_eq!(Pace::new(CopyOptions::default()).unwrap().step_bytes(), None);
        let too_slow = Pace::new(CopyOptions { bytes_per_second: Some(4095) });
        assert!(matches!(too_slow, Err(Error::Invalid { .. })));
        assert_eq!(time_of(u64::MAX, 1), Duration::from_nanos(u64::MAX));
    }
}
