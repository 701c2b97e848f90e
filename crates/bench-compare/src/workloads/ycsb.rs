//! The six mixes of the Yahoo! Cloud Serving Benchmark over one database, in the order that it recommends: A,
//! B, C, F, D, E. Requests are zipfian. Every operation is its own transaction.
//!
//! In a closed loop a thread begins an operation when the one before is done. A stall then delays all
//! operations that would have come meanwhile, but is counted once: the percentiles look better than what
//! users would see (coordinated omission). With `rate_per_s` operations are due at fixed times instead, and
//! the latency of each counts from its due time.

use super::bench::Bench;
use super::versions::{self, Buffers};
use super::zipf::{Zipf, unit};
use crate::failure::{Failure, Result};
use crate::measure::{Measured, Watch, latency};
use crate::peers::{Reader, Store, Way, Writer};
use crate::records::{KeyBuffer, mix, to_u64};
use hdrhistogram::Histogram;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The longest scan of mix E. Lengths are uniform from 1.
const SCAN_MAX: u64 = 100;
/// A thread wakes this long before its time, which is about what waking takes. Until then it sleeps, as a
/// thread that waits for a request does. So the peer's own threads can run meanwhile, and this thread runs at
/// once when its time has come. Threads that only yield keep the processors busy, and then wait for a slice
/// like all others.
const SLEEP_AHEAD: Duration = Duration::from_micros(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Update,
    Insert,
    Scan,
    Modify,
}

const KINDS: [(Kind, &str); 5] = [
    (Kind::Read, "read"),
    (Kind::Update, "update"),
    (Kind::Insert, "insert"),
    (Kind::Scan, "scan"),
    (Kind::Modify, "modify"),
];

/// A mix: two kinds of operations, and the percentage of the first.
struct Mix {
    letter: &'static str,
    first: Kind,
    percent: u64,
    second: Kind,
    /// Requests prefer what was inserted last.
    latest: bool,
}

const fn mix_of(letter: &'static str, first: Kind, percent: u64, second: Kind) -> Mix {
    Mix { letter, first, percent, second, latest: false }
}

const MIXES: [Mix; 6] = [
    mix_of("a", Kind::Read, 50, Kind::Update),
    mix_of("b", Kind::Read, 95, Kind::Update),
    mix_of("c", Kind::Read, 100, Kind::Read),
    mix_of("f", Kind::Read, 50, Kind::Modify),
    Mix { latest: true, ..mix_of("d", Kind::Read, 95, Kind::Insert) },
    mix_of("e", Kind::Scan, 95, Kind::Insert),
];

/// What the threads share.
struct Shared<'a> {
    bench: &'a Bench<'a>,
    store: &'a dyn Store,
    zipf: Zipf,
    /// The keys of the load in order, if ranges are needed.
    sorted: Vec<[u8; 8]>,
    /// The number of records that each thread has inserted. With `n` threads, thread `t` inserts every `n`-th
    /// index, beginning with `t`.
    inserted: Vec<AtomicU64>,
}

/// What a thread did in one mix.
struct Done {
    operations: u64,
    took: Duration,
    times: Vec<Histogram<u64>>,
}

/// Runs the workload.
pub fn run(bench: &mut Bench<'_>) -> Result<Measured> {
    let mut measured = Measured::default();
    let store = bench.open(true, false)?;
    versions::load(bench, store.as_ref(), &mut measured)?;
    store.settle()?;
    let bench = &*bench;
    let shared = Shared {
        bench,
        store: store.as_ref(),
        zipf: Zipf::new(bench.loaded),
        sorted: sorted_keys(bench),
        inserted: (0..bench.case.threads).map(|_| AtomicU64::new(0)).collect(),
    };
    for mix in MIXES {
        let scans = mix.first == Kind::Scan;
        if !scans || bench.peer.about().ordered {
            run_mix(&shared, &mix, &mut measured)?;
        }
    }
    store.close()?;
    Ok(measured)
}

fn sorted_keys(bench: &Bench<'_>) -> Vec<[u8; 8]> {
    let mut buffer = KeyBuffer::default();
    let mut key = |index| *bench.records.key(index, &mut buffer).first_chunk::<8>().expect("keys of 8 bytes");
    let count = if bench.peer.about().ordered { bench.loaded } else { 0 };
    let mut keys: Vec<[u8; 8]> = (0..count).map(&mut key).collect();
    keys.sort_unstable();
    keys
}

fn run_mix(shared: &Shared<'_>, mix: &Mix, into: &mut Measured) -> Result<()> {
    let done: Vec<Result<Done>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..shared.inserted.len())
            .map(|thread| scope.spawn(move || client(shared, mix, thread)))
            .collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    });
    let done = done.into_iter().collect::<Result<Vec<Done>>>()?;
    let operations = done.iter().map(|one| one.operations).sum();
    let took = done.iter().map(|one| one.took).max().unwrap_or_default();
    into.set_timed(&format!("{}_ops", mix.letter), operations, took);
    for (place, (_, name)) in KINDS.iter().enumerate() {
        let mut times = latency::histogram();
        for one in &done {
            times += &one.times[place];
        }
        latency::report(&times, &format!("{}_{name}", mix.letter), into);
    }
    Ok(())
}

