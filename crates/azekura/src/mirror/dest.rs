//! The file that is a mirror: which states of it must stay as they are, and how it comes to the next one.
//!
//! A state is a checkpoint with its log. Its extents stay as they are as long as it is the newest one, or a
//! reader of the mirror has pinned it: `put` and `put_frame` refuse to write there. The next state is written
//! beside it, synced, and then named by the superblock, copy A first, as every writer does it.

use super::chain::{Arrival, ShownValue};
use super::copied::{Copied, Piece};
use super::places::{ChainAt, Places, goal_of};
use super::spans::Spans;
use crate::backup::failed;
use crate::base::checksum::crc;
use crate::base::codec::{u32_of, usize_of64};
use crate::base::error::{Error, Result};
use crate::base::fault::fault;
use crate::base::limits::{ALIGN_BYTES, SUPERBLOCKS_BYTES, align_up};
use crate::format::frame::{Frame, NO_RECORD};
use crate::format::manifest::{LogChain, Manifest};
use crate::format::point::digest;
use crate::format::superblock::{INLINE_BYTES_MAX, ManifestAt, PinRules, Superblock};
use crate::storage::{File, pins_of_others};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const WRITING: &str = "writing the mirror";
/// The file is cut when so much of its end is of no use.
const NEEDLESS_END_BYTES: u64 = 1 << 20;
/// A value is compared with its checksum in pieces of this size.
const LOOK_BYTES: usize = 1 << 20;

/// Why shipping ends before its end.
pub(super) enum Stop {
    Failed(Error),
    /// A state of the mirror needs what stands where something was to be written.
    Taken,
    /// The source has a newer checkpoint, and what was read may be something else.
    Overtaken,
    /// The caller wants no more.
    Ended,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

pub(super) type Going<T> = std::result::Result<T, Stop>;

/// The file of a mirror.
pub(super) struct Dest {
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn File>,
    pub(super) len: u64,
    /// The newest state, unless there is none yet.
    pub(super) block: Option<Superblock>,
    pub(super) manifest: Manifest,
    /// The newest commit in it.
    pub(super) commit: u64,
    /// What the states need: the newest, and those that readers have pinned.
    pub(super) states: BTreeMap<u64, Spans>,
    /// What the next state needs, while it is being written.
    pub(super) next: Option<Spans>,
    pub(super) copied: Copied,
    /// So many bytes an unfinished file had. What of them is right is not written again.
    left: u64,
    pub(super) places: Places,
    /// Whether something was written since the last sync.
    unsynced: bool,
    /// What has failed: then nobody knows any more what is durable.
    failed: Option<String>,
}

impl Dest {
    /// A file in which nothing stands yet.
    pub(super) fn new(path: &Path, file: Arc<dyn File>) -> Result<Dest> {
        let len = file.len().map_err(failed(path, "opening the mirror"))?;
        Ok(Dest {
            path: path.to_path_buf(),
            file,
            len,
            block: None,
            manifest: Manifest::default(),
            commit: 0,
            states: BTreeMap::new(),
            next: None,
            copied: Copied::default(),
            left: if len > SUPERBLOCKS_BYTES { len } else { 0 },
            places: Places::default(),
            unsynced: false,
            failed: None,
        })
    }

    /// The number of the newest state, or 0.
    pub(super) fn number(&self) -> u64 {
        self.block.as_ref().map_or(0, |block| block.number)
    }

