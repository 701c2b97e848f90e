//! Carrying out merges in the background, and putting their results in place.
//!
//! A merge installs its output partition by partition, as part of its oldest input: the partitions of all
//! inputs that have been read up go as their replacements come, so that the file grows by little meanwhile.
//! What stays of newer inputs says of those keys what the output says too, or is hidden by what does
//! (`ReplaceablePrefix`), so readers cannot tell. (A merge that is not into the bottom and carries range
//! deletes on waits until its end: only there are they written. So does what lies above all keys of the
//! oldest input.)

use super::output::{OutputWriter, UninstalledRuns};
use super::pick::MergeJob;
use crate::base::error::{Error, Result};
use crate::base::fault::fault;
use crate::engine::Engine;
use crate::engine::checkpoint::PendingFree;
use crate::engine::checkpoint::Purpose;
use crate::engine::state::{Level, TableState};
use crate::engine::waste::Sparse;
use crate::merge::{MergeSource, Merger};
use crate::run::Run;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A merge of no more than this, large values included, is done in milliseconds: that the engine stops does
/// not end it.
const SHORT_BYTES_MAX: u64 = 1 << 20;

/// So much of a value segment must be dead before its values are moved: more than what stands between them.
const SPARSE_BYTES_MIN: u64 = 64 << 10;

const MERGING: &str = "merging";

/// What comes to stand in a level's place, if anything does.
type Successor = Option<Arc<Level>>;

impl Engine {
    /// Does a merge. False: the table is gone, the engine is stopping, or somebody needs room sooner.
    pub(in crate::engine) fn run_job(&self, job: MergeJob) -> Result<bool> {
        let Some(_claim) = self.claim_for(&job, 1.0) else { return Err(Error::NoSpace { during: MERGING }) };
        self.try_job(job)
    }

    /// As `run_job`, whether or not it seems that there is room.
    pub(in crate::engine) fn try_job(&self, job: MergeJob) -> Result<bool> {
        let done = self.poison.catch(MERGING, || self.merge(job));
        if matches!(done, Err(Error::NoSpace { .. })) {
            // Values that were moved are nobody's: once their segment is closed, nobody waits for them.
            let _forgotten = self.values.close_open();
        }
        done
    }

    /// The job is consumed, since what holds its inputs keeps their place in the file.
    fn merge(&self, job: MergeJob) -> Result<bool> {
        let stepwise = job.is_stepwise();
        // A sweep's, of which the copies are limited, gives way too.
        let is_background = job.is_background() || job.copies_max < u64::MAX;
        let MergeJob { table, inputs, bottom, drain, copies_max, closing, together, urgent } = job;
        let started = Instant::now();
        let records: u64 = inputs.iter().map(|l| l.records()).sum();
        let bytes: u64 = inputs.iter().map(|l| l.bytes()).sum();
        let short = inputs.iter().map(|l| l.kept_bytes()).fold(0, u64::saturating_add) <= SHORT_BYTES_MAX;
        let filtered = inputs.iter().flat_map(|l| &l.runs).any(|r| r.info.filter_blocks > 0);
        let sources = inputs.iter().map(|l| MergeSource::runs(l.runs.clone())).collect::<Result<Vec<_>>>()?;
        let mut merger = Merger::new(sources, bottom)?;
        let newest = inputs.first().map_or(0, |l| l.newest);
        let Ok(origin) = self.state.load().table(table).map(|t| t.origin(newest, bottom)) else {
            return Ok(false);
        };
        // What is merged for want of room soon is again: that merge is to let go of it in small parts.
        let fine = !bottom || copies_max < u64::MAX;
        let mut output =
            OutputWriter::new(self, origin, filtered || !merger.is_chain(), fine, records, bytes);
        output.drain(self.draining_segments(&inputs, bottom, &drain, copies_max));
        if stepwise {
            merger.stop_at_partitions();
            output.ends_with_inputs();
        }
        let updates = if bottom { 0.0 } else { inputs.iter().map(|l| l.updates).fold(0.0, f32::max) };
        let mut steps = Steps { levels: inputs, updates, newest, written: 0, passed: 0 };
        let mut before = merger.partitions_done();
        while !output.step(&mut merger)? {
            if self.stopping() && !short && !closing {
                return Ok(false);
            }
            if !self.leaves_room(urgent) {
                return Err(Error::NoSpace { during: MERGING });
            }
            // Only where the step has just come to the end of a partition does the output end there.
            let done = merger.partitions_done();
            let at_end = done > before && done != usize::MAX;
            before = done;
            if stepwise && at_end && output.may_end() {
                output.cut()?;
                if !self.install_step(table, &mut steps, done, output.take_done())? {
                    return Ok(false);
                }
            }
            if is_background && self.is_held_up() {
                // As after `NoSpace`: values that were moved in vain are to go.
                drop(output);
                let _forgotten = self.values.close_open();
                return Ok(false);
            }
        }
        let done = output.finish(&merger.ranges())?;
        // On a tight disk the next one may need what this one frees.
        let waits = short && together && !self.room.is_tight();
        let installed = self.install_job(table, steps, done.runs, !waits)?;
        self.counters.merges.fetch_add(1, Ordering::Relaxed);
        self.counters.merged_records.fetch_add(records, Ordering::Relaxed);
        let ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.counters.merge_ns.fetch_add(ns, Ordering::Relaxed);
        Ok(installed)
    }

