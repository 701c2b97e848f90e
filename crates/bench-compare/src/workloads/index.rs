//! Records with an index: inserted batch by batch, then reopened and looked up by the index.
//!
//! The first 8 bytes of a value are one of some 262,000. With more records several have the same one, and a
//! lookup finds all of these.

use super::bench::Bench;
use crate::counters::Io;
use crate::failure::{Failure, Result};
use crate::measure::{Measured, Watch, count};
use crate::peers::Store;
use crate::records::{KeyBuffer, ScanSum, Shuffle};
use std::collections::HashMap;

/// The indexed bytes of a value.
type Field = [u8; 8];

/// Runs the workload.
pub fn run(bench: &mut Bench<'_>) -> Result<Measured> {
    let mut measured = Measured::default();
    bench.write(&mut measured)?;
    if let (Some(longest), Some(mean)) = (measured.get("batch_max_ms"), measured.get("batch_mean_ms")) {
        measured.set("batch_max_per_mean", longest / mean);
    }
    let before = Io::now();
    let store = bench.reopen(&mut measured)?;
    bench.read_present(store.as_ref(), &mut measured)?;
    find(bench, store.as_ref(), &mut measured)?;
    bench.report_reads(before, &mut measured);
    bench.scan(store.as_ref(), &mut measured)?;
    store.close()?;
    Ok(measured)
}

fn field_of(bench: &Bench<'_>, index: u64) -> Result<Field> {
    let value = bench.records.value(index);
    let field = value.first_chunk().copied();
    field.ok_or_else(|| Failure::Usage("the index workload needs values of 8 bytes at least".to_owned()))
}

/// What is to be found for each field.
fn expected(bench: &Bench<'_>) -> Result<HashMap<Field, ScanSum>> {
    let mut sums: HashMap<Field, ScanSum> = HashMap::new();
    let mut buffer = KeyBuffer::default();
    for index in 0..bench.loaded {
        let (key, value) = (bench.records.key(index, &mut buffer), bench.records.value(index));
        sums.entry(field_of(bench, index)?).or_default().add(key, value);
    }
    Ok(sums)
}

/// Looks fields of records up, and compares the number and the sum of what is found.
fn find(bench: &Bench<'_>, store: &dyn Store, into: &mut Measured) -> Result<()> {
    let sums = expected(bench)?;
    let order = Shuffle::new(bench.loaded);
    let mut reader = store.reader()?;
    let deadline = bench.deadline();
    let (total, mut done, mut found) = (bench.gets(), 0, 0);
    let watch = Watch::start(store);
    while done < total && (done == 0 || !deadline.passed()) {
        let field = field_of(bench, order.at(done))?;
        let seen = reader.find(&field)?.unwrap_or_default();
        let due = sums.get(&field).copied().unwrap_or_default();
        bench.check_scan(due, seen)?;
        found += seen.records;
        done += 1;
    }
    let took = watch.elapsed();
    into.set_timed("finds", done, took);
    into.set("found_per_s", count(found) / took.as_secs_f64());
    into.set("found_per_find", count(found) / count(done));
    into.note_stopped("finds", done, total);
    Ok(())
}