    /// An error if a write or a sync has failed.
    pub(super) fn check(&self) -> Result<()> {
        match &self.failed {
            Some(cause) => Err(Error::Poisoned { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    /// Keeps a failure, unless the disk was full: then nothing has happened.
    fn keep_failure(&mut self, done: std::io::Result<()>) -> Result<()> {
        let done = done.map_err(failed(&self.path, WRITING));
        match done {
            Err(Error::NoSpace { .. }) => done,
            done => self.keep_any_failure(done),
        }
    }

    /// The same for what makes durable: afterwards nobody knows what is.
    pub(super) fn keep_any_failure(&mut self, done: Result<()>) -> Result<()> {
        if let Err(e) = &done {
            self.failed = Some(e.to_string());
        }
        done
    }

    /// Some bytes belong to the state that is written to.
    pub(super) fn claim(&mut self, offset: u64, bytes: u64) {
        let number = self.number();
        let spans = match &mut self.next {
            Some(next) => next,
            None => self.states.entry(number).or_default(),
        };
        spans.add(offset, bytes);
    }

    /// Whether who opens the mirror as it is finds a frame that is to come.
    pub(super) fn shows(&self, arrival: &Arrival) -> bool {
        self.block.is_some() && arrival.is_lacking(&self.places) && self.is_open(arrival.chain)
    }

    /// Whether the newest state goes on with the frames that come to a chain.
    pub(super) fn is_open(&self, chain: u64) -> bool {
        self.manifest.logs.iter().any(|log| log.chain == chain && log.end_frame == u64::MAX)
    }

    /// While the next state is being written, a frame has come to the newest one too, with what that shows by
    /// it.
    pub(super) fn claim_shown(&mut self, arrival: &Arrival) {
        if self.next.is_some() && self.shows(arrival) {
            let number = self.number();
            let spans = self.states.entry(number).or_default();
            let (offset, bytes) = arrival.extent();
            spans.add(offset, bytes);
            let blocks = arrival.shown.iter().flat_map(|value| &value.blocks);
            blocks.for_each(|block| spans.add(block.offset, block.bytes));
        }
    }

    /// Whether a large value stands where the newest state finds it.
    pub(super) fn has_value(&self, value: &ShownValue) -> bool {
        let mut sum = 0;
        let mut len = 0;
        for piece in &value.bytes {
            for from in (0..piece.bytes).step_by(LOOK_BYTES) {
                let mut bytes = vec![0; LOOK_BYTES.min(usize_of64(piece.bytes - from))];
                if self.file.read_at(&mut bytes, piece.offset + from).is_err() {
                    return false;
                }
                sum = crc(sum, &bytes);
            }
            len += piece.bytes;
        }
        (len, sum) == (u64::from(value.at.len), value.at.crc)
    }

    /// Makes the file at least this long.
    pub(super) fn reach(&mut self, end: u64) -> Result<()> {
        if end > self.len {
            let done = self.file.set_len(end);
            self.keep_failure(done)?;
            self.len = end;
            self.unsynced = true;
        }
        Ok(())
    }

    /// Writes bytes. Where a state needs what stands there these must be the same: then they are not written.
    pub(super) fn put_bytes(&mut self, bytes: &[u8], offset: u64) -> Going<()> {
        let len = bytes.len() as u64;
        if offset < SUPERBLOCKS_BYTES {
            return Err(
                Error::corrupt("mirror's source", offset, "something stands where superblocks do").into()
            );
        }
        let mut needed = Spans::default();
        for part in self.states.values().flat_map(|spans| spans.parts_of(offset, len)) {
            needed.add(part.start, part.end - part.start);
        }
        let within =
            |part: &Range<u64>| &bytes[usize_of64(part.start - offset)..usize_of64(part.end - offset)];
        if !needed.parts_of(offset, len).all(|part| self.has_bytes(within(&part), part.start)) {
            return Err(Stop::Taken);
        }
        let mut at = offset;
        for part in needed.parts_of(offset, len).chain(std::iter::once(offset + len..offset + len)) {
            if at < part.start {
                self.write(within(&(at..part.start)), at)?;
            }
            at = part.end;
        }
        Ok(())
    }

    /// Writes bytes where no state needs what stands there.
    fn write(&mut self, bytes: &[u8], offset: u64) -> Result<()> {
        let len = bytes.len() as u64;
        self.copied.forget(offset, len);
        self.unsynced = true;
        let done = self.file.write_at(bytes, offset);
        self.keep_failure(done)?;
        self.len = self.len.max(offset + len);
        Ok(())
    }

    fn has_bytes(&self, bytes: &[u8], offset: u64) -> bool {
        let mut there = vec![0; bytes.len()];
        self.file.read_at(&mut there, offset).is_ok_and(|()| there == bytes)
    }

    /// Whether a file that was left unfinished has a piece, or a part of one, in its place. Then it is noted
    /// as copied, and made durable with all else.
    pub(super) fn finds(&mut self, piece: &Piece, bytes: &[u8]) -> bool {
        let is_there = self.block.is_none()
            && piece.offset + piece.bytes <= self.left
            && self.has_bytes(bytes, piece.offset);
        if is_there {
            self.unsynced = true;
            self.copied.note(*piece, Some(digest(bytes)));
        }
        is_there
    }

    /// So many bytes an unfinished file had when building went on in it.
    pub(super) fn left(&self) -> u64 {
        if self.block.is_none() { self.left } else { 0 }
    }

    /// In a file that was left unfinished, what stands where the next frame of a chain will is no frame.
    pub(super) fn clear_tail(&mut self, log: &LogChain) -> Going<()> {
        if self.left == 0 || self.block.is_some() {
            return Ok(());
        }
        let tail = self.places.at(log.chain).and_then(|at| at.tail).unwrap_or(log.first.offset);
        let is_needed = self.next.as_ref().is_some_and(|next| next.meets(tail, ALIGN_BYTES));
        if is_needed || tail.saturating_add(ALIGN_BYTES) > self.left {
            return Ok(());
        }
        self.put_bytes(&vec![0; usize_of64(ALIGN_BYTES)], tail)
    }

    /// Writes a piece, or a part of one.
    pub(super) fn put(&mut self, piece: &Piece, bytes: &[u8]) -> Going<()> {
        self.put_bytes(bytes, piece.offset)?;
        self.copied.note(*piece, Some(digest(bytes)));
        self.file.write_back(piece.offset, piece.bytes);
        Ok(())
    }

    /// Writes a frame, which says of others what is true here.
    pub(super) fn put_frame(&mut self, arrival: &Arrival) -> Going<()> {
        let placed = &arrival.placed;
        let size = align_up(placed.bytes.len() as u64);
        let mut bytes = placed.bytes.clone();
        bytes.resize(usize_of64(size), 0);
        let frame = Frame {
            checkpoint: placed.frame.checkpoint.min(self.number()),
            durable_below: self.places.durable_below(arrival.chain).min(placed.frame.number),
            ..placed.frame
        };
        frame.seal(&mut bytes);
        if placed.frame.jump {
            bytes = bytes.repeat(2);
            if let Some(goal) = goal_of(arrival) {
                self.reach(goal.end())?;
            }
        }
        self.put_bytes(&bytes, placed.offset)
    }

    /// Makes all that was written durable.
    pub(super) fn sync(&mut self) -> Result<()> {
        self.check()?;
        if self.unsynced {
            let done = self.file.sync_data().map_err(failed(&self.path, WRITING));
            self.keep_any_failure(done)?;
            self.unsynced = false;
        }
        Ok(())
    }

    /// Says of the last frames of a chain that they are durable, as a resting log does. Needs no sync.
    pub(super) fn vouch(&mut self, chain: u64) -> Going<()> {
        let Some(ChainAt { below, tail: Some(tail), clock, .. }) = self.places.at(chain) else {
            return Ok(());
        };
        let Some(file_id) = self.block.as_ref().map(|block| block.file_id) else { return Ok(()) };
        let mut bytes = vec![0; usize_of64(ALIGN_BYTES)];
        let frame = Frame {
            file_id,
            chain,
            number: below,
            len: 0,
            first_record: NO_RECORD,
            jump: false,
            clock,
            checkpoint: self.number(),
            durable_below: below,
        };
        frame.seal(&mut bytes);
        match self.put_bytes(&bytes, tail) {
            // A state that readers have pinned stands there.
            Err(Stop::Taken) => Ok(()),
            done => done,
        }
    }

    /// Makes what was written since `next` was begun the newest state.
    pub(super) fn publish(&mut self, block: Superblock, manifest: Manifest, commit: u64) -> Result<()> {
        if !fault!("mirror_skip_sync") {
            self.sync()?;
        }
        self.write_first(&block)?;
        self.len = self.len.max(SUPERBLOCKS_BYTES);
        let number = block.number;
        let spans = self.next.take().unwrap_or_default();
        self.block = Some(block);
        self.manifest = manifest;
        self.commit = commit;
        self.states.insert(number, spans);
        let found = self.find_pins();
        self.write_second()?;
        found
    }

    fn write_first(&mut self, block: &Superblock) -> Result<()> {
        let done = self.file.write_durable_at(&block.encode(), 0);
        self.keep_any_failure(done.map_err(failed(&self.path, WRITING)))
    }

    fn write_second(&mut self) -> Result<()> {
        let Some(bytes) = self.block.as_ref().map(Superblock::encode) else { return Ok(()) };
        self.unsynced = true;
        let done = self.file.write_at(&bytes, ALIGN_BYTES);
        self.keep_any_failure(done.map_err(failed(&self.path, WRITING)))
    }

    /// Says that pins of these states are not honoured any more, and then lets go of them.
    pub(super) fn revoke(&mut self, revoked: &Range<u64>) -> Result<()> {
        let Some(block) = self.block.clone() else { return Ok(()) };
        let honoured_from = revoked.end.min(block.number).max(block.pins.honoured_from);
        let block = Superblock { pins: PinRules { honoured_from, ..block.pins }, ..block };
        // The second copy first: one of the two must be whole at each moment.
        self.unsynced = true;
        self.sync()?;
        self.write_first(&block)?;
        let newest = block.number;
        self.block = Some(block);
        self.write_second()?;
        self.states.retain(|number, _| *number == newest || !revoked.contains(number));
        Ok(())
    }

    /// Lets go of the states that nobody reads any more. REQUIRES: the newest one is what readers find.
    pub(super) fn find_pins(&mut self) -> Result<()> {
        let newest = self.number();
        if self.states.len() > 1 {
            let pins = pins_of_others(self.file.as_ref()).map_err(failed(&self.path, "asking for pins"))?;
            let is_pinned = |number: &u64| pins.iter().any(|pin| pin.contains(number));
            self.states.retain(|number, _| *number == newest || is_pinned(number));
        }
        Ok(())
    }

    /// Cuts off the end that no state needs.
    pub(super) fn cut_end(&mut self) -> Result<()> {
        let end = self.states.values().map(Spans::end).max().unwrap_or(0);
        let end = align_up(end.max(self.places.reach()).max(SUPERBLOCKS_BYTES));
        if self.next.is_none() && self.len > end.saturating_add(NEEDLESS_END_BYTES) {
            let done = self.file.set_len(end);
            self.keep_failure(done)?;
            self.copied.forget(end, u64::MAX - end);
            self.len = end;
            self.unsynced = true;
        }
        Ok(())
    }

    /// Puts a manifest of the mirror's own behind all that stands in the file, and behind `end`.
    pub(super) fn place_manifest(&mut self, manifest: &Manifest, end: u64) -> Going<ManifestAt> {
        let mut bytes = manifest.encode();
        if bytes.len() <= INLINE_BYTES_MAX {
            return Ok(ManifestAt::Inline(bytes));
        }
        let (offset, len, sum) = (align_up(self.len.max(end)), u32_of(bytes.len()), crc(0, &bytes));
        bytes.resize(usize_of64(align_up(u64::from(len))), 0);
        self.put_bytes(&bytes, offset)?;
        self.claim(offset, bytes.len() as u64);
        Ok(ManifestAt::Extent { offset, len, crc: sum })
    }
}
