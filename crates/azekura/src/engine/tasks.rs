//! How the engine fills the parts that live for one task: each gets just the references that it may use.

use super::Engine;
use super::capture::{Capture, CaptureSource, Capturer, LogSince, Reading, TakeCommit};
use super::checkpoint::Checkpoints;
use super::commit::{CommitSteps, Syncer};
use super::compaction::install::Installer;
use super::compaction::merges::Merges;
use super::feed::Feeder;
use super::flush::Flush;
use super::follow::CatchingUp;
use super::freeze::Freezer;
use super::idle::MemoryWatch;
use super::load::TableLoader;
use super::logs::LogCheck;
use super::mirrored::MirrorWait;
use super::reclaim::Reclaimer;
use super::relief::RoomMaker;
use super::sweep::Sweeper;
use super::tables::TableChanger;
use super::threads::{FlushThread, LogThread, MergeThread};
use super::watch::Watcher;
use crate::base::error::{Error, Result};

impl Engine {
    /// The part that picks merges and does them.
    pub(super) fn merges(&self) -> Merges<'_> {
        let Engine { compactor, store, values, ids, memory, pace, relief, poison, .. } = self;
        let (installer, checkpoints) = (self.installer(), self.checkpoints());
        let large_value_bytes = self.config.large_value_bytes;
        Merges {
            installer,
            compactor,
            store,
            values,
            ids,
            memory,
            pace,
            relief,
            poison,
            checkpoints,
            large_value_bytes,
        }
    }

    /// The part that brings commits to the log and the memtables.
    #[inline]
    pub(super) fn commit_steps(&self) -> CommitSteps<'_> {
        let Engine { committer, catalog, feed, checkpointer, life, poison, mirrored, .. } = self;
        let freezer = self.freezer();
        CommitSteps { freezer, committer, catalog, feed, checkpointer, life, poison, mirrored }
    }

    /// The part that fills the engine with the tables of a file.
    pub(super) fn table_loader(&self) -> TableLoader<'_> {
        let (merges, steps) = (self.merges(), self.commit_steps());
        let (clock, follows) = (&*self.config.clock, self.config.follow.is_some());
        TableLoader { merges, steps, log: &self.log, clock, follows }
    }

    /// The part that waits for synchronous mirrors.
    pub(super) fn mirror_wait(&self) -> MirrorWait<'_> {
        let Engine { state, mirrored, committer, life, poison, .. } = self;
        MirrorWait { state, mirrored, committer, life, poison }
    }

    /// The part that makes, renames and drops tables.
    pub(crate) fn table_changer(&self) -> TableChanger<'_> {
        let (steps, checkpoints) = (self.commit_steps(), self.checkpoints());
        TableChanger { commits: self, steps, checkpoints, clock: &self.config.clock }
    }

    /// The part that changes what is fed.
    pub(crate) fn feeder(&self) -> Feeder<'_> {
        let Engine { feed, catalog, committer, state, .. } = self;
        let (lineage, large_value_bytes) = (self.store.lineage, self.config.large_value_bytes);
        Feeder { commits: self, feed, catalog, committer, state, lineage, large_value_bytes }
    }

    /// The part that writes checkpoints.
    pub(crate) fn checkpoints(&self) -> Checkpoints<'_> {
        let Engine { checkpointer, state, committer, log, values, ids, .. } = self;
        let Engine { space, pace, relief, poison, counters, .. } = self;
        Checkpoints {
            checkpointer,
            state,
            committer,
            log,
            values,
            ids,
            space,
            pace,
            relief,
            poison,
            counters,
        }
    }

    /// The part that changes the levels that the state has.
    pub(super) fn installer(&self) -> Installer<'_> {
        let Engine { state, committer, background, checkpointer, .. } = self;
        Installer { state, committer, background, checkpointer }
    }

    /// The part that catches up with the file's writer, if this is a follower's handle.
    pub(super) fn catching_up(&self) -> Option<CatchingUp<'_>> {
        let Engine { config, life, state, committer, store, .. } = self;
        let (follower, path) = (self.following.handle()?, &self.opened.path);
        let (file, io, pages) = (&store.file, &self.counters.io, &store.pages);
        Some(CatchingUp { follower, path, config, file, life, io, pages, state, committer })
    }

    /// A state that stays readable, to be copied: see `Capturer::capture`, and that of a follower.
    pub(crate) fn capture(&self) -> Result<Capture> {
        self.capture_beside(&mut || {})
    }

    /// The same. If it has to be tried again, because a writing process was faster, `between` is called
    /// before.
    pub(crate) fn capture_beside(&self, between: &mut dyn FnMut()) -> Result<Capture> {
        if let Some(follower) = self.catching_up() {
            return follower.capture(between);
        }
        Capturer { flush: self.flushing(), catalog: &self.catalog, source: self.capture_source() }.capture()
    }

    /// Reads on what a follower's file has since a capture. See `CatchingUp::read_since`.
    pub(crate) fn read_since(&self, since: &mut LogSince, take: &mut TakeCommit<'_>) -> Result<Reading> {
        let Some(follower) = self.catching_up() else { return Err(Error::ReadOnly) };
        follower.read_since(since, take)
    }

    /// Makes durable what a follower has read, as far as only the system's memory has it.
    pub(crate) fn sync_followed(&self) -> Result<()> {
        self.store.file.sync_data().map_err(|e| Error::io("making durable what was read", e))
    }

    /// What a captured state needs beside itself.
    pub(super) fn capture_source(&self) -> CaptureSource<'_> {
        let Engine { store, values, ids, config, .. } = self;
        CaptureSource { file: &store.file, values, next_id: ids.peek(), clock: &config.clock }
    }

    /// The part that reads the log for `check`.
    pub(crate) fn log_check(&self) -> LogCheck<'_> {
        let Engine { checkpointer, state, log, store, config, .. } = self;
        let (path, file, file_id) = (&*self.opened.path, store.file.as_ref(), store.file_id);
        let follows = config.follow.is_some();
        LogCheck { checkpointer, state, log, path, file, file_id, follows }
    }

    /// The part that freezes memtables.
    #[inline]
    pub(super) fn freezer(&self) -> Freezer<'_> {
        let Engine { state, log, memory, pace, bound, background, .. } = self;
        Freezer { state, log, memory, pace, bound, background }
    }

    /// The part that flushes.
    pub(super) fn flushing(&self) -> Flush<'_> {
        let Engine { flusher, counters, config, life, .. } = self;
        Flush { merges: self.merges(), freezer: self.freezer(), flusher, counters, config, life }
    }

    /// The part that makes commits durable.
    #[inline]
    pub(super) fn syncer(&self) -> Syncer<'_> {
        Syncer { flush: self.flushing(), log: &self.log }
    }

    /// The part that looks for work for the threads.
    pub(super) fn watcher(&self) -> Watcher<'_> {
        let background_merges = self.config.background_merges;
        Watcher { merges: self.merges(), log: &self.log, background_merges }
    }

    /// The flushing thread's work.
    pub(super) fn flush_thread(&self) -> FlushThread<'_> {
        let pages_bytes = self.store.pages.stats().bytes;
        let memory = MemoryWatch::new(self.freezer(), &self.committer, pages_bytes);
        FlushThread { flush: self.flushing(), watcher: self.watcher(), memory }
    }

    /// The work of the log's thread.
    pub(super) fn log_thread(&self) -> LogThread<'_> {
        LogThread { syncer: self.syncer(), watcher: self.watcher() }
    }

    /// The part that says who may write on a nearly full disk, and makes room there.
    pub(super) fn room_maker(&self) -> RoomMaker<'_> {
        RoomMaker { flush: self.flushing(), log: &self.log }
    }

    /// The part that keeps the bound of the file.
    pub(super) fn sweeper(&self) -> Sweeper<'_> {
        Sweeper { flush: self.flushing(), bound: &self.bound }
    }

    /// The part that gives space back.
    pub(super) fn reclaimer(&self) -> Reclaimer<'_> {
        Reclaimer { flush: self.flushing(), log: &self.log }
    }

    /// The work of a thread that merges.
    pub(super) fn merge_thread(&self, class: usize) -> MergeThread<'_> {
        MergeThread { class, reclaimer: self.reclaimer() }
    }
}
