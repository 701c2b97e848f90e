//! Durable commits: those that wait together share one sync, and one of them does the work for all.

use super::queue::Ready;
use super::waiting::Ticket;
use super::{Commit, CommitSteps, Committer};
use crate::base::error::{Error, Result};
use crate::base::fault::fault;
use crate::base::poison::Poison;
use crate::engine::Engine;
use crate::engine::batch::Batch;
use crate::engine::freeze::Freezer;
use std::sync::Arc;

/// A commit of a group that the log's queue has: its ticket, its number, its parts.
type Logged<'a> = (&'a Ticket, u64, Vec<Ready>);

/// The one at work for a group of durable commits. When it is done it hands the lead on, also by a panic.
/// Then the handle is poisoned, and those of the group that have no result yet are told so.
struct Leader<'a> {
    committer: &'a Committer,
    poison: &'a Poison,
    group: Vec<Arc<Ticket>>,
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        if let Err(e) = self.poison.check() {
            self.group.iter().for_each(|ticket| ticket.done_if_waiting(&e));
        }
        let mut waiting = self.committer.waiting.lock();
        match waiting.queue.first() {
            Some(next) => next.choose(),
            None => waiting.leading = false,
        }
    }
}

impl Committer {
    /// Joins the group that waits. True if nobody is at a sync: then this commit leads.
    fn join(&self, ticket: Arc<Ticket>) -> bool {
        let mut waiting = self.waiting.lock();
        waiting.queue.push(ticket);
        !std::mem::replace(&mut waiting.leading, true)
    }

    /// The group that has come together.
    fn take_group(&self) -> Vec<Arc<Ticket>> {
        std::mem::take(&mut self.waiting.lock().queue)
    }
}

impl Engine {
    /// Joins the group that waits, and leads it if nobody is at a sync. Else it waits to be committed by its
    /// leader, or to be chosen as the next. (Nobody waits for the commit lock itself. A lock keeps no order:
    /// a thread that comes back at once would always get it first.)
    pub(super) fn commit_durable(&self, batch: Batch) -> Result<u64> {
        self.syncer().start_log()?;
        let ticket = Ticket::new(batch);
        if !self.committer.join(ticket.clone())
            && let Some(result) = ticket.wait()
        {
            return result;
        }
        let mut leader = Leader { committer: &self.committer, poison: &self.poison, group: Vec::new() };
        let mut commit = self.committer.lock();
        leader.group = self.committer.take_group();
        let (armed, steps) = (self.poison.armed("committing"), self.commit_steps());
        // What changes the tables is alone, for each commit is judged by the tables that there are before its
        // group.
        for together in leader.group.chunk_by(|a, b| !a.changes_tables && !b.changes_tables) {
            steps.commit_group(&mut commit, together);
        }
        armed.disarm();
        // The next leader asks for the lock that this one gives back.
        drop(leader);
        self.committer.end(commit, &self.state, &self.background);
        let left_behind = || Err(Error::Invalid { detail: "a commit was left behind by its group".into() });
        ticket.slot.lock().result.clone().unwrap_or_else(left_behind)
    }
}

impl CommitSteps<'_> {
    /// The steps of a commit, for a group with one sync.
    fn commit_group(&self, commit: &mut Commit, group: &[Arc<Ticket>]) {
        let Freezer { log, background, .. } = self.freezer;
        log.begin_group();
        commit.feed.begin_group();
        let logged: Vec<Logged<'_>> =
            group.iter().filter_map(|ticket| self.log_one(commit, ticket)).collect();
        let first = logged.first().map_or(u64::MAX, |&(_, first, _)| first);
        let written = if logged.is_empty() { Ok(0) } else { self.write_group(first) };
        if log.must_tell() {
            background.wake();
        }
        if !logged.is_empty() && written.is_ok() {
            self.mirrored.look(log);
        }
        if let Ok(durable) = &written {
            let lost = first.max(durable.saturating_add(1));
            commit.history.rollback_from(lost);
            commit.feed.rollback_from(lost);
        }
        for (ticket, seq, ready) in logged {
            let durable = match &written {
                Ok(durable) if *durable >= seq => Ok(()),
                Ok(_) => Err(Error::NoSpace { during: "writing the log" }),
                Err(e) => Err(e.clone()),
            };
            ticket.done(durable.and_then(|()| self.apply(commit, seq, ready)).map(|()| seq));
        }
        if self.freezer.rotate_if_full(commit).is_err() {
            // The commits are durable. The failed flush is reported to those who wait for it.
            background.wake();
        }
    }

    /// Gives one of a group its number and queues it for the log. None if it is refused, or has a result.
    fn log_one<'a>(&self, commit: &mut Commit, ticket: &'a Ticket) -> Option<Logged<'a>> {
        let mut batch = ticket.slot.lock().batch.take()?;
        match self.poison.check().and_then(|()| self.sequence(commit, &mut batch)) {
            Ok(seq) => Some((ticket, seq, self.log_batch(seq, batch))),
            Err(e) => {
                ticket.done(Err(e));
                None
            }
        }
    }

    /// Makes the commits from `first` on durable, or as many of them as there is room for. Gives the newest
    /// that is. The others leave no trace but their numbers.
    fn write_group(&self, first: u64) -> Result<u64> {
        if fault!("publish_first") {
            return Ok(u64::MAX);
        }
        let log = self.freezer.log;
        match log.write(u64::MAX) {
            Ok(()) => Ok(log.durable_seq()),
            Err(Error::NoSpace { .. }) if self.poison.check().is_ok() => Ok(log.rollback_from(first)),
            Err(e) => Err(e),
        }
    }
}
