//! Carrying out merges in the background, and putting their results in place.
//!
//! A merge into the bottom installs its output partition by partition: the old partitions that have
//! been read up go as their replacements come, so that the file grows by little meanwhile. The
//! runs above stay until the end; what they still say of keys already merged is what the bottom
//! says too, so readers cannot tell.

use super::Engine;
use super::checkpoint::Purpose;
use super::checkpoint::Retired;
use super::job::{Fresh, Output};
use super::pick::Job;
use super::state::{SortedRun, TableState};
use crate::base::error::Result;
use crate::base::limits::PARTITION_BYTES;
use crate::merge::{Merger, Source};
use crate::run::Run;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A bottom partition under way is ended at a partition boundary from this size on.
const CUT_BYTES: u64 = PARTITION_BYTES / 2;

/// So much of a value segment must be dead before its values are moved: more than what stands between them.
const SPARSE_BYTES_MIN: u64 = 64 << 10;

/// A value segment of which less than half is alive.
pub(super) struct Sparse {
    pub(super) id: u32,
    pub(super) dead_bytes: u64,
}

impl Engine {
    /// Does a merge. False: the table is gone, or the engine is stopping.
    pub(super) fn run_job(&self, job: &Job) -> Result<bool> {
        self.poison.catch("merging", || self.merge(job))
    }

    fn merge(&self, job: &Job) -> Result<bool> {
        let started = Instant::now();
        let records: u64 = job.inputs.iter().map(|l| l.records()).sum();
        let bytes: u64 = job.inputs.iter().map(|l| l.bytes()).sum();
        let filtered = job.inputs.iter().flat_map(|l| &l.runs).any(|r| r.info.filter_blocks > 0);
        let sources = job.inputs.iter().map(|l| Source::runs(l.runs.clone())).collect::<Result<Vec<_>>>()?;
        let mut merger = Merger::new(sources, job.bottom)?;
        let kind = self.state.load().table(job.table)?.kind;
        let mut output = Output::new(self, kind, filtered || !merger.is_chain(), records, bytes);
        output.drain(self.draining_segments(job));
        let stepwise = job.bottom && job.inputs.last().is_some_and(|b| b.runs.len() > 1) && !merger.is_chain();
        if stepwise {
            merger.stop_at_partitions();
        }
        let mut steps = Steps { bottom: job.inputs.last().cloned(), written: 0, passed: 0 };
        let mut before = merger.partitions_done();
        while !output.step(&mut merger)? {
            if self.stopping() {
                return Ok(false);
            }
            // Only where the step has just come to the end of a partition does the output end there.
            let done = merger.partitions_done();
            let at_end = done > before && done != usize::MAX;
            before = done;
            if stepwise && at_end && output.open_bytes() >= CUT_BYTES {
                output.cut()?;
                if !self.install_step(job.table, &mut steps, done, output.take_done())? {
                    return Ok(false);
                }
            }
        }
        let done = output.finish(&merger.ranges())?;
        let installed = self.install_job(job, &steps, done.runs)?;
        self.counters.merges.fetch_add(1, Ordering::Relaxed);
        self.counters.merged_records.fetch_add(records, Ordering::Relaxed);
        let ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.counters.merge_ns.fetch_add(ns, Ordering::Relaxed);
        Ok(installed)
    }

    /// Value segments that are mostly dead and to which the job's records refer.
    fn draining_segments(&self, job: &Job) -> Vec<u32> {
        let sparse = self.sparse_segments();
        let mut found: Vec<u32> =
            job.inputs.iter().flat_map(|l| &l.runs).flat_map(|r| &r.info.large).map(|l| l.0).collect();
        found.sort_unstable();
        found.dedup();
        found.retain(|id| sparse.iter().any(|s| s.id == *id));
        found
    }

    /// Segments of which less than half is referred to by runs, and more than a little is not.
    pub(super) fn sparse_segments(&self) -> Vec<Sparse> {
        let mut live = std::collections::HashMap::new();
        for table in &self.state.load().tables {
            for run in table.levels.iter().flat_map(|l| &l.runs) {
                for &(id, bytes) in &run.info.large {
                    *live.entry(id).or_insert(0u64) += bytes;
                }
            }
        }
        let segments = self.values.closed_segments();
        let sparse = segments.iter().filter_map(|s| {
            let (live, used) = (*live.get(&s.id)?, s.used());
            let dead_bytes = used.saturating_sub(live);
            (live < dead_bytes && dead_bytes >= SPARSE_BYTES_MIN).then_some(Sparse { id: s.id, dead_bytes })
        });
        sparse.collect()
    }

