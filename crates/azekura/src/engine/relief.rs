//! A disk that is nearly full: who may still write, and how room is made.
//!
//! A part of the room is held back, the **reserve**. Commits that add something may not take it. So what was
//! acknowledged can always be flushed. And what frees room finds the room that it needs first: a remove is
//! logged and flushed, a merge writes before its inputs go. Commits that only remove may take most of the
//! reserve, flushes and checkpoints all of it.
//!
//! Merges leave what a flush needs, and a part of the reserve. How much they write before they free
//! anything is an estimate. A merge that finds no more than it must leave ends, and gives back what it has
//! not put in place. Those of the background leave half of the reserve to those that are to make room.
//!
//! Where there is not enough room, the caller who wants to commit makes some first: by a flush, after which
//! the log is needless, and by merging what is known to hold garbage. Only if that does not help is the
//! commit refused.
//!
//! On such a disk the engine works as with a small memtable, a part of the room that is left. Runs, their
//! partitions and value segments are small then, and a merge writes little before its inputs go.
//!
//! Lock order: the lock of `Relief` comes before all others but that of who changes tables.

mod estimates;

use estimates::{alive_part, hidden_bytes, merge_need, parts};

use super::Engine;
use super::batch::Batch;
use super::checkpoint::Purpose;
use super::compaction::output::partition_bytes;
use super::compaction::pick::MergeJob;
use super::state::{Level, TableState};
use super::waste::Sparse;
use crate::base::error::{Error, Result};
use crate::base::sync::thread::sleep;
use crate::base::sync::{Mutex, Rank};
use crate::engine::config::Config;
use crate::format::block::Tag;
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The reserve is this part of what the file holds.
const RESERVE_PART: u64 = 6;
/// But no less, and for a large file no more than so many memtables, or so many bytes.
const RESERVE_BYTES_MIN: u64 = 64 << 10;
const RESERVE_MEMTABLES_MAX: u64 = 6;
const RESERVE_BYTES_MAX: u64 = 16 << 20;
/// Merges leave the first part of it, and those that are to make room the second. What flushes take must be
/// in one piece, and merges leave small ones.
const MERGES_PART: u64 = 2;
const URGENT_PART: u64 = 16;
/// What frees leaves this part of it to flushes and merges.
const FREEING_PART: u64 = 8;
/// A record needs more in a run than in memory (filter, fence, the rest of a page): this part of it.
const RUN_OVERHEAD_PART: u64 = 4;
/// Any flush needs a manifest and a segment of the log. For each table it needs a run, or a place in the
/// manifest.
const FLUSH_BYTES_MIN: u64 = 64 << 10;
const TABLE_RUN_BYTES: u64 = 12 << 10;
const TABLE_BYTES: u64 = 64;
/// A durable commit takes a block of the log at least.
const COMMIT_BYTES_MIN: u64 = 8 << 10;
/// A flush is worth its while if it frees this part of the reserve.
const FLUSH_PART: u64 = 4;
/// Merges are, if this part of what the file holds is garbage.
const GARBAGE_PART: u64 = 32;
const GAIN_BYTES_MIN: u64 = 64 << 10;
/// What a delete takes in a run, about.
const DELETE_BYTES: u64 = 8;
/// A full disk is left with no more levels of a table than this, or more than were left the last time.
const LEVELS_MANY: usize = 6;
/// If there is no room for a merge, so many parts of it are tried. Those come first that free most.
const TRIES_MAX: usize = 4;
/// So many side by side are a few.
const FEW_MAX: usize = 4;
/// So many merges at most, whatever the estimates say.
const MERGES_MAX: usize = 64;
/// The first may only find out which large values are dead, and the next one then moves those beside them.
const MERGES_IN_VAIN: u32 = 2;
/// What has become needless is free when nobody looks at it any more. That is always waited for a moment, and
/// for a second where it is much. By then the background is done, on a busy machine too.
const LOOKS_MIN: u32 = 10;
const LOOKS_MAX: u32 = 500;
const LOOK_TIME: Duration = Duration::from_millis(2);
/// On a tight disk a value segment's values are moved when this part of it is dead, and no less than this.
const TIGHT_DEAD_PART: u64 = 8;
const TIGHT_DEAD_BYTES_MIN: u64 = 16 << 10;

