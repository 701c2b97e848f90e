//! What is measured: the memory and the files of this process, and the pauses of the machine itself.
//!
//! On a machine with other users a thread may wait for a processor, and a write for the writes of others,
//! longer than the engine ever makes it wait. So the part of an operation's time that the machine took is
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
//! - *A processor stood still*: the machine is a virtual one, and its host ran something else. The kernel
//!   counts that for each processor.
//! - *Disk*: a thread writes 4 KiB to a file of its own, durably, again and again, and times it. And the
//!   sampler sees which threads the kernel keeps waiting for the disk: a write into a page cache that is full
//!   of what others wrote waits for the disk, too.
//!
//! The rest is the engine's. The excused time is shown: on an unshared machine it should be nothing. What
//! each thread was seen to do meanwhile is shown with an operation that took too long.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The interval of the sampler, and of the disk gauge.
const SAMPLE: Duration = Duration::from_millis(5);
/// A write of the disk gauge up to this time is usual.
const DISK_USUAL: Duration = Duration::from_millis(5);
/// How many samples are kept: ten seconds. An operation is judged right after its end. They are part of the
/// memory that is judged.
const KEPT: usize = 2_000;
/// So much of a thread's waits for the disk is excused, and no more: a commit that always waits for a long
/// sync is the engine's fault.
const BLOCKED_MAX: Duration = Duration::from_millis(300);

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
    threads: Vec<Seen>,
    /// For each processor, how long its host ran something else.
    stolen: Vec<Duration>,
    /// How long nobody ran.
    stood: Duration,
}

/// What the sampler has seen of a thread.
#[derive(Clone, Debug)]
struct Seen {
    tid: u32,
    name: Arc<str>,
    /// As the kernel tells it: `R` runs or could, `D` waits for the disk, `S` sleeps.
    state: char,
    /// How long it has waited for a processor.
    waited: Duration,
    /// How long it was found waiting for the disk.
    blocked: Duration,
}

impl Seen {
    /// How long the machine has kept this thread waiting since `before`.
    fn kept_since(&self, before: Option<&Seen>) -> Duration {
        before.map_or(Duration::ZERO, |b| self.waited.saturating_sub(b.waited)) + self.blocked_since(before)
    }

    /// How much of that is excused as waiting for the disk.
    fn blocked_since(&self, before: Option<&Seen>) -> Duration {
        before.map_or(Duration::ZERO, |b| self.blocked.saturating_sub(b.blocked).min(BLOCKED_MAX))
    }

    /// Merges are meant to wait, and nobody for them.
    fn is_waited_for(&self) -> bool {
        !self.name.starts_with("azekura-merge")
    }
}

impl Sample {
    fn of(&self, tid: u32) -> Option<&Seen> {
        self.threads.iter().find(|t| t.tid == tid)
    }
}

/// What the machine took of a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// By keeping the thread itself waiting for a processor, by standing still, and by a slow disk.
    pub own: Duration,
    /// By keeping one other thread waiting for a processor or the disk.
    pub other: Duration,
}

/// The kernel's count of how long a thread has waited for a processor.
pub struct Waits {
    file: File,
    tid: u32,
}

impl Waits {
    /// The count of the calling thread.
    ///
    /// # Errors
    /// The system does not give it.
    pub fn of_this_thread() -> std::io::Result<Waits> {
        let link = std::fs::read_link("/proc/thread-self")?;
        let tid = link.file_name().and_then(|name| name.to_str()?.parse().ok());
        let tid = tid.ok_or_else(|| std::io::Error::other("the number of this thread"))?;
        Ok(Waits { file: File::open("/proc/thread-self/schedstat")?, tid })
    }

    /// The time so far.
    pub fn now(&self) -> Duration {
        let mut text = [0; 80];
        let n = self.file.read_at(&mut text, 0).unwrap_or(0);
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
        let (mut stood, mut last) = (Duration::ZERO, Instant::now());
        let mut threads: Vec<Seen> = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let (began, before) = (Instant::now(), waits.now());
            std::thread::sleep(SAMPLE);
            let late = began.elapsed().saturating_sub(2 * SAMPLE);
            stood += late.saturating_sub(waits.now().saturating_sub(before));
            let at = Instant::now();
            threads = see_threads(&threads, at - last);
            last = at;
            let sample = Sample { at, threads: threads.clone(), stolen: stolen(), stood };
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
    pub fn within(&self, from: Instant, to: Instant, waits: &Waits, own: Duration) -> Taken {
        let samples = lock(&self.samples);
        let before = samples.partition_point(|s| s.at <= from).checked_sub(1).and_then(|i| samples.get(i));
        let after = samples.get(samples.partition_point(|s| s.at < to)).or(samples.back());
        let (Some(before), Some(after)) = (before.or(samples.front()), after) else {
            return Taken { own: own.min(to - from), other: Duration::ZERO };
        };
        let kept = |t: &Seen| t.kept_since(before.of(t.tid));
        let others = after.threads.iter().filter(|t| t.tid != waits.tid && t.is_waited_for());
        let other = others.map(kept).max().unwrap_or_default();
        let own_thread = after.of(waits.tid);
        let blocked = own_thread.map_or(Duration::ZERO, |t| t.blocked_since(before.of(waits.tid)));
        let stolen = after.stolen.iter().zip(&before.stolen).map(|(a, b)| a.saturating_sub(*b)).max();
        let stood = after.stood.saturating_sub(before.stood).max(stolen.unwrap_or_default());
        let overlap = |&(began, took): &(Instant, Duration)| {
            (began + took).min(to).saturating_duration_since(began.max(from))
        };
        let disk: Duration = lock(&self.disk).iter().map(overlap).sum();
        let own = (own + stood.max(disk).max(blocked)).min(to - from);
        Taken { own, other: other.min((to - from).saturating_sub(own)) }
    }

    /// What each thread was found doing within a span of time: its name, and how often it was in which state.
    pub fn seen(&self, from: Instant, to: Instant) -> String {
        let samples = lock(&self.samples);
        let mut found: BTreeMap<(&str, u32), BTreeMap<char, u32>> = BTreeMap::new();
        for sample in samples.iter().filter(|s| (from..=to).contains(&s.at)) {
            for t in &sample.threads {
                *found.entry((&t.name, t.tid)).or_default().entry(t.state).or_default() += 1;
            }
        }
        let texts = found.iter().map(|((name, _), states)| {
            let states: Vec<String> = states.iter().map(|(state, n)| format!("{n} {state}")).collect();
            format!("{name} {}", states.join(" "))
        });
        texts.collect::<Vec<_>>().join(", ")
    }

    /// The longest recent write of the disk gauge.
    pub fn slowest_write(&self) -> Duration {
        lock(&self.disk).iter().map(|d| d.1).max().unwrap_or_default()
    }
}

/// Looks at all threads of this process, `passed` after it saw them as `before`.
fn see_threads(before: &[Seen], passed: Duration) -> Vec<Seen> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let seen = tasks.filter_map(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
        let (name, state) = name_and_state(&stat)?;
        let waits = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        let tid = task.file_name().to_str()?.parse().ok()?;
        let known = before.iter().find(|t| t.tid == tid && *t.name == *name);
        let blocked = known.map_or(Duration::ZERO, |t| t.blocked);
        let blocked = if state == 'D' { blocked + passed } else { blocked };
        let name = known.map_or_else(|| name.into(), |t| t.name.clone());
        Some(Seen { tid, name, state, waited: waited(&waits)?, blocked })
    });
    seen.collect()
}

