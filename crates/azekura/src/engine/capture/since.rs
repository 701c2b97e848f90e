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
#[derive(Default)]
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

    /// The last commit that was read.
    pub(crate) fn last(&self) -> u64 {
        self.position.last
    }

    /// Nothing is read any more: the pin goes.
    pub(crate) fn let_go(&mut self) {
        self.position.is_broken = true;
        self.seen = None;
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
            if let Some(seen) = since.seen.as_mut().filter(|_| !since.position.is_broken) {
                seen.read_on(self.file.as_ref(), &mut since.position, take)?;
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
        let chains = || manifest.logs.iter().map(chain).collect();
        let runs = manifest.tables.iter().flat_map(|t| t.levels.iter().flat_map(|l| &l.runs));
        let mut seen = SeenCheckpoint {
            number: followed.number,
            chains: chains(),
            is_over: false,
            places: Places::of(&manifest),
            runs: runs.map(|r| (r.id, r.meta_at() + u64::from(r.meta_bytes))).collect(),
            _pinned: state.clone(),
        };
        let position = &mut since.position;
        if !seen.has_tables_of(self.file.as_ref(), position, &manifest)? {
            position.is_broken = true;
            return Ok(());
        }
        (seen.chains, seen.is_over) = (chains(), false);
        seen.read_on(self.file.as_ref(), position, take)?;
        position.is_broken |= position.last < manifest.flushed_seq;
        position.checkpoint = seen.number;
        since.seen = Some(seen);
        Ok(())
    }
}

/// Reads a large value of a part of a commit, to the end of a buffer. False if it is nowhere.
pub(crate) type ReadValue<'a> = dyn Fn(&RecordPart, ValuePointer, &mut Vec<u8>) -> Result<bool> + 'a;

/// Takes a commit: its number, its parts, and what reads their large values.
pub(crate) type TakeCommit<'a> = dyn FnMut(u64, Vec<RecordPart>, &ReadValue<'_>) -> Result<bool> + 'a;

/// Takes a commit of the log: the number of the checkpoint that its frame knows, its own, and its parts.
type Apply<'a> = dyn FnMut(u64, u64, Vec<RecordPart>) -> Result<()> + 'a;

impl SeenCheckpoint {
    /// Whether its manifest has the tables that the log has told of until now. What the manifest knows of
    /// later commits, the log tells first.
    fn has_tables_of(&mut self, file: &dyn File, position: &Position, manifest: &Manifest) -> Result<bool> {
        // An older file does not say which commits its tables show.
        let Some(until) = manifest.tables_seq else { return Ok(false) };
        let (mut said, mut told) = (Tables::of(manifest), position.tables.clone());
        let (mut are_same, mut is_compared) = (true, false);
        self.read_frames(file, &mut |_, seq, parts| {
            if !is_compared && seq > until.max(position.last) {
                (are_same, is_compared) = (said == told, true);
            }
            if seq > until {
                said.note(&parts);
            }
            if seq > position.last {
                told.note(&parts);
            }
            Ok(())
        })?;
        Ok(if is_compared { are_same } else { said == told })
    }

    /// Reads all commits that there are.
    fn read_on(&mut self, file: &dyn File, position: &mut Position, take: &mut TakeCommit<'_>) -> Result<()> {
        let (number, seen_before) = (self.number, position.checkpoint);
        let places = std::mem::take(&mut self.places);
        let value = |part: &RecordPart, at, out: &mut Vec<u8>| places.read(file, part, at, out);
        let read = self.read_frames(file, &mut |checkpoint, seq, parts| {
            // Nobody knows what that checkpoint has done with tables.
            position.is_broken |= seq > position.last && checkpoint > seen_before && checkpoint < number;
            position.next(seq, parts, &value, take)
        });
        self.places = places;
        position.clock = self.chains.iter().map(|chain| chain.frames.clock()).fold(position.clock, u32::max);
        read
    }

    /// Reads all frames that there are.
    fn read_frames(&mut self, file: &dyn File, apply: &mut Apply<'_>) -> Result<()> {
        let SeenCheckpoint { number, chains, is_over, .. } = self;
        let file_len = len_of(file)?;
        for chain in chains {
            while !*is_over && chain.read_frame(file, file_len, *number, is_over, apply)? {}
        }
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
        apply: &mut Apply<'_>,
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
