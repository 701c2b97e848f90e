//! Records in key order: all, ranges of 100, and all in reverse.

use super::bench::Bench;
use crate::failure::Result;
use crate::measure::{Measured, Watch, count};
use crate::peers::{Store, Way};
use crate::records::{KeyBuffer, ScanSum, mix};

/// Records of a range.
const RANGE: u64 = 100;
/// Ranges at most.
const RANGES_MAX: u64 = 10_000;

/// Runs the workload.
pub fn run(bench: &mut Bench<'_>) -> Result<Measured> {
    let mut measured = Measured::default();
    bench.write(&mut measured)?;
    let store = bench.reopen(&mut measured)?;
    bench.scan(store.as_ref(), &mut measured)?;
    if bench.peer.about().ordered {
        let order = InOrder::new(bench);
        ranges(bench, store.as_ref(), &order, &mut measured)?;
        reverse(bench, store.as_ref(), &mut measured)?;
    }
    store.close()?;
    Ok(measured)
}

/// The records by key, with the sum over all records before each. So it is known what any range must see.
struct InOrder {
    indices: Vec<u64>,
    before: Vec<ScanSum>,
}

impl InOrder {
    fn new(bench: &Bench<'_>) -> Self {
        let mut buffer = KeyBuffer::default();
        let mut key =
            |index| *bench.records.key(index, &mut buffer).first_chunk::<8>().expect("keys of 8 bytes");
        let mut keys: Vec<([u8; 8], u64)> = (0..bench.loaded).map(|index| (key(index), index)).collect();
        keys.sort_unstable();
        let mut sum = ScanSum::default();
        let mut before = vec![sum];
        for (_, index) in &keys {
            sum.add(bench.records.key(*index, &mut buffer), bench.records.value(*index));
            before.push(sum);
        }
        Self { indices: keys.into_iter().map(|(_, index)| index).collect(), before }
    }

    /// What a range of `length` records sees, beginning with the record at a place.
    fn range(&self, place: usize, length: usize) -> ScanSum {
        let end = self.indices.len().min(place + length);
        let (from, to) = (self.before[place], self.before[end]);
        ScanSum { records: to.records - from.records, sum: to.sum.wrapping_sub(from.sum) }
    }
}

fn ranges(bench: &Bench<'_>, store: &dyn Store, order: &InOrder, into: &mut Measured) -> Result<()> {
    let total = RANGES_MAX.min(bench.gets());
    let mut buffer = KeyBuffer::default();
    let mut reader = store.reader()?;
    let deadline = bench.deadline();
    let watch = Watch::start(store);
    let (mut done, mut seen_records) = (0, 0);
    while done < total && (done == 0 || !deadline.passed()) {
        let place = usize::try_from(mix(!done) % bench.loaded).expect("records that are counted in memory");
        let key = bench.records.key(order.indices[place], &mut buffer);
        let Some(seen) = reader.range(Some(key), RANGE, Way::Up)? else { return Ok(()) };
        bench.check_scan(order.range(place, usize::try_from(RANGE).expect("a small constant")), seen)?;
        seen_records += seen.records;
        done += 1;
    }
    let took = watch.elapsed();
    into.set_timed("ranges", done, took);
    into.set("range_records_per_s", count(seen_records) / took.as_secs_f64());
    into.note_stopped("ranges", done, total);
    Ok(())
}

fn reverse(bench: &Bench<'_>, store: &dyn Store, into: &mut Measured) -> Result<()> {
    let expected = bench.records.sum(bench.loaded);
    let mut reader = store.reader()?;
    let watch = Watch::start(store);
    let Some(seen) = reader.range(None, u64::MAX, Way::Down)? else { return Ok(()) };
    let took = watch.elapsed();
    bench.check_scan(expected, seen)?;
    into.set_timed("reverse", seen.records, took);
    Ok(())
}