/// A thread's name, which may have any characters, and its state.
fn name_and_state(stat: &str) -> Option<(&str, char)> {
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    Some((name, rest.trim_start().chars().next()?))
}

/// For each processor, how long its host ran something else. Nothing where the kernel does not say so.
fn stolen() -> Vec<Duration> {
    stolen_in(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
}

fn stolen_in(stat: &str) -> Vec<Duration> {
    let processors = stat.lines().skip(1).take_while(|line| line.starts_with("cpu"));
    // Counted in hundredths of a second.
    let ticks = processors.map(|line| line.split_ascii_whitespace().nth(8).and_then(|n| n.parse().ok()));
    ticks.map(|n: Option<u64>| Duration::from_millis(10 * n.unwrap_or(0))).collect()
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
        let thread = |tid, name: &str, waited, blocked| Seen {
            tid,
            name: name.into(),
            state: 'S',
            waited: ms(waited),
            blocked: ms(blocked),
        };
        let sample = |at, one, two, three, stolen, stood| Sample {
            at: t + ms(at),
            threads: vec![
                thread(1, "load", one, 0),
                thread(2, "azekura-log", two, 0),
                thread(3, "azekura-flush", 0, three),
                thread(4, "azekura-merge-0", 10 * at, 10 * at),
            ],
            stolen: vec![ms(0), ms(stolen)],
            stood: ms(stood),
        };
        *machine.samples.lock().unwrap() = vec![
            sample(0, 100, 0, 0, 0, 0),
            sample(5, 103, 1, 0, 0, 0),
            sample(50, 110, 30, 12, 0, 4),
            sample(60, 110, 30, 20, 9, 4),
        ]
        .into();
        let waits = |tid| Waits { file: File::open("/dev/null").unwrap(), tid };
        let taken = |own, other| Taken { own: ms(own), other: ms(other) };
        let within = |from, to, own| machine.within(t + ms(from), t + ms(to), &waits(1), ms(own));
        assert_eq!(within(0, 4, 0), taken(0, 1));
        assert_eq!(within(1, 40, 2), taken(6, 30), "the longest wait, not the sum, and not that of merges");
        assert_eq!(within(52, 59, 0), taken(7, 0), "a processor stood still");
        assert_eq!(within(60, 70, 0), taken(0, 0));
        let of_flush = machine.within(t + ms(5), t + ms(40), &waits(3), ms(0));
        assert_eq!(of_flush, taken(12, 23), "the disk kept the thread itself");
        let late = Seen { blocked: ms(5000), ..thread(3, "azekura-flush", 7, 0) };
        assert_eq!(late.kept_since(Some(&thread(3, "azekura-flush", 0, 0))), ms(307), "not all is excused");
        machine.disk.lock().unwrap().push_back((t + ms(10), ms(20)));
        assert_eq!(within(15, 40, 0), taken(15, 10));
        assert_eq!(within(12, 20, 0), taken(8, 0), "no more than there was");
        let seen = machine.seen(t + ms(4), t + ms(50));
        assert_eq!(seen, "azekura-flush 2 S, azekura-log 2 S, azekura-merge-0 2 S, load 2 S");
    }

    #[test]
    fn what_the_kernel_tells_is_understood() {
        assert_eq!(name_and_state("12 (a) b) D 1 2"), Some(("a) b", 'D')));
        assert_eq!(name_and_state("12"), None);
        let stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 1 2 3\nintr 1 2 3 4 5 6 7 8 9\n";
        assert_eq!(stolen_in(stat), [Duration::from_millis(80), Duration::ZERO]);
        assert!(stolen_in("").is_empty());
        assert_eq!(waited("1 2000000 3"), Some(Duration::from_millis(2)));
    }
}
