//! The file that is mirrored, as its followers see it.
//!
//! If it is on another machine, `afar` is who asks there for more than a file can be asked.

use super::status::MirrorStatus;
use crate::backup::failed;
use crate::base::codec::usize_of64;
use crate::base::error::{Error, Result};
use crate::base::limits::SUPERBLOCKS_BYTES;
use crate::engine::{Length, honoured_from, read_manifest};
use crate::format::manifest::Manifest;
use crate::format::superblock::{self, NUMBER_AT, Parsed, Superblock};
use crate::space::Extent;
use crate::storage::{File, Lease, OpenMode, Storage, read_error};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The source of a mirror.
pub(super) struct MirrorSource {
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn File>,
    /// The same file, where the log is read. What it gives may be as old as the last look or pin.
    pub(super) log: Arc<dyn File>,
    pub(super) storage: Arc<dyn Storage>,
    /// A checkpoint of which one superblock is there, and that counts, for its writer has gone.
    pub(super) settled: Option<Superblock>,
    /// None if the file is on this machine.
    pub(super) afar: Option<Arc<dyn Afar>>,
}

/// What a source on another machine does beside being read.
pub(super) trait Afar: Send + Sync {
    /// Looks at the file, when something has come at the log's tail, or a checkpoint, or the time is over.
    /// What the superblocks and the log are read for afterwards is as it was then, until more is asked.
    ///
    /// # Errors
    /// Those of the way to it, and its own.
    fn look(&self, tail: u64, wait: Duration) -> io::Result<()>;

    /// The digest of what stands in a place.
    ///
    /// # Errors
    /// As `look`.
    fn digest(&self, offset: u64, bytes: u64) -> io::Result<u128>;

    /// The file will be read there, by a read of the same length.
    ///
    /// # Errors
    /// As `look`.
    fn will_read(&self, offset: u64, bytes: u64) -> io::Result<()>;

    /// What it was told to read is to be read again.
    ///
    /// # Errors
    /// As `look`.
    fn reads_anew(&self) -> io::Result<()>;

    /// Makes the file durable if nobody writes it, which is said. Then its superblocks are read afterwards as
    /// they were while nobody could begin to, until more is asked.
    ///
    /// # Errors
    /// As `look`.
    fn settle(&self) -> io::Result<bool>;

    /// Bytes that have come from it, as it sent them.
    fn came(&self) -> u64;

    /// Hears how far the mirror is.
    fn tell(&self, status: &MirrorStatus);
}

impl MirrorSource {
    /// Both superblocks. None for one that is not whole, or just being written.
    fn blocks(&self) -> Result<[Option<Superblock>; 2]> {
        let mut bytes = vec![0; usize_of64(SUPERBLOCKS_BYTES)];
        self.file.read_at(&mut bytes, 0).map_err(|e| read_error(e, 0))?;
        let (a, b) = bytes.split_at(superblock::BYTES);
        let parse = |bytes: &[u8]| match Superblock::parse(bytes)? {
            Parsed::Valid(block) => Ok(Some(block)),
            Parsed::Damaged => Ok(None),
            Parsed::Foreign => {
                let path = self.path.display().to_string();
                Err(Error::NotADatabase { path, reason: "no superblock at its start".into() })
            }
        };
        Ok([parse(a)?, parse(b)?])
    }

    /// The newest checkpoint, if it is surely durable: the second superblock is written when the first one
    /// is.
    pub(super) fn newest(&self) -> Result<Option<Superblock>> {
        let blocks = self.blocks()?;
        if blocks[0] == blocks[1] {
            return Ok(blocks.into_iter().next().flatten());
        }
        Ok(newer(blocks).filter(|block| self.settled.as_ref() == Some(block)))
    }