/// One thread's part of a mix.
fn client(shared: &Shared<'_>, mix: &Mix, thread: usize) -> Result<Done> {
    let mut client = Client {
        shared,
        thread,
        reader: shared.store.reader()?,
        writer: shared.store.writer()?,
        buffers: Buffers::default(),
        random: to_u64(thread) << 40 ^ u64::from(mix.letter.as_bytes()[0]) << 52,
    };
    let mut done = Done {
        operations: 0,
        took: Duration::ZERO,
        times: KINDS.iter().map(|_| latency::histogram()).collect(),
    };
    let interval = interval(shared.bench);
    if interval.is_some() {
        // Without this the system may wake a sleeper up to 50 µs late.
        let exact = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        exact.map_err(|error| Failure::io("asking for exact sleep")(error.into()))?;
    }
    let limit = Duration::from_secs_f64(shared.bench.case.seconds);
    let began = Instant::now();
    let mut watch = Watch::start(shared.store);
    loop {
        let due =
            interval.map(|interval| began + interval * u32::try_from(done.operations).unwrap_or(u32::MAX));
        if due.map_or_else(|| began.elapsed(), |due| due - began) >= limit {
            break;
        }
        if let Some(due) = due {
            wait_until(due);
        }
        let kind = if client.random() % 100 < mix.percent { mix.first } else { mix.second };
        client.operate(kind, mix.latest)?;
        let took = watch.lap();
        latency::record(&mut done.times[place(kind)], due.map_or(took, |due| due.elapsed()));
        done.operations += 1;
        done.took += took;
    }
    if interval.is_some() || shared.store.clock().is_none() {
        done.took = began.elapsed();
    }
    Ok(done)
}

fn place(kind: Kind) -> usize {
    KINDS.iter().position(|(other, _)| *other == kind).expect("every kind is listed")
}

/// The time between two operations of a thread, if they are due at fixed times.
fn interval(bench: &Bench<'_>) -> Option<Duration> {
    let rate = bench.case.rate_per_s.filter(|rate| *rate > 0)?;
    Some(Duration::from_nanos(1_000_000_000 * bench.case.threads / rate))
}

fn wait_until(due: Instant) {
    loop {
        match due.saturating_duration_since(Instant::now()) {
            Duration::ZERO => return,
            ahead if ahead > SLEEP_AHEAD => std::thread::sleep(ahead - SLEEP_AHEAD),
            _ => std::thread::yield_now(),
        }
    }
}

struct Client<'a> {
    shared: &'a Shared<'a>,
    thread: usize,
    reader: Box<dyn Reader + 'a>,
    writer: Box<dyn Writer + 'a>,
    buffers: Buffers,
    random: u64,
}

impl Client<'_> {
    #[inline]
    fn random(&mut self) -> u64 {
        self.random += 1;
        mix(self.random)
    }

    /// Records that certainly exist: those of the load, and inserted ones up to the slowest thread.
    fn bound(&self) -> u64 {
        let inserted = &self.shared.inserted;
        let slowest = inserted.iter().map(|count| count.load(Ordering::Acquire)).min().unwrap_or(0);
        self.shared.bench.loaded + slowest * to_u64(inserted.len())
    }

    /// The record that is asked for next.
    fn choose(&mut self, latest: bool) -> u64 {
        let rank = self.shared.zipf.rank(unit(self.random()));
        if latest { self.bound() - 1 - rank } else { mix(rank) % self.shared.bench.loaded }
    }

    fn operate(&mut self, kind: Kind, latest: bool) -> Result<()> {
        match kind {
            Kind::Read => {
                let index = self.choose(latest);
                self.read(index)
            }
            Kind::Update => {
                let index = self.choose(latest);
                self.put(index)
            }
            Kind::Modify => {
                let index = self.choose(latest);
                self.read(index)?;
                self.put(index)
            }
            Kind::Insert => self.insert(),
            Kind::Scan => self.scan(),
        }
    }

    fn read(&mut self, index: u64) -> Result<()> {
        self.reader.refresh()?;
        versions::get(self.shared.bench, self.reader.as_mut(), index, &mut self.buffers)
    }

    fn put(&mut self, index: u64) -> Result<()> {
        let version = self.random();
        self.writer.begin()?;
        versions::put(self.shared.bench, self.writer.as_mut(), index, version, &mut self.buffers)?;
        self.writer.commit()
    }

    fn insert(&mut self) -> Result<()> {
        let inserted = &self.shared.inserted;
        let number = inserted[self.thread].load(Ordering::Relaxed);
        self.put(self.shared.bench.loaded + number * to_u64(inserted.len()) + to_u64(self.thread))?;
        inserted[self.thread].store(number + 1, Ordering::Release);
        Ok(())
    }

    fn scan(&mut self) -> Result<()> {
        let length = 1 + self.random() % SCAN_MAX;
        let index = self.choose(false);
        let bench = self.shared.bench;
        let mut buffer = KeyBuffer::default();
        let key = bench.records.key(index, &mut buffer);
        self.reader.refresh()?;
        let Some(seen) = self.reader.range(Some(key), length, Way::Up)? else { return Ok(()) };
        if seen.records == length {
            return Ok(());
        }
        // Not so many are left, or some are missing.
        let sorted = &self.shared.sorted;
        let least = length.min(to_u64(sorted.len() - sorted.partition_point(|other| other.as_slice() < key)));
        if (least..=length).contains(&seen.records) {
            return Ok(());
        }
        let text = format!("{} records, not {least} to {length}", seen.records);
        Err(Failure::peer(bench.peer.about().name, "range", &text))
    }
}
