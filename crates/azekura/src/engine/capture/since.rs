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
//!
//! Who takes the commits may have enough for now. Then reading pauses between two of them, and in memory are
//! a frame and a record at most. Until a checkpoint was read to its end, the one before stays pinned, too.

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
    /// Until its taker had enough. It goes on from there.
    Paused,
    /// As far as it goes. What was committed next is not in it any more.
    Broken,
}

/// What becomes of a commit that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It was taken, and the next one may come.
    Yes,
    /// It was taken, and it is enough for now.
    Last,
    /// There is no use for it.
    No,
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
    /// The last commit that is in its runs.
    flushed: u64,
    /// The pin of the checkpoint that was seen before, until this one was read to its end: what was committed
    /// between the two may need it.
    before: Option<Arc<State>>,
    pinned: Arc<State>,
}

/// The reading of one chain.
struct Chain {
    frames: ChainReader,
    records: Stream,
    /// Where the last frame stands, and which checkpoint it knows.
    offset: u64,
    checkpoint: u64,
}

/// A commit of the log, and which checkpoint its frame knows.
struct Logged {
    checkpoint: u64,
    seq: u64,
    parts: Vec<RecordPart>,
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
    /// broken. If it has enough, reading pauses.
    pub(in crate::engine) fn read_since(
        &self,
        since: &mut LogSince,
        take: &mut TakeCommit<'_>,
    ) -> Result<Reading> {
        for _ in 0..ROUNDS {
            if let Some(seen) = since.seen.as_mut().filter(|_| !since.position.is_broken)
                && !seen.read_on(self.file.as_ref(), &mut since.position, take)?
            {
                return Ok(Reading::Paused);
            }
            let newest = newest_block_now(self.path, self.file.as_ref())?.number;
            if since.position.is_broken {
                return Ok(Reading::Broken);
            }
            if since.seen.as_ref().is_some_and(|seen| seen.number == newest) {
                return Ok(Reading::Level);
            }
            self.see_newest(since)?;
        }
        Ok(if since.position.is_broken { Reading::Broken } else { Reading::Level })
    }

    /// Pins the newest checkpoint, whose chains will be read from their beginnings.
    fn see_newest(&self, since: &mut LogSince) -> Result<()> {
        self.catch_up()?;
        let state = self.state.load_full();
        let Some(followed) = Followed::of(&state) else { return Err(Error::Closed) };
        let Some(looked) = followed.engine.following.checkpoint() else { return Err(Error::Closed) };
        let (block, file) = (Superblock::clone(&looked.block), followed.engine.store.file.as_ref());
        let length = Length { path: self.path, file_bytes: len_of(file)?, read_only: true };
        let (manifest, _) = read_manifest(file, &block.manifest, &length)?;
        // That a frame knows of a newer checkpoint is no damage while somebody writes.
        let frames = |log: &LogChain| ChainReader::new(block.file_id, u64::MAX, log);
        let chain = |log: &LogChain| Chain {
            frames: frames(log),
            records: Stream::default(),
            offset: 0,
            checkpoint: 0,
        };
        let chains = || manifest.logs.iter().map(chain).collect();
        let runs = manifest.tables.iter().flat_map(|t| t.levels.iter().flat_map(|l| &l.runs));
        let mut seen = SeenCheckpoint {
            number: followed.number,
            chains: chains(),
            is_over: false,
            places: Places::of(&manifest),
            runs: runs.map(|r| (r.id, r.meta_at() + u64::from(r.meta_bytes))).collect(),
            flushed: manifest.flushed_seq,
            before: since.seen.as_ref().map(|seen| seen.pinned.clone()),
            pinned: state.clone(),
        };
        if !seen.has_tables_of(self.file.as_ref(), &since.position, &manifest)? {
            since.position.is_broken = true;
            return Ok(());
        }
        (seen.chains, seen.is_over) = (chains(), false);
        since.seen = Some(seen);
        Ok(())
    }
}

/// Reads a large value of a part of a commit, to the end of a buffer. False if it is nowhere.
pub(crate) type ReadValue<'a> = dyn Fn(&RecordPart, ValuePointer, &mut Vec<u8>) -> Result<bool> + 'a;

/// Takes a commit: its number, its parts, and what reads their large values.
pub(crate) type TakeCommit<'a> = dyn FnMut(u64, Vec<RecordPart>, &ReadValue<'_>) -> Result<Taken> + 'a;

/// Looks at a commit of the log. False if that is enough for now.
type Apply<'a> = dyn FnMut(Logged) -> Result<bool> + 'a;

