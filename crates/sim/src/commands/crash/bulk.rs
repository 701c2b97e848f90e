//! Workloads whose log is a bulk: so much waits for it at once that its next segment is reserved and not
//! filled with zeros. Several such segments follow each other, and small commits come after the large ones in
//! the same segment. With small memtables a flush would take such commits before the log does, so the
//! memtables are large here.

use crate::judge::Setting;
use crate::rng::Rng;
use crate::script::{Script, Step, TABLES, Write};
use azekura::Durability;

/// Keys of a table. Few, so that states stay small however much is written.
const KEYS: u64 = 2500;
/// The largest value. Values stay with their keys.
const VALUE_BYTES_MAX: u64 = 900;

/// A random workload of a few rounds: large commits that are not durable, then something that makes them
/// durable.
pub(super) fn script(rng: &mut Rng) -> Script {
    let mut steps: Vec<Step> = TABLES[..2].iter().map(|(name, kind)| Step::Create(name, *kind)).collect();
    let mut stamp = 0;
    for _ in 0..2 + rng.below(3) {
        // As much as several segments, as one, or as hardly one.
        for _ in 0..1 + rng.below(6) {
            let records = 300 + rng.below(1500);
            let durable = rng.one_in(5);
            steps.push(commit(rng, &mut stamp, records, durable));
        }
        if !rng.one_in(3) {
            steps.push(Step::Sync);
        }
        for _ in 0..rng.below(4) {
            let durable = !rng.one_in(3);
            steps.push(commit(rng, &mut stamp, 1, durable));
        }
        if rng.one_in(4) {
            steps.push(Step::Flush);
        }
    }
    Script::of(steps)
}

/// A commit. It changes every table, so that no two states are alike.
fn commit(rng: &mut Rng, stamp: &mut u32, records: u64, durable: bool) -> Step {
    let mut write = |rng: &mut Rng, table: usize, len: u64| {
        *stamp += 1;
        let len = u32::try_from(len).unwrap_or(0);
        Write::Put(table, rng.below(KEYS).to_be_bytes().to_vec(), (*stamp, len))
    };
    let mut writes = vec![write(rng, 0, 8), write(rng, 1, 8)];
    let table = usize::from(rng.one_in(3));
    let len = if rng.one_in(2) { VALUE_BYTES_MAX } else { 1 + rng.below(VALUE_BYTES_MAX) };
    writes.extend((1..records).map(|_| write(rng, table, len)));
    Step::Commit(if durable { Durability::Sync } else { Durability::Eventual }, writes)
}

/// Memtables that hold all records, or most.
pub(super) fn setting(rng: &mut Rng) -> Setting {
    Setting {
        threads: !rng.one_in(3),
        merges: rng.one_in(2),
        delay_ms: *rng.pick(&[2, 20, 60_000]),
        memtable_bytes: *rng.pick(&[4 << 20, 16 << 20]),
        large_value_bytes: 1024,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use crate::judge::go;
    use crate::script::Ack;

    #[test]
    fn workloads_reserve_segments_of_the_log() {
        let mut reserved = [0, 0];
        for n in 0..6 {
            let mut rng = Rng::of(1, n);
            let script = script(&mut rng);
            let (set, disk) = (setting(&mut rng), Disk::seeded(n));
            go(set, &disk, &script, 0, &mut Ack::default()).unwrap();
            reserved[usize::from(set.threads)] += disk.reservations();
        }
        assert!(
            reserved.iter().all(|&n| n > 0),
            "{reserved:?} segments were reserved without threads and with"
        );
    }
}
