//! The compactor: it carries merges out, and puts their results in place.
//!
//! A merge installs its output partition by partition, as part of its oldest input. Partitions of all inputs
//! that have been read up go as their replacements come, so the file grows by little meanwhile. What stays of
//! newer inputs says the same of those keys as the output, or is hidden by something that does
//! (`ReplaceablePrefix`). So readers see no difference. (A merge that carries range deletes on installs all
//! at its end, for only there are these written. So is what lies above all keys of the oldest input.)

use super::compactor::Compactor;
use super::install::Installer;
use super::output::{Outlet, OutputWriter, UninstalledRuns};
use super::pick::MergeJob;
use super::prefix::ReplaceablePrefix;
use crate::base::error::{Error, Result};
use crate::base::fault::fault;
use crate::base::poison::Poison;
use crate::engine::checkpoint::Checkpoints;
use crate::engine::relief::Relief;
use crate::engine::state::Level;
use crate::engine::waste::{Sparse, Survey};
use crate::merge::{MergeSource, Merger};
use crate::run::Run;
use crate::space::Extent;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A merge of no more than this, large values included, is done in milliseconds. It goes on to its end when
/// the engine stops.
const SHORT_BYTES_MAX: u64 = 1 << 20;

/// So much of a value segment must be dead before its values are moved. It is more than stands between
/// values.
const SPARSE_BYTES_MIN: u64 = 64 << 10;

/// For errors and panics: what the thread was doing.
pub(super) const MERGING: &str = "merging";

/// What a merge works with, and whom it asks. It knows nothing of log and memtables.
pub(in crate::engine) struct Means<'a> {
    pub(in crate::engine) installer: Installer<'a>,
    pub(in crate::engine) outlet: Outlet<'a>,
    pub(in crate::engine) relief: &'a Relief,
    pub(in crate::engine) poison: &'a Poison,
    /// What a flush of all in memory may need now.
    pub(in crate::engine) flush_need: &'a dyn Fn() -> u64,
    /// A checkpoint makes durable what was put in place. What was there before is free then.
    pub(in crate::engine) checkpoints: Checkpoints<'a>,
}

impl Means<'_> {
    fn is_tight(&self) -> bool {
        self.outlet.store.room.is_tight()
    }

    /// Whether somebody waits for merges to end on a nearly full disk: a commit that needs room, for one.
    fn is_held_up(&self) -> bool {
        self.installer.background.are_merges_paused() && self.is_tight()
    }

    /// After a failed merge no record refers to the values that it moved. Closing their segment lets that be
    /// freed.
    fn forget_moved(&self) {
        let _forgotten = self.outlet.values.close_open();
    }
}

impl Compactor {
    /// Does a merge. False if the table is gone, the engine is stopping, or somebody needs room sooner.
    pub(super) fn run(&self, job: MergeJob, means: &Means<'_>) -> Result<bool> {
        let done = means.poison.catch(MERGING, || self.merge(job, means));
        if matches!(done, Err(Error::NoSpace { .. })) {
            means.forget_moved();
        }
        done
    }

