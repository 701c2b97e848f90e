//! Giving space back: cutting the file's end, punching holes, and moving the tail down (`relocate.rs`).

use super::compaction::closing::pick_for_closing;
use super::compaction::install::Installer;
use super::compaction::merges::Merges;
use super::compaction::pick::{MergeJob, pick_idle};
use super::compaction::turns::Taken;
use super::flush::Flush;
use super::relief::{RoomMaker, no_matter};
use super::relocate::{Relocator, is_loose, is_loose_for_idle_time};
use super::state::TableState;
use crate::base::error::{Error, Result};
use crate::log::Log;
use crate::space::Space;
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How far a long operation has come, in bytes.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-progress-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// t.put("ada", "1815")?;
/// let mut percent = 0;
/// db.check(|progress| percent = progress.done * 100 / progress.total.max(1))?;
/// assert!(percent <= 100);
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes handled so far.
    pub done: u64,
    /// Bytes to be handled in all; it may grow as the operation learns more.
    pub total: u64,
}

/// A merge may leave more values dead, so more may be due after it. It is looked at so many times.
const ROUNDS_MAX: usize = 4;
/// The same on a nearly full disk, where only a part finds room at a time.
const TIGHT_ROUNDS_MAX: usize = 16;
/// Several merges share a checkpoint. There is one for each so many bytes that were written anew.
const STEP_BYTES: u64 = 16 << 20;
/// Holes smaller than this are not worth a call.
const PUNCH_BYTES_MIN: u64 = 64 << 10;

/// Gives space back: merges, moves, and cuts the file.
pub(super) struct Reclaimer<'a> {
    pub(super) flush: Flush<'a>,
    pub(super) log: &'a Log,
}

impl<'a> Reclaimer<'a> {
    /// Merges each table into one level. Only what is in a table when its turn comes is merged, so this ends
    /// however fast others write. On a full disk the flush must succeed, and the rest is done as far as there
    /// is room. A damaged table is left as it is, and the error comes when the others are done.
    pub(super) fn compact(&self) -> Result<()> {
        let merges = self.flush.merges;
        let Installer { state, committer, background, .. } = merges.installer;
        self.flush.flush()?;
        self.flush.flusher.wait();
        let _paused = background.pause_merges();
        let ids: Vec<u32> = state.load().tables.with_runs().map(|t| t.id).collect();
        let (mut bytes, mut told) = (0, Ok(()));
        for id in ids {
            match no_matter(self.compact_table(id, &mut bytes)) {
                Err(e @ Error::Corrupt { .. }) => told = told.and(Err(e)),
                done => done?,
            }
            merges.note_levels();
            if bytes > STEP_BYTES {
                bytes = 0;
                no_matter(merges.checkpoints.write())?;
            }
        }
        // What the last merge has made needless is free only now, and the tail may move there.
        no_matter(merges.checkpoints.write())?;
        committer.lock().clear_spares();
        told.and(no_matter(self.drop_dead(false)))?;
        no_matter(self.shrink_file(|| !background.stopping()))?;
        merges.store.room.forget_holes(|| !background.stopping());
        Ok(())
    }

