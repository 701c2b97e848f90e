//! What a file that was a mirror has, when mirroring goes on.

use super::chain::{Arrival, LogReader};
use super::dest::Dest;
use super::named::{pieces, reach};
use super::places::goal_of;
use crate::backup::failed;
use crate::base::codec::usize_of64;
use crate::base::error::{Error, Result};
use crate::base::limits::ALIGN_BYTES;
use crate::engine::{Length, named_bytes, read_manifest};
use crate::format::manifest::Manifest;
use crate::format::superblock::Superblock;
use crate::storage::{File, read_error};
use std::path::Path;
use std::sync::Arc;

const LOADING: &str = "reading the mirror";

/// Makes both copies of the superblock durable: the next checkpoint must not write over the only one. Also
/// where both are there, since after a failed sync one may be in the system's memory only. It may be the
/// first, so that is not the last to be written.
pub(super) fn secure(path: &Path, file: &dyn File, block: &Superblock) -> Result<()> {
    let bytes = block.encode();
    let written = file.write_durable_at(&bytes, 0).and_then(|()| file.write_durable_at(&bytes, ALIGN_BYTES));
    written.map_err(failed(path, LOADING))
}

/// Reads what a mirror has. Its last frames, and its length, may be in the system's memory only: they are
/// written again, and all is synced.
pub(super) fn load(path: &Path, file: Arc<dyn File>, block: Superblock) -> Result<Dest> {
    let mut dest = Dest::new(path, file)?;
    let length = Length { path, file_bytes: dest.len, read_only: false };
    let (manifest, extent) = read_manifest(dest.file.as_ref(), &block.manifest, &length)?;
    length.expect(named_bytes(&manifest, extent))?;
    let (file_id, number) = (block.file_id, block.number);
    dest.block = Some(block);
    dest.commit = manifest.flushed_seq;
    dest.states.insert(number, super::spans::Spans::default());
    extent.into_iter().for_each(|e| dest.claim(e.offset, e.len));
    for piece in pieces(&manifest) {
        dest.claim(piece.offset, piece.bytes);
        dest.copied.note(piece, None);
    }
    read_log(&mut dest, file_id, &manifest)?;
    dest.manifest = manifest;
    Ok(dest)
}

fn read_log(dest: &mut Dest, file_id: u64, manifest: &Manifest) -> Result<()> {
    let mut log = LogReader::new(file_id, manifest);
    let file = dest.file.clone();
    let mut reach = reach(manifest);
    let mut frames: Vec<(u64, u64, u64, u64)> = Vec::new();
    while log.read(file.as_ref(), dest.len)? {
        for arrival in log.take_all() {
            let Arrival { chain, placed, commit, values, .. } = &arrival;
            reach = goal_of(&arrival).map_or(reach, |goal| reach.max(goal.end()));
            dest.commit = commit.map_or(dest.commit, |commit| dest.commit.max(commit));
            for piece in values {
                if piece.offset.saturating_add(piece.bytes) > dest.len {
                    return Err(Error::corrupt(
                        "log",
                        placed.offset,
                        "it refers to values behind the file's end",
                    ));
                }
                dest.claim(piece.offset, piece.bytes);
                dest.copied.note(*piece, None);
            }
            let (offset, bytes) = arrival.extent();
            dest.claim(offset, bytes);
            frames.push((*chain, placed.frame.number, offset, bytes));
        }
    }
    log.check(file.as_ref())?;
    for at in log.positions() {
        for &(.., offset, bytes) in frames.iter().filter(|f| f.0 == at.chain && f.1 >= at.safe_below) {
            rewrite(dest, offset, bytes)?;
        }
        dest.places.found(&at);
    }
    file.set_len(dest.len).and_then(|()| file.sync_data()).map_err(failed(&dest.path, LOADING))?;
    dest.places.reaches(reach);
    if log.has_below(|_| 0) {
        Ok(())
    } else {
        Err(Error::corrupt("log", 0, "frames are missing that were durable"))
    }
}

/// Writes the bytes that stand in a place once more: a failed sync may have left them in memory only, and
/// another sync would not write them. As they stay what they are, a torn write does no harm.
fn rewrite(dest: &Dest, offset: u64, bytes: u64) -> Result<()> {
    let mut there = vec![0; usize_of64(bytes.min(dest.len.saturating_sub(offset)))];
    dest.file.read_at(&mut there, offset).map_err(|e| read_error(e, offset))?;
    dest.file.write_at(&there, offset).map_err(failed(&dest.path, LOADING))
}