    /// The job is consumed, since what holds its inputs keeps their place in the file.
    fn merge(&self, job: MergeJob, means: &Means<'_>) -> Result<bool> {
        let stepwise = job.is_stepwise();
        // A merge of the sweep, whose copies are limited, gives way too.
        let is_background = job.is_background() || job.copies_max < u64::MAX;
        let MergeJob { table, inputs, bottom, drain, copies_max, closing, together, urgent, at_rest } = job;
        let started = Instant::now();
        let records: u64 = inputs.iter().map(|l| l.records()).sum();
        let bytes: u64 = inputs.iter().map(|l| l.bytes()).sum();
        let short = inputs.iter().map(|l| l.kept_bytes()).fold(0, u64::saturating_add) <= SHORT_BYTES_MAX;
        let filtered = inputs.iter().flat_map(|l| &l.runs).any(|r| r.info.filter_blocks > 0);
        let now = means.outlet.store.clock.now_if_used();
        let skipped = if bottom { skippable(&inputs, now) } else { HashSet::new() };
        let stepwise = stepwise && !is_skipped(inputs.last(), &skipped);
        let source = |l: &Arc<Level>| MergeSource::runs(l.runs.clone(), &skipped);
        let sources = inputs.iter().map(source).collect::<Result<Vec<_>>>()?;
        let mut merger = Merger::new(sources, bottom, now)?;
        let newest = inputs.first().map_or(0, |l| l.newest);
        let Ok(origin) = means.installer.state.load().table(table).map(|t| t.origin(newest, bottom)) else {
            return Ok(false);
        };
        // What is merged for want of room is merged again soon, and is to go in small parts then.
        let fine = !bottom || copies_max < u64::MAX;
        let mut output =
            OutputWriter::new(means.outlet, origin, filtered || !merger.is_chain(), fine, records, bytes);
        output.drain(means.draining_segments(&inputs, bottom, &drain, copies_max));
        if stepwise {
            merger.stop_at_partitions();
            output.ends_with_inputs();
        }
        let updates = if bottom { 0.0 } else { inputs.iter().map(|l| l.updates).fold(0.0, f32::max) };
        let mut steps = Steps::new(inputs, updates, newest, at_rest);
        let mut before = merger.partitions_done();
        while !output.step(&mut merger)? {
            if means.installer.background.stopping() && !short && !closing {
                return Ok(false);
            }
            if !means.relief.leaves_room(urgent, means.flush_need) {
                return Err(Error::NoSpace { during: MERGING });
            }
            // Only where the step has just come to the end of a partition does the output end there.
            let done = merger.partitions_done();
            let at_end = done > before && done != usize::MAX;
            before = done;
            if stepwise && at_end && output.may_end() {
                output.cut()?;
                if !means.install_step(table, &mut steps, done, output.take_done())? {
                    return Ok(false);
                }
            }
            if is_background && means.is_held_up() {
                drop(output);
                means.forget_moved();
                return Ok(false);
            }
        }
        let last = output.finish(&merger.ranges())?;
        // On a tight disk the next one may need what this one frees.
        let waits = short && together && !means.is_tight();
        let installed = means.install_job(table, steps, last, !waits)?;
        self.count(records, started);
        Ok(installed)
    }

    fn count(&self, records: u64, started: Instant) {
        self.merges.fetch_add(1, Ordering::Relaxed);
        self.records.fetch_add(records, Ordering::Relaxed);
        let ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.ns.fetch_add(ns, Ordering::Relaxed);
    }
}

impl Means<'_> {
    /// The value segments to be emptied: those of `drain`, and those that are mostly dead and to which the
    /// inputs' records refer. On a tight disk less dead ones are emptied too: as many as there is room for
    /// until they are free. There none is emptied if the table's other runs may refer to it.
    fn draining_segments(
        &self,
        inputs: &[Arc<Level>],
        bottom: bool,
        drain: &[u32],
        copies_max: u64,
    ) -> Vec<u32> {
        let tight = self.is_tight();
        if tight && !bottom {
            return Vec::new();
        }
        let half_dead = |s: &Sparse| s.dead_bytes * 2 > s.bytes && s.dead_bytes >= SPARSE_BYTES_MIN;
        let due = |s: &Sparse| if tight { self.relief.is_sparse(s) } else { half_dead(s) };
        let Outlet { values, flush_bytes, .. } = self.outlet;
        let mut sparse = Survey::of(self.installer.state, values, flush_bytes, 0).sparse_segments();
        sparse.retain(|s| drain.contains(&s.id) || due(s) && inputs.iter().any(|l| l.refers_to(s.id)));
        sparse.sort_by_key(Sparse::live_bytes);
        let mut room = self.relief.draining_room(self.flush_need).min(copies_max);
        sparse.retain(|s| {
            let fits = s.live_bytes() <= room;
            room -= if fits { s.live_bytes() } else { 0 };
            fits
        });
        sparse.into_iter().map(|s| s.id).collect()
    }

    /// Replaces the partitions that have been read up while a merge goes on: `passed` of the oldest input,
    /// and those of the others that end before.
    fn install_step(
        &self,
        table: u32,
        steps: &mut Steps,
        passed: usize,
        fresh: UninstalledRuns,
    ) -> Result<bool> {
        let Some((oldest, newer)) = steps.levels.split_last() else { return Ok(false) };
        // What earlier steps have written stands before what is left of the old partitions.
        let end = steps.written + (passed - steps.passed);
        let Some(last) = oldest.runs[..end].last() else { return Ok(false) };
        let (mut next, mut gone) = ReplaceablePrefix::new(&last.info.max).levels(newer)?;
        gone.extend_from_slice(&oldest.runs[steps.written..end]);
        let mut runs = oldest.runs[..steps.written].to_vec();
        runs.extend_from_slice(fresh.runs());
        let written = runs.len();
        runs.extend_from_slice(&oldest.runs[end..]);
        // See `run::label`.
        let left = next.iter().flatten().map(|level| level.newest).min();
        let newest = left.map_or(steps.newest, |left| left.saturating_sub(1).max(oldest.newest));
        next.push(Some(Arc::new(Level::new(runs, steps.updates, newest)?)));
        if gone.iter().any(|r| r.is_read()) {
            fresh.warm();
        }
        let freed = steps.freed_by(&gone);
        let installed = self.installer.replace(table, &steps.levels, &next, gone)?;
        if installed {
            fresh.installed();
            steps.levels = next.into_iter().flatten().collect();
            (steps.written, steps.passed) = (written, passed);
            self.checkpoints.write()?;
            self.outlet.store.room.forget_free(freed);
        }
        Ok(installed)
    }

    /// Puts the last of a merge's output in place of what is left of its inputs. The checkpoint that lets
    /// go of these may be left to the caller.
    fn install_job(
        &self,
        table: u32,
        steps: Steps,
        fresh: UninstalledRuns,
        checkpoint: bool,
    ) -> Result<bool> {
        let Some((oldest, newer)) = steps.levels.split_last() else { return Ok(false) };
        let mut runs = oldest.runs[..steps.written].to_vec();
        let mut gone = oldest.runs[steps.written..].to_vec();
        gone.extend(newer.iter().flat_map(|l| l.runs.iter().cloned()));
        runs.extend_from_slice(fresh.runs());
        let mut next = vec![None; newer.len()];
        next.push(if runs.is_empty() {
            None
        } else {
            Some(Arc::new(Level::new(runs, steps.updates, steps.newest)?))
        });
        if gone.iter().any(|r| r.is_read()) {
            fresh.warm();
        }
        let freed = steps.freed_by(&gone);
        let installed = self.installer.replace(table, &steps.levels, &next, gone)?;
        drop(steps);
        if fault!("reuse_early") {
            return Ok(installed);
        }
        if installed {
            fresh.installed();
        }
        if installed && checkpoint {
            self.checkpoints.write()?;
            self.outlet.store.room.forget_free(freed);
        }
        Ok(installed)
    }
}

