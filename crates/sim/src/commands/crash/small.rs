//! All workloads of up to three transactions over two tables, with a cut at every call to the disk.
//!
//! A workload makes two tables, one of each kind. It commits up to three transactions of the [`kinds`], or
//! flushes or compacts or changes the tables in place of one, and closes. The disk keeps a copy of itself at
//! every call of one run without threads, which gives all places for the cut. Places before the last
//! transaction belong to shorter workloads, so each place is tried once.
//!
//! At each place every subset of the waiting operations is tried, if they are five or fewer. Otherwise all
//! prefixes, each one alone, and all but each are tried. The current write is torn at every sector, kept as a
//! length without data, as data without a length, and with a sector of garbage. Then recovery itself is cut:
//! at every call that opening makes and that going on makes, and once more in the recovery from that.
//! ([`Odds`] says after how many of the images.)

use crate::disk::{Disk, Moment, Plan};
use crate::judge::{Setting, go, recovered};
use crate::report::Run;
use crate::rng::Rng;
use crate::script::{Ack, Script, Step, Write};
use crate::watchdog::Watchdog;
use azekura::{Durability, TableKind};
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest workload.
const LENGTH_MAX: usize = 3;

/// The choices at the first cut. Below, those within recovery.
const FIRST: Plan = Plan { subsets_max: 5, torn: true };
const INNER: Plan = Plan { subsets_max: 2, torn: true };

/// How often recovery is cut too: after one image of this many, by the number of transactions. `again`: how
/// often the recovery after that is cut again.
struct Odds {
    first: [u64; LENGTH_MAX + 1],
    again: [u64; LENGTH_MAX + 1],
}

/// For a run with limits: the workloads of two transactions are all tried within some 90,000 images.
const SHORT: Odds = Odds { first: [20, 60, 1000, 6000], again: [20, 60, 60, 60] };
/// For a run without limits.
const THOROUGH: Odds = Odds { first: [1, 1, 10, 100], again: [1, 8, 10, 40] };

/// The kinds of transactions. Each has a stamp that no other has.
fn kinds() -> Vec<fn(u32) -> Vec<Write>> {
    fn put(table: usize, stamp: u32, bytes: u32) -> Write {
        Write::Put(table, b"key".to_vec(), (stamp, bytes))
    }
    vec![
        |i| vec![put(0, i, 20), Write::Merge(1, b"sum".to_vec(), i)],
        // A log record that spans sectors.
        |i| vec![put(0, i, 900), put(1, i, 700)],
        |i| vec![Write::PutFor(0, b"key".to_vec(), (i, 8)), Write::Expired(1, b"key".to_vec()), put(1, i, 8)],
        |i| vec![Write::Remove(0, b"key".to_vec()), put(1, i, 8)],
        |i| {
            vec![
                Write::Range(0, b"k".to_vec(), b"l".to_vec()),
                Write::Put(0, vec![b'a'; 9], (i, 3)),
                put(1, i, 40),
            ]
        },
        |i| vec![put(0, i, 2000), put(1, i, 8)],
    ]
}

/// A transaction whose log record needs more than one frame, and a small one after it. Their frames are
/// written together.
fn large(i: u32) -> Vec<Step> {
    let record = |n: u32| Write::Put(0, u64::from(n).to_be_bytes().to_vec(), (i * 5000 + n, 900));
    vec![Step::Commit(Durability::Eventual, (0..1300).map(record).collect()), step(0, i + 1).remove(0)]
}

/// A transaction that changes tables, and a record.
fn tables(mut writes: Vec<Write>, i: u32) -> Vec<Step> {
    writes.push(Write::Put(1, b"key".to_vec(), (i, 8)));
    vec![Step::Commit(Durability::Eventual, writes)]
}

/// Transactions of each kind, durable and not, and what else may happen in place of one.
fn step(choice: usize, i: u32) -> Vec<Step> {
    let kinds = kinds();
    match choice.checked_sub(kinds.len() * 2) {
        Some(0) => return vec![Step::Flush],
        Some(1) => return vec![Step::Compact],
        // One table in the place of another with records of its own, and one that comes or goes, while what
        // is put into another lives otherwise.
        Some(2) => return tables(vec![Write::Replace(0), Write::Put(0, b"new".to_vec(), (i, 20))], i),
        Some(3) => return tables(vec![Write::Toggle(2), Write::Lives(0, 1 + i % 3)], i),
        Some(_) => return large(i),
        None => {}
    }
    let durability = if choice.is_multiple_of(2) { Durability::Sync } else { Durability::Eventual };
    vec![Step::Commit(durability, kinds[choice / 2](i))]
}