    /// Lets the newer superblock count although the other one is not the same, if nobody writes the file any
    /// more who could write that. Whoever opens the file takes it, too, and it is made durable first.
    pub(super) fn settle(&mut self) -> Result<()> {
        let Some(block) = newer(self.blocks()?) else { return Ok(()) };
        let mut again = None;
        let is_unwritten = match &self.afar {
            Some(afar) => afar.settle(),
            None => read_unwritten(self.file.as_ref(), || {
                again = Some(self.blocks());
                Ok(())
            }),
        };
        let at = failed(&self.path, "looking whether somebody writes it");
        if is_unwritten.map_err(at)? {
            let again = again.unwrap_or_else(|| self.blocks())?;
            self.settled = newer(again).filter(|again| *again == block);
        }
        Ok(())
    }

    /// The newest checkpoint of the file that has the source's name now.
    pub(super) fn newest_by_name(&self) -> Result<Option<Superblock>> {
        let opened = self.storage.open(&self.path, OpenMode::ReadOnly);
        let file = opened.map_err(failed(&self.path, "looking for the source"))?;
        let (path, storage) = (self.path.clone(), self.storage.clone());
        let settled = self.settled.clone();
        MirrorSource { path, log: file.clone(), file, storage, settled, afar: None }.newest()
    }

    /// Whether there is no newer checkpoint than this one.
    pub(super) fn is_newest(&self, number: u64) -> Result<bool> {
        if self.settled.as_ref().is_some_and(|settled| settled.number == number) {
            return Ok(self.newest()?.is_some_and(|newest| newest.number == number));
        }
        let mut bytes = [0; 8];
        self.file.read_at(&mut bytes, NUMBER_AT).map_err(|e| read_error(e, NUMBER_AT))?;
        Ok(u64::from_le_bytes(bytes) == number)
    }

    /// Pins a checkpoint. That it keeps something is sure if it is still the newest one afterwards.
    pub(super) fn pin(&self, number: u64) -> Result<Arc<Lease>> {
        Lease::pin(self.file.clone(), number).map_err(|e| match Error::io("pinning a checkpoint", e) {
            Error::Io { source, .. } => {
                let detail = format!("the file cannot be followed: {source}");
                Error::open(&self.path, source.kind(), detail)
            }
            other => other,
        })
    }

    /// Whether the pin of a checkpoint is honoured, and what was read under it is what it names.
    pub(super) fn honours(&self, block: &Superblock) -> Result<bool> {
        if block.pins.revocable_from == 0 {
            return Ok(true);
        }
        let from = honoured_from(self.file.as_ref()).map_err(|e| Error::io("looking at the pins", e))?;
        Ok(from <= block.number)
    }

    pub(super) fn manifest(&self, block: &Superblock) -> Result<(Manifest, Option<Extent>)> {
        let length = Length { path: &self.path, file_bytes: self.len()?, read_only: true };
        read_manifest(self.file.as_ref(), &block.manifest, &length)
    }

    pub(super) fn len(&self) -> Result<u64> {
        self.file.len().map_err(|e| Error::io("reading the file's length", e))
    }

    /// Looks at a source on another machine: see [`Afar::look`].
    pub(super) fn look(&self, tail: u64, wait: Duration) -> Result<()> {
        let Some(afar) = &self.afar else { return Ok(()) };
        afar.look(tail, wait).map_err(|e| Error::io("looking at the source", e))
    }

    pub(super) fn read(&self, offset: u64, bytes: u64) -> Result<Vec<u8>> {
        let mut read = vec![0; usize_of64(bytes)];
        self.file.read_at(&mut read, offset).map_err(|e| read_error(e, offset))?;
        Ok(read)
    }
}

/// Makes durable what stands in a file, and reads it while nobody can begin to write. False if somebody
/// writes it already.
pub(super) fn read_unwritten(file: &dyn File, read: impl FnOnce() -> io::Result<()>) -> io::Result<bool> {
    // The lock is never held for long: a writer that comes then would be refused. It is a shared one.
    if !file.try_lock(false)? {
        return Ok(false);
    }
    file.unlock()?;
    file.sync_data()?;
    if !file.try_lock(false)? {
        return Ok(false);
    }
    let done = read();
    file.unlock()?;
    done.map(|()| true)
}

/// The superblock with the higher number, of those that are whole.
fn newer([a, b]: [Option<Superblock>; 2]) -> Option<Superblock> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.number > a.number { b } else { a }),
        (a, b) => a.or(b),
    }
}
