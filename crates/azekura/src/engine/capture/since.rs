//! What was committed since a capture, read from the log of a file that another process writes.
//!
//! Chains are read on frame by frame, through one checkpoint after the other. The newest checkpoint that was
//! seen is pinned. It keeps what the log has needed since that one, until the next is seen. So who looks
//! often enough, at each checkpoint, misses nothing of the log. Whatever is missed is noticed:
//!
//! - commits have consecutive numbers. Those that were flushed before they were logged are in no log, and
//!   neither are those of a segment that was given back unread: then the next number is not the expected
//!   one, or the checkpoint has flushed a commit that was not read;
//! - tables that a checkpoint alone has renamed or dropped are not as the log says. So a frame that knows of
//!   a newer checkpoint is not believed before that one was seen, and never if it was not;
//! - a large value that was overwritten has another checksum.
//!
//! Then reading is **broken**, and what was read until there is still right. Each frame, and each large
//! value, is believed by its own checksum, whatever the pin.

use super::Capture;
use crate::base::checksum::crc;
use crate::base::codec::usize_of;
use crate::base::error::{Error, Result};
use crate::engine::build::len_of;
use crate::engine::follow::{CatchingUp, newest_block_now};
use crate::engine::followed::Followed;
use crate::engine::found::read_manifest;
use crate::engine::length::Length;
use crate::engine::state::State;
use crate::format::frame::{HEADER_BYTES, RecordPart, TableChange};
use crate::format::manifest::{LogChain, Manifest};
use crate::format::point::Tables;
use crate::format::superblock::Superblock;
use crate::log::recovery::ChainReader;
use crate::log::stream::Stream;
use crate::space::{Extent, scattered};
use crate::storage::File;
use crate::values::ValuePointer;
use std::collections::BTreeMap;
use std::sync::Arc;

/// After so many checkpoints in a row reading is over for now.
const ROUNDS: u32 = 16;

/// How far the log was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// To its end, for now.
    Level,
    /// As far as it goes. What was committed next is not in it any more.
    Broken,
}

/// Where the reading of a log has come to.
pub(crate) struct LogSince {
    /// The newest checkpoint that was seen, and its pin. None before the first.
    seen: Option<SeenCheckpoint>,
    position: Position,
}

/// The last commit that was read.
struct Position {
    last: u64,
    /// The newest checkpoint that was seen, and before the first that of the capture.
    checkpoint: u64,
    /// The tables after it.
    tables: Tables,
    /// The latest time that a frame has said.
    clock: u32,
    is_broken: bool,
}

/// A checkpoint, and how far its chains were read.
struct SeenCheckpoint {
    number: u64,
    chains: Vec<Chain>,
    /// Whether a frame was met that knows of a newer checkpoint.
    is_over: bool,
    places: Places,
    /// The number of each of its runs, and how many bytes it has.
    runs: Vec<(u64, u64)>,
    _pinned: Arc<State>,
}

/// The reading of one chain.
struct Chain {
    frames: ChainReader,
    records: Stream,
}

/// Where value segments stand, by their numbers.
struct Places(BTreeMap<u32, Vec<Extent>>);

impl Places {
    fn of(manifest: &Manifest) -> Places {
        Places(manifest.values.iter().map(|v| (v.id, v.extents.clone())).collect())
    }

    /// Appends a large value of a commit. The manifest knows where its segment is, unless the segment is
    /// newer, or has gone.
    fn read(&self, file: &dyn File, part: &RecordPart, at: ValuePointer, out: &mut Vec<u8>) -> Result<bool> {
        let named = part.segments.iter().filter(|segment| segment.0 == at.segment);
        let named = named.map(|segment| std::slice::from_ref(&segment.1));
        for extents in self.0.get(&at.segment).map(Vec::as_slice).into_iter().chain(named) {
            let (from, to) = at.range();
            if scattered::check_inside(extents, from, to, len_of(file)?).is_err() {
                continue;
            }
            let before = out.len();
            out.resize(before + usize_of(at.len), 0);
            if scattered::read(extents, file, from, &mut out[before..])? && crc(0, &out[before..]) == at.crc {
                return Ok(true);
            }
            out.truncate(before);
        }
        Ok(false)
    }
}

