//! A cache: records that live for a time are put all the time, as many in each life as there are to be at
//! once.
//!
//! Who knows how long records live is told so once. Azekura lets them go by themselves. RocksDB gets the time
//! behind each value, which gets compare, and a compaction filter. All others are told in the same
//! transaction what to remove, so a program that uses them has to keep a queue of that, which costs nothing
//! here.
//!
//! It goes on for ten lives, at a fixed rate. Then who keeps up differs in what it takes: of the processor,
//! of the file and of memory. These are to stay flat once the cache is full.

use super::bench::Bench;
use crate::counters;
use crate::failure::{Failure, Result};
use crate::measure::batches::Batches;
use crate::measure::{Measured, count};
use crate::peers::{Open, Reader, Store, Writer};
use crate::records::{KeyBuffer, Shuffle, to_u64};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// So many lives long it goes on.
const LIVES: u32 = 10;
/// What was seen in the first so many of them is not compared: the cache fills, and the first merges are due.
const SETTLING: f64 = 4.0;
/// Gets of what is there, and of what has gone, after each batch.
const GETS: u64 = 5;
/// Peers that know of lives keep them in milliseconds.
const TICK: Duration = Duration::from_millis(2);
/// Looks at the file and at memory in a life.
const LOOKS: u32 = 20;

/// What was seen at one moment.
struct Seen {
    /// So many lives after the beginning.
    lives: f64,
    file: u64,
    memory: u64,
}

/// A batch that was put. Its records begin to live at some time between these two.
struct Batch {
    began: Instant,
    committed: Instant,
    first: u64,
}

/// The batches that were put.
struct Course {
    life: Duration,
    batches: VecDeque<Batch>,
    put: u64,
}

impl Course {
    /// Forgets batches that have expired for long. Gives where one begins that surely has, and where one that
    /// surely has not.
    fn look(&mut self, living: u64) -> (Option<u64>, u64) {
        let now = Instant::now();
        let is_gone = |batch: &Batch| {
            let age = now - batch.committed;
            age > self.life + self.life / 5 && batch.first + living + living / 5 < self.put
        };
        let mut gone = None;
        while self.batches.front().is_some_and(is_gone) {
            gone = self.batches.pop_front().map(|batch| batch.first);
        }
        let young =
            self.batches.iter().rev().take_while(|batch| {
                now - batch.began < self.life / 2 && self.put - batch.first <= living / 2
            });
        (gone, young.last().map_or(self.put, |batch| batch.first))
    }

    /// Whether a record may have expired by now.
    fn may_be_gone(&self, index: u64) -> bool {
        let of = self.batches.iter().rev().find(|batch| batch.first <= index);
        of.is_none_or(|batch| batch.began.elapsed() + TICK >= self.life)
    }
}

/// A cache while it is used.
struct Cache<'s> {
    bench: &'s Bench<'s>,
    /// The peer knows how long records live.
    expires: bool,
    writer: Box<dyn Writer + 's>,
    reader: Box<dyn Reader + 's>,
    began: Instant,
    course: Course,
    batches: Batches,
    order: Shuffle,
    rounds: u64,
    seen: Vec<Seen>,
}

impl<'s> Cache<'s> {
    fn new(bench: &'s Bench<'s>, store: &'s dyn Store, life: Duration) -> Result<Self> {
        let living = bench.case.records.max(1);
        Ok(Self {
            bench,
            expires: bench.peer.about().expires,
            writer: store.writer()?,
            reader: store.reader()?,
            began: Instant::now(),
            course: Course { life, batches: VecDeque::new(), put: 0 },
            batches: Batches::new((u64::from(LIVES) * living).div_ceil(bench.case.batch.max(1))),
            order: Shuffle::new(living),
            rounds: 0,
            seen: Vec::new(),
        })
    }

    /// Puts a batch, and removes as many that have expired where the peer must be told.
    fn put(&mut self) -> Result<()> {
        let (records, living, mut key) = (&self.bench.records, self.bench.case.records, KeyBuffer::default());
        let (began, first) = (Instant::now(), self.course.put);
        let batch = self.bench.case.batch.max(1);
        self.writer.begin()?;
        for index in first..first + batch {
            self.writer.put(records.key(index, &mut key), records.value(index))?;
            if let Some(old) = index.checked_sub(living).filter(|_| !self.expires) {
                self.writer.remove(records.key(old, &mut key))?;
            }
        }
        self.writer.commit()?;
        let committed = Instant::now();
        self.batches.add(committed - began, batch);
        self.course.batches.push_back(Batch { began, committed, first });
        self.course.put += batch;
        Ok(())
    }

