//! Power cuts while a database is written, backed up, and its repository pruned: at random calls of a script,
//! or at every call of a short one.

use super::restored::{OUT, REPO, between, follower, is_state, prefix, restores, restores_between, setting};
use crate::disk::{Disk, Keep as Kept, Moment};
use crate::judge::{Setting, recovered};
use crate::report::Run;
use crate::rng::Rng;
use crate::script::{Ack, Script};
use azekura::storage::Storage;
use azekura::{CopyOptions, Db, Keep, LogKeeper, Repository, Which};
use std::ops::RangeInclusive;
use std::path::Path;

const KEPT: [Kept; 6] =
    [Kept::None, Kept::All, Kept::Prefix, Kept::Blocks(512), Kept::Blocks(4096), Kept::Wild];
/// Images of one workload.
const MOMENTS: u64 = 12;
/// Cuts of one restore.
const RESTORES: u64 = 4;
/// The limits of a kept log are divided by a number of up to so many bits: some logs come to them, and others
/// do not.
const LIMITS_BITS: u64 = 18;
/// A mark has this many points at most.
const POINTS_MAX: usize = 1000;

/// What a run has done.
struct Trial<'a> {
    run: &'a Run,
    script: Script,
    /// Whether it is cut at every call. Then each backup comes after a few steps.
    is_short: bool,
    set: Setting,
    /// For each point, from point 1 on, the states that it has had, and with which backup each came.
    states: Vec<Vec<(usize, usize)>>,
    /// How many backups were made.
    backups: usize,
    n: u64,
}

/// Runs a script with backups in between, and judges what is left after a cut.
pub(super) fn cut_off(run: &Run, rng: &mut Rng, n: u64) {
    let script = Script::new(rng.number(), 8 + rng.below(60) as usize, rng.one_in(3));
    let set = setting(rng);
    let mut trial = Trial { run, script, is_short: false, set, states: Vec::new(), backups: 0, n };
    let disk = Disk::seeded(rng.number());
    disk.record(1 + rng.below(12), rng.number());
    if let Err(e) = trial.go(&disk, rng) {
        return run.violation(format!("{}: {e}", trial.name()));
    }
    let moments = disk.moments();
    for _ in 0..MOMENTS {
        if run.goes_on() {
            trial.cut(rng.pick(&moments), *rng.pick(&KEPT), rng);
        }
    }
}

/// The same with a short script, and a cut at every call: what was not synced is gone, or some of it is.
/// False if the time was over before.
pub(super) fn cut_everywhere(run: &Run, rng: &mut Rng, n: u64) -> bool {
    let script = Script::new(rng.number(), 3 + rng.below(10) as usize, rng.one_in(3));
    let set = setting(rng);
    let mut trial = Trial { run, script, is_short: true, set, states: Vec::new(), backups: 0, n };
    let disk = Disk::seeded(rng.number());
    disk.record(1, 0);
    if let Err(e) = trial.go(&disk, rng) {
        run.violation(format!("{}: {e}", trial.name()));
        return false;
    }
    let moments = disk.moments();
    for moment in &moments {
        for kept in [Kept::None, KEPT[1 + rng.below(KEPT.len() as u64 - 1) as usize]] {
            if !run.has_time() {
                return false;
            }
            trial.cut(moment, kept, rng);
        }
    }
    true
}