    /// Replaces the partitions of the bottom that have been read up, as a merge goes on.
    fn install_step(&self, table: u32, steps: &mut Steps, passed: usize, fresh: Fresh) -> Result<bool> {
        let Some(old) = steps.bottom.clone() else { return Ok(false) };
        // What earlier steps have written stands before what is left of the old partitions.
        let end = steps.written + (passed - steps.passed);
        let gone = old.runs[steps.written..end].to_vec();
        let mut runs = old.runs[..steps.written].to_vec();
        runs.extend_from_slice(fresh.runs());
        let written = runs.len();
        runs.extend_from_slice(&old.runs[end..]);
        let next = Arc::new(SortedRun::new(runs, old.updates)?);
        if gone.iter().any(|r| r.is_read()) {
            fresh.warm();
        }
        let installed = self.replace_levels(table, std::slice::from_ref(&old), vec![next.clone()], gone)?;
        if installed {
            fresh.installed();
            *steps = Steps { bottom: Some(next), written, passed };
            self.checkpoint(Purpose::Plain)?;
        }
        Ok(installed)
    }

    /// Puts the output of a whole merge in place of its inputs.
    fn install_job(&self, job: &Job, steps: &Steps, fresh: Fresh) -> Result<bool> {
        let mut inputs = job.inputs.clone();
        if let (Some(slot), Some(bottom)) = (inputs.last_mut(), &steps.bottom) {
            *slot = bottom.clone();
        }
        let Some((bottom, above)) = inputs.split_last() else { return Ok(false) };
        let mut runs = bottom.runs[..steps.written].to_vec();
        let mut gone = bottom.runs[steps.written..].to_vec();
        gone.extend(above.iter().flat_map(|l| l.runs.iter().cloned()));
        runs.extend_from_slice(fresh.runs());
        let updates = if job.bottom { 0.0 } else { inputs.iter().map(|l| l.updates).fold(0.0, f32::max) };
        let next = if runs.is_empty() { vec![] } else { vec![Arc::new(SortedRun::new(runs, updates)?)] };
        if gone.iter().any(|r| r.is_read()) {
            fresh.warm();
        }
        let installed = self.replace_levels(job.table, &inputs, next, gone)?;
        #[cfg(azekura_canary)]
        if crate::base::canary::sings("reuse_early") {
            return Ok(installed);
        }
        if installed {
            fresh.installed();
            self.checkpoint(Purpose::Plain)?;
        }
        Ok(installed)
    }

    /// Swaps contiguous levels of a table for others; the runs in `gone` are retired. One level in the
    /// place of another is as busy as that was. False if the table was dropped meanwhile, or the
    /// levels are not there any more.
    pub(super) fn replace_levels(
        &self,
        table: u32,
        old: &[Arc<SortedRun>],
        new: Vec<Arc<SortedRun>>,
        gone: Vec<Arc<Run>>,
    ) -> Result<bool> {
        let commit = self.lock_commit();
        let state = self.state.load_full();
        let Ok(current) = state.table(table) else { return Ok(false) };
        let mut t = TableState::clone(current);
        let Some(from) = t.levels.iter().position(|l| Arc::ptr_eq(l, &old[0])) else { return Ok(false) };
        let mut levels = t.levels.to_vec();
        let same = |i: usize, o: &Arc<SortedRun>| levels.get(from + i).is_some_and(|l| Arc::ptr_eq(o, l));
        if !old.iter().enumerate().all(|(i, o)| same(i, o)) {
            return Ok(false);
        }
        // Held until both say the same: no flush joins, and no merge takes, a level that is being read.
        let mut work = self.lock_work();
        if let ([old], [new]) = (old, new.as_slice()) {
            work.pass_on(old, new);
        }
        levels.splice(from..from + old.len(), new);
        t.levels = Arc::new(levels);
        self.state.store(Arc::new(state.with_table(t)));
        drop((work, commit));
        #[cfg(azekura_canary)]
        if crate::base::canary::sings("reuse_early") {
            gone.iter().for_each(|r| r.doom());
            return Ok(true);
        }
        self.retired.lock().extend(gone.into_iter().map(Retired::whole));
        Ok(true)
    }
}

/// How far a merge into the bottom has been installed.
struct Steps {
    /// The bottom as the state has it now.
    bottom: Option<Arc<SortedRun>>,
    /// How many partitions at its front are output of this merge.
    written: usize,
    /// How many of its former partitions have been read up.
    passed: usize,
}