    /// Adds what it has merged to `bytes`. REQUIRES: merges are held back.
    fn compact_table(&self, id: u32, bytes: &mut u64) -> Result<()> {
        let Installer { state: newest, committer, .. } = self.flush.merges.installer;
        // On a full disk it is done in parts, of which each merges away one level at least. There are no more
        // parts than levels, for others may flush meanwhile.
        let parts = newest.load().table(id).map_or(0, |t| t.levels.len());
        let now = self.flush.merges.store.clock.now_if_used();
        for _ in 0..parts.max(1) {
            committer.check_open()?;
            let state = newest.load_full();
            let Some(job) = state.table(id).ok().and_then(|t| pick_idle(t, true, now, |_| false)) else {
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

    /// Makes the file no larger than its contents, by merging and moving. On a full disk that goes as far as
    /// there is room for copies. `progress` is called without a lock, and may call anything.
    pub(super) fn shrink(&self, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        let Merges { store, values, checkpoints, installer, .. } = self.flush.merges;
        let Installer { committer, background, checkpointer, .. } = installer;
        self.compact()?;
        let paused = background.pause_merges();
        committer.check_open()?;
        // Only what is closed and written is moved.
        no_matter(values.close_open().and_then(|()| values.sync()))?;
        no_matter(self.log.rest(false).map(drop))?;
        self.log.wait_for_making()?;
        no_matter(checkpoints.write())?;
        checkpointer.lower_spare();
        let total = self.space().end();
        // What the log has left at the end may be free only after the tail was moved: then it is moved once
        // more.
        for _ in 0..ROUNDS_MAX {
            no_matter(self.relocator(total).move_down(|end| {
                paused.step_aside(|| progress(Progress { done: total.saturating_sub(end), total }));
                // `progress` may have closed the database, or waited for somebody who did.
                committer.check_open()
            }))?;
            // What was moved is named, and then the manifest goes lower.
            no_matter(checkpoints.write())?;
            no_matter(checkpoints.write())?;
            self.room_maker().trim()?;
            if !is_loose(self.space()) {
                break;
            }
        }
        self.space().with_holes(|hole| {
            // On a nearly full disk their blocks will be wanted.
            if hole.len < PUNCH_BYTES_MIN || store.room.is_tight() {
                return Ok(());
            }
            store.file.punch(hole.offset, hole.len).map_err(|e| Error::io("punching a hole", e))
        })?;
        drop(paused);
        progress(Progress { done: total, total });
        Ok(())
    }

    /// Moves the file's tail into its holes as long as these are many and `go_on` says so, and cuts it.
    /// REQUIRES: merges are held back.
    pub(super) fn shrink_file(&self, go_on: impl Fn() -> bool) -> Result<()> {
        let (space, values) = (self.space(), self.flush.merges.values);
        let go_on = || is_loose_for_idle_time(space) && go_on();
        if go_on() && values.close_at(space.end())? {
            values.sync()?;
        }
        self.fill_holes(self.relocator(space.end()), go_on)?;
        self.room_maker().trim()
    }

    fn fill_holes(&self, mut relocator: Relocator<'_>, go_on: impl Fn() -> bool) -> Result<()> {
        let Merges { checkpoints, installer: Installer { checkpointer, .. }, .. } = self.flush.merges;
        relocator.move_while(&go_on)?;
        // A manifest that ends the file goes lower with the next checkpoint.
        for _ in 0..2 {
            if go_on() && checkpointer.manifest_ends_the_file() {
                checkpoints.write()?;
            }
        }
        Ok(())
    }

    /// Brings a file that is being closed down to what its records need. REQUIRES: nothing is in memory, and
    /// merges are held back.
    pub(super) fn shrink_for_closing(&self) -> Result<()> {
        let values = self.flush.merges.values;
        let merges = self.flush.config.background_merges;
        let dropped =
            if merges { self.merge_full_tiers().and_then(|()| self.drop_dead(true)) } else { Ok(()) };
        // If there was no room for that, holes may still be cut. A damaged file is left as it is.
        if !matches!(dropped, Ok(()) | Err(Error::NoSpace { .. })) {
            return dropped;
        }
        values.close_open()?;
        values.sync()?;
        let relocator = self.relocator(self.space().end()).for_nobody();
        self.fill_holes(relocator, || is_loose(self.space()))?;
        dropped
    }

    /// Merges full tiers, so that the next handle finds few levels: first in the tables that have most. What
    /// there is no room for, or is damaged, stays as it is. REQUIRES: merges are held back.
    fn merge_full_tiers(&self) -> Result<()> {
        let Merges { checkpoints, installer, .. } = self.flush.merges;
        let state = installer.state;
        let levels = |t: &Arc<TableState>| (t.levels.len(), t.id);
        let mut tables: Vec<(usize, u32)> = state.load().tables.with_runs().map(levels).collect();
        tables.sort_unstable_by_key(|&(levels, _)| Reverse(levels));
        let (mut spent, mut unnamed) = (0u64, 0u64);
        for (_, id) in tables {
            let mut too_much = 0;
            for _ in 0..ROUNDS_MAX {
                let sizes = self.flush.merges.sizes();
                let due = |t: &Arc<TableState>| pick_for_closing(t, &sizes, spent + too_much);
                let Some(job) = state.load().table(id).ok().and_then(due) else { break };
                let bytes: u64 = job.inputs.iter().map(|l| l.bytes()).sum();
                unnamed += bytes;
                match self.flush.merges.run(job) {
                    // A quarter may find room.
                    Err(Error::NoSpace { .. }) => too_much += bytes - bytes / 4,
                    Err(Error::Corrupt { .. }) => break,
                    Err(e) => return Err(e),
                    Ok(_) => spent += bytes,
                }
                if unnamed > STEP_BYTES {
                    unnamed = 0;
                    no_matter(checkpoints.write())?;
                }
            }
        }
        if unnamed > 0 { no_matter(checkpoints.write()) } else { Ok(()) }
    }

    /// Writes anew what keeps more dead bytes than may be. A table for which there is no room is left as it
    /// is. So is a damaged one, and the error comes when the others are done. REQUIRES: merges are held
    /// back.
    pub(super) fn drop_dead(&self, closing: bool) -> Result<()> {
        let Merges { store, values, checkpoints, installer, .. } = self.flush.merges;
        let (mut damaged, mut told) = (Vec::new(), Ok(()));
        let rounds = if store.room.is_tight() { TIGHT_ROUNDS_MAX } else { ROUNDS_MAX };
        for _ in 0..rounds {
            values.close_open()?;
            let excess = self.flush.merges.survey().excess();
            let mut ids: Vec<u32> = installer.state.load().tables.iter().map(|t| t.id).collect();
            ids.retain(|id| !damaged.contains(id));
            if excess.is_empty() {
                break;
            }
            let (mut bytes, mut jobs) = (0, 0);
            for id in ids {
                let Some(job) = installer.state.load().table(id).ok().and_then(|t| excess.job(t)) else {
                    continue;
                };
                if !closing {
                    installer.committer.check_open()?;
                }
                bytes += job.inputs.iter().map(|l| l.bytes()).sum::<u64>();
                match self.room_maker().merge_in_room(MergeJob {
                    closing,
                    together: true,
                    at_rest: !closing,
                    ..job
                }) {
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
                    checkpoints.write()?;
                }
            }
            checkpoints.write()?;
            if jobs == 0 {
                break;
            }
        }
        told
    }

    /// What idle time does when everything is merged, as long as `go_on` says so. It lets go of the log and
    /// of what is dead, and moves the tail. False if somebody else holds merges back. They do this work too,
    /// or more of it will be due when they end.
    pub(super) fn tidy(&self, class: usize, go_on: impl Fn() -> bool) -> Result<bool> {
        let merges = self.flush.merges;
        let background = merges.installer.background;
        let go_on = || go_on() && !background.stopping();
        for _ in 0..ROUNDS_MAX {
            let before = self.file_mark();
            let log_is_long = |_: &dyn Fn() -> bool| merges.survey().log_is_long(self.log.file_bytes());
            let Some(log_is_long) = background.look_at_runs(log_is_long) else { return Ok(false) };
            let space = self.space();
            if log_is_long || is_loose_for_idle_time(space) && self.log.keeps_end(space.end()) {
                self.rest(go_on)?;
            }
            self.drop_dead_aside(class, go_on)?;
            if go_on() && is_loose_for_idle_time(space) {
                let _paused = background.pause_merges();
                self.shrink_file(go_on)?;
            }
            self.room_maker().trim()?;
            if !go_on() || self.file_mark() == before {
                break;
            }
        }
        merges.store.room.forget_holes(go_on);
        Ok(true)
    }

    /// Flushes what is in memory, and leaves the log no more than it needs.
    fn rest(&self, go_on: impl Fn() -> bool) -> Result<()> {
        let Merges { values, checkpoints, installer: Installer { committer, .. }, .. } = self.flush.merges;
        self.flush.flush_while(go_on)?;
        self.flush.flusher.wait();
        committer.lock().clear_spares();
        self.log.rest(true)?;
        self.log.wait_for_making()?;
        values.close_open()?;
        checkpoints.write()
    }

    /// As `drop_dead`, once, beside other merges.
    fn drop_dead_aside(&self, class: usize, go_on: impl Fn() -> bool) -> Result<()> {
        let merges = self.flush.merges;
        let background = merges.installer.background;
        let look = background.look_at_runs(|may_look| {
            let may_look = || may_look() && go_on();
            let survey = merges.survey();
            let excess = survey.excess_while(&may_look);
            (survey.due(&excess), excess, may_look())
        });
        // A look that was ended early says little.
        let Some((due, excess, true)) = look else { return Ok(()) };
        if excess.is_empty() {
            return Ok(());
        }
        let go_on = || go_on() && !background.are_merges_paused();
        let mut told = Ok(());
        for id in due.into_iter().take_while(|_| go_on()) {
            if let Taken::Job(job) = merges.take_excess(class, &excess, id) {
                match merges.run_in_turn(class, MergeJob { at_rest: true, ..job }) {
                    Err(e @ Error::Corrupt { .. }) => told = told.and(Err(e)),
                    done => drop(done?),
                }
            }
        }
        merges.values.close_open()?;
        merges.checkpoints.write()?;
        told
    }

    /// What the file looks like, to see whether anything has changed.
    pub(super) fn file_mark(&self) -> [u64; 4] {
        let (commits, space) = (self.flush.counters.commits.load(Ordering::Relaxed), self.space());
        [commits, space.end(), space.free_bytes(), self.log.file_bytes()]
    }

    /// The part that moves up to so many bytes of the tail. REQUIRES: merges are held back.
    pub(super) fn relocator(&self, bytes: u64) -> Relocator<'a> {
        Relocator::new(&self.flush.merges, self.log, bytes)
    }

    fn room_maker(&self) -> RoomMaker<'a> {
        RoomMaker { flush: self.flush, log: self.log }
    }

    fn space(&self) -> &'a Space {
        &self.flush.merges.store.room.space
    }
}