impl Trial<'_> {
    fn name(&self) -> String {
        let everywhere = if self.is_short { ", cut everywhere" } else { "" };
        format!("backups {} of {} steps{everywhere}, {:?}", self.n, self.script.steps.len(), self.set)
    }

    /// Runs the script on a good disk. A mark has the durable state, the newest state that was begun, and the
    /// points that must be there: from the oldest to the newest, after so many backups.
    fn go(&mut self, disk: &Disk, rng: &mut Rng) -> Result<(), String> {
        let failed = |e: azekura::Error| format!("failed on a good disk: {e}");
        let db = self.set.open(disk).map_err(failed)?;
        let (mut ack, mut oldest, mut keeper) = (Ack::default(), 1, None);
        let (mut steps, stride) = (0, if self.is_short { 3 } else { 20 });
        while steps < self.script.steps.len() {
            steps = (steps + 1 + rng.below(stride) as usize).min(self.script.steps.len());
            let (points, backups) = (self.states.len(), self.backups);
            let mark = |ack: &Ack, points: usize, oldest: usize, backups: usize| {
                let numbers = (backups * POINTS_MAX + oldest) * POINTS_MAX + points;
                disk.mark([ack.durable, ack.begun, numbers]);
            };
            let done = ack.done;
            prefix(&self.script, steps)
                .run(&db, done, &mut ack, &|ack| mark(ack, points, oldest, backups))
                .map_err(failed)?;
            self.backups += 1;
            self.back_up(disk, &db, &mut keeper, &mut ack, rng)?;
            mark(&ack, self.states.len(), oldest, self.backups);
            if rng.one_in(3) {
                // Which other one is kept depends on the second in which the log was last read on.
                let (newest, before) = (self.states.len(), oldest);
                mark(&ack, newest, newest, self.backups);
                let keep: Keep = "2".parse().map_err(failed)?;
                let pruned =
                    Repository::open_on(disk, REPO).and_then(|r| r.prune(&keep, |_| {})).map_err(failed)?;
                let is_kept = |n: &usize| pruned.kept.contains(&(*n as u64));
                oldest =
                    (before..=newest).rev().take_while(is_kept).last().ok_or("the newest point is gone")?;
            }
        }
        db.close().map_err(failed)
    }

    /// By the writer, by who follows the file, or by who keeps its log. The state that it has is durable
    /// then.
    fn back_up<'d>(
        &mut self,
        disk: &'d Disk,
        db: &Db,
        keeper: &mut Option<LogKeeper<'d>>,
        ack: &mut Ack,
        rng: &mut Rng,
    ) -> Result<(), String> {
        let failed = |e: azekura::Error| format!("a backup on a good disk: {e}");
        let expected = self.states.len() as u64 + 1;
        let points = match rng.below(4) {
            0 | 1 => {
                let point = db.backup_on(disk, REPO, |_| {}).map_err(failed)?.point;
                ack.durable = ack.done;
                vec![point]
            }
            2 => vec![
                follower(disk, rng).and_then(|db| db.backup_on(disk, REPO, |_| {})).map_err(failed)?.point,
            ],
            _ => {
                let keeper = match keeper {
                    Some(keeper) => keeper,
                    none => none.insert(
                        follower(disk, rng)
                            .and_then(|db| db.keep_log_with(disk, REPO, CopyOptions::default()))
                            .map_err(failed)?
                            .with_limits_divided(1 << rng.below(LIMITS_BITS)),
                    ),
                };
                let before = keeper.status().point;
                let after = keeper.step(|_| {}).map_err(failed)?.point;
                let mut points = vec![before, after];
                points.dedup();
                points.retain(|&point| point > 0);
                points
            }
        };
        let newest = points.last().copied().unwrap_or(0);
        if newest > expected {
            return Err(format!("point {newest}, expected {expected}"));
        }
        let repository = Repository::open_on(disk, REPO).map_err(failed)?;
        let there: Vec<u64> = repository.points().map_err(failed)?.points.iter().map(|p| p.number).collect();
        for point in points.into_iter().filter(|point| there.contains(point)) {
            self.note_state(disk, point, newest, ack)?;
        }
        Ok(())
    }

    /// Notes in which state a point is. The newest one has what was durable before.
    fn note_state(&mut self, disk: &Disk, point: u64, newest: u64, ack: &mut Ack) -> Result<(), String> {
        let (backup, index) = (self.backups, point as usize - 1);
        let before = self.states.get(index).and_then(|states| states.last()).map_or(0, |last| last.0);
        let low = if point == newest { ack.durable } else { before };
        // What is not durable may be in it, and then it is durable.
        let state = between(disk, &self.script, Which::Point(point), low, ack.done)?;
        ack.durable = ack.durable.max(state);
        match self.states.get_mut(index) {
            Some(states) if states.last().is_some_and(|last| last.0 == state) => {}
            Some(states) => states.push((state, backup)),
            None => self.states.push(vec![(state, backup)]),
        }
        Ok(())
    }

    /// The states in which a point may be after so many backups, and a further one that was begun.
    fn states_of(&self, point: u64, backups: usize) -> Option<RangeInclusive<usize>> {
        let states = self.states.get(point as usize - 1)?;
        let acknowledged = states.iter().rposition(|&(_, backup)| backup <= backups).unwrap_or(0);
        let begun = states.iter().rposition(|&(_, backup)| backup <= backups + 1)?;
        Some(states[acknowledged].0..=states[begun].0)
    }

    fn cut(&self, moment: &Moment, kept: Kept, rng: &mut Rng) {
        let choice = moment.disk.choice(kept, rng);
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
        let (backups, points) = (points / POINTS_MAX / POINTS_MAX, points % (POINTS_MAX * POINTS_MAX));
        let (oldest, points) = (points / POINTS_MAX, points % POINTS_MAX);
        let ack = Ack { durable, begun, done: durable, steps: 0 };
        if points > 0 || Repository::open_on(image, REPO).is_ok() {
            self.judge_points(image, (oldest, points), backups, rng)?;
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

    fn judge_points(
        &self,
        image: &Disk,
        (oldest, points): (usize, usize),
        backups: usize,
        rng: &mut Rng,
    ) -> Result<(), String> {
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
            let states = self.states_of(n, backups).ok_or_else(|| format!("point {n} was never begun"))?;
            let state = between(image, &self.script, Which::Point(n), *states.start(), *states.end())?;
            if point.first_commit < point.commit {
                let middle = point.first_commit + rng.below(point.commit - point.first_commit);
                restores_between(image, &self.script, Which::Commit(middle), state)?;
            }
        }
        Ok(())
    }

    /// Cuts a restore: the file is there whole, or not at all.
    fn cut_restore(&self, disk: &Disk, point: u64, state: usize, rng: &mut Rng) -> Result<(), String> {
        let is_everywhere = self.is_short && rng.one_in(16);
        disk.record(if is_everywhere { 1 } else { 1 + rng.below(3) }, rng.number());
        let failed = |e: azekura::Error| format!("restoring: {e}");
        let repository = Repository::open_on(disk, REPO).map_err(failed)?;
        repository.restore(Which::Point(point), OUT, |_| {}).map_err(failed)?;
        let moments = disk.moments();
        let some: Vec<&Moment> = match is_everywhere {
            true => moments.iter().collect(),
            false => (0..RESTORES).map(|_| rng.pick(&moments)).collect(),
        };
        for moment in some {
            let image = moment.disk.after_cut(*rng.pick(&KEPT), rng);
            if image.exists(Path::new(OUT)).unwrap_or(false) {
                is_state(&image, &self.script, state)
                    .map_err(|e| format!("restore cut at call {}: {e}", moment.mark.calls))?;
            }
        }
        Ok(())
    }
}
