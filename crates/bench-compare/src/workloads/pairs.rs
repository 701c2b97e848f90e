//! Lists of pairs. A list is put in one transaction and then read pair by pair, again and again. Each round
//! puts new values, so from the second round on overwriting is measured. Pairs are made before the clock
//! runs.

use super::bench::{Bench, STRIDE};
use crate::counters::Io;
use crate::failure::Result;
use crate::measure::{Deadline, LOAD, Measured, Watch, count};
use crate::peers::{PeerPlace, Reader, Store};
use crate::records::{KeyBuffer, to_u64, to_usize};
use std::ops::Range;
use std::time::{Duration, Instant};

/// The work done so far.
#[derive(Debug, Default)]
struct Done {
    rounds: u64,
    puts: u64,
    putting: Duration,
    gets: u64,
    getting: Duration,
}

/// Runs the workload.
pub fn run(bench: &mut Bench<'_>) -> Result<Measured> {
    let mut measured = Measured::default();
    let before = Io::now();
    let store = bench.open(true, false)?;
    let end = Deadline::after(Some(bench.case.seconds));
    let (mut made, mut done) = (Made::default(), Done::default());
    loop {
        let pairs = put_list(bench, store.as_ref(), &mut made, &mut done)?;
        get_list(bench, store.as_ref(), pairs, &mut made, &mut done)?;
        if done.rounds == 1 {
            measured.note_stopped(LOAD, pairs, bench.case.records);
            bench.loaded = pairs;
        }
        if end.passed() {
            break;
        }
    }
    let began = Instant::now();
    store.sync()?;
    store.close()?;
    measured.set("flush_s", began.elapsed().as_secs_f64());
    measured.set_count("records", bench.loaded);
    measured.set_count("rounds", done.rounds);
    measured.set_timed("put", done.puts, done.putting);
    measured.set_timed("get", done.gets, done.getting);
    let raw = count(bench.records.raw_bytes(bench.loaded));
    let database = count(bench.peer.file_bytes(bench.dir));
    measured.set("database_bytes", database);
    measured.set("file_per_raw", database / raw);
    measured.set("bytes_per_record", database / count(bench.loaded));
    if bench.peer.about().place == PeerPlace::Here {
        let written = count(Io::now().since(before).written_bytes());
        measured.set("written_per_raw", written / (raw * count(done.rounds)));
    }
    Ok(measured)
}

/// Some pairs of the list, made before the clock runs.
#[derive(Default)]
struct Made {
    keys: Vec<KeyBuffer>,
    values: Vec<Vec<u8>>,
}

impl Made {
    /// Makes the pairs of these indices.
    fn make(&mut self, bench: &Bench<'_>, indices: Range<u64>, version: u64) {
        let count = to_usize(indices.end - indices.start);
        self.keys.resize_with(count, KeyBuffer::default);
        self.values.resize_with(count, Vec::new);
        for (index, (key, value)) in indices.zip(self.keys.iter_mut().zip(&mut self.values)) {
            bench.records.key(index, key);
            bench.records.versioned_value(index, version, value);
        }
    }

    fn pairs(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.keys.iter().map(KeyBuffer::bytes).zip(self.values.iter().map(Vec::as_slice))
    }
}

/// Puts the list once more. Returns how many pairs went in before the phase was over.
fn put_list(bench: &Bench<'_>, store: &dyn Store, made: &mut Made, done: &mut Done) -> Result<u64> {
    let deadline = bench.deadline();
    let mut writer = store.writer()?;
    let mut watch = Watch::start(store);
    let mut index = 0;
    writer.begin()?;
    while index < bench.loaded {
        done.putting += watch.lap();
        let end = bench.loaded.min(index + STRIDE);
        made.make(bench, index..end, done.rounds);
        watch.lap();
        for (key, value) in made.pairs() {
            writer.put(key, value)?;
        }
        index = end;
        // Only the first round may be cut short. All others put the same pairs.
        if done.rounds == 0 && deadline.passed() {
            break;
        }
    }
    writer.commit()?;
    done.putting += watch.lap();
    done.puts += index;
    done.rounds += 1;
    Ok(index)
}

/// Gets the pairs of the list once, or until the phase is over.
fn get_list(
    bench: &Bench<'_>,
    store: &dyn Store,
    pairs: u64,
    made: &mut Made,
    done: &mut Done,
) -> Result<()> {
    let deadline = bench.deadline();
    let mut reader = store.reader()?;
    let mut index = 0;
    while index < pairs && (index == 0 || !deadline.passed()) {
        let end = pairs.min(index + STRIDE);
        made.make(bench, index..end, done.rounds - 1);
        let watch = Watch::start(store);
        get_versions(bench, reader.as_mut(), index, made)?;
        done.getting += watch.elapsed();
        index = end;
    }
    done.gets += index;
    Ok(())
}

/// Gets what was made, from the index `first` on.
fn get_versions(bench: &Bench<'_>, reader: &mut dyn Reader, first: u64, made: &Made) -> Result<()> {
    if !matches!(bench.peer.about().place, PeerPlace::Helper(_)) {
        for (index, (key, value)) in (first..).zip(made.pairs()) {
            let got = reader.get(key)?;
            if got != Some(value) {
                return Err(bench.wrong(index, value, got));
            }
        }
        return Ok(());
    }
    let keys: Vec<&[u8]> = made.keys.iter().map(KeyBuffer::bytes).collect();
    let mut wrong = None;
    reader.get_each(&keys, &mut |at, got| {
        let expected = made.values[at].as_slice();
        if got != Some(expected) {
            wrong = Some(bench.wrong(first + to_u64(at), expected, got));
        }
    })?;
    wrong.map_or(Ok(()), Err)
}
