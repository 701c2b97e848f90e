//! A disk that is nearly full: who may still write, and how room is made.
//!
//! A part of the room is held back, the **reserve**. Commits that add something may not take it. So what was
//! acknowledged can always be flushed. And what frees room finds the room that it needs first: a remove is
//! logged and flushed before anything is free, and a merge writes before its inputs go. Commits that only
//! remove may take most of the reserve, flushes and checkpoints all of it.
//!
//! Merges leave what a flush needs, and a part of the reserve. How much they write before they free anything
//! is an estimate. A merge that finds no more than it must leave ends, and gives back what it has not put in
//! place. Merges of the background leave half of the reserve to merges that are to make room.
//!
//! Where there is not enough room, the caller who wants to commit makes some first. A flush makes the log
//! needless. Merges let go of what is known to be garbage. Only if that does not help is the commit refused.
//!
//! On such a disk the engine works as with a small memtable, a part of the room that is left. Runs, their
//! partitions and value segments are small then, and a merge writes little before its inputs go.
//!
//! Lock order: the lock of `Relief` comes before all others but those of followers and of changes of tables.

mod estimates;
mod gains;
mod reserve;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub(super) use reserve::{Admitted, Relief, tight_below};

use super::batch::Batch;
use super::compaction::install::Installer;
use super::compaction::pick::{MergeJob, pick_idle};
use super::flush::Flush;
use super::state::State;
use crate::base::error::{Error, Result};
use crate::base::sync::thread::sleep;
use crate::format::frame::TableChange;
use crate::log::Log;
use crate::space::Room;
use estimates::{alive_part, hidden_bytes, merge_need, parts};
use gains::{garbage, most_to_gain, tallest};
use reserve::{GAIN_BYTES_MIN, RUN_OVERHEAD_PART, TABLE_BYTES, Vain};
use std::cmp::Reverse;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Commits that free room leave this part of the reserve to flushes and merges.
const FREEING_PART: u64 = 8;
/// A durable commit takes a block of the log at least.
const COMMIT_BYTES_MIN: u64 = 8 << 10;
/// A flush is worth its while if it frees this part of the reserve.
const FLUSH_PART: u64 = 4;
/// If there is no room for a merge, so many parts of it are tried. The parts that free most come first.
const TRIES_MAX: usize = 4;
/// At most so many merges, whatever the estimates say.
const MERGES_MAX: usize = 64;
/// So many merges may gain nothing. The first may only find out which large values are dead. The next one
/// then moves the values beside them.
const MERGES_IN_VAIN: u32 = 2;
/// What has become needless is free when nobody looks at it any more. Room is waited for that: always for a
/// moment, and for a second if it is much. By then the background is done, on a busy machine too.
const LOOKS_MIN: u32 = 10;
const LOOKS_MAX: u32 = 500;
const LOOK_TIME: Duration = Duration::from_millis(2);

/// Says who may write on a disk that is nearly full, and makes room there.
pub(super) struct RoomMaker<'a> {
    pub(super) flush: Flush<'a>,
    pub(super) log: &'a Log,
}

