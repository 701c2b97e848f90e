//! What is known of the feed of changes in memory: which tables are fed, what a commit has for it, and how
//! much of it there is. (What is done with it stands in `engine/feed.rs`.)

use super::batch::Batch;
use super::gathered::Fed;
use super::history::{History, conflict_error};
use super::state::State;
use crate::base::error::{Error, Result};
use crate::base::sync::ArcSwap;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::format::feed::{FeedConfig, FeedContent, FeedMark};
use std::collections::VecDeque;
use std::sync::Arc;

/// So many marks for what is kept.
const MARKS: u64 = 64;
/// But one for so many bytes: opening reads how much there is since the last one.
const MARK_BYTES_MAX: u64 = 16 << 20;

/// Which tables are fed, for commits.
pub(crate) struct Feeding {
    /// Whether any is.
    is_on: AtomicBool,
    /// The file does not say yet that its feed begins anew.
    pub(super) begins_anew: AtomicBool,
    fed: ArcSwap<Fed>,
}

impl Feeding {
    pub(super) fn new() -> Feeding {
        let (is_on, begins_anew) = (AtomicBool::new(false), AtomicBool::new(false));
        Feeding { is_on, begins_anew, fed: ArcSwap::from_pointee(Fed::default()) }
    }

    /// Whether any table is fed.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    pub(crate) fn fed(&self) -> Arc<Fed> {
        self.fed.load_full()
    }

    /// What `f` makes of it.
    #[inline]
    pub(super) fn with<T>(&self, f: impl FnOnce(&Fed) -> T) -> T {
        f(&self.fed.load())
    }

    /// Whether a table is fed now.
    pub(crate) fn is_fed(&self, table: u32) -> bool {
        self.is_on() && self.fed.load().content_of(table).is_some()
    }

    /// Whether what a commit to a table tells is known without reading.
    pub(super) fn is_told_blind(&self, table: u32) -> bool {
        let is_blind = |content| content != FeedContent::Both;
        !self.begins_anew.load(Ordering::Acquire)
            && self.with(|fed| fed.content_of(table).is_some_and(is_blind))
    }

    /// REQUIRES: the commit lock, or that nobody commits yet.
    pub(super) fn set(&self, fed: Fed) {
        let is_on = !fed.config.tables.is_empty();
        self.fed.store(Arc::new(fed));
        self.is_on.store(is_on, Ordering::Release);
    }

    /// A conflict if what was gathered of a commit is not what the feed is to have: because of what is fed
    /// now, of what a table is called, or of what others have written meanwhile. The batch goes to where it
    /// can be gathered anew. REQUIRES: the commit lock.
    #[inline]
    pub(super) fn expect(&self, state: &State, history: &History, batch: &mut Batch) -> Result<()> {
        if batch.feed.is_none() && !self.is_on() {
            return Ok(());
        }
        match self.mismatch(state, history, batch) {
            None => Ok(()),
            Some(table) => {
                let error = conflict_error(state.name_in_conflict(table));
                batch.give_anew();
                Err(error)
            }
        }
    }

    fn mismatch(&self, state: &State, history: &History, batch: &Batch) -> Option<u32> {
        let (now, gathered) = (self.fed.load(), batch.feed.as_deref());
        let then = |table| gathered.and_then(|gathered| gathered.fed.content_of(table));
        let written = batch.parts.iter().map(|part| part.table);
        let told = batch.changes().iter().filter(|change| change.is_seen());
        let mut tables = written.chain(told.map(|change| change.id()));
        tables.find(|&table| then(table) != now.content_of(table)).or_else(|| {
            let gathered = gathered?;
            let is_other = |(id, name): &&(u32, Arc<str>)| {
                state
                    .tables
                    .get(*id)
                    .is_some_and(|table| !Arc::ptr_eq(&table.name, name) && table.name != *name)
            };
            let renamed = gathered.names.iter().find(is_other).map(|(id, _)| *id);
            renamed.or_else(|| history.conflict(gathered.reads.as_ref()?).map(|(table, _)| table))
        })
    }
}

/// What the commit lock guards of the feed: how much it is.
#[derive(Default)]
pub(crate) struct FeedTally {
    /// The bytes of all parts that there ever were.
    pub(crate) total_bytes: u64,
    /// What is gone.
    pub(crate) trimmed: FeedMark,
    /// Since then, the oldest first.
    pub(crate) marks: VecDeque<FeedMark>,
    /// The file does not say yet that all before this is gone, and of which life its feed is.
    pub(crate) begins_anew: bool,
    /// How it was before each commit of the group that is being made durable.
    pub(crate) undo: Vec<Undo>,
}

pub(crate) struct Undo {
    seq: u64,
    total_bytes: u64,
    /// If the commit has a mark.
    marks: Option<(FeedMark, VecDeque<FeedMark>, bool)>,
}

impl FeedTally {
    /// A group of durable commits begins.
    pub(super) fn begin_group(&mut self) {
        self.undo.clear();
    }

