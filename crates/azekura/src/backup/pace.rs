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
    /// How many bytes a second are copied at most, from 4,096 on. Default: as many as the disks can take,
    /// with rests while the handle that copies commits something. What a repository has already does not
    /// count. A slower copy keeps the space of replaced records for longer.
    pub bytes_per_second: Option<u64>,
}

/// A step of a copy with a limit takes about so long. Others wait for no longer step.
const STEPS_A_SECOND: u64 = 20;
/// The bounds of their lengths.
const STEP_BYTES_MIN: u64 = 4 << 10;
const STEP_BYTES_MAX: u64 = 256 << 10;
/// A copy that was held up by others catches up on at most this much time.
const CATCH_UP: Duration = Duration::from_millis(100);

/// A copy without a limit rests no longer than this at once.
const REST_MAX: Duration = Duration::from_millis(100);

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
    /// How many there were when the last step began, and when that was.
    then: (u64, Instant),
}

impl Writer<'_> {
    /// How long the copy is to rest: as long as the last step took, if there were commits meanwhile. (A
    /// writer that keeps two processors busy lost 5 % beside backups, and 11 % without rests, in the mean of
    /// 8 and of 24 turns.)
    fn rest(&self) -> Duration {
        let (commits, began) = self.then;
        let is_same = self.commits.load(Ordering::Relaxed) == commits;
        if is_same { Duration::ZERO } else { began.elapsed().min(REST_MAX) }
    }

    fn begin_step(&mut self) {
        self.then = (self.commits.load(Ordering::Relaxed), Instant::now());
    }
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
        let mut writer = Writer { commits, then: (0, Instant::now()) };
        writer.begin_step();
        Pace { writer: Some(writer), ..self }
    }

    /// The length of a step, if there is a limit.
    pub(crate) fn step_bytes(&self) -> Option<u64> {
        self.bytes_per_second.map(|rate| (rate / STEPS_A_SECOND).clamp(STEP_BYTES_MIN, STEP_BYTES_MAX))
    }

    /// Waits until so many more bytes may be copied.
    pub(crate) fn wait(&mut self, bytes: u64) {
        match self.bytes_per_second {
            Some(rate) => self.wait_for_turn(bytes, rate),
            None => self.wait_for_writer(),
        }
    }

    fn wait_for_turn(&mut self, bytes: u64, rate: u64) {
        let now = Instant::now();
        let begin = self.next.map_or(now, |next| next.max(now.checked_sub(CATCH_UP).unwrap_or(now)));
        self.next = Some(begin + time_of(bytes, rate));
        let wait = begin.saturating_duration_since(now);
        if !wait.is_zero() {
            sleep(wait);
        }
    }

    fn wait_for_writer(&mut self) {
        let Some(writer) = &mut self.writer else { return };
        let rest = writer.rest();
        if !rest.is_zero() {
            sleep(rest);
        }
        writer.begin_step();
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

    #[test]
    fn a_copy_rests_for_as_long_as_it_works_while_there_are_commits() {
        let commits = AtomicU64::new(7);
        let mut pace = Pace::new(CopyOptions::default()).unwrap().beside_commits(&commits);
        let mut step = |commit| {
            sleep(Duration::from_millis(20));
            commits.fetch_add(commit, Ordering::Relaxed);
            let began = Instant::now();
            pace.wait(4096);
            began.elapsed()
        };
        let alone: Duration = (0..5).map(|_| step(0)).sum();
        assert!(alone < Duration::from_millis(20), "nobody commits: {alone:?}");
        let beside: Duration = (0..5).map(|_| step(1)).sum();
        assert!(beside >= Duration::from_millis(100), "{beside:?}");
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