impl SeenCheckpoint {
    /// Whether its manifest has the tables that the log has told of until now. What the manifest knows of
    /// later commits, the log tells first.
    fn has_tables_of(&mut self, file: &dyn File, position: &Position, manifest: &Manifest) -> Result<bool> {
        // An older file does not say which commits its tables show.
        let Some(until) = manifest.tables_seq else { return Ok(false) };
        let (mut said, mut told) = (Tables::of(manifest), position.tables.clone());
        let (mut are_same, mut is_compared) = (true, false);
        self.read_commits(file, &mut |Logged { seq, parts, .. }| {
            if !is_compared && seq > until.max(position.last) {
                (are_same, is_compared) = (said == told, true);
            }
            if seq > until {
                said.note(&parts);
            }
            if seq > position.last {
                told.note(&parts);
            }
            Ok(true)
        })?;
        Ok(if is_compared { are_same } else { said == told })
    }

    /// Reads all commits that there are. False if there was enough before.
    fn read_on(
        &mut self,
        file: &dyn File,
        position: &mut Position,
        take: &mut TakeCommit<'_>,
    ) -> Result<bool> {
        let (number, seen_before) = (self.number, position.checkpoint);
        let places = std::mem::take(&mut self.places);
        let value = |part: &RecordPart, at, out: &mut Vec<u8>| places.read(file, part, at, out);
        let read = self.read_commits(file, &mut |logged| {
            let is_unseen = logged.checkpoint > seen_before && logged.checkpoint < number;
            // Nobody knows what that checkpoint has done with tables.
            position.is_broken |= logged.seq > position.last && is_unseen;
            position.next(logged, &value, take)
        });
        self.places = places;
        position.clock = self.chains.iter().map(|chain| chain.frames.clock()).fold(position.clock, u32::max);
        if !read? {
            return Ok(position.is_broken);
        }
        position.is_broken |= position.last < self.flushed;
        position.checkpoint = number;
        self.before = None;
        Ok(true)
    }

    /// Reads commits until there are no more, or `apply` says that it is enough: then it is false.
    fn read_commits(&mut self, file: &dyn File, apply: &mut Apply<'_>) -> Result<bool> {
        let SeenCheckpoint { number, chains, is_over, .. } = self;
        let file_len = len_of(file)?;
        for chain in chains {
            while let Some(logged) = chain.next_commit(file, file_len, *number, is_over)? {
                if !apply(logged)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

impl Chain {
    /// The next commit. None where the chain ends for now, or knows of a newer checkpoint than `number`.
    fn next_commit(
        &mut self,
        file: &dyn File,
        file_len: u64,
        number: u64,
        is_over: &mut bool,
    ) -> Result<Option<Logged>> {
        loop {
            if let Some((seq, parts)) = self.records.next_commit(self.offset)? {
                return Ok(Some(Logged { checkpoint: self.checkpoint, seq, parts }));
            }
            if *is_over || !self.read_frame(file, file_len, number, is_over)? {
                return Ok(None);
            }
        }
    }

    /// Reads the next frame, if there is one. One that knows of a newer checkpoint than `number` is not used.
    fn read_frame(
        &mut self,
        file: &dyn File,
        file_len: u64,
        number: u64,
        is_over: &mut bool,
    ) -> Result<bool> {
        let placed = match self.frames.next_placed(file, file_len) {
            // Something else stands there by now.
            Err(Error::Corrupt { .. }) | Ok(None) => return Ok(false),
            Ok(Some(placed)) => placed,
            Err(e) => return Err(e),
        };
        *is_over = placed.frame.checkpoint > number;
        if !*is_over && !placed.frame.jump {
            (self.offset, self.checkpoint) = (placed.offset, placed.frame.checkpoint);
            self.records.push(&placed.frame, &placed.bytes[HEADER_BYTES..]);
        }
        Ok(!*is_over)
    }
}

impl Position {
    /// Takes a commit, if it is the next one. False if no other is wanted.
    fn next(&mut self, logged: Logged, value: &ReadValue<'_>, take: &mut TakeCommit<'_>) -> Result<bool> {
        let Logged { seq, parts, .. } = logged;
        if !self.is_broken && seq <= self.last {
            return Ok(true);
        }
        self.is_broken |= seq != self.last + 1;
        if self.is_broken {
            return Ok(false);
        }
        let changes: Vec<TableChange> = parts.iter().filter_map(|part| part.change.clone()).collect();
        let taken = take(seq, parts, value)?;
        if taken == Taken::No {
            self.is_broken = true;
            return Ok(false);
        }
        self.last = seq;
        changes.iter().for_each(|change| self.tables.note_change(change));
        Ok(taken == Taken::Yes)
    }
}
