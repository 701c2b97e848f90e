//! Giving space back: cutting the file's end, punching holes, and moving the tail down (`relocate.rs`).

use super::Engine;
use super::checkpoint::Purpose;
use super::compaction::pick::{MergeJob, pick_idle};
use super::compaction::turns::Taken;
use super::relief::no_matter;
use super::relocate::{is_loose, is_loose_for_idle_time};
use crate::base::error::{Error, Result};
use std::sync::atomic::Ordering;

/// How far a long operation has come, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes handled so far.
    pub done: u64,
    /// Bytes to be handled in all; it may grow as the operation learns more.
    pub total: u64,
}

/// What is written anew may make more due: a merge may let go of values.
const ROUNDS_MAX: usize = 4;
/// On a disk that is nearly full, where only a part finds room at a time.
const TIGHT_ROUNDS_MAX: usize = 16;
/// Several merges share a checkpoint. There is one for each so many bytes that were written anew.
const STEP_BYTES: u64 = 16 << 20;
/// Holes smaller than this are not worth a call.
const PUNCH_BYTES_MIN: u64 = 64 << 10;

impl Engine {
    /// Merges each table into one level. Only what is in a table when its turn comes is merged, so this ends
    /// however fast others write. On a full disk the flush must succeed, and the rest is done as far as there
    /// is room. A damaged table is left as it is, and the error comes when the others are done.
    pub(crate) fn compact(&self) -> Result<()> {
        self.look_after();
        self.flush()?;
        self.flusher.wait();
        let _paused = self.background.pause_merges();
        let ids: Vec<u32> = self.state.load().tables.with_runs().map(|t| t.id).collect();
        let (mut bytes, mut told) = (0, Ok(()));
        for id in ids {
            match no_matter(self.settle_table(id, &mut bytes)) {
                Err(e @ Error::Corrupt { .. }) => told = told.and(Err(e)),
                done => done?,
            }
            self.merges().note_levels();
            if bytes > STEP_BYTES {
                bytes = 0;
                no_matter(self.checkpoint(Purpose::Plain))?;
            }
        }
        // What the last merge has made needless is free only now, and the tail may move there.
        no_matter(self.checkpoint(Purpose::Plain))?;
        self.committer.lock().clear_spares();
        told.and(no_matter(self.drop_dead(false)))?;
        no_matter(self.shrink_file(|| !self.background.stopping()))
    }

    /// Adds what it has merged to `bytes`. REQUIRES: merges are held back.
    fn settle_table(&self, id: u32, bytes: &mut u64) -> Result<()> {
        // On a full disk in parts, of which each takes one at least: others may flush meanwhile.
        let parts = self.state.load().table(id).map_or(0, |t| t.levels.len());
        for _ in 0..parts.max(1) {
            self.committer.check_open()?;
            let state = self.state.load_full();
            let Some(job) = state.table(id).ok().and_then(|t| pick_idle(t, true, |_| false)) else {
                return Ok(());
            };
            drop(state);
            *bytes += job.inputs.iter().map(|l| l.bytes()).sum::<u64>();
            if self.room_maker().merge_in_room(MergeJob { together: true, ..job })? {
                break;
            }
        }
        Ok(())
    }

    /// Rewrites and moves what is needed so that the file is no larger than its contents, as far as a full
    /// disk has room for copies. `progress` is called without a lock, and may call whatever there is.
    pub(crate) fn shrink(&self, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        self.check_writable()?;
        self.compact()?;
        let paused = self.background.pause_merges();
        self.committer.check_open()?;
        // Only what is closed and written is moved.
        no_matter(self.values.close_open().and_then(|()| self.values.sync()))?;
        no_matter(self.log.rest(false).map(drop))?;
        no_matter(self.checkpoint(Purpose::Plain))?;
        self.checkpointer.lower_spare();
        let total = self.space.end();
        no_matter(self.relocator(total).move_down(|end| {
            paused.step_aside(|| progress(Progress { done: total.saturating_sub(end), total }));
            // It may have closed the database, or waited for somebody who did.
            self.committer.check_open()
        }))?;
        // What was moved is named, and then the manifest goes lower.
        no_matter(self.checkpoint(Purpose::Plain))?;
        no_matter(self.checkpoint(Purpose::Plain))?;
        self.room_maker().trim()?;
        self.space.with_holes(|hole| {
            // On a disk that is nearly full they will be wanted.
            if hole.len < PUNCH_BYTES_MIN || self.room.is_tight() {
                return Ok(());
            }
            self.file.punch(hole.offset, hole.len).map_err(|e| Error::io("punching a hole", e))
        })?;
        drop(paused);
        progress(Progress { done: total, total });
        Ok(())
    }

    /// Moves the file's tail into its holes as long as these are many and `go_on` says so, and cuts it.
    /// REQUIRES: merges are held back.
    pub(super) fn shrink_file(&self, go_on: impl Fn() -> bool) -> Result<()> {
        let go_on = || is_loose_for_idle_time(&self.space) && go_on();
        if go_on() && self.values.close_at(self.space.end())? {
            self.values.sync()?;
        }
        self.fill_holes(go_on)?;
        self.room_maker().trim()
    }

    fn fill_holes(&self, go_on: impl Fn() -> bool) -> Result<()> {
        self.relocator(self.space.end()).move_while(&go_on)?;
        // A manifest that ends the file goes lower with the next checkpoint.
        for _ in 0..2 {
            if go_on() && self.checkpointer.manifest_ends_the_file() {
                self.checkpoint(Purpose::Plain)?;
            }
        }
        Ok(())
    }

