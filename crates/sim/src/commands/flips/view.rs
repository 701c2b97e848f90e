//! A file in memory that nobody writes, seen with one bit flipped. All views share its bytes, so a flip costs
//! nothing. A view can keep a list of what was read from it.

use azekura::storage::{File, OpenMode, Storage};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A storage that has only this file, under every name.
#[derive(Clone)]
pub(super) struct View {
    bytes: Arc<[u8]>,
    /// The flipped byte's place, and the bit as a mask.
    flip: Option<(u64, u8)>,
    reads: Option<Arc<Mutex<Reads>>>,
}

/// The ranges of bytes that were read.
#[derive(Clone, Default, Debug)]
pub(super) struct Reads(Vec<Range<u64>>);

impl Reads {
    /// Whether a byte is in the ranges.
    pub(super) fn include(&self, at: u64) -> bool {
        self.0.iter().any(|range| range.contains(&at))
    }

    /// The blocks of this size that the ranges touch.
    pub(super) fn blocks(&self, size: u64) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().flat_map(move |range| range.start / size..range.end.div_ceil(size))
    }

    fn note(&mut self, range: Range<u64>) {
        match self.0.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.0.push(range),
        }
    }
}

impl View {
    /// A view with one bit flipped.
    pub(super) fn flipped(bytes: &Arc<[u8]>, bit: u64) -> View {
        View { bytes: bytes.clone(), flip: Some((bit / 8, 1 << (bit % 8))), reads: None }
    }

    /// An unchanged view that notes what is read.
    pub(super) fn watched(bytes: &Arc<[u8]>) -> View {
        View { bytes: bytes.clone(), flip: None, reads: Some(Arc::default()) }
    }

    /// What was read since the last call.
    pub(super) fn reads(&self) -> Reads {
        let reads = self.reads.as_ref();
        reads.map_or_else(Reads::default, |reads| {
            std::mem::take(&mut *reads.lock().unwrap_or_else(|e| e.into_inner()))
        })
    }
}

/// The error of a file that is open for reading only.
fn refused<T>() -> io::Result<T> {
    Err(io::ErrorKind::PermissionDenied.into())
}

impl Storage for View {
    fn open(&self, _: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        if mode == OpenMode::ReadOnly { Ok(Arc::new(self.clone())) } else { refused() }
    }

    fn exists(&self, _: &Path) -> io::Result<bool> {
        Ok(true)
    }

    fn rename(&self, _: &Path, _: &Path, _: bool) -> io::Result<()> {
        refused()
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn sync_dir_of(&self, _: &Path) -> io::Result<()> {
        refused()
    }
}

impl File for View {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64).filter(|&end| end <= self.bytes.len() as u64);
        let Some(end) = end else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        buf.copy_from_slice(&self.bytes[place(offset)..place(end)]);
        if let Some((at, mask)) = self.flip
            && (offset..end).contains(&at)
        {
            buf[place(at - offset)] ^= mask;
        }
        if let Some(reads) = &self.reads {
            reads.lock().unwrap_or_else(|e| e.into_inner()).note(offset..end);
        }
        Ok(())
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        refused()
    }

    fn write_durable_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        refused()
    }

    fn write_back(&self, _: u64, _: u64) {}

    fn wait_written(&self, _: u64, _: u64) {}

    fn sync_data(&self) -> io::Result<()> {
        refused()
    }

    fn sync_all(&self) -> io::Result<()> {
        refused()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        refused()
    }

    fn allocate(&self, _: u64, _: u64) -> io::Result<bool> {
        refused()
    }

    fn punch(&self, _: u64, _: u64) -> io::Result<()> {
        refused()
    }

    fn try_lock(&self, _: bool) -> io::Result<bool> {
        Ok(true)
    }
}
