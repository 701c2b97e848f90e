//! Long writes that make way for durable commits.
//!
//! The system holds a file's lock during a whole write. A write of some mebibytes holds it for as long as
//! several durable commits of a record take, and for much longer where no free memory is at hand. So while
//! there are durable commits, long writes go in short pieces, and a commit mostly gets the lock between two
//! of them. Otherwise a long write goes to the file as it is, which chooses the length of its calls.

use super::File;
use crate::base::sync::Instant;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A piece takes less time than a durable commit.
const PIECE_BYTES: usize = 32 << 10;
/// For so long after a durable commit, another one is expected.
const EXPECTED_MS: u64 = 1000;
/// A larger write of the log takes as long as the bulk write that it would wait for, so it does not count.
/// (Small log writes of the eventual delay count too.)
const COMMIT_BYTES_MAX: usize = 64 << 10;

/// Writes long buffers to the file of a database.
pub(crate) struct BulkWrites {
    file: Arc<dyn File>,
    /// Whether to write in pieces. The number of calls then depends on the time, which simulators do not
    /// want.
    in_pieces: bool,
    opened: Instant,
    /// When the last durable commit was written: milliseconds since `opened`, plus one. 0: none was.
    commit_ms: AtomicU64,
}

impl BulkWrites {
    pub(crate) fn new(file: Arc<dyn File>, in_pieces: bool) -> Arc<BulkWrites> {
        Arc::new(BulkWrites { file, in_pieces, opened: Instant::now(), commit_ms: AtomicU64::new(0) })
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    /// Notes that this many bytes of the log are written durably.
    pub(crate) fn note_durable(&self, bytes: usize) {
        if self.in_pieces && bytes <= COMMIT_BYTES_MAX {
            self.commit_ms.store(self.now_ms(), Ordering::Relaxed);
        }
    }

    /// Calls `f`, whose durable writes do not announce more commits.
    pub(crate) fn unnoted<T>(&self, f: impl FnOnce() -> T) -> T {
        let before = self.commit_ms.load(Ordering::Relaxed);
        let done = f();
        // (A concurrent commit may be forgotten too, until the next one.)
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
        self.write(bytes, |part, at| self.file.write_at(part, offset + at))
    }

    /// As `File::write_settled_at`.
    ///
    /// # Errors
    /// As `write_at`.
    pub(crate) fn write_settled_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write(bytes, |part, at| self.file.write_settled_at(part, offset + at))
    }

    /// Calls `write` for all parts of `bytes`, with where each begins there.
    fn write(&self, bytes: &[u8], write: impl Fn(&[u8], u64) -> io::Result<()>) -> io::Result<()> {
        let mut at = 0;
        while at < bytes.len() {
            let left = bytes.len() - at;
            let n = if self.expects_commits() { left.min(PIECE_BYTES) } else { left };
            write(&bytes[at..at + n], at as u64)?;
            at += n;
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
        bulk.write_settled_at(&bytes, 7).unwrap();
        let so_far = counters.write_calls.load(Ordering::Relaxed);
        assert_eq!(so_far - calls, 4, "also what is to stay");
        calls = so_far;
        let steady = BulkWrites::new(metered, false);
        steady.note_durable(4096);
        steady.write_at(&bytes, 0).unwrap();
        assert_eq!(counters.write_calls.load(Ordering::Relaxed) - calls, 1);
    }
}
