//! The log of a checkpoint, read frame by frame: what each frame brings, and which are durable.

use super::copied::Piece;
use super::named::Segments;
use crate::base::error::Result;
use crate::engine::Admission;
use crate::format::frame::{HEADER_BYTES, RecordPart};
use crate::format::manifest::{LogChain, Manifest};
use crate::log::recovery::{ChainReader, Placed};
use crate::log::stream::Stream;
use crate::storage::File;
use crate::values::ValuePointer;
use std::collections::{BTreeSet, VecDeque};

/// So many bytes of frames are read ahead at most, beside those of one slice of a long commit.
const AHEAD_BYTES: u64 = 8 << 20;

/// A frame, and what it brings.
pub(super) struct Arrival {
    pub(super) chain: u64,
    pub(super) placed: Placed,
    /// The newest commit that ends in it and counts.
    pub(super) commit: Option<u64>,
    /// Where the large values of those commits stand.
    pub(super) values: Vec<Piece>,
    /// The large values that the state before would find by it.
    pub(super) shown: Vec<ShownValue>,
}

/// A large value that a state of the mirror shows as soon as a frame is there.
pub(super) struct ShownValue {
    pub(super) at: ValuePointer,
    /// The blocks in which it stands.
    pub(super) blocks: Vec<Piece>,
    /// Its own bytes.
    pub(super) bytes: Vec<Piece>,
}

/// The chains of a manifest. Reading one begins when the one before has ended.
pub(super) struct LogReader {
    chains: Vec<Chain>,
    /// Which chain is read.
    now: usize,
    admission: Admission,
    segments: Segments,
    /// The state before, which has these frames until the manifest's superblock is there.
    before: Option<Before>,
    /// Frames that were read and are not shipped.
    waiting: VecDeque<Arrival>,
    waiting_bytes: u64,
}

/// The mirror's state before the newest checkpoint. Frames that are read for the newer one are seen by it
/// too. It shows commits which the newer one has in its runs, and values in places that they have left since.
struct Before {
    flushed_seq: u64,
    tables: BTreeSet<u32>,
    next_table: u32,
    segments: Segments,
}

struct Chain {
    log: LogChain,
    reader: ChainReader,
    stream: Stream,
}

impl Chain {
    /// Frames below this number were durable when the manifest was written.
    fn goal(&self) -> u64 {
        if self.log.end_frame == u64::MAX { self.log.durable_below } else { self.log.end_frame }
    }

    /// The same, or a higher number by which a chain that goes on is known. (One that has ended may have had
    /// more frames once. They do not count.)
    fn goal_with(&self, number: impl Fn(u64) -> u64) -> u64 {
        if self.log.end_frame == u64::MAX { self.goal().max(number(self.log.chain)) } else { self.goal() }
    }

    fn has_ended(&self) -> bool {
        self.log.end_frame != u64::MAX && self.reader.number() >= self.log.end_frame
    }
}

impl LogReader {
    pub(super) fn new(file_id: u64, manifest: &Manifest) -> LogReader {
        // That a frame knows of a newer checkpoint is no damage while somebody writes.
        let reader = |log: &LogChain| ChainReader::new(file_id, u64::MAX, log);
        let chain =
            |log: &LogChain| Chain { log: log.clone(), reader: reader(log), stream: Stream::default() };
        LogReader {
            chains: manifest.logs.iter().map(chain).collect(),
            now: 0,
            admission: Admission::of_all(manifest),
            segments: Segments::of(manifest),
            before: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
        }
    }

    /// As `new`, where the frames are also seen by who opens the mirror with an earlier manifest.
    pub(super) fn after(self, before: &Manifest) -> LogReader {
        let before = Before {
            flushed_seq: before.flushed_seq,
            tables: before.tables.iter().map(|table| table.id).collect(),
            next_table: before.next_table,
            segments: Segments::of(before),
        };
        LogReader { before: Some(before), ..self }
    }

    /// The state before is of no use any more.
    pub(super) fn forget_before(&mut self) {
        self.before = None;
    }

    /// Whether a piece of a value segment stands where the log, or the manifest, has the segment.
    pub(super) fn has_placed(&self, id: u32, piece: &Piece) -> bool {
        self.segments.has_placed(id, piece)
    }

    /// Reads what frames there are, up to a limit. Says whether there was one.
    pub(super) fn read(&mut self, file: &dyn File, file_len: u64) -> Result<bool> {
        let mut any = false;
        while self.waiting_bytes < AHEAD_BYTES || !self.is_first_durable() {
            let Some(chain) = self.chains.get_mut(self.now) else { break };
            let Some(placed) = chain.reader.next_placed(file, file_len)? else {
                if !chain.has_ended() {
                    break;
                }
                self.now += 1;
                continue;
            };
            any = true;
            self.add(placed)?;
        }
        Ok(any)
    }

    fn add(&mut self, placed: Placed) -> Result<()> {
        let LogReader { chains, now, admission, segments, before, waiting, waiting_bytes } = self;
        let chain = &mut chains[*now];
        let (mut commit, mut values, mut shown) = (None, Vec::new(), Vec::new());
        if !placed.frame.jump {
            let mut apply = |seq, mut parts: Vec<RecordPart>| {
                if let Some(before) = before {
                    parts.iter().try_for_each(|part| before.note(seq, part, &mut shown))?;
                }
                if admission.admit(seq, &mut parts) {
                    commit = Some(seq);
                    parts.iter().try_for_each(|part| note_values(segments, part, &mut values))?;
                }
                Ok(())
            };
            chain.stream.add(&placed.frame, &placed.bytes[HEADER_BYTES..], placed.offset, &mut apply)?;
        }
        *waiting_bytes += placed.bytes.len() as u64;
        waiting.push_back(Arrival { chain: chain.log.chain, placed, commit, values, shown });
        Ok(())
    }

