//! Making durable what was committed.

use crate::base::error::{Error, Result};
use crate::engine::checkpoint::Purpose;
use crate::engine::crew::Role;
use crate::engine::flush::Flush;
use crate::log::{Log, LogStart};

/// Makes commits durable: by the log, or by a flush, which makes the log needless.
pub(in crate::engine) struct Syncer<'a> {
    pub(in crate::engine) flush: Flush<'a>,
    pub(in crate::engine) log: &'a Log,
}

impl Syncer<'_> {
    /// Makes sure that frames may be written: the manifest names the chain.
    #[inline]
    pub(in crate::engine) fn start_log(&self) -> Result<()> {
        match self.log.start() {
            LogStart::Ready => Ok(()),
            LogStart::Unpublished => self.flush.merges.checkpoints.write_for(Purpose::StartLog),
        }
    }

    /// Makes every commit so far durable. Where the log finds no room, a flush may, which makes it needless.
    pub(in crate::engine) fn sync(&self) -> Result<()> {
        let Flush { freezer, config, life, .. } = self.flush;
        life.check()?;
        if self.is_bulk_waiting() {
            match self.flush.flush() {
                // The log may take what a run finds no room for.
                Err(Error::NoSpace { .. }) => {}
                done => return done,
            }
        }
        if let Err(e) = self.sync_until(freezer.state.load().visible()) {
            if !matches!(e, Error::NoSpace { .. }) {
                return Err(e);
            }
            self.flush.flush()?;
        }
        if !config.threads || !freezer.background.crew.has(Role::Log) {
            // Else the log's thread does it when the log rests.
            self.log.vouch();
        }
        Ok(())
    }

    /// Whether so much waits for the log that a flush makes it durable better. It has to be written to a run
    /// anyway, and is then written once.
    fn is_bulk_waiting(&self) -> bool {
        self.log.queued_bytes() as u64 >= self.flush.freezer.memory.division().bulk_bytes
    }

    /// Flushes, since the log takes much of the room that there is. If the flush finds no room, the commit
    /// will notice.
    #[cold]
    pub(in crate::engine) fn shorten_log(&self) -> Result<()> {
        // Once: on a full disk each commit would try.
        self.log.let_be();
        match self.flush.flush() {
            Err(Error::NoSpace { .. }) => Ok(()),
            done => done,
        }
    }

    /// Flushes, so that the log is needless, or where there is no room for that makes all durable by the log.
    /// True if all is flushed.
    ///
    /// # Errors
    /// `NotDurable` if the disk is full and commits would be lost, or what writing meets.
    pub(in crate::engine) fn save_all(&self) -> Result<bool> {
        let values = self.flush.merges.values;
        // Closed first, so that the last run goes where the open segment's end is.
        match values.close_open().and_then(|()| self.flush.flush()) {
            Err(Error::NoSpace { .. }) => {}
            done => return done.map(|()| true),
        }
        let newest = self.flush.freezer.state.load().visible();
        match self.sync_until(newest) {
            Ok(()) => Ok(false),
            Err(e @ Error::NoSpace { .. }) => Err(Error::NotDurable {
                commits: newest.saturating_sub(self.log.durable_seq()),
                bytes: self.log.queued_bytes() as u64 + values.waiting_bytes(),
                cause: Box::new(e),
            }),
            Err(e) => Err(e),
        }
    }

    /// Makes every commit up to `seq` durable.
    pub(in crate::engine) fn sync_until(&self, seq: u64) -> Result<()> {
        if self.flush.config.read_only {
            return Ok(());
        }
        self.flush.merges.poison.check()?;
        if self.log.durable_seq() >= seq {
            return Ok(());
        }
        self.start_log()?;
        self.log.write(seq)
    }
}