fn reserve_bytes_max(config: &Config) -> u64 {
    (config.memtable_bytes * RESERVE_MEMTABLES_MAX).max(RESERVE_BYTES_MAX)
}

/// With less room than this a disk is tight. It is the reserve, and what may be written before anybody looks
/// again.
pub(super) fn tight_below(config: &Config) -> u64 {
    reserve_bytes_max(config) + 4 * config.memtable_bytes + (64 << 20)
}

/// What was left when room was looked for in vain, so that it is not tried again and again.
#[derive(Default)]
struct Vain {
    /// Nothing has changed as long as this is the same.
    mark: [u64; 3],
    /// So much garbage was left. Merges are tried again when there is more.
    garbage: u64,
    /// And so many levels of a table.
    levels: usize,
    /// Tables that could not be read. That is nothing to those who commit to others, and keeps no room from
    /// them.
    damaged: Vec<u32>,
}

/// Who may write on a nearly full disk, and who makes room there.
pub(super) struct Relief {
    /// Held while room is made.
    vain: Mutex<Vain>,
    /// What commits that are under way may come to take.
    admitted: AtomicU64,
    /// What merges that are under way may.
    merging: AtomicU64,
    /// How many records have been removed since the last flush for that.
    removes: AtomicU64,
}

impl Default for Relief {
    fn default() -> Relief {
        Relief {
            vain: Mutex::ranked(Rank::Relieving, Vain::default()),
            admitted: AtomicU64::new(0),
            merging: AtomicU64::new(0),
            removes: AtomicU64::new(0),
        }
    }
}

/// Bytes that somebody was let pass with. They count here until this is dropped: then they count elsewhere.
pub(super) struct Admitted<'a> {
    count: &'a AtomicU64,
    bytes: u64,
}

impl<'a> Admitted<'a> {
    /// Also gives what others were let pass with.
    fn new(count: &'a AtomicU64, bytes: u64) -> (Admitted<'a>, u64) {
        (Admitted { count, bytes }, if bytes > 0 { count.fetch_add(bytes, Ordering::Relaxed) } else { 0 })
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.count.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

impl Engine {
    /// Whether somebody waits for merges to end on a nearly full disk: a commit that needs room, for one.
    pub(super) fn is_held_up(&self) -> bool {
        self.background.are_merges_paused() && self.room.is_tight()
    }

    pub(super) fn reserve_bytes(&self) -> u64 {
        let max = reserve_bytes_max(&self.config);
        (self.room.taken_bytes() / RESERVE_PART).clamp(RESERVE_BYTES_MIN.min(max), max)
    }

    /// What a flush of all that is in memory may need.
    pub(super) fn flush_need(&self) -> u64 {
        let bytes = self.pace.memtable_bytes();
        let tables = self.state.load().tables.len() as u64;
        let runs = (tables * TABLE_RUN_BYTES).min(self.reserve_bytes() / 2);
        bytes + bytes / RUN_OVERHEAD_PART + FLUSH_BYTES_MIN + runs + tables * TABLE_BYTES
    }

    /// Lets a batch pass, or refuses it for want of room.
    #[inline(always)]
    pub(super) fn admit_batch(&self, batch: &Batch) -> Result<Admitted<'_>> {
        if self.room.is_tight() {
            self.admit_measured(batch)
        } else {
            Ok(Admitted { count: &self.relief.admitted, bytes: 0 })
        }
    }

    #[cold]
    fn admit_measured(&self, batch: &Batch) -> Result<Admitted<'_>> {
        let made: u64 = batch.created.iter().map(|t| t.name.len() as u64 + TABLE_BYTES).sum();
        let bytes = made + batch.parts.iter().map(|p| p.block.bytes() as u64 + p.ranges.bytes()).sum::<u64>();
        let only_deletes =
            || batch.parts.iter().all(|p| (0..p.block.len()).all(|i| p.block.tag(i) == Tag::Tombstone));
        let frees = batch.created.is_empty() && only_deletes();
        let run_bytes = bytes + bytes / RUN_OVERHEAD_PART;
        // What is not to be durable at once needs no log if a flush comes first.
        let log_bytes = if batch.durable { run_bytes } else { 0 };
        let admitted = self.admit(run_bytes + log_bytes + COMMIT_BYTES_MIN, frees)?;
        if frees {
            let all = batch.parts.iter().any(|p| !p.ranges.is_empty());
            let removed = batch.parts.iter().map(|p| p.block.len() as u64).sum();
            self.relief.removes.fetch_add(if all { u64::from(u32::MAX) } else { removed }, Ordering::Relaxed);
        }
        Ok(admitted)
    }