impl LogSince {
    /// What comes after a capture.
    pub(crate) fn after(capture: &Capture) -> LogSince {
        let (last, tables) = (capture.commit, capture.tables.clone());
        let checkpoint = capture.checkpoint;
        LogSince { seen: None, position: Position { last, checkpoint, tables, clock: 0, is_broken: false } }
    }

    /// The latest time that a frame has said, in seconds.
    pub(crate) fn clock(&self) -> u32 {
        self.position.clock
    }

    /// How many tables there are after the last commit.
    pub(crate) fn tables(&self) -> u32 {
        self.position.tables.count()
    }

    /// The newest checkpoint that was seen, at first that of the capture.
    pub(crate) fn checkpoint(&self) -> u64 {
        self.position.checkpoint
    }

    /// Bytes of the runs that the newest checkpoint has, and of which `is_known` is false.
    pub(crate) fn new_run_bytes(&self, is_known: impl Fn(u64) -> bool) -> u64 {
        let runs = self.seen.iter().flat_map(|seen| &seen.runs);
        runs.filter(|run| !is_known(run.0)).map(|run| run.1).sum()
    }
}

impl CatchingUp<'_> {
    /// Reads the log on. `take` gets each further commit, in order. If it has no use for one, reading is
    /// broken.
    pub(in crate::engine) fn read_since(
        &self,
        since: &mut LogSince,
        take: &mut TakeCommit<'_>,
    ) -> Result<Reading> {
        for _ in 0..ROUNDS {
            if let Some(seen) = &mut since.seen {
                seen.read_on(self.file.as_ref(), &mut since.position, None, take)?;
            }
            let newest = newest_block_now(self.path, self.file.as_ref())?.number;
            if since.position.is_broken {
                return Ok(Reading::Broken);
            }
            if since.seen.as_ref().is_some_and(|seen| seen.number == newest) {
                return Ok(Reading::Level);
            }
            self.see_newest(since, take)?;
        }
        Ok(if since.position.is_broken { Reading::Broken } else { Reading::Level })
    }

    /// Pins the newest checkpoint, and reads its chains from their beginnings.
    fn see_newest(&self, since: &mut LogSince, take: &mut TakeCommit<'_>) -> Result<()> {
        self.catch_up()?;
        let state = self.state.load_full();
        let Some(followed) = Followed::of(&state) else { return Err(Error::Closed) };
        let Some(looked) = followed.engine.following.checkpoint() else { return Err(Error::Closed) };
        let (block, file) = (Superblock::clone(&looked.block), followed.engine.store.file.as_ref());
        let length = Length { path: self.path, file_bytes: len_of(file)?, read_only: true };
        let (manifest, _) = read_manifest(file, &block.manifest, &length)?;
        // That a frame knows of a newer checkpoint is no damage while somebody writes.
        let frames = |log: &LogChain| ChainReader::new(block.file_id, u64::MAX, log);
        let chain = |log: &LogChain| Chain { frames: frames(log), records: Stream::default() };
        let runs = manifest.tables.iter().flat_map(|t| t.levels.iter().flat_map(|l| &l.runs));
        let mut seen = SeenCheckpoint {
            number: followed.number,
            chains: manifest.logs.iter().map(chain).collect(),
            is_over: false,
            places: Places::of(&manifest),
            runs: runs.map(|r| (r.id, r.meta_at() + u64::from(r.meta_bytes))).collect(),
            _pinned: state.clone(),
        };
        let mut tables = AsSaid { tables: Tables::of(&manifest), until: manifest.tables_seq };
        let position = &mut since.position;
        seen.read_on(self.file.as_ref(), position, Some(&mut tables), take)?;
        // An older file does not say which commits its tables show.
        let is_sure = tables.until.is_some() && tables.tables == position.tables;
        position.is_broken |= position.last < manifest.flushed_seq || !is_sure;
        position.checkpoint = seen.number;
        since.seen = Some(seen);
        Ok(())
    }
}

