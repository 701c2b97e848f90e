//! Committing.
//!
//! What one commit can do alone was done before: sorting, copying, storing large values. Then it goes through
//! these steps, in `commit_one` (`steps.rs`):
//!
//! 1. `sequence` (`order.rs`): conflicts, then a number;
//! 2. `log_batch` (`queue.rs`): the log's queue gets a copy, or a reference;
//! 3. `apply` (`apply.rs`): the memtable gets the records, and readers see them all at once. (`apply_small`,
//!    of an eventual commit with one small part, does both: the log's queue refers to the memtable);
//! 4. `rotate_if_full` (`engine/freeze.rs`): a full memtable is frozen, to be flushed.
//!
//! The commit lock is held meanwhile, so commits come one after the other. Durable commits form groups
//! (`group.rs`). A group goes through the same steps, with one sync of the log between the second and the
//! third. So nothing is visible before it is logged, and no durable commit before it is durable.

mod apply;
mod committer;
mod group;
mod guarded;
mod order;
mod queue;
mod rate;
mod steps;
mod sync;
mod turn;
mod waiting;

pub(super) use committer::Committer;
pub(super) use guarded::Commit;
pub(super) use rate::WriteRate;
pub(super) use steps::CommitSteps;
pub(super) use sync::Syncer;

use queue::may_be_told;

use super::Engine;
use super::batch::Batch;
use super::within;
use crate::base::error::Result;
use crate::format::feed::FeedContent;
use crate::format::operand::Operator;

impl Engine {
    /// Commits a batch and gives its sequence number.
    pub(crate) fn commit(&self, mut batch: Batch) -> Result<u64> {
        self.check_writable()?;
        self.committer.check_open()?;
        // Without a thread that writes the log later, the commit writes it.
        batch.durable |= !self.look_after();
        if self.log.is_long() {
            self.syncer().shorten_log()?;
        }
        let _admitted = self.admit_batch(&batch)?;
        self.pace_writer(&batch)?;
        self.counters.note_commit(batch.user_bytes);
        let done = if batch.durable { self.commit_durable(batch) } else { self.commit_eventual(batch) };
        if let Ok(seq) = done {
            within::note(self, seq);
        }
        done
    }

    fn commit_eventual(&self, batch: Batch) -> Result<u64> {
        if self.log.is_full() {
            // The queue is full. What waits becomes durable before more is promised to be durable soon.
            self.sync()?;
        }
        let mut commit = self.committer.lock();
        self.poison.check()?;
        let armed = self.poison.armed("committing");
        let done = self.commit_steps().commit_one(&mut commit, batch);
        armed.disarm();
        self.committer.end(commit, &self.state, &self.background);
        done
    }

    /// Commits a small batch to a table of which the feed is told. None: nothing was committed. What it tells
    /// has to be gathered before; that is seen here, or, now and then, under the lock.
    pub(crate) fn commit_told(&self, batch: &mut Batch) -> Result<Option<u64>> {
        self.check_writable()?;
        self.committer.check_open()?;
        let is_told = may_be_told(batch).is_some_and(|part| self.feed.is_told_blind(part.table));
        if !is_told || self.store.room.is_tight() || !self.look_after() {
            return Ok(None);
        }
        if self.log.is_long() {
            self.syncer().shorten_log()?;
        }
        let _admitted = self.admit_batch(batch)?;
        let user_bytes = batch.user_bytes;
        self.pace_writer(batch)?;
        if self.log.is_full() {
            return Ok(None);
        }
        let mut commit = self.committer.lock();
        self.poison.check()?;
        let armed = self.poison.armed("committing");
        let done = self.commit_steps().commit_told(&mut commit, batch, self.store.hash_seed);
        armed.disarm();
        self.committer.end(commit, &self.state, &self.background);
        if let Ok(Some(seq)) = done {
            self.counters.note_commit(user_bytes);
            within::note(self, seq);
        }
        done
    }

    /// Whether an operand may be added to a table without a look at the value. The caller has looked whether
    /// the table has indexes or records that expire.
    pub(crate) fn takes_blind(&self, table: u32, operator: Operator) -> bool {
        let tells_values = || self.feed.fed().content_of(table).is_some_and(|told| told != FeedContent::Keys);
        // A large value that gets longer is written anew by a flush, for which a tight disk may have no room.
        // A put asks first.
        let is_for_room = || operator.is_long() && self.store.room.is_tight();
        self.catalog.operators.takes(table, operator)
            && !(self.feed.is_on() && tells_values())
            && !is_for_room()
    }
}
