//! What orders commits: the commit lock, and the durable commits that wait for it. (What follows a commit
//! outside the lock is in `engine/chunks.rs`.)
//!
//! The committer knows neither the log nor the disk. Its callers give it the state that readers see.

use super::guarded::Commit;
use super::rate::WriteRate;
use super::turn::OneAtATime;
use super::waiting::Waiting;
use crate::base::error::{Error, Result};
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::sync::{ArcSwap, Mutex, MutexGuard, Rank};
use crate::engine::state::State;
use std::sync::Arc;

/// Orders commits.
pub(crate) struct Committer {
    /// Numbers, memtables, and every change of the state.
    commit: Mutex<Commit>,
    /// Durable commits that wait for a group.
    pub(in crate::engine) waiting: Mutex<Waiting>,
    /// One thread at a time merges small chunks.
    pub(in crate::engine) chunk_merges: OneAtATime,
    pub(in crate::engine) rate: WriteRate,
    /// Set under the commit lock when closing begins. Nothing is committed from then on.
    closed: AtomicBool,
}

impl Committer {
    pub(in crate::engine) fn new(next_seq: u64, memtable_bytes: usize) -> Committer {
        Committer {
            commit: Mutex::ranked(Rank::Commit, Commit::new(next_seq, memtable_bytes)),
            waiting: Mutex::ranked(Rank::Waiting, Waiting::default()),
            chunk_merges: OneAtATime::default(),
            rate: WriteRate::new(),
            closed: AtomicBool::new(false),
        }
    }

    pub(in crate::engine) fn lock(&self) -> MutexGuard<'_, Commit> {
        self.commit.lock()
    }

    #[cfg(all(test, not(loom)))]
    pub(in crate::engine) fn is_locked(&self) -> bool {
        self.commit.is_locked()
    }

    /// An error once closing has begun. REQUIRES: the commit lock, else a commit may still follow.
    pub(in crate::engine) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Refuses all commits from now on. Every earlier one has ended.
    pub(in crate::engine) fn close(&self) {
        let _commit = self.lock();
        self.closed.store(true, Ordering::Release);
    }

    /// Takes commits again: closing has failed.
    pub(in crate::engine) fn reopen(&self) {
        self.closed.store(false, Ordering::Release);
    }

    /// A snapshot for a transaction that reads before it writes: later commits leave a trace.
    /// The number is the snapshot's, and ends with `untrack_snapshot`. The state itself may show more later.
    pub(crate) fn track_snapshot(&self, state: &ArcSwap<State>) -> (Arc<State>, u64) {
        let mut commit = self.lock();
        let state = state.load_full();
        let seq = state.visible();
        commit.history.track_snapshot(seq);
        (state, seq)
    }

    /// Ends what `track_snapshot` began.
    pub(crate) fn untrack_snapshot(&self, snapshot: u64) {
        self.lock().history.untrack_snapshot(snapshot);
    }
}