impl<'a> RoomMaker<'a> {
    /// Lets a batch pass, or refuses it for want of room.
    #[cold]
    pub(super) fn admit_batch(&self, batch: &Batch) -> Result<Admitted<'a>> {
        let named = batch.changes().iter().filter_map(TableChange::name);
        let made: u64 = named.map(|name| name.len() as u64 + TABLE_BYTES).sum();
        let fed =
            batch.feed.iter().flat_map(|feed| &feed.parts).map(|(_, part)| part.len() as u64).sum::<u64>();
        let written = batch.parts.iter().map(|p| p.block.bytes() as u64 + p.ranges.bytes()).sum::<u64>();
        let bytes = made + fed + written;
        let frees = made == 0 && batch.only_deletes();
        let run_bytes = bytes + bytes / RUN_OVERHEAD_PART;
        // What is not to be durable at once needs no log if a flush comes first.
        let log_bytes = if batch.durable { run_bytes } else { 0 };
        let admitted = self.admit(run_bytes + log_bytes + COMMIT_BYTES_MIN, frees)?;
        if frees {
            let all = batch.parts.iter().any(|p| !p.ranges.is_empty());
            let removed = batch.parts.iter().map(|p| p.block.len() as u64).sum();
            self.relief().note_removes(if all { u64::from(u32::MAX) } else { removed });
        }
        Ok(admitted)
    }

    /// Lets so many bytes pass. `frees`: they make room in the end.
    ///
    /// # Errors
    /// `NoSpace` if the disk is full, or what making room meets.
    pub(super) fn admit(&self, bytes: u64, frees: bool) -> Result<Admitted<'a>> {
        let reserve = self.relief().reserve_bytes();
        if let Some(admitted) = self.fits(bytes, reserve) {
            return Ok(admitted);
        }
        let kept = if frees { reserve / FREEING_PART } else { reserve };
        let mut admitted =
            self.relieve(!frees, || self.fits(bytes, reserve))?.or_else(|| self.fits(bytes, kept));
        if admitted.is_none() && frees {
            // If this commit were refused, nothing could free room. So all is tried anew, and only what
            // flushes need is kept.
            *self.relief().lock() = Vain::default();
            admitted = self.relieve(true, || self.fits(bytes, kept))?.or_else(|| self.fits(bytes, 0));
        }
        admitted.ok_or(Error::NoSpace { during: "making room for a commit" })
    }

    fn fits(&self, bytes: u64, kept: u64) -> Option<Admitted<'a>> {
        self.relief().admit(bytes, kept, self.flush.merges.flush_need())
    }

    fn relief(&self) -> &'a Relief {
        self.flush.merges.relief
    }

    fn room(&self) -> &'a Room {
        &self.flush.merges.store.room
    }

    /// Makes room until there is what is wanted, or nothing more can be done. `patient`: it waits a moment
    /// for those who still look at what has become needless.
    fn relieve<T>(&self, patient: bool, wanted: impl Fn() -> Option<T>) -> Result<Option<T>> {
        let (relief, merges) = (self.relief(), self.flush.merges);
        let mut vain = relief.lock();
        // Others may have made room, in the file or beside it.
        self.room().look();
        if let Some(found) = wanted() {
            return Ok(Some(found));
        }
        if vain.mark == Some(self.room_mark()) {
            return Ok(None);
        }
        self.relieve_by_flush()?;
        // What merges have taken and not put in place is given back.
        let paused = merges.installer.background.pause_merges();
        if relief.room_has_changed(&vain) {
            (vain.garbage, vain.levels) = (0, 0);
        }
        let mut found = wanted();
        if found.is_none() && most_to_gain(&merges.survey(), relief, &vain).is_some() {
            self.relieve_by_merges(&mut vain)?;
            found = wanted();
            let survey = merges.survey();
            let left = || garbage(&survey, relief, &vain.damaged).map_or(0, |g| g.1);
            vain.garbage = if found.is_some() { 0 } else { left() };
            vain.levels = tallest(survey.state(), &vain.damaged).map_or(0, |t| t.1);
            relief.note_room(&mut vain);
        }
        drop(paused);
        if found.is_none() && patient {
            found = self.patiently(&wanted);
        }
        // What was found may be too little for the next caller, and there may be more to make.
        vain.mark = if found.is_some() { None } else { Some(self.room_mark()) };
        Ok(found)
    }

    /// Asks until those have ended who were looking at what is needless now: it is free then. Threads of the
    /// background are done soon. It waits longer only for as much as would help.
    fn patiently<T>(&self, wanted: &impl Fn() -> Option<T>) -> Option<T> {
        for look in 0..LOOKS_MAX {
            if let Some(found) = wanted() {
                return Some(found);
            }
            if look >= LOOKS_MIN && self.room().space.needless_bytes() < self.relief().gain_worth() {
                return None;
            }
            sleep(LOOK_TIME);
        }
        None
    }

    /// What is looked at to see whether anything has changed.
    fn room_mark(&self) -> [u64; 3] {
        let commits = self.flush.counters.commits.load(Ordering::Relaxed);
        [commits, self.room().taken_bytes(), self.room().bytes()]
    }

    /// Flushes, if much of the log or of memory goes by that, or what is in memory hides much.
    fn relieve_by_flush(&self) -> Result<()> {
        let Installer { state, committer, checkpointer, .. } = self.flush.merges.installer;
        let (relief, counters) = (self.relief(), self.flush.counters);
        let removes = relief.removes();
        let hidden = self.room().taken_bytes() as f64 / records(&state.load()) * removes as f64;
        let log_bytes = self.log.file_bytes() + counters.old_log_bytes.load(Ordering::Relaxed);
        let values = committer.lock().large_bytes;
        let memtable_bytes = self.flush.merges.pace.memtable_bytes();
        let gain = log_bytes.saturating_add(memtable_bytes).saturating_add(values) as f64 + hidden;
        if gain >= (relief.reserve_bytes() / FLUSH_PART).max(GAIN_BYTES_MIN) as f64 {
            let done = self.flush.flush();
            if done.is_ok() {
                relief.forget_removes(removes);
            }
            no_matter(done)?;
        }
        self.flush.flusher.wait();
        if checkpointer.has_pending() {
            no_matter(self.flush.merges.checkpoints.write())?;
        }
        Ok(())
    }

    /// Merges tables that hold more garbage than was left the last time, or many levels, as long as that
    /// helps. REQUIRES: merges of the background are held back.
    fn relieve_by_merges(&self, vain: &mut Vain) -> Result<()> {
        let merges = self.flush.merges;
        merges.installer.committer.lock().clear_spares();
        no_matter(merges.values.close_open())?;
        let (mut before, mut in_vain) = (None, 0);
        for _ in 0..MERGES_MAX {
            let most = most_to_gain(&merges.survey(), self.relief(), vain);
            let Some((table, levels)) = most else { break };
            let now = (self.room().taken_bytes(), levels.len());
            let helped = before.is_none_or(|(taken, runs)| now.0 < taken || now.1 < runs);
            (before, in_vain) = (Some(now), if helped { 0 } else { in_vain + 1 });
            if in_vain == MERGES_IN_VAIN {
                break;
            }
            match no_matter(self.merge_in_room(MergeJob::new(table, levels, true)).map(drop)) {
                Err(Error::Corrupt { .. }) => vain.damaged.push(table),
                done => done?,
            }
            no_matter(merges.checkpoints.write())?;
        }
        // What is behind the end is room for this file in any case.
        let _cut_later = self.trim();
        Ok(())
    }

    /// Merges a table into one level, by a job of all its runs. Where there is no room for that, lets runs
    /// join the oldest level unread. If it is not enough, merges some levels, so that less is to be done the
    /// next time. True if it was all. REQUIRES: merges are held back.
    pub(super) fn merge_in_room(&self, job: MergeJob) -> Result<bool> {
        let merges = self.flush.merges;
        let MergeJob { table, closing, together, at_rest, .. } = job;
        let drain = job.drain.clone();
        let mut done = merges.run(MergeJob { urgent: true, ..job });
        if matches!(done, Err(Error::NoSpace { .. })) && merges.installer.join_oldest(table)? {
            // The state is not held while the merge runs: what it makes needless is to be free.
            let (now, state) = (merges.store.clock.now_if_used(), merges.installer.state.load_full());
            let Some(t) = state.table(table).ok().filter(|t| {
                // Where one level is left, no record hides another one.
                !drain.is_empty() || pick_idle(t, true, now, |_| false).is_some()
            }) else {
                return Ok(true);
            };
            let job = MergeJob::new(table, t.levels.to_vec(), true);
            drop(state);
            done = merges.run(MergeJob { drain, closing, together, at_rest, urgent: true, ..job });
        }
        let mut tried = 0;
        while matches!(done, Err(Error::NoSpace { .. })) {
            // A part of it may have been done.
            let Ok(levels) = merges.installer.state.load().table(table).map(|t| t.levels.clone()) else {
                return Ok(true);
            };
            let jobs = parts(levels.len()).into_iter().map(|part| {
                let bottom = part.end == levels.len();
                MergeJob {
                    closing,
                    together,
                    at_rest,
                    urgent: true,
                    ..MergeJob::new(table, levels[part].to_vec(), bottom)
                }
            });
            let mut jobs: Vec<MergeJob> =
                jobs.filter(|job| merges.claim(job, alive_part(job)).is_some()).collect();
            // Merges that have room even if nothing goes come first.
            let risky = |job: &MergeJob| merges.claim(job, 1.0).is_none();
            jobs.sort_by_cached_key(|job| {
                (risky(job), Reverse(hidden_bytes(&job.inputs)), merge_need(job, 1.0))
            });
            let Some(job) = jobs.into_iter().nth(tried).filter(|_| tried < TRIES_MAX) else {
                return done.map(|_| false);
            };
            // The inputs keep their place in the file as long as the job holds them.
            drop(levels);
            tried += 1;
            done = merges.try_run(job).map(|_| false);
        }
        done
    }

    /// Cuts free space off the file's end, but on a tight disk what is held back there while commits may
    /// come.
    pub(super) fn trim(&self) -> Result<()> {
        let Installer { committer, checkpointer, .. } = self.flush.merges.installer;
        let holds_back = self.room().is_tight() && committer.check_open().is_ok();
        checkpointer.lower_spare();
        let held_back = || self.relief().reserve_bytes() + self.flush.merges.flush_need();
        self.room().cut(if holds_back { held_back() } else { 0 })
    }
}

/// How many records there are in the file, hidden ones too.
fn records(state: &State) -> f64 {
    let levels = state.tables.with_runs().flat_map(|t| t.levels.iter());
    levels.map(|l| l.records()).sum::<u64>().max(1) as f64
}

/// Ignores that the disk is full. What was to be done may be left undone.
pub(super) fn no_matter(done: Result<()>) -> Result<()> {
    match done {
        Err(Error::NoSpace { .. }) => Ok(()),
        done => done,
    }
}
