//! How fast a copy is made, so that others have the rest of the disk.

use crate::base::error::{Error, Result};
use crate::base::sync::Instant;
use crate::base::sync::thread::sleep;
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
    /// longer.
    pub bytes_per_second: Option<u64>,
}

/// A step of a copy with a limit takes about so long. Others wait for no longer step.
const STEPS_A_SECOND: u64 = 20;
/// The bounds of their lengths.
const STEP_BYTES_MIN: u64 = 4 << 10;
const STEP_BYTES_MAX: u64 = 256 << 10;
/// A copy that was held up by others catches up on at most this much time.
const CATCH_UP: Duration = Duration::from_millis(100);

/// Holds a copy back.
pub(crate) struct Pace {
    bytes_per_second: Option<u64>,
    /// When the next step may begin.
    next: Option<Instant>,
}

impl Pace {
    /// # Errors
    /// `Invalid` if nothing could be copied.
    pub(crate) fn new(options: CopyOptions) -> Result<Pace> {
        match options.bytes_per_second {
            Some(rate) if rate < STEP_BYTES_MIN => Err(Error::Invalid {
                detail: format!("{rate} bytes a second; a copy takes {STEP_BYTES_MIN} at least"),
            }),
            bytes_per_second => Ok(Pace { bytes_per_second, next: None }),
        }
    }

    /// The length of a step, if there is a limit.
    pub(crate) fn step_bytes(&self) -> Option<u64> {
        self.bytes_per_second.map(|rate| (rate / STEPS_A_SECOND).clamp(STEP_BYTES_MIN, STEP_BYTES_MAX))
    }

    /// Waits until so many more bytes may be copied.
    pub(crate) fn wait(&mut self, bytes: u64) {
        let Some(rate) = self.bytes_per_second else { return };
        let now = Instant::now();
        let begin = self.next.map_or(now, |next| next.max(now.checked_sub(CATCH_UP).unwrap_or(now)));
        self.next = Some(begin + time_of(bytes, rate));
        let wait = begin.saturating_duration_since(now);
        if !wait.is_zero() {
            sleep(wait);
        }
    }
}

fn time_of(bytes: u64, rate: u64) -> Duration {
    let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(rate: u64) -> Pace {
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
