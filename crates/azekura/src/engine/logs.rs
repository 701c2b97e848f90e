//! The log of an open handle, read once more from the file, for `check`. What memory has of it says nothing
//! of what stands in the file.

use super::checkpoint::Checkpointer;
use super::follow::newest_block_now;
use super::state::State;
use crate::base::error::{Error, Result};
use crate::base::sync::ArcSwap;
use crate::format::frame::RecordPart;
use crate::format::manifest::LogChain;
use crate::log::Log;
use crate::log::recovery::{ChainReader, replay};
use crate::storage::File;
use std::path::Path;

/// What the log holds that is in no run yet.
#[derive(Default)]
pub(crate) struct LogContents {
    pub(crate) commits: u64,
    /// Tombstones included.
    pub(crate) records: u64,
    /// Bytes of all of its frames.
    pub(crate) bytes: u64,
}

/// Reads the log for `check`.
pub(crate) struct LogCheck<'a> {
    pub(super) checkpointer: &'a Checkpointer,
    pub(super) state: &'a ArcSwap<State>,
    pub(super) log: &'a Log,
    pub(super) path: &'a Path,
    pub(super) file: &'a dyn File,
    pub(super) file_id: u64,
    /// Whether another process writes the file.
    pub(super) follows: bool,
}

impl LogCheck<'_> {
    /// Reads every chain, up to the last frame that is known to be whole. Commits go on meanwhile.
    /// Checkpoints wait, so that no segment goes. In a follower's engine they do not: another process writes
    /// them. Its pin keeps the segments, and it reads until frames tell of a newer checkpoint.
    ///
    /// # Errors
    /// `Corrupt` where a frame or record is damaged, or missing.
    pub(crate) fn read(&self) -> Result<LogContents> {
        let guard = self.checkpointer.lock();
        let state = self.state.load_full();
        let mut found = LogContents::default();
        let mut last = guard.flushed_seq;
        let chains = guard.old_logs.iter().map(|l| l.chain.clone()).chain(self.log.written_chain());
        for chain in chains.collect::<Vec<LogChain>>() {
            let apply = |_, seq, parts: Vec<RecordPart>| {
                if seq > last {
                    last = seq;
                    found.commits += 1;
                    let known = parts.iter().filter(|p| state.table(p.table).is_ok());
                    found.records += known.map(|p| p.block.len() as u64).sum::<u64>();
                }
                Ok(())
            };
            found.bytes += self.read_chain(guard.number, &chain, apply)?;
        }
        Ok(found)
    }

    /// Reads a chain, as of checkpoint `number`. Returns how many bytes its frames have.
    fn read_chain(
        &self,
        number: u64,
        chain: &LogChain,
        mut apply: impl FnMut(u64, u64, Vec<RecordPart>) -> Result<()>,
    ) -> Result<u64> {
        let (file, id) = (self.file, self.file_id);
        if !self.follows {
            return Ok(replay(file, id, number, chain, apply)?.bytes);
        }
        let mut reader = ChainReader::new(id, number, chain);
        match reader.read_beside_writer(file, &mut apply) {
            // What does not fit belongs to a newer checkpoint.
            Err(Error::Corrupt { .. }) if newest_block_now(self.path, file)?.number != number => {}
            read => read?,
        }
        Ok(reader.end().bytes)
    }
}
