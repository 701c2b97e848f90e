//! Long random workloads, with flushes, merges, large values, dropped tables, compaction, range deletes and
//! abandoned transactions, under random options and with the engine's threads.
//!
//! The disk keeps copies of itself at random calls of one run, which gives many places for the cut. Half of
//! the images are only opened and judged. The others run the workload to its end, or are cut again meanwhile,
//! twice.

use super::bulk;
use crate::disk::{Disk, Keep, Moment};
use crate::judge::{PATH, Setting, finish, go, recovered};
use crate::report::Run;
use crate::rng::Rng;
use crate::script::{Ack, Script};
use crate::watchdog::Watchdog;
use std::sync::atomic::{AtomicU64, Ordering};

const KEEPS: [Keep; 6] =
    [Keep::None, Keep::All, Keep::Prefix, Keep::Blocks(512), Keep::Blocks(4096), Keep::Wild];

/// About how many images of one workload are tried.
const MOMENTS: u64 = 24;
/// One of this many workloads is a bulk (`bulk.rs`).
const BULK_ONE_IN: u64 = 8;

/// Tries workloads until the run ends. `bulk`: only bulks.
pub(super) fn run(run: &Run, watchdog: &Watchdog, bulk: bool) {
    let reserved = AtomicU64::new(0);
    run.on_all_processors(|n| {
        watchdog.at(format!("long workload {n}"));
        let mut rng = Rng::of(run.seed, n);
        let (script, set) = if bulk || n % BULK_ONE_IN == BULK_ONE_IN - 1 {
            (bulk::script(&mut rng), bulk::setting(&mut rng))
        } else {
            let script = Script::new(rng.number(), 10 + rng.below(150) as usize, rng.one_in(2));
            (script, setting(&mut rng))
        };
        let long = Long { run, script, set, n };
        let disk = Disk::seeded(rng.number());
        let mut ack = Ack::default();
        disk.record(1 + rng.below(30), rng.number());
        if let Err(e) = go(set, &disk, &long.script, 0, &mut ack) {
            return run.violation(format!("{}: {e}", long.name()));
        }
        reserved.fetch_add(disk.reservations(), Ordering::Relaxed);
        let moments = disk.moments();
        for _ in 0..MOMENTS {
            if run.goes_on() {
                long.cut(rng.pick(&moments), &mut rng, 2, "");
            }
        }
    });
    run.note(format!("long workloads reserved {} segments for a bulk of the log", reserved.into_inner()));
}

fn setting(rng: &mut Rng) -> Setting {
    Setting {
        threads: !rng.one_in(3),
        merges: rng.one_in(2),
        delay_ms: *rng.pick(&[2, 20, 60_000]),
        memtable_bytes: *rng.pick(&[64 << 10, 64 << 10, 256 << 10]),
        large_value_bytes: *rng.pick(&[64, 256, 1024, 8192]),
    }
}

struct Long<'a> {
    run: &'a Run,
    script: Script,
    set: Setting,
    n: u64,
}

impl Long<'_> {
    fn name(&self) -> String {
        format!("long workload {} of {} steps, {:?}", self.n, self.script.steps.len(), self.set)
    }

    fn cut(&self, moment: &Moment, rng: &mut Rng, depth: usize, before: &str) {
        let ack = Ack::known(&moment.mark);
        let choice = moment.disk.choice(*rng.pick(&KEEPS), rng);
        let image = moment.disk.image(&choice);
        if rng.one_in(3) {
            image.set_mapping();
        }
        let name = format!("{before}cut at call {}, {ack:?}", moment.mark.calls);
        let set = if rng.one_in(2) { self.set } else { Setting { threads: false, ..self.set } };
        self.run.tried(1);
        let judged = match rng.below(4) {
            0 => finish(set, &image, &self.script, ack),
            1 if depth > 0 => self.again(set, &image, ack, rng, depth, &name),
            _ => recovered(set, &image, &self.script, ack).map(|_| image.stop()),
        };
        if let Err(e) = judged {
            let (len, blocks) = image.used_blocks(PATH);
            self.run.violation(format!(
                "{}, {name}, {choice:?}, {len} bytes, {} blocks: {e}",
                self.name(),
                blocks.len()
            ));
        }
    }

    /// Recovers and goes on while the disk keeps copies of itself. Then tries some of the copies.
    fn again(
        &self,
        set: Setting,
        disk: &Disk,
        ack: Ack,
        rng: &mut Rng,
        depth: usize,
        name: &str,
    ) -> Result<(), String> {
        ack.mark(disk);
        disk.record(1 + rng.below(4), rng.number());
        let (db, k) = recovered(set, disk, &self.script, ack)?;
        let mut ack = Ack::at(k);
        ack.mark(disk);
        // A short way is enough, and brings the second cut close to the first.
        let calls_max = if rng.one_in(2) { 8 } else { 150 };
        disk.cut_after(1 + rng.below(calls_max));
        let ran = self.script.run(&db, k, &mut ack, &|ack| ack.mark(disk));
        if let (Err(e), false) = (ran, disk.is_dead()) {
            return Err(format!("going on from state {k}: {e}"));
        }
        disk.stop();
        drop(db);
        let moments = disk.moments();
        for _ in 0..3 {
            self.cut(rng.pick(&moments), rng, depth - 1, &format!("{name}; then "));
        }
        Ok(())
    }
}