    /// Lets a large value pass that will be stored.
    pub(super) fn admit_value(&self, len: usize) -> Result<Admitted<'_>> {
        let bytes = if self.room.is_tight() { len as u64 } else { 0 };
        if bytes > 0 {
            self.admit(bytes, false)
        } else {
            Ok(Admitted { count: &self.relief.admitted, bytes })
        }
    }

    /// Lets so many bytes pass. `frees`: they make room in the end.
    ///
    /// # Errors
    /// `NoSpace` if the disk is full, or what making room meets.
    fn admit(&self, bytes: u64, frees: bool) -> Result<Admitted<'_>> {
        let reserve = self.reserve_bytes();
        if let Some(admitted) = self.fits(bytes, reserve) {
            return Ok(admitted);
        }
        let kept = if frees { reserve / FREEING_PART } else { reserve };
        let mut admitted =
            self.relieve(!frees, || self.fits(bytes, reserve))?.or_else(|| self.fits(bytes, kept));
        if admitted.is_none() && frees {
            // To be refused here is to be stuck: all is tried anew, and what flushes need is all that is
            // kept.
            *self.relief.vain.lock() = Vain::default();
            admitted = self.relieve(true, || self.fits(bytes, kept))?.or_else(|| self.fits(bytes, 0));
        }
        admitted.ok_or(Error::NoSpace { during: "making room for a commit" })
    }

    /// Whether there is room for so many bytes, beside what is kept, what memory needs and what others were
    /// admitted with.
    fn fits(&self, bytes: u64, kept: u64) -> Option<Admitted<'_>> {
        let (admitted, others) = Admitted::new(&self.relief.admitted, bytes);
        let need = kept.saturating_add(self.flush_need()).saturating_add(others).saturating_add(bytes);
        self.room.secure(need).then_some(admitted)
    }

    /// Makes room until there is what is wanted, or nothing more can be done. `patient`: it waits a moment
    /// for those who still look at what has become needless.
    fn relieve<T>(&self, patient: bool, wanted: impl Fn() -> Option<T>) -> Result<Option<T>> {
        let mut vain = self.relief.vain.lock();
        // Others may have made some, in the file or beside it.
        self.room.look();
        if let Some(found) = wanted() {
            return Ok(Some(found));
        }
        if vain.mark == self.room_mark() {
            return Ok(None);
        }
        if vain.mark[2].abs_diff(self.room.bytes()) >= self.gain_worth() {
            // What found no room then may find some, or have less to do.
            (vain.garbage, vain.levels) = (0, 0);
        }
        self.relieve_by_flush()?;
        // What merges have taken and not put in place comes back.
        drop(self.background.pause_merges());
        let mut found = wanted();
        if found.is_none() && self.most_to_gain(&vain).is_some() {
            self.relieve_by_merges(&mut vain)?;
            found = wanted();
            vain.garbage = self.garbage(&vain.damaged).map_or(0, |g| g.1).min(if found.is_some() {
                0
            } else {
                u64::MAX
            });
            vain.levels = self.tallest(&vain.damaged).map_or(0, |t| t.1);
        }
        if found.is_none() && patient {
            found = self.patiently(&wanted);
        }
        vain.mark = self.room_mark();
        Ok(found)
    }

    /// Asks until those have ended who were looking at what is needless now: it is free then. Threads of the
    /// background are done soon. It waits longer only for as much as would help.
    fn patiently<T>(&self, wanted: &impl Fn() -> Option<T>) -> Option<T> {
        for look in 0..LOOKS_MAX {
            if let Some(found) = wanted() {
                return Some(found);
            }
            if look >= LOOKS_MIN && self.room.needless_bytes() < self.gain_worth() {
                return None;
            }
            sleep(LOOK_TIME);
        }
        None
    }

    /// What is looked at to see whether anything has changed.
    fn room_mark(&self) -> [u64; 3] {
        [self.counters.commits.load(Ordering::Relaxed), self.room.taken_bytes(), self.room.bytes()]
    }

    /// Flushes, if much of the log or of memory goes by that, or what is in memory hides much.
    fn relieve_by_flush(&self) -> Result<()> {
        let removes = self.relief.removes.load(Ordering::Relaxed);
        let hidden = self.room.taken_bytes() as f64 / self.records() * removes as f64;
        let log_bytes = self.log.file_bytes() + self.counters.old_log_bytes.load(Ordering::Relaxed);
        let values = self.committer.lock().large_bytes;
        let gain =
            log_bytes.saturating_add(self.pace.memtable_bytes()).saturating_add(values) as f64 + hidden;
        if gain >= (self.reserve_bytes() / FLUSH_PART).max(GAIN_BYTES_MIN) as f64 {
            let done = self.flush();
            if done.is_ok() {
                self.relief.removes.fetch_sub(removes, Ordering::Relaxed);
            }
            no_matter(done)?;
        }
        self.flusher.wait();
        if self.checkpointer.has_pending() {
            no_matter(self.checkpoint(Purpose::Plain))?;
        }
        Ok(())
    }

    /// How many records there are in the file, hidden ones too.
    fn records(&self) -> f64 {
        let state = self.state.load();
        let records: u64 = state.tables.with_runs().flat_map(|t| t.levels.iter()).map(|l| l.records()).sum();
        records.max(1) as f64
    }

    /// Merges tables that hold more garbage than was left the last time, or many levels, as long as that
    /// helps.
    fn relieve_by_merges(&self, vain: &mut Vain) -> Result<()> {
        self.committer.lock().clear_spares();
        no_matter(self.values.close_open())?;
        let _paused = self.background.pause_merges();
        let (mut before, mut in_vain) = (None, 0);
        for _ in 0..MERGES_MAX {
            let Some((table, levels)) = self.most_to_gain(vain) else { break };
            let now = (self.room.taken_bytes(), levels.len());
            let helped = before.is_none_or(|(taken, runs)| now.0 < taken || now.1 < runs);
            (before, in_vain) = (Some(now), if helped { 0 } else { in_vain + 1 });
            if in_vain == MERGES_IN_VAIN {
                break;
            }
            match no_matter(self.merge_in_room(MergeJob::new(table, levels, true)).map(drop)) {
                Err(Error::Corrupt { .. }) => vain.damaged.push(table),
                done => done?,
            }
            no_matter(self.checkpoint(Purpose::Plain))?;
        }
        // What is behind the end is room for this file in any case.
        let _cut_later = self.trim();
        Ok(())
    }

    /// The table with the most garbage, if that is much more than was left the last time, or else the one
    /// with the most levels, if these are many: the more, the more room a merge needs that frees anything.
    fn most_to_gain(&self, vain: &Vain) -> Option<(u32, Vec<Arc<Level>>)> {
        let dirty =
            self.garbage(&vain.damaged).filter(|g| g.1 >= vain.garbage + self.gain_worth()).map(|g| g.0);
        let tall = || self.tallest(&vain.damaged).filter(|t| t.1 > vain.levels + LEVELS_MANY).map(|t| t.0);
        let id = dirty.or_else(tall)?;
        self.state.load().table(id).ok().map(|t| (id, t.levels.to_vec()))
    }

    /// The table with the most levels, and how many, but for those that are damaged.
    fn tallest(&self, damaged: &[u32]) -> Option<(u32, usize)> {
        let state = self.state.load();
        state
            .tables
            .with_runs()
            .filter(|t| !damaged.contains(&t.id))
            .map(|t| (t.id, t.levels.len()))
            .max_by_key(|t| t.1)
    }

    /// Merges a table into one level, by a job of all its runs. Where there is no room for that, merges some of
    /// them, so that less is to be done the next time. True if it was all. REQUIRES: merges are held back.
    pub(super) fn merge_in_room(&self, job: MergeJob) -> Result<bool> {
        let (table, closing, together) = (job.table, job.closing, job.together);
        let mut done = self.run_job(MergeJob { urgent: true, ..job });
        let mut tried = 0;
        while matches!(done, Err(Error::NoSpace { .. })) {
            // A part of it may have been done.
            let Ok(levels) = self.state.load().table(table).map(|t| t.levels.clone()) else {
                return Ok(true);
            };
            let jobs = parts(levels.len()).into_iter().map(|part| {
                let bottom = part.end == levels.len();
                MergeJob {
                    closing,
                    together,
                    urgent: true,
                    ..MergeJob::new(table, levels[part].to_vec(), bottom)
                }
            });
            let mut jobs: Vec<MergeJob> =
                jobs.filter(|job| self.claim_for(job, alive_part(job)).is_some()).collect();
            // Those for which there is room whatever goes come first.
            let risky = |job: &MergeJob| self.claim_for(job, 1.0).is_none();
            jobs.sort_by_cached_key(|job| {
                (risky(job), Reverse(hidden_bytes(&job.inputs)), merge_need(job, 1.0))
            });
            let Some(job) = jobs.into_iter().nth(tried).filter(|_| tried < TRIES_MAX) else {
                return done.map(|_| false);
            };
            // Its inputs keep their place in the file as long as they are held.
            drop(levels);
            tried += 1;
            done = self.try_job(job).map(|_| false);
        }
        done
    }

    /// Lets a merge pass that is likely to find room, if such a part of what it reads is alive: one that ends
    /// half-way takes more than it gives back.
    pub(super) fn claim_for(&self, job: &MergeJob, alive: f64) -> Option<Admitted<'_>> {
        if !self.room.is_tight() {
            return Some(Admitted { count: &self.relief.merging, bytes: 0 });
        }
        let need = merge_need(job, alive) + partition_bytes(self.flush_bytes(), 0, false) / 2;
        let (claim, others) = Admitted::new(&self.relief.merging, need);
        (need.saturating_add(others) <= self.merges_room(job.urgent)).then_some(claim)
    }

    /// What merges may take.
    fn merges_room(&self, urgent: bool) -> u64 {
        let held_back = self.reserve_bytes() / if urgent { URGENT_PART } else { MERGES_PART };
        self.room.bytes().saturating_sub(self.flush_need() + held_back)
    }

    /// Whether a merge that is under way has left what it must.
    pub(super) fn leaves_room(&self, urgent: bool) -> bool {
        !self.room.is_tight() || self.merges_room(urgent) > 0
    }

    /// Cuts free space off the file's end, but on a tight disk what is held back there while commits may
    /// come.
    pub(super) fn trim(&self) -> Result<()> {
        let holds_back = self.room.is_tight() && self.committer.check_open().is_ok();
        self.checkpointer.lower_spare();
        self.room.cut(if holds_back { self.reserve_bytes() + self.flush_need() } else { 0 })
    }

    fn gain_worth(&self) -> u64 {
        (self.room.taken_bytes() / GARBAGE_PART).max(GAIN_BYTES_MIN)
    }

    /// The table with the most garbage, and how much that is, if there is much, but for those that are
    /// damaged.
    fn garbage(&self, damaged: &[u32]) -> Option<(u32, u64)> {
        let worth = self.gain_worth();
        let mut sparse = self.sparse_segments();
        sparse.retain(|s| self.is_sparse(s));
        let of = |t: &TableState| {
            let refers = |id| t.levels.iter().any(|l| l.refers_to(id));
            // Deletes that have nothing to hide go too.
            let purged = t.levels.last().map_or(0, |l| l.deletes() * DELETE_BYTES);
            let dead: u64 = sparse.iter().filter(|s| refers(s.id)).map(|s| s.dead_bytes).sum();
            hidden_bytes(&t.levels).saturating_add(purged).saturating_add(dead)
        };
        let state = self.state.load();
        let whole = state.tables.with_runs().filter(|t| !damaged.contains(&t.id));
        let most = whole.map(|t| (t.id, of(t))).max_by_key(|&(_, bytes)| bytes);
        most.filter(|&(_, bytes)| bytes >= worth)
    }

    /// Whether a value segment is worth emptying where the disk is tight.
    pub(super) fn is_sparse(&self, s: &Sparse) -> bool {
        s.dead_bytes >= (s.bytes / TIGHT_DEAD_PART).max(TIGHT_DEAD_BYTES_MIN)
    }

    /// How much of what is alive in value segments may be copied before these are free.
    pub(super) fn draining_room(&self) -> u64 {
        if self.room.is_tight() { self.room.bytes().saturating_sub(self.flush_need()) / 2 } else { u64::MAX }
    }
}

/// A full disk is no matter: what was to be done may as well be left, and there is no room for it.
pub(super) fn no_matter(done: Result<()>) -> Result<()> {
    match done {
        Err(Error::NoSpace { .. }) => Ok(()),
        done => done,
    }
}
