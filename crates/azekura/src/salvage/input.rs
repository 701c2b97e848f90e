//! Reads a damaged file. What cannot be read counts as zeros, which no checksum accepts.

use crate::base::codec::usize_of64;
use crate::base::error::{Error, Result};
use crate::base::limits::ALIGN_BYTES;
use crate::space::Extent;
use crate::storage::{File, OpenMode, Storage};
use std::cell::Cell;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// How many places may be looked at in vain: for each block of the file, and in addition.
const LOOKS_OF_BLOCK: u64 = 4;
const LOOKS_MIN: u64 = 1024;
/// How often the file's length may be read of frames and meta blocks. Together these are at most as long as
/// the file, and each is read a few times. The limit is for hostile files.
const CLAIMED_OF_FILE: u64 = 256;

/// The damaged file. Nothing is ever written to it.
pub(super) struct Input {
    file: Arc<dyn File>,
    len: u64,
    /// Bytes that the system could not read.
    unreadable: Cell<u64>,
    /// How many places may still be looked at in vain.
    looks: Cell<u64>,
    /// How many bytes may still be read of structures that state their own length.
    claimed: Cell<u64>,
}

impl Input {
    /// Opens a file for reading. Fails if another handle writes to it, where there are locks.
    pub(super) fn open(storage: &dyn Storage, path: &Path) -> Result<Input> {
        if !storage.exists(path).map_err(|e| Error::io("looking for the damaged file", e))? {
            return Err(Error::open(path, io::ErrorKind::NotFound, "the file does not exist"));
        }
        let file =
            storage.open(path, OpenMode::ReadOnly).map_err(|e| Error::io("opening the damaged file", e))?;
        // On a file system without locks nobody can hold one.
        if let Ok(false) = file.try_lock(false) {
            return Err(Error::Locked { path: path.display().to_string(), exclusive: false });
        }
        let len = file.len().map_err(|e| Error::io("reading the damaged file's length", e))?;
        let looks = LOOKS_MIN.saturating_add(len / ALIGN_BYTES * LOOKS_OF_BLOCK);
        let claimed = len.saturating_mul(CLAIMED_OF_FILE);
        Ok(Input {
            file,
            len,
            unreadable: Cell::new(0),
            looks: Cell::new(looks),
            claimed: Cell::new(claimed),
        })
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Whether one more place may be looked at that may have no page. A manifest that names each place once
    /// never runs out. One that names few places again and again does.
    pub(super) fn may_look(&self) -> bool {
        let left = self.looks.get();
        self.looks.set(left.saturating_sub(1));
        left > 0
    }

    /// Whether a structure may be read that states this length.
    pub(super) fn may_read(&self, bytes: usize) -> bool {
        let left = self.claimed.get().checked_sub(bytes as u64);
        left.inspect(|&left| self.claimed.set(left)).is_some()
    }

    pub(super) fn unreadable_bytes(&self) -> u64 {
        self.unreadable.get()
    }

    /// Fills `out` from `offset` on.
    pub(super) fn read(&self, offset: u64, out: &mut [u8]) {
        let have = usize_of64(self.len.saturating_sub(offset)).min(out.len());
        let (there, beyond) = out.split_at_mut(have);
        beyond.fill(0);
        if there.is_empty() || self.file.read_at(there, offset).is_ok() {
            return;
        }
        // One bad sector must not cost what is around it.
        let mut at = offset;
        let mut rest = there;
        while !rest.is_empty() {
            let n = rest.len().min(usize_of64(ALIGN_BYTES - at % ALIGN_BYTES));
            let (block, later) = rest.split_at_mut(n);
            if self.file.read_at(block, at).is_err() {
                block.fill(0);
                self.unreadable.set(self.unreadable.get() + n as u64);
            }
            at += n as u64;
            rest = later;
        }
    }

    /// Fills `out` from byte `at` on of what is in `extents`, one after the other. What is behind them reads
    /// as zeros.
    pub(super) fn read_extents(&self, extents: &[Extent], at: u64, out: &mut [u8]) {
        let (mut at, mut rest, mut before) = (at, out, 0u64);
        for e in extents {
            let end = before.saturating_add(e.len);
            if at < end && !rest.is_empty() {
                let n = usize_of64((end - at).min(rest.len() as u64));
                let (now, later) = rest.split_at_mut(n);
                self.read(e.offset + (at - before), now);
                at += n as u64;
                rest = later;
            }
            before = end;
        }
        rest.fill(0);
    }
}
