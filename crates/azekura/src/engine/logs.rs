//! The log of an open handle, read once more from the file, for `check`. What memory has of it says nothing
//! of what stands in the file.

use super::Engine;
use crate::base::error::Result;
use crate::format::manifest::LogChain;
use crate::log::recovery::replay;
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
    /// Checkpoints wait, so that no segment goes.
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
            let read =
                replay(self.file.as_ref(), self.store.file_id, guard.number, &chain, |_, seq, parts| {
                    if seq > last {
                        last = seq;
                        found.commits += 1;
                        let known = parts.iter().filter(|p| state.table(p.table).is_ok());
                        found.records += known.map(|p| p.block.len() as u64).sum::<u64>();
                    }
                    Ok(())
                })?;
            found.bytes += read.bytes;
        }
        Ok(found)
    }

    /// Bytes of the file that log segments take, those of earlier handles' chains among them.
    pub(crate) fn log_file_bytes(&self) -> u64 {
        self.log.file_bytes() + self.counters.old_log_bytes.load(Ordering::Relaxed)
    }
}
