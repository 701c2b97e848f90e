//! What is measured: the memory and files of this process, and the pauses of the machine itself.
//!
//! On a machine that others use too, a thread that wants to run waits for its turn, and a write waits
//! behind those of others, for longer than the engine ever makes it wait. What of an operation's time the
//! machine took is told apart like this:
//!
//! - *Its own thread*: the kernel counts how long each thread was ready to run and did not; exactly that is
//!   read before and after each operation ([`Waits`]).
//! - *Another thread*: it may have waited for somebody who holds a lock, or syncs for it, and did not run. A
//!   sampler reads the same count of every thread but those that merge (which are meant to wait), and the
//!   thread that waited longest meanwhile is taken. Not the sum of all: they do not wait for each other one
//!   by one.
//! - *Nobody ran*: the process was stopped, or the whole machine. The sampler was late then, and was not even
//!   ready.
//! - *Disk*: a thread writes 4 KiB to a file of its own, durably, again and again, and times it.
//!
//! What is left is the engine's. How much was excused is shown: on a machine of one's own it should be
//! nothing.

use std::collections::VecDeque;
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
/// Samples that are kept, a minute of them: an operation is judged right after it has ended.
const KEPT: usize = 12_000;

/// How much of each moment the machine kept from this process.
#[derive(Default)]
pub struct Machine {
    samples: Mutex<VecDeque<Sample>>,
    /// When a write of the disk gauge began, and how long it took, if that was long.
    disk: Mutex<VecDeque<(Instant, Duration)>>,
}

/// What the sampler has seen until a moment.
struct Sample {
    at: Instant,
    /// By thread: how long it has waited for a processor.
    waited: Vec<(u32, Duration)>,
    /// How long nobody ran.
    stood: Duration,
}

/// What the machine took of a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// By keeping the thread itself waiting for a processor, by standing still, and by a slow disk.
    pub own: Duration,
    /// By keeping one other thread waiting for a processor.
    pub other: Duration,
}

/// The count of a thread: how long it has waited for a processor.
pub struct Waits(File);

impl Waits {
    /// Of the calling thread.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn of_this_thread() -> std::io::Result<Waits> {
        File::open("/proc/thread-self/schedstat").map(Waits)
    }

    /// The time so far.
    pub fn now(&self) -> Duration {
        let mut text = [0; 80];
        let n = self.0.read_at(&mut text, 0).unwrap_or(0);
        waited(std::str::from_utf8(&text[..n]).unwrap_or_default()).unwrap_or_default()
    }
}

/// The second number of a thread's `schedstat`.
fn waited(text: &str) -> Option<Duration> {
    text.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Machine {
    /// Samples until told to stop.
    ///
    /// # Errors
    /// The system does not tell what is to be sampled.
    pub fn watch_processors(&self, stop: &AtomicBool) -> std::io::Result<()> {
        let waits = Waits::of_this_thread()?;
        let mut stood = Duration::ZERO;
        while !stop.load(Ordering::Relaxed) {
            let (began, before) = (Instant::now(), waits.now());
            std::thread::sleep(SAMPLE);
            let late = began.elapsed().saturating_sub(2 * SAMPLE);
            stood += late.saturating_sub(waits.now().saturating_sub(before));
            let sample = Sample { at: Instant::now(), waited: threads_waited(), stood };
            let mut samples = lock(&self.samples);
            if samples.len() == KEPT {
                samples.pop_front();
            }
            samples.push_back(sample);
        }
        Ok(())
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
                let mut disk = lock(&self.disk);
                if disk.len() == KEPT {
                    disk.pop_front();
                }
                disk.push_back((began, took));
            }
            std::thread::sleep(SAMPLE);
        }
        removed
    }

    /// How much of a span of time the machine took from an operation whose thread waited `own` for a
    /// processor. Call it a few samples later.
    pub fn within(&self, from: Instant, to: Instant, own: Duration) -> Taken {
        let samples = lock(&self.samples);
        let before = samples.partition_point(|s| s.at <= from).checked_sub(1).and_then(|i| samples.get(i));
        let after = samples.get(samples.partition_point(|s| s.at < to)).or(samples.back());
        let (Some(before), Some(after)) = (before.or(samples.front()), after) else {
            return Taken { own: own.min(to - from), other: Duration::ZERO };
        };
        let of = |tid| before.waited.iter().find(|w| w.0 == tid).map_or(Duration::ZERO, |w| w.1);
        let other = after
            .waited
            .iter()
            .map(|&(tid, waited)| waited.saturating_sub(of(tid)))
            .max()
            .unwrap_or_default();
        let stood = after.stood.saturating_sub(before.stood);
        let overlap = |&(began, took): &(Instant, Duration)| {
            (began + took).min(to).saturating_duration_since(began.max(from))
        };
        let disk: Duration = lock(&self.disk).iter().map(overlap).sum();
        let own = (own + stood.max(disk)).min(to - from);
        Taken { own, other: other.min((to - from).saturating_sub(own)) }
    }

    /// The longest write of the disk gauge lately.
    pub fn slowest_write(&self) -> Duration {
        lock(&self.disk).iter().map(|d| d.1).max().unwrap_or_default()
    }
}

/// How long each thread of this process, but for those that merge, has waited for a processor.
fn threads_waited() -> Vec<(u32, Duration)> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let times = tasks.filter_map(|task| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        if name.starts_with("azekura-merge") {
            return None;
        }
        let stat = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        Some((task.file_name().to_str()?.parse().ok()?, waited(&stat)?))
    });
    times.collect()
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
        let sample = |at, one, two, stood| Sample {
            at: t + ms(at),
            waited: vec![(1, ms(one)), (2, ms(two))],
            stood: ms(stood),
        };
        *machine.samples.lock().unwrap() =
            vec![sample(0, 100, 0, 0), sample(5, 103, 1, 0), sample(50, 110, 30, 4)].into();
        let taken = |own, other| Taken { own: ms(own), other: ms(other) };
        assert_eq!(machine.within(t, t + ms(4), ms(0)), taken(0, 3));
        assert_eq!(
            machine.within(t + ms(1), t + ms(40), ms(2)),
            taken(6, 30),
            "the longest wait, not the sum"
        );
        assert_eq!(machine.within(t + ms(60), t + ms(70), ms(0)), taken(0, 0));
        machine.disk.lock().unwrap().push_back((t + ms(10), ms(20)));
        assert_eq!(machine.within(t + ms(15), t + ms(40), ms(0)), taken(15, 10));
        assert_eq!(machine.within(t + ms(12), t + ms(20), ms(0)), taken(8, 0), "no more than there was");
    }
}
