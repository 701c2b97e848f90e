//! Files in memory, for tests. Names map to nodes. A node outlives its name while a handle is open, as on
//! Unix. Contents are kept in chunks. A chunk that was never written is absent and reads as zeros, so a
//! sparse file of any length costs only what was written. No directory is ever made: a path is just a
//! name, and says which directory it is in. Syncs do nothing, since nothing can be lost.
//!
//! Lock order: the name table, then a node's contents, lock holders, pins or acknowledgements.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use super::range::{end_of, len_of};
use super::{File, OpenMode, Storage};
use crate::base::codec::usize_of64;

/// The unit in which contents are kept, in bytes.
const CHUNK_BYTES: u64 = 64 << 10;

/// Files in memory, for tests. Clones share the files. Locks exclude one handle from another as the operating
/// system's do.
///
/// ```
/// use azekura::{Db, Options, TableKind, storage::MemStorage};
/// let disk = MemStorage::default();
/// let db = Db::open_on(&disk, "test.azk", Options::new())?;
/// db.table("t", TableKind::Hash)?.put("k", "v")?;
/// db.close()?;
/// let again = Db::open_on(&disk, "test.azk", Options::new())?;
/// assert_eq!(again.open_table("t")?.get("k")?.unwrap(), b"v");
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct MemStorage {
    nodes: Arc<Mutex<BTreeMap<PathBuf, Arc<Node>>>>,
}

impl Storage for MemStorage {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut nodes = self.nodes.lock();
        let node = match (nodes.get(path), mode) {
            (Some(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(node), _) => Arc::clone(node),
            (None, OpenMode::CreateNew) => {
                let node = Arc::new(Node::default());
                nodes.insert(path.to_path_buf(), Arc::clone(&node));
                node
            }
            (None, _) => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Arc::new(MemFile {
            handle: node.handles.fetch_add(1, Ordering::Relaxed),
            writable: mode != OpenMode::ReadOnly,
            node,
        }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.nodes.lock().contains_key(path))
    }

    fn rename(&self, from: &Path, to: &Path, replace: bool) -> io::Result<()> {
        let mut nodes = self.nodes.lock();
        let node = match nodes.get(from) {
            Some(node) => Arc::clone(node),
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        if !replace && nodes.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        nodes.remove(from);
        nodes.insert(to.to_path_buf(), node);
        Ok(())
    }

    fn exchange(&self, a: &Path, b: &Path) -> io::Result<()> {
        let mut nodes = self.nodes.lock();
        let find = |path: &Path| nodes.get(path).cloned().ok_or(io::ErrorKind::NotFound);
        let (of_a, of_b) = (find(a)?, find(b)?);
        nodes.insert(a.to_path_buf(), of_b);
        nodes.insert(b.to_path_buf(), of_a);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match self.nodes.lock().remove(path) {
            Some(_) => Ok(()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn sync_dir_of(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn names_in(&self, dir: &Path) -> io::Result<Vec<String>> {
        let nodes = self.nodes.lock();
        let inside = nodes.keys().filter(|path| path.parent() == Some(dir));
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }
}

/// What a name stands for.
#[derive(Default)]
struct Node {
    contents: RwLock<Contents>,
    holders: Mutex<Holders>,
    /// Which handle has pinned which checkpoint, and how many times.
    pins: Mutex<BTreeMap<(u64, u64), u32>>,
    /// What handles have acknowledged.
    acks: Mutex<BTreeMap<u64, u64>>,
    /// How many handles were ever opened. Each handle takes its number from here.
    handles: AtomicU64,
}

/// The handles that hold the lock. An exclusive holder is the only one.
#[derive(Default)]
struct Holders {
    exclusive: Option<u64>,
    shared: BTreeSet<u64>,
}

impl Holders {
    fn release(&mut self, handle: u64) {
        self.shared.remove(&handle);
        if self.exclusive == Some(handle) {
            self.exclusive = None;
        }
    }
}

/// The bytes: chunk `i` begins at `i * CHUNK_BYTES`. Invariant: bytes of a chunk at or after `len` are zero.
#[derive(Default)]
struct Contents {
    len: u64,
    chunks: BTreeMap<u64, Box<[u8]>>,
}

/// The parts of a range by chunk: chunk number, first byte in it, number of bytes.
fn parts(offset: u64, end: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let chunk = at / CHUNK_BYTES;
        let first = at % CHUNK_BYTES;
        let count = (CHUNK_BYTES - first).min(end - at);
        at += count;
        Some((chunk, usize_of64(first), usize_of64(count)))
    })
}

impl Contents {
    fn read(&self, buf: &mut [u8], offset: u64, end: u64) {
        let mut rest = buf;
        for (chunk, first, count) in parts(offset, end) {
            let (part, after) = rest.split_at_mut(count);
            match self.chunks.get(&chunk) {
                Some(bytes) => part.copy_from_slice(&bytes[first..first + count]),
                None => part.fill(0),
            }
            rest = after;
        }
    }

    fn write(&mut self, buf: &[u8], offset: u64, end: u64) {
        let mut rest = buf;
        for (chunk, first, count) in parts(offset, end) {
            let (part, after) = rest.split_at(count);
            let bytes = self
                .chunks
                .entry(chunk)
                .or_insert_with(|| vec![0; usize_of64(CHUNK_BYTES)].into_boxed_slice());
            bytes[first..first + count].copy_from_slice(part);
            rest = after;
        }
        self.len = self.len.max(end);
    }

    fn zero(&mut self, offset: u64, end: u64) {
        let whole_first = offset.div_ceil(CHUNK_BYTES);
        let whole_end = end / CHUNK_BYTES;
        if whole_first < whole_end {
            let mut tail = self.chunks.split_off(&whole_first);
            let mut kept = tail.split_off(&whole_end);
            self.chunks.append(&mut kept);
        }
        // Only the chunks at the two ends can be left.
        let ends = [
            (offset, end.min(offset.next_multiple_of(CHUNK_BYTES))),
            (offset.max(whole_end * CHUNK_BYTES), end),
        ];
        for (chunk, first, count) in ends.into_iter().flat_map(|(from, to)| parts(from, to)) {
            if let Some(bytes) = self.chunks.get_mut(&chunk) {
                bytes[first..first + count].fill(0);
            }
        }
    }

    fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.zero(len, self.len.next_multiple_of(CHUNK_BYTES));
        }
        self.len = len;
    }
}

/// An open handle.
struct MemFile {
    node: Arc<Node>,
    handle: u64,
    writable: bool,
}

impl MemFile {
    fn check_writable(&self) -> io::Result<()> {
        if self.writable {
            return Ok(());
        }
        // As the operating system answers a write to a descriptor that was opened for reading.
        Err(rustix::io::Errno::BADF.into())
    }
}

impl File for MemFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let end = end_of(offset, len_of(buf))?;
        let contents = self.node.contents.read();
        if end > contents.len && !buf.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        contents.read(buf, offset, end);
        Ok(())
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let end = end_of(offset, len_of(buf))?;
        self.check_writable()?;
        if !buf.is_empty() {
            self.node.contents.write().write(buf, offset, end);
        }
        Ok(())
    }

