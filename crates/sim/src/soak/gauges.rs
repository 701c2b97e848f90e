//! What is measured: the memory and the files of this process, and the pauses of the machine itself.
//!
//! On a machine with other users a thread may wait for a processor, and a write behind the writes of others,
//! longer than the engine ever makes it wait. So the part that the machine took of an operation's time is
//! found like this:
//!
//! - *Its own thread*: the kernel counts how long each thread was ready to run and did not run. This count is
//!   read before and after each operation ([`Waits`]).
//! - *Another thread*: the operation may have waited for a thread that held a lock, or that synced for it,
//!   and did not run. A sampler reads the same count of every thread except those that merge (which are meant
//!   to wait). The longest wait of one thread counts, and not the sum: the threads do not wait for each other
//!   one by one.
//! - *Nobody ran*: the process was stopped, or the whole machine. Then the sampler was late, and was not even
//!   ready to run.
//! - *Disk*: a thread writes 4 KiB to a file of its own, durably, again and again, and times it.
//!
//! The rest is the engine's. The excused time is shown: on an unshared machine it should be nothing.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The interval of the sampler, and of the disk gauge.
const SAMPLE: Duration = Duration::from_millis(5);
/// A write of the disk gauge up to this time is usual.
const DISK_USUAL: Duration = Duration::from_millis(5);
/// How many samples are kept: a minute. An operation is judged right after its end.
const KEPT: usize = 12_000;

/// How much of each moment the machine has kept from this process.
#[derive(Default)]
pub struct Machine {
    samples: Mutex<VecDeque<Sample>>,
    /// Slow writes of the disk gauge: when each began, and how long it took.
    disk: Mutex<VecDeque<(Instant, Duration)>>,
}

/// What the sampler had seen at a moment.
struct Sample {
    at: Instant,
    /// For each thread, how long it has waited for a processor.
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

/// The kernel's count of how long a thread has waited for a processor.
pub struct Waits(File);

impl Waits {
    /// The count of the calling thread.
    ///
    /// # Errors
    /// The system does not give it.
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
    /// Samples until `stop` is set.
    ///
    /// # Errors
    /// The system does not give the counts.
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

    /// Writes to a file of its own until `stop` is set.
    ///
    /// # Errors
    /// Errors of writing.
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
    /// processor. To be called a few samples later.
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

    /// The longest recent write of the disk gauge.
    pub fn slowest_write(&self) -> Duration {
        lock(&self.disk).iter().map(|d| d.1).max().unwrap_or_default()
    }
}

/// How long each thread of this process has waited for a processor, without those that merge.
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

/// Memory of this process that no file backs, in bytes.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// How many files this process has open.
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