    /// Notes how it is before a commit of a group.
    pub(super) fn note(&mut self, seq: u64, has_mark: bool) {
        let marks = has_mark.then(|| (self.trimmed, self.marks.clone(), self.begins_anew));
        self.undo.push(Undo { seq, total_bytes: self.total_bytes, marks });
    }

    /// The commits from `seq` on found no room, and are none.
    pub(super) fn rollback_from(&mut self, seq: u64) {
        while let Some(undo) = self.undo.pop_if(|undo| undo.seq >= seq) {
            self.total_bytes = undo.total_bytes;
            if let Some((trimmed, marks, begins_anew)) = undo.marks {
                (self.trimmed, self.marks, self.begins_anew) = (trimmed, marks, begins_anew);
            }
        }
    }

    pub(super) fn is_mark_due(&self, config: &FeedConfig, now: &FeedMark) -> bool {
        let last = self.marks.back().unwrap_or(&self.trimmed);
        let bytes = now.total_bytes.saturating_sub(last.total_bytes);
        // Where the clock was set back, the time begins anew, and from now on it is kept so long.
        let age_ms = if now.time_ms < last.time_ms { u64::MAX } else { now.time_ms - last.time_ms };
        bytes >= (config.bytes_max / MARKS).clamp(1, MARK_BYTES_MAX)
            || config.age_max_ms > 0 && age_ms >= (config.age_max_ms / MARKS).max(1)
    }

    /// Adds a mark, and forgets those of what is too much or too old. Gives the newest of these. The last
    /// mark stays.
    pub(super) fn mark(&mut self, config: &FeedConfig, now: FeedMark) -> Option<FeedMark> {
        // What the clock has put into the future is as old as this.
        self.marks.iter_mut().for_each(|mark| mark.time_ms = mark.time_ms.min(now.time_ms));
        self.marks.push_back(now);
        let mut gone = None;
        while self.marks.len() > 1 {
            let Some(oldest) = self.marks.front() else { break };
            let is_too_much = now.total_bytes.saturating_sub(self.trimmed.total_bytes) > config.bytes_max;
            let age_ms = now.time_ms.saturating_sub(oldest.time_ms);
            if !is_too_much && (config.age_max_ms == 0 || age_ms <= config.age_max_ms) {
                break;
            }
            self.trimmed = *oldest;
            gone = self.marks.pop_front();
        }
        gone
    }
}

/// The error of a change that no part of the feed can hold.
pub(crate) fn check_part(bytes: &[u8]) -> Result<()> {
    let (found, limit) = (bytes.len() as u64, crate::base::limits::VALUE_BYTES_MAX);
    if found > limit { Err(Error::TooLarge { what: "change for the feed", found, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(commit: u64, total_bytes: u64, time_ms: u64) -> FeedMark {
        FeedMark { commit, total_bytes, time_ms }
    }

    #[test]
    fn a_clock_that_is_set_back_keeps_nothing_for_ever() {
        let config = FeedConfig { bytes_max: 1 << 30, age_max_ms: 6400, ..FeedConfig::default() };
        let mut tally = FeedTally::default();
        // A year ahead for a moment.
        let year = 365 * 86_400_000;
        assert_eq!(tally.mark(&config, mark(1, 10, year)), None);
        let back = mark(2, 20, 1000);
        assert!(tally.is_mark_due(&config, &back));
        assert_eq!(tally.mark(&config, back), None, "what was told just now is kept");
        assert!(!tally.is_mark_due(&config, &mark(3, 30, 1050)));
        assert_eq!(tally.mark(&config, mark(3, 30, 1200)), None);
        assert_eq!(tally.mark(&config, mark(4, 40, 7500)).map(|m| m.commit), Some(2));
    }

    #[test]
    fn what_found_no_room_is_not_counted() {
        let config = FeedConfig { bytes_max: 100, ..FeedConfig::default() };
        let mut tally = FeedTally { total_bytes: 90, ..FeedTally::default() };
        tally.mark(&config, mark(1, 90, 0));
        tally.begin_group();
        for seq in 2..5 {
            let now = mark(seq, tally.total_bytes + 90, 0);
            tally.note(seq, true);
            tally.total_bytes = now.total_bytes;
            assert_eq!(tally.mark(&config, now).map(|m| m.commit), Some(seq - 1));
        }
        tally.rollback_from(3);
        assert_eq!((tally.total_bytes, tally.trimmed.commit), (180, 1));
        assert_eq!(tally.marks, [mark(2, 180, 0)]);
        tally.rollback_from(3);
        tally.begin_group();
        tally.rollback_from(0);
        assert_eq!(tally.total_bytes, 180);
    }

    #[test]
    fn opening_reads_little_however_much_is_kept() {
        let config = FeedConfig { bytes_max: u64::MAX, ..FeedConfig::default() };
        let tally = FeedTally::default();
        assert!(tally.is_mark_due(&config, &mark(1, MARK_BYTES_MAX, 0)));
        assert!(!tally.is_mark_due(&config, &mark(1, MARK_BYTES_MAX - 1, 0)));
    }
}