/// Tries all workloads.
pub(super) fn run(run: &Run, watchdog: &Watchdog) {
    let odds = if run.is_endless() { THOROUGH } else { SHORT };
    for length in 0..=LENGTH_MAX {
        // The large transaction takes so long to judge that it is tried only alone.
        let choices = kinds().len() * 2 + if length == 1 { 5 } else { 4 };
        let workloads = u64::try_from(choices.pow(u32::try_from(length).unwrap_or(0))).unwrap_or(0);
        let before = run.tried_so_far();
        let deepest = AtomicU64::new(0);
        let all = run.each(workloads, |n| {
            watchdog.at(format!("workload {n} of {length} transactions"));
            let digits =
                (0..length).map(|i| usize::try_from(n).unwrap_or(0) / choices.pow(i as u32) % choices);
            let small = Small { run, script: script(digits), length, n, odds: &odds, deepest: &deepest };
            small.all_cuts();
        });
        if all {
            let images = run.tried_so_far() - before;
            let deep = deepest.into_inner();
            run.note(format!(
                "all {workloads} workloads of {length} transactions: {images} images, {deep} of them of a cut recovery"
            ));
        }
    }
}

/// A script of the tables and the transactions.
fn script(digits: impl Iterator<Item = usize>) -> Script {
    let tables = [Step::Create("ordered", TableKind::Ordered), Step::Create("hash", TableKind::Hash)];
    let middle = digits.zip(1..).flat_map(|(choice, i)| step(choice, i));
    Script::of(tables.into_iter().chain(middle))
}

struct Small<'a> {
    run: &'a Run,
    script: Script,
    length: usize,
    n: u64,
    odds: &'a Odds,
    deepest: &'a AtomicU64,
}

impl Small<'_> {
    fn is_large(&self) -> bool {
        self.script
            .steps
            .iter()
            .any(|(step, _)| matches!(step, Step::Commit(_, writes) if writes.len() > 100))
    }

    fn fail(&self, what: &str) {
        self.run.violation(format!("workload {} of {} transactions, {what}", self.n, self.length));
    }

    fn all_cuts(&self) {
        let disk = Disk::seeded(self.n);
        disk.record(1, 0);
        let mut ack = Ack::default();
        if let Err(e) = go(Setting::QUIET, &disk, &self.script, 0, &mut ack) {
            return self.fail(&e);
        }
        // Moments before the last transaction belong to a shorter workload.
        let new = |m: &&Moment| self.length == 0 || Ack::known(&m.mark).steps == self.script.steps.len();
        let moments = disk.moments();
        for moment in moments.iter().filter(new) {
            self.cut(moment, FIRST, "", 2);
        }
        self.same_again(disk.trace());
    }

    /// Whether what it writes depends on the time.
    fn has_times(&self) -> bool {
        let is_timed =
            |write: &Write| matches!(write, Write::PutFor(..) | Write::Expired(..) | Write::Lives(..));
        self.script
            .steps
            .iter()
            .any(|(step, _)| matches!(step, Step::Commit(_, writes) if writes.iter().any(is_timed)))
    }

    /// Checks that a second run of the workload makes the same calls with the same bytes.
    fn same_again(&self, trace: u64) {
        if self.n.is_multiple_of(16) && !self.has_times() {
            let disk = Disk::seeded(self.n);
            let again = go(Setting::QUIET, &disk, &self.script, 0, &mut Ack::default());
            if again.is_err() || disk.trace() != trace {
                self.fail("a second run is not the same");
            }
        }
    }

    /// Tries all choices at a moment. `depth`: how many more cuts may follow in its recovery.
    fn cut(&self, moment: &Moment, plan: Plan, before: &str, depth: usize) {
        let known = Ack::known(&moment.mark);
        let mut rng = Rng::of(self.run.seed, self.n ^ moment.mark.calls << 32);
        for choice in moment.disk.choices(plan) {
            if !self.run.goes_on() {
                return;
            }
            let image = moment.disk.image(&choice);
            if rng.one_in(8) {
                image.set_mapping();
            }
            let odds = if depth > 1 { self.odds.first } else { self.odds.again };
            let deep = depth > 0 && !self.is_large() && rng.one_in(odds[self.length]);
            if deep {
                image.record(1, 0);
            }
            self.run.tried(1);
            if !before.is_empty() {
                self.deepest.fetch_add(1, Ordering::Relaxed);
            }
            known.mark(&image);
            let name = || format!("{before}cut at call {}, {choice:?}, {known:?}", moment.mark.calls);
            let found = recovered(Setting::QUIET, &image, &self.script, known);
            let (db, k) = match found {
                Ok(found) => found,
                Err(e) => {
                    self.fail(&format!("{}: {e}", name()));
                    continue;
                }
            };
            if deep {
                let mut ack = Ack::at(k);
                ack.mark(&image);
                if let Err(e) = self.script.run(&db, k, &mut ack, &|ack| ack.mark(&image)) {
                    self.fail(&format!("{}, going on: {e}", name()));
                }
                for inner in image.moments() {
                    self.cut(&inner, INNER, &format!("{}; then ", name()), depth - 1);
                }
            }
            // What is left in memory must not be written.
            image.stop();
        }
    }
}
