//! Metamorphic runs: the same random operations give the same answers, one by one, under different options,
//! durabilities, numbers of threads, reopenings and kinds of table.
//!
//! A trial is one list of operations. It is run on the reference (small memtables, no threads) and under
//! other settings. Every answer of every call is written down, and the first one that differs is a violation.
//! No model is needed, so operations may be anything: transactions with savepoints, counters, appends,
//! compare-and-swap, range deletes, records that expire, cursors in both directions, snapshots held while others
//! write and time passes. Hash tables have an order of their own, so their scans are sorted before they are written down. (The page size
//! is fixed at 16 KiB, so it is no option.)

mod answers;

use crate::disk::Disk;
use crate::judge::Setting;
use crate::report::{Limits, Run, Verdict};
use crate::rng::Rng;
use crate::watchdog::Watchdog;
use answers::{Variant, answers, operations};
use azekura::{Durability, TableKind};

const HANG_SECONDS: u64 = 120;
/// Under how many settings each list is run, besides the reference.
const VARIANTS: u64 = 4;

/// Compares answers.
pub fn run(limits: &Limits) -> Verdict {
    let run = Run::new(limits, "runs compared");
    let watchdog = Watchdog::start(HANG_SECONDS);
    run.on_all_processors(|n| {
        watchdog.at(format!("list {n}"));
        let mut rng = Rng::of(run.seed, n);
        let operations = operations(&mut rng);
        let reference = match answers(&REFERENCE, &operations, &Disk::seeded(n)) {
            Ok(answers) => answers,
            Err(e) => return run.outcome(format!("list {n}, reference"), Err(e)),
        };
        for _ in 0..VARIANTS {
            let variant = variant(&mut rng);
            let found = answers(&variant, &operations, &Disk::seeded(rng.number()));
            let same = found.and_then(|found| match found.iter().zip(&reference).position(|(a, b)| a != b) {
                None if found.len() == reference.len() => Ok(()),
                None => Err(format!("{} answers, not {}", found.len(), reference.len())),
                Some(i) => Err(format!("answer {i}: {}, but the reference has {}", found[i], reference[i])),
            });
            run.outcome(format!("list {n}, {variant:?}"), same);
        }
    });
    run.verdict()
}

const REFERENCE: Variant = Variant {
    setting: Setting::QUIET,
    memory_bytes: 8 << 20,
    durability: Durability::Eventual,
    kinds: [TableKind::Ordered, TableKind::Hash],
    reopen_odds: 0,
    tidy_odds: 0,
};

fn variant(rng: &mut Rng) -> Variant {
    let threads = !rng.one_in(4);
    Variant {
        setting: Setting {
            threads,
            merges: threads && rng.one_in(2),
            delay_ms: *rng.pick(&[1, 20, 60_000]),
            memtable_bytes: *rng.pick(&[64 << 10, 256 << 10, 2 << 20]),
            large_value_bytes: *rng.pick(&[64, 300, 1024, 8192]),
        },
        memory_bytes: *rng.pick(&[8 << 20, 16 << 20, 64 << 20]),
        durability: *rng.pick(&[Durability::Eventual, Durability::Sync]),
        kinds: [TableKind::Ordered, *rng.pick(&[TableKind::Hash, TableKind::Ordered])],
        reopen_odds: *rng.pick(&[0, 15, 60]),
        tidy_odds: *rng.pick(&[0, 10, 40]),
    }
}