    /// Whether the next frame to be shipped is known to be durable.
    fn is_first_durable(&self) -> bool {
        self.waiting.front().is_some_and(|first| self.is_durable(first))
    }

    fn is_durable(&self, arrival: &Arrival) -> bool {
        self.chain(arrival.chain).is_some_and(|c| arrival.placed.frame.number < c.reader.durable_below())
    }

    fn chain(&self, id: u64) -> Option<&Chain> {
        self.chains.iter().find(|c| c.log.chain == id)
    }

    /// The next frames of those that the manifest knows to be durable, and of those below a chain's number.
    pub(super) fn take_below(&mut self, number: impl Fn(u64) -> u64) -> Vec<Arrival> {
        self.take(|log, arrival| {
            let goal = log.chain(arrival.chain).map_or(0, |c| c.goal_with(&number));
            arrival.placed.frame.number < goal
        })
    }

    /// The next frames that are durable, and know of no newer checkpoint than this.
    pub(super) fn take_durable(&mut self, checkpoint: u64) -> Vec<Arrival> {
        self.take(|log, arrival| arrival.placed.frame.checkpoint <= checkpoint && log.is_durable(arrival))
    }

    /// All that were read.
    pub(super) fn take_all(&mut self) -> Vec<Arrival> {
        self.take(|_, _| true)
    }

    fn take(&mut self, wanted: impl Fn(&LogReader, &Arrival) -> bool) -> Vec<Arrival> {
        let mut taken = Vec::new();
        while self.waiting.front().is_some_and(|first| wanted(self, first)) {
            let Some(first) = self.waiting.pop_front() else { break };
            self.waiting_bytes -= first.placed.bytes.len() as u64;
            taken.push(first);
        }
        taken
    }

    /// Whether all frames were read that the manifest knows to be durable, and those below each chain's
    /// number.
    pub(super) fn has_below(&self, number: impl Fn(u64) -> u64) -> bool {
        self.chains.iter().all(|c| c.reader.number() >= c.goal_with(&number))
    }

    /// Checks the place where reading has come to.
    ///
    /// # Errors
    /// `Corrupt` if frames are missing there that were durable.
    pub(super) fn check(&self, file: &dyn File) -> Result<()> {
        self.chains.get(self.now).map_or(Ok(()), |chain| chain.reader.check(file))
    }

    /// The newest commit that was read, if one was that is waiting to be shipped, and the bytes that wait.
    pub(super) fn waiting(&self) -> (Option<u64>, u64) {
        (self.waiting.iter().rev().find_map(|arrival| arrival.commit), self.waiting_bytes)
    }

    /// Where the next frame to be read will stand. 0: none will.
    pub(super) fn tail(&self) -> u64 {
        self.chains.get(self.now).map_or(0, |chain| chain.reader.offset())
    }

    /// Where the frames of a chain go on: the number of the next one, and its place.
    pub(super) fn positions(&self) -> impl Iterator<Item = Position> {
        self.chains.iter().map(|c| Position {
            chain: c.log.chain,
            number: c.reader.number(),
            tail: c.reader.offset(),
            safe_below: c.reader.durable_below().clamp(c.log.first_frame, c.reader.number()),
            clock: c.reader.clock(),
        })
    }
}

/// How far a chain was read.
pub(super) struct Position {
    pub(super) chain: u64,
    pub(super) number: u64,
    pub(super) tail: u64,
    /// Frames below this are durable.
    pub(super) safe_below: u64,
    /// The latest time of the file's clock in the frames that were read.
    pub(super) clock: u32,
}

impl Before {
    /// Notes the large values of a part of a commit, if the state shows it.
    fn note(&mut self, seq: u64, part: &RecordPart, shown: &mut Vec<ShownValue>) -> Result<()> {
        // A table that came later was made by a commit of the log.
        let is_shown =
            seq > self.flushed_seq && (self.tables.contains(&part.table) || part.table >= self.next_table);
        if is_shown {
            for at in large_values(&mut self.segments, part)? {
                let (from, to) = at.range();
                let blocks = self.segments.blocks(at.segment, from, to);
                let bytes = self.segments.bytes(at.segment, from, to);
                shown.push(ShownValue { at, blocks, bytes });
            }
        }
        Ok(())
    }
}

/// Where the large values of a part stand.
fn note_values(segments: &mut Segments, part: &RecordPart, values: &mut Vec<Piece>) -> Result<()> {
    for at in large_values(segments, part)? {
        let (from, to) = at.range();
        values.extend(segments.blocks(at.segment, from, to));
    }
    Ok(())
}

/// The large values of a part, whose segments are noted.
fn large_values(segments: &mut Segments, part: &RecordPart) -> Result<Vec<ValuePointer>> {
    if part.segments.is_empty() {
        return Ok(Vec::new());
    }
    part.segments.iter().try_for_each(|&(id, extent)| segments.note(id, extent))?;
    let references = (0..part.block.len()).filter_map(|i| part.block.reference(i));
    references.map(ValuePointer::decode).collect()
}