/// The runs of a merge of the oldest levels in which all has expired, and under which nothing stands that
/// they hide. They go without being read.
pub(super) fn skippable(inputs: &[Arc<Level>], now: u64) -> HashSet<u64> {
    let (mut skipped, mut kept): (_, Vec<&Arc<Run>>) = (HashSet::new(), Vec::new());
    if now == 0 {
        return skipped;
    }
    for level in inputs.iter().rev() {
        let (go, stay): (Vec<_>, Vec<_>) = level.runs.iter().partition(|run| {
            run.is_past(now) && !kept.iter().any(|older| older.overlaps(&run.info.min, &run.info.max))
        });
        skipped.extend(go.iter().map(|run| run.info.id));
        kept.extend(stay);
    }
    skipped
}

/// Whether some of a level is not read. A merge into it is installed at its end then: a step would take the
/// partitions that are passed over for read up, and let newer runs go that lie within them.
fn is_skipped(level: Option<&Arc<Level>>, skipped: &HashSet<u64>) -> bool {
    !skipped.is_empty() && level.is_some_and(|l| l.runs.iter().any(|r| skipped.contains(&r.info.id)))
}

/// How far a merge has been installed.
struct Steps {
    /// Its inputs as the state has them now, newest first.
    levels: Vec<Arc<Level>>,
    /// What part of the output's records likely replaces older ones.
    updates: f32,
    /// The number of its newest input, which is the output's when it is whole.
    newest: u64,
    /// How many partitions at the front of the oldest are output of this merge.
    written: usize,
    /// How many of its former partitions have been read up.
    passed: usize,
    /// As `MergeJob::at_rest`.
    at_rest: bool,
}

impl Steps {
    fn new(levels: Vec<Arc<Level>>, updates: f32, newest: u64, at_rest: bool) -> Steps {
        Steps { levels, updates, newest, written: 0, passed: 0, at_rest }
    }

    /// The extents of runs that go, if they are to go from memory.
    fn freed_by(&self, gone: &[Arc<Run>]) -> Vec<Extent> {
        let gone = if self.at_rest { gone } else { &[] };
        gone.iter().flat_map(|run| run.info.extents.iter().copied()).collect()
    }
}
