//! What is known of the feed of changes in memory: which tables are fed, what a commit has for it, and how much
//! of it there is. (What is done with it stands in `engine/feed.rs`.)

use super::history::conflict_error;
use super::state::State;
use crate::base::error::Result;
use crate::base::sync::ArcSwap;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::format::block::Tag;
use crate::format::feed::{FeedConfig, FeedContent, FeedMark};
use crate::values::Segment;
use std::collections::VecDeque;
use std::sync::Arc;

/// So many marks for what is kept.
const MARKS: u64 = 64;

/// Which tables are fed, for commits.
pub(crate) struct Feeding {
    /// Whether any is.
    is_on: AtomicBool,
    fed: ArcSwap<Fed>,
}

/// What is fed, and the hidden table that gets it.
#[derive(Default)]
pub(crate) struct Fed {
    /// None: there never was a feed.
    pub(crate) table: Option<u32>,
    pub(crate) config: FeedConfig,
}

impl Fed {
    pub(super) fn content_of(&self, table: u32) -> Option<FeedContent> {
        self.config.tables.get(&table).map(|table| table.content)
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
}

impl Feeding {
    pub(super) fn new() -> Feeding {
        Feeding { is_on: AtomicBool::new(false), fed: ArcSwap::from_pointee(Fed::default()) }
    }

    /// Whether any table is fed.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    pub(crate) fn fed(&self) -> Arc<Fed> {
        self.fed.load_full()
    }

    /// REQUIRES: the commit lock, or that nobody commits yet.
    pub(super) fn set(&self, fed: Fed) {
        let is_on = !fed.config.tables.is_empty();
        self.fed.store(Arc::new(fed));
        self.is_on.store(is_on, Ordering::Release);
    }

    /// A conflict if one of the tables of a commit is fed, or was, and its changes were gathered by the other.
    /// REQUIRES: the commit lock.
    pub(super) fn expect(
        &self,
        state: &State,
        gathered: Option<&Gathered>,
        tables: impl IntoIterator<Item = u32>,
    ) -> Result<()> {
        if gathered.is_none() && !self.is_on() {
            return Ok(());
        }
        let now = self.fed.load();
        for table in tables {
            if gathered.and_then(|gathered| gathered.fed.content_of(table)) != now.content_of(table) {
                return Err(conflict_error(state.name_in_conflict(table)));
            }
        }
        Ok(())
    }
}

/// The changes of a commit.
pub(crate) struct Gathered {
    /// By what they were gathered.
    pub(in crate::engine) fed: Arc<Fed>,
    pub(in crate::engine) time_ms: u64,
    /// Each part, or the reference to it.
    pub(in crate::engine) parts: Vec<(Tag, Vec<u8>)>,
    pub(in crate::engine) segments: Vec<Arc<Segment>>,
    pub(in crate::engine) bytes: u64,
}

impl FeedTally {
    pub(super) fn is_mark_due(&self, config: &FeedConfig, now: &FeedMark) -> bool {
        let last = self.marks.back().unwrap_or(&self.trimmed);
        let bytes = now.total_bytes.saturating_sub(last.total_bytes);
        let age_ms = now.time_ms.saturating_sub(last.time_ms);
        bytes >= config.bytes_max / MARKS || config.age_max_ms > 0 && age_ms >= config.age_max_ms / MARKS
    }

    /// Forgets marks of what is too much or too old. Gives the newest of these. The last mark stays.
    pub(super) fn trim(&mut self, config: &FeedConfig, now: &FeedMark) -> Option<FeedMark> {
        let mut gone = None;
        while self.marks.len() > 1 {
            let Some(oldest) = self.marks.front() else { break };
            let is_too_much = now.total_bytes - self.trimmed.total_bytes > config.bytes_max;
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