/// Reads a large value of a part of a commit, to the end of a buffer. False if it is nowhere.
pub(crate) type ReadValue<'a> = dyn Fn(&RecordPart, ValuePointer, &mut Vec<u8>) -> Result<bool> + 'a;

/// Takes a commit: its number, its parts, and what reads their large values.
pub(crate) type TakeCommit<'a> = dyn FnMut(u64, Vec<RecordPart>, &ReadValue<'_>) -> Result<bool> + 'a;

/// The tables as a manifest and the log behind it say.
struct AsSaid {
    tables: Tables,
    /// What commits up to this one have done is in the manifest.
    until: Option<u64>,
}

impl SeenCheckpoint {
    /// Reads all frames that there are. `tables` notes what all commits have done with tables.
    fn read_on(
        &mut self,
        file: &dyn File,
        position: &mut Position,
        mut tables: Option<&mut AsSaid>,
        take: &mut TakeCommit<'_>,
    ) -> Result<()> {
        let SeenCheckpoint { number, chains, is_over, places, .. } = self;
        let value = |part: &RecordPart, at, out: &mut Vec<u8>| places.read(file, part, at, out);
        let file_len = len_of(file)?;
        let seen_before = position.checkpoint;
        let mut apply = |checkpoint: u64, seq: u64, parts: Vec<RecordPart>| {
            // Nobody knows what that checkpoint has done with tables.
            position.is_broken |= seq > position.last && checkpoint > seen_before && checkpoint < *number;
            if let Some(said) = tables.as_deref_mut()
                && said.until.is_some_and(|until| seq > until)
            {
                said.tables.note(&parts);
            }
            position.next(seq, parts, &value, take)
        };
        let mut clock = 0;
        for chain in chains {
            while !*is_over && chain.read_frame(file, file_len, *number, is_over, &mut apply)? {}
            clock = clock.max(chain.frames.clock());
        }
        position.clock = position.clock.max(clock);
        Ok(())
    }
}

impl Chain {
    /// Reads the next frame, if there is one. One that knows of a newer checkpoint than `number` is not used.
    fn read_frame(
        &mut self,
        file: &dyn File,
        file_len: u64,
        number: u64,
        is_over: &mut bool,
        apply: &mut impl FnMut(u64, u64, Vec<RecordPart>) -> Result<()>,
    ) -> Result<bool> {
        let placed = match self.frames.next_placed(file, file_len) {
            // Something else stands there by now.
            Err(Error::Corrupt { .. }) | Ok(None) => return Ok(false),
            Ok(Some(placed)) => placed,
            Err(e) => return Err(e),
        };
        *is_over = placed.frame.checkpoint > number;
        if !*is_over && !placed.frame.jump {
            let checkpoint = placed.frame.checkpoint;
            let mut apply = |seq, parts| apply(checkpoint, seq, parts);
            self.records.add(&placed.frame, &placed.bytes[HEADER_BYTES..], placed.offset, &mut apply)?;
        }
        Ok(!*is_over)
    }
}

impl Position {
    /// Takes a commit, if it is the next one.
    fn next(
        &mut self,
        seq: u64,
        parts: Vec<RecordPart>,
        value: &ReadValue<'_>,
        take: &mut TakeCommit<'_>,
    ) -> Result<()> {
        if self.is_broken || seq <= self.last {
            return Ok(());
        }
        self.is_broken = seq != self.last + 1;
        if self.is_broken {
            return Ok(());
        }
        let changes: Vec<TableChange> = parts.iter().filter_map(|part| part.change.clone()).collect();
        self.is_broken = !take(seq, parts, value)?;
        if !self.is_broken {
            self.last = seq;
            changes.iter().for_each(|change| self.tables.note_change(change));
        }
        Ok(())
    }
}
