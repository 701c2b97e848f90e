//! Power cuts while a database is written, backed up, and its repository pruned.

use super::restored::{OUT, REPO, between, follower, is_state, prefix, restores, restores_between, setting};
use crate::disk::{Disk, Keep as Kept, Moment};
use crate::judge::{Setting, recovered};
use crate::report::Run;
use crate::rng::Rng;
use crate::script::{Ack, Script};
use azekura::storage::Storage;
use azekura::{BackupReport, Db, Keep, Repository, Which};
use std::path::Path;

const KEPT: [Kept; 6] =
    [Kept::None, Kept::All, Kept::Prefix, Kept::Blocks(512), Kept::Blocks(4096), Kept::Wild];
/// Images of one workload.
const MOMENTS: u64 = 12;
/// Cuts of one restore.
const RESTORES: u64 = 4;
/// A mark has this many points at most.
const POINTS_MAX: usize = 1000;

/// What a run has done: the state of each point, from point 1 on.
struct Trial<'a> {
    run: &'a Run,
    script: Script,
    set: Setting,
    states: Vec<usize>,
    n: u64,
}

/// Runs a script with backups in between, and judges what is left after a cut.
pub(super) fn cut_off(run: &Run, rng: &mut Rng, n: u64) {
    let script = Script::new(rng.number(), 8 + rng.below(60) as usize, rng.one_in(3));
    let mut trial = Trial { run, script, set: setting(rng), states: Vec::new(), n };
    let disk = Disk::seeded(rng.number());
    disk.record(1 + rng.below(12), rng.number());
    if let Err(e) = trial.go(&disk, rng) {
        return run.violation(format!("{}: {e}", trial.name()));
    }
    let moments = disk.moments();
    for _ in 0..MOMENTS {
        if run.goes_on() {
            trial.cut(rng.pick(&moments), rng);
        }
    }
}

