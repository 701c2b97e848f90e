//! The thread that writes the log when the eventual delay has passed, and makes its next segment. It looks
//! after the other threads, too.

use crate::base::error::{Error, Result};
use crate::base::sync::Instant;
use crate::engine::commit::Syncer;
use crate::engine::compaction::merges::Merges;
use crate::engine::flush::Flush;
use crate::engine::freeze::Freezer;
use crate::engine::watch::Watcher;
use std::collections::VecDeque;
use std::time::Duration;

/// So much that waits for the log is a bulk.
const LOG_BULK_BYTES: usize = 8 << 20;
/// A log to which nothing was written for so long, and up to twice that, rests.
const LOG_REST: Duration = Duration::from_millis(100);
/// The eventual delay is watched in this many steps.
const LOG_TICKS: u32 = 8;
/// A commit that has changed tables and records is to be in runs after so long. Until then a checkpoint has
/// a part of it, and who reads that needs the log.
const JOINT_WAIT: Duration = Duration::from_secs(1);

/// What the log's thread uses.
pub(in crate::engine) struct LogThread<'a> {
    pub(in crate::engine) syncer: Syncer<'a>,
    pub(in crate::engine) watcher: Watcher<'a>,
}

impl LogThread<'_> {
    /// From the thread's start to its end.
    pub(super) fn run(&self) {
        let LogThread { syncer, watcher } = self;
        let Flush { merges: Merges { installer, poison, .. }, freezer, config, .. } = syncer.flush;
        let Freezer { state, log, background, .. } = freezer;
        let tick = (config.eventual_delay / LOG_TICKS).max(Duration::from_millis(1));
        // Commits that were there then are late at the tick after the next.
        let late = config.eventual_delay.saturating_sub(tick * 2);
        let mut seen: VecDeque<(Instant, u64)> = VecDeque::new();
        let mut took = Duration::ZERO;
        let (mut looked, mut frames) = (Instant::now(), 0);
        let mut begun = Instant::now();
        let (mut room_seen, mut joint_since) = (begun, None);
        watcher.keep_watch(&mut room_seen);
        log.make_ahead();
        while !background.stopping() {
            background
                .pause_while(LOG_REST.min(tick.saturating_sub(begun.elapsed())), || !log.wants_segment());
            if !background.stopping() {
                log.prepare_segment();
            }
            if looked.elapsed() >= LOG_REST {
                (looked, frames) = (Instant::now(), log.vouch_at_rest(frames));
                self.flush_joint(&mut joint_since);
                watcher.keep_watch(&mut room_seen);
            }
            if begun.elapsed() < tick {
                continue;
            }
            let (now, newest) = (Instant::now(), state.load().visible());
            seen.push_back((now, newest));
            let mut due = 0;
            while let Some(&(at, seq)) = seen.front()
                && at.elapsed() >= late
            {
                due = seq;
                seen.pop_front();
            }
            if due > log.durable_seq() && poison.check().is_ok() {
                // A bulk's younger commits wait, for a flush under way may make their log needless. A few
                // commits go along with those that are due, for one sync for all. Where syncs are slow, all
                // commits do.
                let all = took > tick || log.queued_bytes() < LOG_BULK_BYTES;
                // A failure poisons the handle, which is how writers learn of it. Where there is no room for
                // the log, a flush makes it needless. If that finds none either, both are tried again.
                let synced = syncer.sync_until(if all { newest } else { due });
                if matches!(synced, Err(Error::NoSpace { .. })) {
                    let _later = freezer.rotate(&mut installer.committer.lock());
                }
                took = now.elapsed();
            }
            begun = Instant::now();
        }
    }

    /// Has a commit flushed that has changed tables and records, some time after it was made. What fails, as
    /// on a full disk, is tried again after as long.
    pub(in crate::engine) fn flush_joint(&self, since: &mut Option<Instant>) {
        let Flush { merges: Merges { installer, poison, .. }, freezer, .. } = self.syncer.flush;
        let joint = freezer.state.load().joint_seq;
        // Whoever has the lock may be writing what is missing.
        let Some(durable) = installer.checkpointer.try_lock().map(|newest| newest.flushed_seq) else {
            return;
        };
        if joint <= durable || poison.check().is_err() {
            *since = None;
        } else if since.get_or_insert_with(Instant::now).elapsed() >= JOINT_WAIT {
            *since = None;
            let _later = self.make_whole(joint);
        }
    }

    /// Has a checkpoint written that needs no log for what was committed up to `joint`, by this thread or by
    /// that which flushes.
    fn make_whole(&self, joint: u64) -> Result<()> {
        let flush = self.syncer.flush;
        let Flush { merges: Merges { installer, checkpoints, .. }, freezer, .. } = flush;
        if freezer.state.load().flushed_seq >= joint {
            return checkpoints.write();
        }
        if !freezer.rotate(&mut installer.committer.lock())? {
            // Unless a flush is under way, all that was in memory has gone with its tables.
            flush.flush_nothing()?;
        }
        Ok(())
    }
}
