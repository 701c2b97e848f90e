//! A cache: records that live for a time are put all the time, as many in each life as there are to be at once.
//! Who knows how long records live is told so once. All others are told in the same transaction what to remove,
//! so a program that uses them has to keep a queue of that, which costs nothing here.
//!
//! It goes on for ten lives, at a fixed rate. Then who keeps up differs in what it takes: of the processor, of
//! the file and of memory. These are to stay flat from the second life on.

use super::bench::Bench;
use crate::counters;
use crate::failure::{Failure, Result};
use crate::measure::batches::Batches;
use crate::measure::{Measured, count};
use crate::peers::{Open, Reader};
use crate::records::{KeyBuffer, Shuffle};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// So many lives long it goes on.
const LIVES: u32 = 10;
/// What was seen in the first so many of them is not compared: the cache fills, and the first merges are due.
const SETTLING: u32 = 4;
/// Gets of what is there, and of what has gone, after each batch.
const GETS: u64 = 5;
/// Looks at the file and at memory in a life.
const LOOKS: u32 = 20;

/// What was seen at one moment.
struct Seen {
    life: u32,
    file: u64,
    memory: u64,
}

/// The batches that were put, by the first record of each.
struct Course {
    life: Duration,
    batches: VecDeque<(Instant, u64)>,
    put: u64,
}

impl Course {
    /// Forgets batches that have expired for long. Gives where one begins that surely has, and where one that
    /// surely has not.
    fn look(&mut self, living: u64) -> (Option<u64>, u64) {
        let now = Instant::now();
        let is_gone = |&(at, first): &(Instant, u64)| {
            now - at > self.life + self.life / 5 && first + living + living / 5 < self.put
        };
        let mut gone = None;
        while self.batches.front().is_some_and(is_gone) {
            gone = self.batches.pop_front().map(|batch| batch.1);
        }
        let young = self
            .batches
            .iter()
            .rev()
            .take_while(|(at, first)| now - *at < self.life / 2 && self.put - first <= living / 2);
        (gone, young.last().map_or(self.put, |batch| batch.1))
    }

    /// Whether a record may have expired by now.
    fn may_be_gone(&self, index: u64) -> bool {
        let of = self.batches.iter().rev().find(|batch| batch.1 <= index);
        of.is_none_or(|(at, _)| at.elapsed() >= self.life)
    }
}

/// Runs the workload.
pub fn run(bench: &mut Bench<'_>) -> Result<Measured> {
    let (case, about) = (bench.case, *bench.peer.about());
    let life = Duration::from_secs_f64(case.seconds) / LIVES;
    let life = life.max(Duration::from_millis(1));
    let store = bench.peer.open(&Open { lives: about.expires.then_some(life), ..bench.how(true, false) })?;
    let (mut writer, mut reader) = (store.writer()?, store.reader()?);
    let order = Shuffle::new(case.records.max(1));
    let mut key = KeyBuffer::default();
    let (living, batch, mut seen) = (case.records, case.batch.max(1), Vec::new());
    let per_second = count(living) / life.as_secs_f64();
    let mut batches = Batches::new((u64::from(LIVES) * living).div_ceil(batch));
    let mut course = Course { life, batches: VecDeque::new(), put: 0 };
    let (began, busy, mut gets) = (Instant::now(), counters::cpu_seconds(), 0u64);
    while began.elapsed() < life * LIVES {
        let due = Duration::from_secs_f64(count(course.put) / per_second);
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        let at = Instant::now();
        writer.begin()?;
        for index in course.put..course.put + batch {
            writer.put(bench.records.key(index, &mut key), bench.records.value(index))?;
            if let Some(old) = index.checked_sub(living).filter(|_| !about.expires) {
                writer.remove(bench.records.key(old, &mut key))?;
            }
        }
        writer.commit()?;
        batches.add(at.elapsed(), batch);
        course.batches.push_back((Instant::now(), course.put));
        course.put += batch;
        reader.refresh()?;
        gets += 1;
        look(bench, reader.as_mut(), &mut course, gets, &order)?;
        if seen.len() as u128 <= began.elapsed().as_nanos() * u128::from(LOOKS) / life.as_nanos() {
            let life = u32::try_from(began.elapsed().as_nanos() / life.as_nanos()).unwrap_or(LIVES);
            let (file, memory) = (bench.peer.file_bytes(bench.dir), counters::anonymous_rss_bytes());
            seen.push(Seen { life, file, memory });
        }
    }
    let (took, busy) = (began.elapsed(), counters::cpu_seconds() - busy);
    let mut measured = Measured::default();
    measured.set_timed("put", course.put, took);
    measured.set("wanted_per_s", per_second);
    measured.set("cpu_us_per_put", busy * 1e6 / count(course.put));
    measured.set_count("records", course.put);
    batches.report(&mut measured);
    measured.series.clear();
    report(&seen, bench, &mut measured);
    drop((writer, reader));
    store.sync()?;
    store.close()?;
    Ok(measured)
}

/// Gets records of which some are alive and some have expired.
fn look(
    bench: &Bench<'_>,
    reader: &mut dyn Reader,
    course: &mut Course,
    round: u64,
    order: &Shuffle,
) -> Result<()> {
    let (living, mut key) = (bench.case.records, KeyBuffer::default());
    let (gone, young) = course.look(living);
    for n in round * GETS..(round + 1) * GETS {
        let some = order.at(n % living);
        if let Some(index) = gone.map(|first| first + some % bench.case.batch)
            && reader.get(bench.records.key(index, &mut key))?.is_some()
        {
            return Err(Failure::Unexpected { peer: bench.peer.about().name, index });
        }
        if young < course.put {
            let index = young + some % (course.put - young);
            get(bench, reader, course, index, &mut key)?;
        }
    }
    Ok(())
}

/// Gets a record that is alive. If so much time has passed meanwhile that it may not be, it may be gone.
fn get(
    bench: &Bench<'_>,
    reader: &mut dyn Reader,
    course: &Course,
    index: u64,
    key: &mut KeyBuffer,
) -> Result<()> {
    let expected = bench.records.value(index);
    match reader.get(bench.records.key(index, key))? {
        Some(got) if got == expected => Ok(()),
        None if course.may_be_gone(index) => Ok(()),
        got => Err(bench.wrong(index, expected, got)),
    }
}

/// The most that was seen in the earlier and in the later half of the lives that count.
fn report(seen: &[Seen], bench: &Bench<'_>, into: &mut Measured) {
    let half = SETTLING + (LIVES - SETTLING) / 2;
    let most = |lives: std::ops::Range<u32>, what: fn(&Seen) -> u64| {
        let of = seen.iter().filter(|seen| lives.contains(&seen.life));
        count(of.map(what).max().unwrap_or(0))
    };
    let raw = count(bench.records.raw_bytes(bench.case.records));
    for (name, what) in [("file", (|s: &Seen| s.file) as fn(&Seen) -> u64), ("memory", |s| s.memory)] {
        let (early, late) = (most(SETTLING..half, what), most(half..u32::MAX, what));
        into.set(&format!("{name}_early_bytes"), early);
        into.set(&format!("{name}_late_bytes"), late);
        if early > 0.0 {
            into.set(&format!("{name}_late_per_early"), late / early);
        }
        into.set(&format!("{name}_per_living"), late / raw);
    }
}