    /// Value segments that are mostly dead and to which the inputs' records refer, and those that are to be
    /// emptied. On a tight disk also those that are less dead, but only as many as there is room for until
    /// they are free, and none if the table's other runs may refer to them too.
    fn draining_segments(
        &self,
        inputs: &[Arc<Level>],
        bottom: bool,
        drain: &[u32],
        copies_max: u64,
    ) -> Vec<u32> {
        let tight = self.room.is_tight();
        if tight && !bottom {
            return Vec::new();
        }
        let half_dead = |s: &Sparse| s.dead_bytes * 2 > s.bytes && s.dead_bytes >= SPARSE_BYTES_MIN;
        let due = |s: &Sparse| if tight { self.is_sparse(s) } else { half_dead(s) };
        let mut sparse = self.sparse_segments();
        sparse.retain(|s| drain.contains(&s.id) || due(s) && inputs.iter().any(|l| l.refers_to(s.id)));
        sparse.sort_by_key(Sparse::live_bytes);
        let mut room = self.draining_room().min(copies_max);
        sparse.retain(|s| {
            let fits = s.live_bytes() <= room;
            room -= if fits { s.live_bytes() } else { 0 };
            fits
        });
        sparse.into_iter().map(|s| s.id).collect()
    }

    /// Replaces the partitions that have been read up, as a merge goes on: `passed` of the oldest input's,
    /// and of the others those that end before.
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
        next.push(Some(Arc::new(Level::new(runs, steps.updates, oldest.newest)?)));
        if gone.iter().any(|r| r.is_read()) {
            fresh.warm();
        }
        let installed = self.replace_levels(table, &steps.levels, &next, gone)?;
        if installed {
            fresh.installed();
            let (updates, newest) = (steps.updates, steps.newest);
            *steps = Steps { levels: next.into_iter().flatten().collect(), updates, newest, written, passed };
            self.checkpoint(Purpose::Plain)?;
        }
        Ok(installed)
    }

    /// Puts the output of a whole merge in place of what is left of its inputs. The checkpoint that lets go
    /// of these may be left to the caller.
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
        let installed = self.replace_levels(table, &steps.levels, &next, gone)?;
        drop(steps);
        if fault!("reuse_early") {
            return Ok(installed);
        }
        if installed {
            fresh.installed();
        }
        if installed && checkpoint {
            self.checkpoint(Purpose::Plain)?;
        }
        Ok(installed)
    }

    /// Swaps contiguous levels of a table, each for another or none; the runs in `gone` are freed by a
    /// checkpoint. A level in the place of another is as busy as that was. False if the table was dropped
    /// meanwhile, or the levels are not there any more.
    pub(in crate::engine) fn replace_levels(
        &self,
        table: u32,
        old: &[Arc<Level>],
        new: &[Successor],
        gone: Vec<Arc<Run>>,
    ) -> Result<bool> {
        let commit = self.lock_commit();
        let state = self.state.load_full();
        let Ok(current) = state.table(table) else { return Ok(false) };
        let mut t = TableState::clone(current);
        let Some(from) = t.levels.iter().position(|l| Arc::ptr_eq(l, &old[0])) else { return Ok(false) };
        let mut levels = t.levels.to_vec();
        let same = |i: usize, o: &Arc<Level>| levels.get(from + i).is_some_and(|l| Arc::ptr_eq(o, l));
        if !old.iter().enumerate().all(|(i, o)| same(i, o)) {
            return Ok(false);
        }
        // Held until both say the same: no flush joins, and no merge takes, a level that is being read.
        let mut work = self.lock_work();
        for (old, new) in old.iter().zip(new) {
            work.replace_busy(old, new.as_ref());
        }
        levels.splice(from..from + old.len(), new.iter().flatten().cloned());
        t.levels = Arc::new(levels);
        self.state.store(Arc::new(state.with_table(t)));
        drop((work, commit));
        if fault!("reuse_early") {
            gone.iter().for_each(|r| r.free_on_drop());
            return Ok(true);
        }
        self.pending_free.lock().extend(gone.into_iter().map(PendingFree::whole));
        Ok(true)
    }
}

