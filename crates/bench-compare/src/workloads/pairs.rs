//! Lists of pairs. A list is put in one transaction and then read pair by pair, again and again. Each round
//! puts new values, so from the second round on overwriting is measured.

use super::bench::{Bench, STRIDE};
use crate::counters::Io;
use crate::failure::Result;
use crate::measure::{Deadline, LOAD, Measured, Watch, count};
use crate::peers::{PeerPlace, Reader, Store};
use crate::records::{KeyBuffer, to_u64};
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
    let mut done = Done::default();
    loop {
        let pairs = put_list(bench, store.as_ref(), &mut done)?;
        get_list(bench, store.as_ref(), pairs, &mut done)?;
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

/// Puts the list once more. Returns how many pairs went in before the phase was over.
fn put_list(bench: &Bench<'_>, store: &dyn Store, done: &mut Done) -> Result<u64> {
    let (mut key, mut value) = (KeyBuffer::default(), Vec::new());
    let deadline = bench.deadline();
    let mut writer = store.writer()?;
    let watch = Watch::start(store);
    let mut index = 0;
    writer.begin()?;
    while index < bench.loaded {
        bench.records.versioned_value(index, done.rounds, &mut value);
        writer.put(bench.records.key(index, &mut key), &value)?;
        index += 1;
        // Only the first round may be cut short. All others put the same pairs.
        if done.rounds == 0 && index.is_multiple_of(STRIDE) && deadline.passed() {
            break;
        }
    }
    writer.commit()?;
    done.putting += watch.elapsed();
    done.puts += index;
    done.rounds += 1;
    Ok(index)
}

/// Gets the pairs of the list once, or until the phase is over.
fn get_list(bench: &Bench<'_>, store: &dyn Store, pairs: u64, done: &mut Done) -> Result<()> {
    let deadline = bench.deadline();
    let mut reader = store.reader()?;
    let watch = Watch::start(store);
    let mut index = 0;
    while index < pairs && (index == 0 || !deadline.passed()) {
        let end = pairs.min(index + STRIDE);
        get_versions(bench, reader.as_mut(), index..end, done.rounds - 1)?;
        index = end;
    }
    done.getting += watch.elapsed();
    done.gets += index;
    Ok(())
}

fn get_versions(
    bench: &Bench<'_>,
    reader: &mut dyn Reader,
    indices: std::ops::Range<u64>,
    version: u64,
) -> Result<()> {
    let mut expected = Vec::new();
    if !matches!(bench.peer.about().place, PeerPlace::Helper(_)) {
        let mut key = KeyBuffer::default();
        for index in indices {
            bench.records.versioned_value(index, version, &mut expected);
            let got = reader.get(bench.records.key(index, &mut key))?;
            if got != Some(expected.as_slice()) {
                return Err(bench.wrong(index, &expected, got));
            }
        }
        return Ok(());
    }
    let mut buffers: Vec<KeyBuffer> = indices.clone().map(|_| KeyBuffer::default()).collect();
    for (index, buffer) in indices.clone().zip(&mut buffers) {
        bench.records.key(index, buffer);
    }
    let keys: Vec<&[u8]> = buffers.iter().map(KeyBuffer::bytes).collect();
    let mut wrong = None;
    reader.get_each(&keys, &mut |at, got| {
        let index = indices.start + to_u64(at);
        bench.records.versioned_value(index, version, &mut expected);
        if got != Some(expected.as_slice()) {
            wrong = Some(bench.wrong(index, &expected, got));
        }
    })?;
    wrong.map_or(Ok(()), Err)
}