impl Trial<'_> {
    fn name(&self) -> String {
        format!("backups {} of {} steps, {:?}", self.n, self.script.steps.len(), self.set)
    }

    /// Runs the script on a good disk. A mark has the durable state, the newest state that was begun, and the
    /// points that must be there: from the oldest to the newest.
    fn go(&mut self, disk: &Disk, rng: &mut Rng) -> Result<(), String> {
        let failed = |e: azekura::Error| format!("failed on a good disk: {e}");
        let db = self.set.open(disk).map_err(failed)?;
        let (mut ack, mut oldest) = (Ack::default(), 1);
        let mut steps = 0;
        while steps < self.script.steps.len() {
            steps = (steps + 1 + rng.below(20) as usize).min(self.script.steps.len());
            let points = self.states.len();
            let mark = |ack: &Ack, points: usize, oldest: usize| {
                disk.mark([ack.durable, ack.begun, oldest * POINTS_MAX + points]);
            };
            let done = ack.done;
            prefix(&self.script, steps)
                .run(&db, done, &mut ack, &|ack| mark(ack, points, oldest))
                .map_err(failed)?;
            let report = self.back_up(disk, &db, &mut ack, rng)?;
            mark(&ack, self.states.len(), oldest);
            if report.point != self.states.len() as u64 {
                return Err(format!("point {}, expected {}", report.point, self.states.len()));
            }
            if rng.one_in(3) {
                oldest = self.states.len().saturating_sub(1).max(oldest);
                mark(&ack, self.states.len(), oldest);
                let keep: Keep = "2".parse().map_err(failed)?;
                Repository::open_on(disk, REPO).and_then(|r| r.prune(&keep, |_| {})).map_err(failed)?;
            }
        }
        db.close().map_err(failed)
    }

    /// By the writer, or by who follows the file. The state that it has is durable then.
    fn back_up(
        &mut self,
        disk: &Disk,
        db: &Db,
        ack: &mut Ack,
        rng: &mut Rng,
    ) -> Result<BackupReport, String> {
        let failed = |e: azekura::Error| format!("a backup on a good disk: {e}");
        if rng.one_in(2) {
            let report = db.backup_on(disk, REPO, |_| {}).map_err(failed)?;
            self.states.push(ack.done);
            ack.durable = ack.done;
            return Ok(report);
        }
        let follower = follower(disk, rng).map_err(failed)?;
        let report = follower.backup_on(disk, REPO, |_| {}).map_err(failed)?;
        // What is not durable may be in it, and then it is durable.
        let state = between(disk, &self.script, Which::Point(report.point), ack.durable, ack.done)?;
        self.states.push(state);
        ack.durable = state;
        Ok(report)
    }

    fn cut(&self, moment: &Moment, rng: &mut Rng) {
        let choice = moment.disk.choice(*rng.pick(&KEPT), rng);
        let image = moment.disk.image(&choice);
        self.run.tried(1);
        if let Err(e) = self.judge(&image, moment, rng) {
            let mark = moment.mark;
            self.run.violation(format!("{}, cut at call {}, {choice:?}: {e}", self.name(), mark.calls));
        }
    }

    /// Judges the database, all points, and a backup after that.
    fn judge(&self, image: &Disk, moment: &Moment, rng: &mut Rng) -> Result<(), String> {
        let [durable, begun, points] = moment.mark.numbers;
        let (oldest, points) = (points / POINTS_MAX, points % POINTS_MAX);
        let ack = Ack { durable, begun, done: durable, steps: 0 };
        if points > 0 || Repository::open_on(image, REPO).is_ok() {
            self.judge_points(image, oldest, points, rng)?;
        }
        let set = if rng.one_in(2) { self.set } else { Setting { threads: false, ..self.set } };
        let (db, state) = recovered(set, image, &self.script, ack)?;
        let report = db.backup_on(image, REPO, |_| {}).map_err(|e| format!("backup after recovery: {e}"))?;
        restores(image, &self.script, report.point, state)?;
        self.cut_restore(image, report.point, state, rng)?;
        image.stop();
        drop(db);
        Ok(())
    }

    fn judge_points(&self, image: &Disk, oldest: usize, points: usize, rng: &mut Rng) -> Result<(), String> {
        let failed = |e: azekura::Error| format!("the repository: {e}");
        let repository = Repository::open_on(image, REPO).map_err(failed)?;
        let list = repository.points().map_err(failed)?;
        let found: Vec<usize> = list.points.iter().map(|p| p.number as usize).collect();
        let missing = (oldest..=points).find(|n| points > 0 && !found.contains(n));
        if !list.damaged.is_empty() || missing.is_some() || found.iter().any(|&n| n > points + 1) {
            return Err(format!("points {found:?} of {oldest}..={points}, damaged {:?}", list.damaged));
        }
        let wrong = repository.verify(|_| {}).map_err(failed)?.problems;
        if !wrong.is_empty() {
            return Err(format!("verify says {wrong:?}"));
        }
        for point in &list.points {
            let n = point.number;
            let state = self.states.get(n as usize - 1).copied();
            let state = state.ok_or_else(|| format!("point {n} was never begun"))?;
            restores(image, &self.script, n, state)?;
            if point.first_commit < point.commit {
                let middle = point.first_commit + rng.below(point.commit - point.first_commit);
                restores_between(image, &self.script, Which::Commit(middle), state)?;
            }
        }
        Ok(())
    }

    /// Cuts a restore: the file is there whole, or not at all.
    fn cut_restore(&self, disk: &Disk, point: u64, state: usize, rng: &mut Rng) -> Result<(), String> {
        disk.record(1 + rng.below(3), rng.number());
        let failed = |e: azekura::Error| format!("restoring: {e}");
        let repository = Repository::open_on(disk, REPO).map_err(failed)?;
        repository.restore(Which::Point(point), OUT, |_| {}).map_err(failed)?;
        let moments = disk.moments();
        for _ in 0..RESTORES {
            let moment = rng.pick(&moments);
            let image = moment.disk.after_cut(*rng.pick(&KEPT), rng);
            if image.exists(Path::new(OUT)).unwrap_or(false) {
                is_state(&image, &self.script, state)
                    .map_err(|e| format!("restore cut at call {}: {e}", moment.mark.calls))?;
            }
        }
        Ok(())
    }
}