/// Which partitions of the newer inputs may go when the output has all keys up to `end`.
///
/// A partition may go only if no input between it and the output keeps any of its keys: what that one says of
/// them is older than the output, and would hide it. So this goes from the oldest input to the newest, and
/// each may let go only of what is below all that those before have kept. Range deletes hide keys of other
/// partitions too: an input that has some keeps all, as if it had their keys.
pub(in crate::engine) struct ReplaceablePrefix<'a> {
    end: &'a [u8],
    /// The smallest key that an older input keeps.
    kept_from: Option<Vec<u8>>,
}

impl<'a> ReplaceablePrefix<'a> {
    pub(in crate::engine) fn new(end: &'a [u8]) -> ReplaceablePrefix<'a> {
        ReplaceablePrefix { end, kept_from: None }
    }

    /// What is left of each, newest first, and the partitions that go.
    fn levels(mut self, newer: &[Arc<Level>]) -> Result<(Vec<Successor>, Vec<Arc<Run>>)> {
        let (mut next, mut gone) = (Vec::with_capacity(newer.len() + 1), Vec::new());
        for level in newer.iter().rev() {
            let passed = self.passed(level);
            gone.extend_from_slice(&level.runs[..passed]);
            let left = &level.runs[passed..];
            next.push(match (passed, left) {
                (0, _) => Some(level.clone()),
                (_, []) => None,
                (_, left) => Some(Arc::new(Level::new(left.to_vec(), level.updates, level.newest)?)),
            });
        }
        next.reverse();
        Ok((next, gone))
    }

    /// How many bytes go.
    pub(in crate::engine) fn bytes(mut self, newer: &[Arc<Level>]) -> u64 {
        let of =
            |level: &Arc<Level>| level.runs[..self.passed(level)].iter().map(|r| r.info.bytes()).sum::<u64>();
        newer.iter().rev().map(of).sum()
    }

    /// How many partitions of the next newer input go.
    fn passed(&mut self, level: &Level) -> usize {
        let may_go = |r: &&Arc<Run>| level.ranges.is_empty() && self.may_go(r);
        let passed = level.runs.iter().take_while(may_go).count();
        let kept = level
            .runs
            .get(passed)
            .map(|r| &r.info.min)
            .into_iter()
            .chain(level.ranges.iter().map(|r| &r.start));
        self.kept_from = kept.chain(&self.kept_from).min().cloned();
        passed
    }

    fn may_go(&self, run: &Run) -> bool {
        let max = &run.info.max;
        max.as_slice() <= self.end && self.kept_from.as_ref().is_none_or(|k| max < k)
    }
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
}
