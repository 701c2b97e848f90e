//! What is measured: the memory and files of this process, and the pauses of the machine itself.
//!
//! On a machine that others use too, a thread that wants to run waits for its turn, and a write waits
//! behind those of others, for longer than the engine ever makes it wait. Two gauges tell that time apart:
//!
//! - *Processor*: the kernel counts how long each thread was ready and did not run. A sampler adds that up
//!   over all threads of this process but those that merge (they are meant to wait), and adds its own
//!   lateness, which shows when the whole machine stood still.
//! - *Disk*: a thread writes 4 KiB to a file of its own, durably, again and again, and times it.
//!
//! What an operation took beyond what the larger of the two shows for its time is the engine's. This is
//! lenient: an engine that hogs processors or disk would excuse itself. How much was excused is therefore
//! shown, and on a machine of one's own it should be nothing.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The sampler's interval, and the disk's.
const SAMPLE: Duration = Duration::from_millis(5);
/// Writes of the disk gauge that take less are what writes take.
const DISK_USUAL: Duration = Duration::from_millis(5);

/// How much of each moment the machine kept from this process.
#[derive(Default)]
pub struct Machine {
    /// When, and the time that threads had waited for a processor until then.
    waited: Mutex<Vec<(Instant, Duration)>>,
    /// When a write of the disk gauge began, and how long it took, if that was long.
    disk: Mutex<Vec<(Instant, Duration)>>,
}

/// What a gauge keeps: half an hour of samples, of which only the newest are looked at.
const KEPT: usize = 400_000;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Machine {
    /// Samples until told to stop.
    pub fn watch_processors(&self, stop: &AtomicBool) {
        let mut late = Duration::ZERO;
        while !stop.load(Ordering::Relaxed) {
            let began = Instant::now();
            std::thread::sleep(SAMPLE);
            late += began.elapsed().saturating_sub(2 * SAMPLE);
            let mut waited = lock(&self.waited);
            if waited.len() < KEPT {
                waited.push((Instant::now(), threads_waited() + late));
            }
        }
    }

    /// Writes to a file of its own until told to stop.
    ///
    /// # Errors
    /// What writing meets.
    pub fn watch_disk(&self, path: &Path, stop: &AtomicBool) -> std::io::Result<()> {
        let file = File::create(path)?;
        let removed = std::fs::remove_file(path);
        while !stop.load(Ordering::Relaxed) {
            let began = Instant::now();
            file.write_all_at(&[1; 4096], 0)?;
            file.sync_data()?;
            let took = began.elapsed();
            if took > DISK_USUAL {
                lock(&self.disk).push((began, took));
            }
            std::thread::sleep(SAMPLE);
        }
        removed
    }

    /// How much of a span of time the machine took, at most all of it. Call it a few samples later.
    pub fn within(&self, from: Instant, to: Instant) -> Duration {
        let waited = lock(&self.waited);
        let before = waited[..waited.partition_point(|s| s.0 <= from)].last().map_or(Duration::ZERO, |s| s.1);
        let after = waited.get(waited.partition_point(|s| s.0 < to)).or(waited.last()).map_or(before, |s| s.1);
        let overlap =
            |&(began, took): &(Instant, Duration)| (began + took).min(to).saturating_duration_since(began.max(from));
        let disk: Duration = lock(&self.disk).iter().map(overlap).sum();
        after.saturating_sub(before).max(disk).min(to - from)
    }

    /// The time that threads waited for a processor, and the longest write of the disk gauge.
    pub fn summary(&self) -> (Duration, Duration) {
        let waited = lock(&self.waited);
        let span = waited.first().zip(waited.last()).map_or(Duration::ZERO, |(a, b)| b.1 - a.1);
        (span, lock(&self.disk).iter().map(|d| d.1).max().unwrap_or_default())
    }
}

/// How long the threads of this process, but for those that merge, have waited for a processor in all. A
/// thread that ends takes its share with it; the load's and the engine's live as long as the run.
fn threads_waited() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let ns = tasks.filter_map(|task| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        if name.starts_with("azekura-merge") {
            return None;
        }
        let stat = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        stat.split(' ').nth(1)?.parse::<u64>().ok()
    });
    Duration::from_nanos(ns.sum())
}

/// Memory that this process holds of its own, in bytes: resident, without mapped files.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// Files that this process has open.
pub fn open_files() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count())
}

/// The slope of a line through points (seconds, bytes) by least squares, in bytes a second.
pub fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean = |f: fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / n.max(1.0);
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let spread: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    if spread == 0.0 { 0.0 } else { points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>() / spread }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_is_found() {
        let points: Vec<(f64, f64)> = (0..50).map(|i| (f64::from(i), 100.0 + 3.0 * f64::from(i))).collect();
        assert!((slope(&points) - 3.0).abs() < 1e-9);
        assert_eq!(slope(&points[..1]), 0.0);
    }

    #[test]
    fn pauses_count_as_far_as_they_overlap() {
        let machine = Machine::default();
        let t = Instant::now();
        let ms = Duration::from_millis;
        *machine.waited.lock().unwrap() = vec![(t, ms(100)), (t + ms(5), ms(103)), (t + ms(50), ms(110))];
        assert_eq!(machine.within(t, t + ms(4)), ms(3));
        assert_eq!(machine.within(t + ms(1), t + ms(40)), ms(10));
        assert_eq!(machine.within(t + ms(60), t + ms(70)), ms(0));
        machine.disk.lock().unwrap().push((t + ms(10), ms(20)));
        assert_eq!(machine.within(t + ms(15), t + ms(40)), ms(15));
        assert_eq!(machine.within(t + ms(12), t + ms(20)), ms(8), "no more than there was");
    }
}
