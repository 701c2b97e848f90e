//! Isolation: histories of concurrent transactions on the real engine. A checker that knows nothing of the
//! engine judges them, in real time, by the level that the engine claims.

use crate::isolation::checker::{Kind, Level, check};
use crate::isolation::workload;
use crate::report::{Limits, Run, Verdict};
use crate::rng::Rng;
use crate::watchdog::Watchdog;
use azekura::storage::MemStorage;
use azekura::{Db, Isolation, Options};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Transactions of one history.
const TXNS: u64 = 2500;
/// How many anomalies of a history are printed.
const SHOWN: usize = 3;

#[derive(Default)]
struct Totals {
    committed: AtomicU64,
    conflicts: AtomicU64,
    skewed: AtomicU64,
    snapshot: AtomicU64,
}

/// Makes histories and judges them, until the run ends.
pub fn run(limits: &Limits) -> Verdict {
    let run = Run::new(limits, "histories");
    let watchdog = Watchdog::start(120);
    let totals = Totals::default();
    run.on_all_processors(|n| {
        watchdog.at(format!("history {n}"));
        run.outcome(format!("history {n}"), trial(n, &mut Rng::of(run.seed, n), &totals));
    });
    let get = |n: &AtomicU64| n.load(Ordering::Relaxed);
    run.note(format!(
        "{} transactions committed, {} refused; {} of {} histories under snapshot isolation show write skew, which it \
         allows",
        get(&totals.committed),
        get(&totals.conflicts),
        get(&totals.skewed),
        get(&totals.snapshot)
    ));
    run.verdict()
}

fn options(rng: &mut Rng) -> Options {
    Options::new()
        .memory_bytes(8 << 20)
        .memtable_bytes(*rng.pick(&[64, 128, 1024]) << 10)
        .large_value_bytes(*rng.pick(&[64, 128, 1024]))
        .eventual_delay(Duration::from_millis(*rng.pick(&[1, 20, 200])))
        .background_merges(!rng.one_in(4))
}

/// Makes one history, on a file or in memory, and judges it.
fn trial(n: u64, rng: &mut Rng, totals: &Totals) -> Result<(), String> {
    let (isolation, level) = match n % 2 {
        0 => (Isolation::Serializable, Level::Serializable),
        _ => (Isolation::Snapshot, Level::Snapshot),
    };
    let path = std::env::temp_dir().join(format!("azekura-isolation-{}-{n}.azk", std::process::id()));
    let opened = match n % 4 {
        0..=1 => options(rng).open(&path),
        _ => Db::open_on(&MemStorage::default(), "isolation.azk", options(rng)),
    };
    let db = opened.map_err(|e| format!("opening: {e}"))?;
    let made = workload::make(&db, isolation, TXNS, rng);
    let closed = db.close();
    // In memory there is no file.
    let _absent = std::fs::remove_file(&path);
    let (history, counts) = made.map_err(|e| format!("a transaction: {e}"))?;
    closed.map_err(|e| format!("closing: {e}"))?;
    totals.committed.fetch_add(counts.committed, Ordering::Relaxed);
    totals.conflicts.fetch_add(counts.conflicts, Ordering::Relaxed);
    if level == Level::Snapshot {
        // A workload without any skew could not tell the two levels apart.
        let skewed = check(&history, Level::Serializable).iter().any(|a| a.kind == Kind::G2);
        totals.skewed.fetch_add(u64::from(skewed), Ordering::Relaxed);
        totals.snapshot.fetch_add(1, Ordering::Relaxed);
    }
    let found = check(&history, level);
    if found.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = found.iter().take(SHOWN).map(ToString::to_string).collect();
    Err(format!("{isolation:?}: {} anomalies: {}", found.len(), shown.join("\n  ")))
}
