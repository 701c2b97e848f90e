//! Records whose values change while they are read. Each value holds its version, so that a whole one is
//! recognised and a torn one is not.

use super::bench::{Bench, STRIDE};
use crate::failure::{Failure, Result};
use crate::measure::{Deadline, LOAD, Measured, Watch};
use crate::peers::{Reader, Store, Writer};
use crate::records::{KeyBuffer, to_u64};

/// Records per transaction of the load.
const LOAD_BATCH: u64 = 10_000;

/// Puts the first version of every record, until the phase is over.
pub fn load(bench: &mut Bench<'_>, store: &dyn Store, into: &mut Measured) -> Result<()> {
    let mut writer = store.writer()?;
    let deadline = bench.deadline();
    let watch = Watch::start(store);
    let (mut buffers, mut start) = (Buffers::default(), 0);
    while start < bench.case.records && (start == 0 || !deadline.passed()) {
        start = load_batch(bench, writer.as_mut(), start, deadline, &mut buffers)?;
    }
    drop(writer);
    store.sync()?;
    into.set_timed("write", start, watch.elapsed());
    into.note_stopped(LOAD, start, bench.case.records);
    into.set_count("records", start);
    bench.loaded = start;
    Ok(())
}

fn load_batch(
    bench: &Bench<'_>,
    writer: &mut dyn Writer,
    start: u64,
    deadline: Deadline,
    buffers: &mut Buffers,
) -> Result<u64> {
    let end = bench.case.records.min(start + LOAD_BATCH);
    let mut index = start;
    writer.begin()?;
    while index < end {
        put(bench, writer, index, 0, buffers)?;
        index += 1;
        if index.is_multiple_of(STRIDE) && deadline.passed() {
            break;
        }
    }
    writer.commit()?;
    Ok(index)
}

/// Room for a key and a value.
#[derive(Debug, Default)]
pub struct Buffers {
    key: KeyBuffer,
    value: Vec<u8>,
}

/// Puts one version of a record.
#[inline]
pub fn put(
    bench: &Bench<'_>,
    writer: &mut dyn Writer,
    index: u64,
    version: u64,
    buffers: &mut Buffers,
) -> Result<()> {
    bench.records.versioned_value(index, version, &mut buffers.value);
    writer.put(bench.records.key(index, &mut buffers.key), &buffers.value)
}

/// Gets a record in whatever version it has.
#[inline]
pub fn get(bench: &Bench<'_>, reader: &mut dyn Reader, index: u64, buffers: &mut Buffers) -> Result<()> {
    let got = reader.get(bench.records.key(index, &mut buffers.key))?;
    if got.is_some_and(|value| bench.records.is_versioned_value(index, value)) {
        return Ok(());
    }
    Err(Failure::WrongValue {
        peer: bench.peer.about().name,
        index,
        expected: "some version of it, whole".to_owned(),
        got: got.map_or_else(|| "nothing".to_owned(), |value| format!("{} bytes", to_u64(value.len()))),
    })
}