    fn write_durable_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(buf, offset)
    }

    fn write_back(&self, _: u64, _: u64) {}

    fn wait_written(&self, _: u64, _: u64) {}

    /// The bytes become zeros, so that tests see who reads them all the same.
    fn forget(&self, offset: u64, len: u64) {
        let _refused = self.punch(offset, len);
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.node.contents.read().len)
    }

    fn identity(&self) -> io::Result<Option<[u64; 2]>> {
        Ok(Some([0, Arc::as_ptr(&self.node) as u64]))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        end_of(len, 0)?;
        self.check_writable()?;
        self.node.contents.write().set_len(len);
        Ok(())
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<bool> {
        let end = end_of(offset, len)?;
        self.check_writable()?;
        if len > 0 {
            let mut contents = self.node.contents.write();
            contents.len = contents.len.max(end);
        }
        Ok(true)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let end = end_of(offset, len)?;
        self.check_writable()?;
        let mut contents = self.node.contents.write();
        let end = end.min(contents.len);
        if offset < end {
            contents.zero(offset, end);
        }
        Ok(())
    }

    fn try_lock(&self, exclusive: bool) -> io::Result<bool> {
        let mut holders = self.node.holders.lock();
        // As `flock` does: the old lock goes first, and stays gone if the new one is refused.
        holders.release(self.handle);
        if holders.exclusive.is_some() || (exclusive && !holders.shared.is_empty()) {
            return Ok(false);
        }
        if exclusive {
            holders.exclusive = Some(self.handle);
        } else {
            holders.shared.insert(self.handle);
        }
        Ok(true)
    }

    fn unlock(&self) -> io::Result<()> {
        self.node.holders.lock().release(self.handle);
        Ok(())
    }

    fn pin(&self, number: u64) -> io::Result<()> {
        *self.node.pins.lock().entry((number, self.handle)).or_insert(0) += 1;
        Ok(())
    }

    fn unpin(&self, number: u64) {
        let mut pins = self.node.pins.lock();
        if let Some(count) = pins.get_mut(&(number, self.handle)) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&(number, self.handle));
            }
        }
    }

    fn pins(&self) -> io::Result<Vec<RangeInclusive<u64>>> {
        let pins = self.node.pins.lock();
        Ok(pins.keys().filter(|pin| pin.1 != self.handle).map(|pin| pin.0..=pin.0).collect())
    }

    fn acknowledge(&self, commit: Option<u64>) -> io::Result<()> {
        let mut acks = self.node.acks.lock();
        match commit {
            Some(commit) => {
                let newest = acks.entry(self.handle).or_insert(commit);
                *newest = commit.max(*newest);
            }
            None => drop(acks.remove(&self.handle)),
        }
        Ok(())
    }

    fn acknowledged(&self) -> io::Result<Option<u64>> {
        let acks = self.node.acks.lock();
        Ok(acks.iter().filter(|(handle, _)| **handle != self.handle).map(|(_, commit)| *commit).min())
    }
}

impl Drop for MemFile {
    fn drop(&mut self) {
        self.node.pins.lock().retain(|pin, _| pin.1 != self.handle);
        self.node.acks.lock().remove(&self.handle);
        self.node.holders.lock().release(self.handle);
    }
}
