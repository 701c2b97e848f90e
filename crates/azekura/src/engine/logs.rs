//! The log of an open handle, read once more from the file, for `check`. What memory has of it says nothing
//! of what stands in the file.

use super::Engine;
use crate::base::error::{Error, Result};
use crate::format::frame::RecordPart;
use crate::format::manifest::LogChain;
use crate::log::recovery::{ChainReader, replay};
use std::sync::atomic::Ordering;

/// What the log holds that is in no run yet.
#[derive(Default)]
pub(crate) struct LogContents {
    pub(crate) commits: u64,
    /// Deletes included.
    pub(crate) records: u64,
    /// Bytes of all of its frames.
    pub(crate) bytes: u64,
}

impl Engine {
    /// Reads every chain, up to the last frame that is known to be whole. Commits go on meanwhile.
    /// Checkpoints wait, so that no segment goes. In a follower's engine they do not: another process writes
    /// them. Its pin keeps the segments, and it reads until frames tell of a newer checkpoint.
    ///
    /// # Errors
    /// `Corrupt` where a frame or record is damaged, or missing.
    pub(crate) fn read_log(&self) -> Result<LogContents> {
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
        let (file, id) = (self.file.as_ref(), self.store.file_id);
        if self.config.follow.is_none() {
            return Ok(replay(file, id, number, chain, apply)?.bytes);
        }
        let mut reader = ChainReader::new(id, number, chain);
        match reader.read_beside_writer(file, &mut apply) {
            // What does not fit belongs to a newer checkpoint.
            Err(Error::Corrupt { .. }) if self.newest_block()?.number != number => {}
            read => read?,
        }
        Ok(reader.end().bytes)
    }

    /// Bytes of the file that log segments take, those of earlier handles' chains among them.
    pub(crate) fn log_file_bytes(&self) -> u64 {
        self.log.file_bytes() + self.counters.old_log_bytes.load(Ordering::Relaxed)
    }
}
