//! The time to open a database whose process was killed (SIGKILL) in the middle of a load, and how much of
//! the load is there then.
//!
//! The system goes on, so nothing that it was given is lost. This shows what a peer keeps in the memory of
//! its process, and how long it takes to repair its files. Commits are not synced, so a peer may lose the
//! last of them. If it has transactions, it must not lose a part of one.

use super::bench::Bench;
use crate::child;
use crate::failure::{Failure, Result};
use crate::job::{Job, Part};
use crate::measure::{Measured, count};
use crate::peers::Reader;
use crate::records::KeyBuffer;
use std::convert::Infallible;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// Only loads, without end. Prints the number of records at each commit.
pub fn load(bench: &Bench<'_>) -> Result<Infallible> {
    let store = bench.open(true, false)?;
    let mut writer = store.writer()?;
    let mut buffer = KeyBuffer::default();
    let mut start = 0;
    loop {
        let end = start + bench.case.batch;
        writer.begin()?;
        for index in start..end {
            writer.put(bench.records.key(index, &mut buffer), bench.records.value(index))?;
        }
        writer.commit()?;
        start = end;
        writeln!(std::io::stdout(), "{start}").map_err(Failure::io("telling the number of records"))?;
    }
}

/// Runs the workload.
pub fn run(bench: &mut Bench<'_>, job: &Job) -> Result<Measured> {
    let loader = Job { part: Part::LoadUntilKilled, ..job.clone() };
    let committed = child::run_and_kill(&loader, Duration::from_secs_f64(bench.case.seconds))?;
    let mut measured = Measured::default();
    measured.set_count("records", committed);
    measured.set_count("killed_bytes", bench.peer.file_bytes(bench.dir));

    let began = Instant::now();
    let store = bench.open(false, false)?;
    let mut reader = store.reader()?;
    reader.get(bench.records.key(0, &mut KeyBuffer::default()))?;
    measured.set("recover_ms", began.elapsed().as_secs_f64() * 1e3);

    let (kept, torn) = count_kept(bench, reader.as_mut(), committed)?;
    drop(reader);
    store.close()?;
    if torn > 0 && bench.peer.about().transactions {
        return Err(Failure::Usage(format!(
            "{}: {torn} transactions are there in part",
            bench.peer.about().name
        )));
    }
    let transactions = committed.div_ceil(bench.case.batch);
    measured.set("kept_percent", 100.0 * count(kept) / count(transactions));
    measured.set_count("torn", torn);
    Ok(measured)
}

/// How many of the committed transactions are there in whole, and how many in part. It looks at the first,
/// the middle and the last record of each.
fn count_kept(bench: &Bench<'_>, reader: &mut dyn Reader, committed: u64) -> Result<(u64, u64)> {
    let mut buffer = KeyBuffer::default();
    let (mut kept, mut torn) = (0, 0);
    let mut start = 0;
    while start < committed {
        let end = committed.min(start + bench.case.batch);
        let mut there = 0;
        for index in [start, start.midpoint(end), end - 1] {
            let expected = bench.records.value(index);
            match reader.get(bench.records.key(index, &mut buffer))? {
                None => {}
                Some(got) if got == expected => there += 1,
                got => return Err(bench.wrong(index, expected, got)),
            }
        }
        kept += u64::from(there == 3);
        torn += u64::from(there == 1 || there == 2);
        start = end;
    }
    Ok((kept, torn))
}