    /// Brings a file that is being closed down to what its records need. REQUIRES: nothing is in memory, and
    /// merges are held back.
    pub(super) fn shrink_for_closing(&self) -> Result<()> {
        let dropped = if self.config.background_merges { self.drop_dead(true) } else { Ok(()) };
        // Where there was no room for that, there may be holes all the same. A damaged file is left as it is.
        if !matches!(dropped, Ok(()) | Err(Error::NoSpace { .. })) {
            return dropped;
        }
        self.values.close_open()?;
        self.values.sync()?;
        self.fill_holes(|| is_loose(&self.space))?;
        dropped
    }

    /// Writes anew what keeps more dead bytes than may be. A table for which there is no room is left as it
    /// is. So is a damaged one, and the error comes when the others are done. REQUIRES: merges are held
    /// back.
    pub(super) fn drop_dead(&self, closing: bool) -> Result<()> {
        let (mut damaged, mut told) = (Vec::new(), Ok(()));
        let rounds = if self.room.is_tight() { TIGHT_ROUNDS_MAX } else { ROUNDS_MAX };
        for _ in 0..rounds {
            self.values.close_open()?;
            let excess = self.merges().survey().excess();
            let mut ids: Vec<u32> = self.state.load().tables.iter().map(|t| t.id).collect();
            ids.retain(|id| !damaged.contains(id));
            if excess.is_empty() {
                break;
            }
            let (mut bytes, mut jobs) = (0, 0);
            for id in ids {
                let Some(job) = self.state.load().table(id).ok().and_then(|t| excess.job(t)) else {
                    continue;
                };
                if !closing {
                    self.committer.check_open()?;
                }
                bytes += job.inputs.iter().map(|l| l.bytes()).sum::<u64>();
                match self.room_maker().merge_in_room(MergeJob { closing, together: true, ..job }) {
                    Ok(_) => jobs += 1,
                    Err(Error::NoSpace { .. }) => {}
                    Err(e @ Error::Corrupt { .. }) => {
                        damaged.push(id);
                        told = told.and(Err(e));
                    }
                    Err(e) => return Err(e),
                }
                if bytes > STEP_BYTES {
                    bytes = 0;
                    self.checkpoint(Purpose::Plain)?;
                }
            }
            self.checkpoint(Purpose::Plain)?;
            if jobs == 0 {
                break;
            }
        }
        told
    }

    /// What idle time does when everything is merged, as long as `go_on` says so: it lets go of the log and
    /// of what is dead, and moves the tail. False if somebody else holds merges back: he does it, or there
    /// will be more to do.
    pub(super) fn tidy(&self, class: usize, go_on: impl Fn() -> bool) -> Result<bool> {
        let go_on = || go_on() && !self.background.stopping();
        for _ in 0..ROUNDS_MAX {
            let before = self.file_mark();
            let log_is_long =
                |_: &dyn Fn() -> bool| self.merges().survey().log_is_long(self.log.file_bytes());
            let Some(log_is_long) = self.background.look_at_runs(log_is_long) else { return Ok(false) };
            if log_is_long {
                self.rest(go_on)?;
            }
            self.drop_dead_aside(class, go_on)?;
            if go_on() && is_loose_for_idle_time(&self.space) {
                let _paused = self.background.pause_merges();
                self.shrink_file(go_on)?;
            }
            self.room_maker().trim()?;
            if !go_on() || self.file_mark() == before {
                break;
            }
        }
        Ok(true)
    }

    /// Flushes what is in memory, and leaves the log no more than it needs.
    fn rest(&self, go_on: impl Fn() -> bool) -> Result<()> {
        self.flushing().flush_while(go_on)?;
        self.flusher.wait();
        self.committer.lock().clear_spares();
        self.log.rest(true)?;
        self.values.close_open()?;
        self.checkpoint(Purpose::Plain)
    }

    /// As `drop_dead`, once, beside other merges.
    fn drop_dead_aside(&self, class: usize, go_on: impl Fn() -> bool) -> Result<()> {
        let look = self.background.look_at_runs(|may_look| {
            let may_look = || may_look() && go_on();
            let survey = self.merges().survey();
            let excess = survey.excess_while(&may_look);
            (survey.due(&excess), excess, may_look())
        });
        // What a look has found that was ended early says little.
        let Some((due, excess, true)) = look else { return Ok(()) };
        if excess.is_empty() {
            return Ok(());
        }
        let go_on = || go_on() && !self.background.are_merges_paused();
        let mut told = Ok(());
        for id in due.into_iter().take_while(|_| go_on()) {
            if let Taken::Job(job) = self.merges().take_excess(class, &excess, id) {
                match self.merges().run_in_turn(class, job) {
                    Err(e @ Error::Corrupt { .. }) => told = told.and(Err(e)),
                    done => drop(done?),
                }
            }
        }
        self.values.close_open()?;
        self.checkpoint(Purpose::Plain)?;
        told
    }

    /// What the file looks like, to see whether anything has changed.
    pub(super) fn file_mark(&self) -> [u64; 4] {
        let commits = self.counters.commits.load(Ordering::Relaxed);
        [commits, self.space.end(), self.space.free_bytes(), self.log.file_bytes()]
    }
}