    /// Gets records of which some are alive and some have expired.
    fn get(&mut self) -> Result<()> {
        let (living, batch) = (self.bench.case.records.max(1), self.bench.case.batch.max(1));
        let (gone, young) = self.course.look(living);
        self.reader.refresh()?;
        self.rounds += 1;
        for n in self.rounds * GETS..(self.rounds + 1) * GETS {
            let some = self.order.at(n % living);
            let mut key = KeyBuffer::default();
            if let Some(index) = gone.map(|first| first + some % batch)
                && self.reader.get(self.bench.records.key(index, &mut key))?.is_some()
            {
                return Err(Failure::Unexpected { peer: self.bench.peer.about().name, index });
            }
            if young < self.course.put {
                let index = young + some % (self.course.put - young);
                get_living(self.bench, self.reader.as_mut(), &self.course, index)?;
            }
        }
        Ok(())
    }

    /// Looks at the file and at memory, some times in each life.
    fn look(&mut self) {
        let lives = self.began.elapsed().as_secs_f64() / self.course.life.as_secs_f64();
        if count(to_u64(self.seen.len())) <= lives * f64::from(LOOKS) {
            let (file, memory) =
                (self.bench.peer.file_bytes(self.bench.dir), counters::anonymous_rss_bytes());
            self.seen.push(Seen { lives, file, memory });
        }
    }

    /// How many records were put, and what was seen meanwhile.
    fn end(self) -> (u64, Batches, Vec<Seen>) {
        (self.course.put, self.batches, self.seen)
    }
}

/// Runs the workload.
pub fn run(bench: &mut Bench<'_>) -> Result<Measured> {
    let (case, expires) = (bench.case, bench.peer.about().expires);
    let life = Duration::from_secs_f64(case.seconds) / LIVES;
    let life = life.max(Duration::from_millis(1));
    let store = bench.peer.open(&Open { lives: expires.then_some(life), ..bench.how(true, false) })?;
    let per_second = count(case.records.max(1)) / life.as_secs_f64();
    let worked = counters::cpu_seconds();
    let mut cache = Cache::new(bench, store.as_ref(), life)?;
    while cache.began.elapsed() < life * LIVES {
        let due = Duration::from_secs_f64(count(cache.course.put) / per_second);
        std::thread::sleep(due.saturating_sub(cache.began.elapsed()));
        cache.put()?;
        cache.get()?;
        cache.look();
    }
    let (took, worked) = (cache.began.elapsed(), counters::cpu_seconds() - worked);
    let (put, batches, seen) = cache.end();
    let mut measured = Measured::default();
    measured.set_timed("put", put, took);
    measured.set("wanted_per_s", per_second);
    measured.set("put_percent", 100.0 * count(put) / took.as_secs_f64() / per_second);
    measured.set("cpu_us_per_put", worked * 1e6 / count(put));
    measured.set_count("records", put);
    batches.report(&mut measured);
    measured.series.clear();
    report(&seen, bench, &mut measured);
    store.sync()?;
    store.close()?;
    Ok(measured)
}

/// Gets a record that is alive. If so much time has passed meanwhile that it may not be, it may be gone.
fn get_living(bench: &Bench<'_>, reader: &mut dyn Reader, course: &Course, index: u64) -> Result<()> {
    let expected = bench.records.value(index);
    match reader.get(bench.records.key(index, &mut KeyBuffer::default()))? {
        Some(got) if got == expected => Ok(()),
        None if course.may_be_gone(index) => Ok(()),
        got => Err(bench.wrong(index, expected, got)),
    }
}

/// The most that was seen in the earlier and in the later half of the lives that count.
fn report(seen: &[Seen], bench: &Bench<'_>, into: &mut Measured) {
    let half = f64::midpoint(SETTLING, f64::from(LIVES));
    let most = |lives: std::ops::Range<f64>, what: fn(&Seen) -> u64| {
        let of = seen.iter().filter(|seen| lives.contains(&seen.lives));
        count(of.map(what).max().unwrap_or(0))
    };
    let raw = count(bench.records.raw_bytes(bench.case.records));
    for (name, what) in [("file", (|s: &Seen| s.file) as fn(&Seen) -> u64), ("memory", |s| s.memory)] {
        let (early, late) = (most(SETTLING..half, what), most(half..f64::INFINITY, what));
        into.set(&format!("{name}_early_bytes"), early);
        into.set(&format!("{name}_late_bytes"), late);
        if early > 0.0 {
            into.set(&format!("{name}_late_per_early"), late / early);
        }
        into.set(&format!("{name}_per_living"), late / raw);
    }
}
