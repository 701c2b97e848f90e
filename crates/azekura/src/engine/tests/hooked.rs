//! A storage in memory that asks a test's hook before each call: it may fail, wait or panic there.

use crate::base::limits::SUPERBLOCKS_BYTES;
use crate::storage::forward::{forward_file, forward_names};
use crate::storage::{DiskRoom, File, MemStorage, OpenMode, Storage};
use parking_lot::Mutex;
use std::io;
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Kinds of calls.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Call {
    Read,
    Write,
    /// A write of a superblock, for which there is always room.
    WriteSuperblock,
    WriteDurable,
    Sync,
    /// A hint, whatever the hook says.
    WillRead,
    /// What the disk has left.
    Room,
    /// Which checkpoints others have pinned.
    Pins,
    /// A checkpoint is pinned.
    Pin,
}

type Hook = Arc<dyn Fn(Call) -> io::Result<()> + Send + Sync>;

/// The storage; clones share files and hook.
#[derive(Clone, Default)]
pub(in crate::engine) struct Hooked {
    files: MemStorage,
    hook: Arc<Mutex<Option<Hook>>>,
    drawn: Arc<Mutex<Vec<u64>>>,
    forgotten: Arc<Mutex<Vec<Range<u64>>>>,
    /// How many bytes the disk has for a file, if it is not plenty.
    bytes_max: Arc<Mutex<Option<u64>>>,
}

impl Hooked {
    /// A file may come to take so many bytes, as far as the disk says. Writes pass all the same.
    pub(in crate::engine) fn limit(&self, bytes_max: u64) {
        *self.bytes_max.lock() = Some(bytes_max);
    }

    /// The random numbers that were drawn since the last time that somebody asked.
    pub(in crate::engine) fn drawn(&self) -> Vec<u64> {
        std::mem::take(&mut self.drawn.lock())
    }

    /// What was to be forgotten since the last time that somebody asked.
    pub(in crate::engine) fn forgotten(&self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.forgotten.lock())
    }

    pub(in crate::engine) fn hook(&self, hook: impl Fn(Call) -> io::Result<()> + Send + Sync + 'static) {
        *self.hook.lock() = Some(Arc::new(hook));
    }

    /// From now on all goes well.
    pub(in crate::engine) fn heal(&self) {
        *self.hook.lock() = None;
    }

    /// Every such call fails.
    pub(in crate::engine) fn fail_all(&self, what: Call) {
        self.hook(move |call| if call == what { Err(eio()) } else { Ok(()) });
    }

    /// The `nth` such call from now on fails, counted from 1.
    pub(in crate::engine) fn fail_nth(&self, what: Call, nth: u64) {
        self.fail_from(what, nth, nth, eio);
    }

    /// From the `nth` write on, the disk is full.
    pub(in crate::engine) fn fill_at(&self, nth: u64) {
        self.fail_from(Call::Write, nth, u64::MAX, || rustix::io::Errno::NOSPC.into());
    }

    fn fail_from(&self, what: Call, first: u64, last: u64, error: fn() -> io::Error) {
        let calls = AtomicU64::new(0);
        let is_it =
            move |call| call == what && (first..=last).contains(&(calls.fetch_add(1, Ordering::Relaxed) + 1));
        self.hook(move |call| if is_it(call) { Err(error()) } else { Ok(()) });
    }
}

fn eio() -> io::Error {
    rustix::io::Errno::IO.into()
}

impl Storage for Hooked {
    forward_names!(files);

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = self.files.open(path, mode)?;
        let (hook, bytes_max) = (self.hook.clone(), self.bytes_max.clone());
        Ok(Arc::new(HookedFile { file, hook, bytes_max, forgotten: self.forgotten.clone() }))
    }

    fn random(&self) -> io::Result<u64> {
        let drawn = self.files.random()?;
        self.drawn.lock().push(drawn);
        Ok(drawn)
    }
}

struct HookedFile {
    file: Arc<dyn File>,
    hook: Arc<Mutex<Option<Hook>>>,
    bytes_max: Arc<Mutex<Option<u64>>>,
    forgotten: Arc<Mutex<Vec<Range<u64>>>>,
}

impl HookedFile {
    /// The hook is called without its lock, for it may wait.
    fn ask(&self, call: Call) -> io::Result<()> {
        let hook = self.hook.lock().clone();
        hook.map_or(Ok(()), |hook| hook(call))
    }
}

impl File for HookedFile {
    forward_file!(file: write_back, wait_written, len, set_len, allocate, punch, try_lock, unlock, unpin);
    forward_file!(file: acknowledge, acknowledged);

    fn pin(&self, number: u64) -> io::Result<()> {
        self.ask(Call::Pin)?;
        self.file.pin(number)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.ask(Call::Read)?;
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.ask(if offset < SUPERBLOCKS_BYTES { Call::WriteSuperblock } else { Call::Write })?;
        self.file.write_at(buf, offset)
    }

    fn write_durable_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.ask(Call::WriteDurable)?;
        self.file.write_durable_at(buf, offset)
    }

    fn will_read(&self, _: u64, _: u64) {
        let _hint = self.ask(Call::WillRead);
    }

    fn forget(&self, offset: u64, len: u64) {
        self.forgotten.lock().push(offset..offset + len);
        self.file.forget(offset, len);
    }

    fn disk_room(&self) -> io::Result<Option<DiskRoom>> {
        self.ask(Call::Room)?;
        let len = self.file.len()?;
        let room = |max: u64| DiskRoom { len, taken_bytes: len, free_bytes: max.saturating_sub(len) };
        Ok(self.bytes_max.lock().map(room))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.ask(Call::Sync)?;
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.ask(Call::Sync)?;
        self.file.sync_all()
    }

    fn pins(&self) -> io::Result<Vec<RangeInclusive<u64>>> {
        self.ask(Call::Pins)?;
        self.file.pins()
    }
}
