//! A file that counts what passes through it. All files that are given the same [`IoCounters`] share the
//! counters. Reading them stops nobody: each counter is exact, but several that are read one after another do
//! not show one moment. Only calls that succeed are counted.
//!
//! Lock order: none. The counters are independent atomics.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::forward::forward_file;
use super::range::len_of;
use super::{DiskRoom, File, FileMapping};

/// What has passed through the [`Metered`] files that share these counters.
#[derive(Debug, Default)]
pub struct IoCounters {
    /// Bytes written, durably or not.
    pub written_bytes: AtomicU64,
    /// Calls that wrote them.
    pub write_calls: AtomicU64,
    /// Bytes read.
    pub read_bytes: AtomicU64,
    /// Calls that read them.
    pub read_calls: AtomicU64,
    /// Calls that waited for durability: syncs, and durable writes.
    pub syncs: AtomicU64,
}

/// A [`File`] that passes all calls to the one that it wraps, and counts them.
///
/// ```
/// # use std::{path::Path, sync::{Arc, atomic::Ordering}};
/// use azekura::storage::{File, IoCounters, MemStorage, Metered, OpenMode, Storage};
/// let counters = Arc::new(IoCounters::default());
/// let file = MemStorage::default().open(Path::new("a"), OpenMode::CreateNew)?;
/// let file = Metered::new(file, Arc::clone(&counters));
/// file.write_at(b"hello", 0)?;
/// assert_eq!(counters.written_bytes.load(Ordering::Relaxed), 5);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Metered {
    file: Arc<dyn File>,
    counters: Arc<IoCounters>,
}

impl Metered {
    /// Counts what passes to `file` in `counters`.
    pub fn new(file: Arc<dyn File>, counters: Arc<IoCounters>) -> Metered {
        Metered { file, counters }
    }

    fn wrote(&self, buf: &[u8]) {
        add(&self.counters.written_bytes, len_of(buf));
        add(&self.counters.write_calls, 1);
    }
}

fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

impl File for Metered {
    forward_file!(file: write_back, wait_written, will_read, forget);
    forward_file!(file: len, set_len, allocate, punch, disk_room);
    forward_file!(file: try_lock, unlock, pin, unpin, pins, acknowledge, acknowledged, mapping);

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(buf, offset)?;
        add(&self.counters.read_bytes, len_of(buf));
        add(&self.counters.read_calls, 1);
        Ok(())
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(buf, offset)?;
        self.wrote(buf);
        Ok(())
    }

    fn write_settled_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_settled_at(buf, offset)?;
        self.wrote(buf);
        Ok(())
    }

    fn write_durable_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_durable_at(buf, offset)?;
        self.wrote(buf);
        add(&self.counters.syncs, 1);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()?;
        add(&self.counters.syncs, 1);
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()?;
        add(&self.counters.syncs, 1);
        Ok(())
    }
}
