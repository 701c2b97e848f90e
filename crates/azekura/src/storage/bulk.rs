//! Long writes that make way for durable commits.
//!
//! The system holds a file's lock for all of a write, and 4 MiB take it half a millisecond, or eight where it
//! has no free memory at hand. A commit of one record that is to be durable takes 0.15, and waited for that
//! lock for more than half of its time while runs were merged. So, while there are such commits, long writes
//! go in pieces, and who waits for the lock mostly gets it between two of them. Otherwise they go in one
//! call.

use super::File;
use crate::base::sync::Instant;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A piece is written in less time than a commit takes to become durable.
const PIECE_BYTES: usize = 32 << 10;
/// For so long after a durable commit the next is expected.
const EXPECTED_MS: u64 = 1000;
/// Larger writes of the log take as long as what they would wait for. (Small ones of the eventual delay count
/// too.)
const COMMIT_BYTES_MAX: usize = 64 << 10;

/// Writes long buffers to the file of a database.
pub(crate) struct BulkWrites {
    file: Arc<dyn File>,
    /// Whether it may depend on the time how many calls are made.
    in_pieces: bool,
    opened: Instant,
    /// When the last durable commit was written, in milliseconds since `opened`, and one; 0 if none was.
    commit_ms: AtomicU64,
}

impl BulkWrites {
    pub(crate) fn new(file: Arc<dyn File>, in_pieces: bool) -> Arc<BulkWrites> {
        Arc::new(BulkWrites { file, in_pieces, opened: Instant::now(), commit_ms: AtomicU64::new(0) })
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    /// So many bytes of the log are written durably.
    pub(crate) fn note_durable(&self, bytes: usize) {
        if self.in_pieces && bytes <= COMMIT_BYTES_MAX {
            self.commit_ms.store(self.now_ms(), Ordering::Relaxed);
        }
    }

    /// Does what writes durably and says nothing of commits to come.
    pub(crate) fn unnoted<T>(&self, f: impl FnOnce() -> T) -> T {
        let before = self.commit_ms.load(Ordering::Relaxed);
        let done = f();
        // (A commit beside it may go unnoted too, until the next.)
        self.commit_ms.store(before, Ordering::Relaxed);
        done
    }

    fn expects_commits(&self) -> bool {
        let last = self.commit_ms.load(Ordering::Relaxed);
        last > 0 && self.now_ms().saturating_sub(last) < EXPECTED_MS
    }

    /// As `File::write_at`.
    ///
    /// # Errors
    /// As `File::write_at`; a part may have been written then.
    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (mut rest, mut at) = (bytes, offset);
        while !rest.is_empty() {
            let n = if self.expects_commits() { rest.len().min(PIECE_BYTES) } else { rest.len() };
            self.file.write_at(&rest[..n], at)?;
            (rest, at) = (&rest[n..], at + n as u64);
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::storage::{IoCounters, MemStorage, Metered, OpenMode, Storage};

    #[test]
    fn long_writes_go_in_pieces_beside_durable_commits_only() {
        let file = MemStorage::default().open("f".as_ref(), OpenMode::CreateNew).unwrap();
        let counters = Arc::new(IoCounters::default());
        let metered: Arc<dyn File> = Arc::new(Metered::new(file.clone(), counters.clone()));
        let bulk = BulkWrites::new(metered.clone(), true);
        let bytes: Vec<u8> = (0..PIECE_BYTES as u32 * 3 + 5).map(|i| i as u8).collect();
        let mut calls = 0;
        let mut written_by = |wanted| {
            bulk.write_at(&bytes, 4096).unwrap();
            let so_far = counters.write_calls.load(Ordering::Relaxed);
            assert_eq!(so_far - calls, wanted);
            calls = so_far;
            let mut found = vec![0; bytes.len()];
            file.read_at(&mut found, 4096).unwrap();
            assert_eq!(found, bytes);
        };
        written_by(1);
        bulk.note_durable(COMMIT_BYTES_MAX + 1);
        written_by(1);
        bulk.note_durable(4096);
        written_by(4);
        bulk.write_at(&[], 0).unwrap();
        let steady = BulkWrites::new(metered, false);
        steady.note_durable(4096);
        steady.write_at(&bytes, 0).unwrap();
        assert_eq!(counters.write_calls.load(Ordering::Relaxed) - calls, 1);
    }
}
