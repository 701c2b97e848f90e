//! Reading the log after a crash: the unbroken continuation of what the manifest knows.
//!
//! A frame must carry the file's id, the chain and the next number, and its checksum must hold. The first one
//! that does not ends the chain, since frames become durable in order. (If a later frame knows that it was
//! durable, it is damaged, which is an error.) Jumps lead from segment to segment. Reads are bounded by the
//! file: lengths are checked before anything is allocated.

mod walk;

use self::walk::Walk;
use crate::base::codec::{u64_at, usize_of64};
use crate::base::error::{Error, Result};
use crate::base::fault::fault;
use crate::base::limits::ALIGN_BYTES;
use crate::format::frame::{Frame, HEADER_BYTES, RecordPart};
use crate::format::manifest::LogChain;
use crate::log::stream::Stream;
use crate::space::Extent;
use crate::storage::File;
use crate::storage::read_error;
use std::cell::Cell;

/// The result of reading one chain.
pub(crate) struct Recovered {
    /// The segments of the chain.
    pub(crate) segments: Vec<Extent>,
    /// The number after the chain's last frame.
    pub(crate) end_frame: u64,
    /// Frames below this number are durable: a later frame, or the manifest, says so. The others may be only
    /// in the system's cache.
    pub(crate) safe_below: u64,
    /// Bytes of the chain's frames.
    pub(crate) bytes: u64,
    /// The largest time that a frame says, in seconds. 0: none does.
    pub(crate) clock: u32,
    /// Where the next frame would begin in the last segment.
    end_at: u64,
}

impl Recovered {
    /// Writes the same bytes again in place. The caller syncs them. This is for a disk without room for a
    /// copy elsewhere. After a failed sync the system may show bytes that it believes are written and that
    /// are not. Another sync would not write them. Every block gets the bytes that it has. So a write that is
    /// torn between sectors does no harm; one that leaves garbage in a sector would.
    pub(crate) fn rewrite(&self, file: &dyn File) -> Result<()> {
        let file_len = file.len().map_err(|e| Error::io("reading the database file", e))?;
        for (i, segment) in self.segments.iter().enumerate() {
            let used = if i + 1 == self.segments.len() { self.end_at } else { segment.len };
            let mut bytes = vec![0; usize_of64(used.min(file_len.saturating_sub(segment.offset)))];
            if bytes.is_empty() {
                continue;
            }
            file.read_at(&mut bytes, segment.offset).map_err(|e| read_error(e, segment.offset))?;
            file.write_at(&bytes, segment.offset).map_err(|e| Error::io("writing the log again", e))?;
        }
        Ok(())
    }
}

/// Reads a chain. Calls `apply` for each commit in order, with the number of the frame in which it ends, its
/// sequence number and its parts.
pub(crate) fn replay(
    file: &dyn File,
    file_id: u64,
    checkpoint: u64,
    log: &LogChain,
    mut apply: impl FnMut(u64, u64, Vec<RecordPart>) -> Result<()>,
) -> Result<Recovered> {
    let mut reader = ChainReader::new(file_id, checkpoint, log);
    reader.read_on(file, &mut apply)?;
    reader.check(file)?;
    Ok(reader.end())
}

/// The reading of one chain. A follower goes on with it when there are more frames.
pub(crate) struct ChainReader {
    walk: Walk,
    segments: Vec<Extent>,
    stream: Stream,
    first_frame: u64,
    /// The number of the next frame, if none is missing.
    expected: u64,
    /// The number of the first frame of the last segment.
    segment_begins: u64,
}

impl ChainReader {
    pub(crate) fn new(file_id: u64, checkpoint: u64, log: &LogChain) -> ChainReader {
        let walk = Walk {
            file_len: 0,
            file_id,
            checkpoint,
            chain: log.chain,
            segment: log.first,
            at: 0,
            number: log.first_frame,
            end: log.end_frame,
            durable_below: log.durable_below,
            bytes: 0,
            clock: 0,
            past_end: false,
        };
        ChainReader {
            walk,
            segments: vec![log.first],
            stream: Stream::default(),
            first_frame: log.first_frame,
            expected: log.first_frame,
            segment_begins: log.first_frame,
        }
    }

    /// Reads all frames that there are in the file, as long as it is now.
    pub(crate) fn read_on(
        &mut self,
        file: &dyn File,
        apply: &mut impl FnMut(u64, u64, Vec<RecordPart>) -> Result<()>,
    ) -> Result<()> {
        self.walk.file_len = len_of(file)?;
        while self.read_frame(file, apply)? {}
        Ok(())
    }

    /// Reads the next frame. False if there is none.
    fn read_frame(
        &mut self,
        file: &dyn File,
        apply: &mut impl FnMut(u64, u64, Vec<RecordPart>) -> Result<()>,
    ) -> Result<bool> {
        let Some((frame, bytes)) = self.walk.next_frame(file)? else { return Ok(false) };
        let follows = frame.number == std::mem::replace(&mut self.expected, frame.number + 1);
        if fault!("ignore_gap") && !follows {
            self.stream = Stream::default();
        }
        if frame.jump {
            let next = self.walk.jump(&bytes, &self.segments)?;
            self.segments.push(next);
            self.segment_begins = self.walk.number;
            return Ok(true);
        }
        let offset = self.walk.segment.offset + self.walk.at;
        let mut apply = |seq, parts| apply(frame.number, seq, parts);
        self.stream.add(&frame, &bytes[HEADER_BYTES..], offset, &mut apply)?;
        Ok(true)
    }

    /// Reads up to the frame in which the commit of a number ends, or a later one. Nothing is looked at
    /// behind it: the writer may have written there, given it back and used it for other things since.
    pub(crate) fn read_to(
        &mut self,
        file: &dyn File,
        seq: u64,
        apply: &mut impl FnMut(u64, u64, Vec<RecordPart>) -> Result<()>,
    ) -> Result<()> {
        self.walk.file_len = len_of(file)?;
        let newest = Cell::new(0);
        let mut apply = |frame, seq, parts| {
            newest.set(seq);
            apply(frame, seq, parts)
        };
        while newest.get() < seq {
            if !self.read_frame(file, &mut apply)? {
                return self.check(file);
            }
        }
        Ok(())
    }

    /// As `read_on`, while a writer goes on. What is missing may have come, and then it is no damage that
    /// frames behind it were there already.
    pub(crate) fn read_beside_writer(
        &mut self,
        file: &dyn File,
        apply: &mut impl FnMut(u64, u64, Vec<RecordPart>) -> Result<()>,
    ) -> Result<()> {
        loop {
            self.read_on(file, apply)?;
            let Err(e) = self.check(file) else { return Ok(()) };
            self.walk.file_len = len_of(file)?;
            if !self.walk.has_next(file)? {
                return Err(e);
            }
        }
    }

    /// As `read_beside_writer`, where something has changed at the place of the next frame. If that frame has
    /// come, nothing is looked for behind the new end, for this would read the rest of the segment at each
    /// commit.
    pub(crate) fn read_further(
        &mut self,
        file: &dyn File,
        apply: &mut impl FnMut(u64, u64, Vec<RecordPart>) -> Result<()>,
    ) -> Result<()> {
        let before = self.walk.number;
        self.read_on(file, apply)?;
        if self.walk.number > before { Ok(()) } else { self.read_beside_writer(file, apply) }
    }

    /// The next frame as it stands in the file, which is `file_len` bytes long. None where the chain ends for
    /// now.
    pub(crate) fn next_placed(&mut self, file: &dyn File, file_len: u64) -> Result<Option<Placed>> {
        self.walk.file_len = file_len;
        let offset = self.offset();
        let Some((frame, bytes)) = self.walk.next_frame(file)? else { return Ok(None) };
        if frame.jump {
            let next = self.walk.jump(&bytes, &self.segments)?;
            self.segments.push(next);
            self.segment_begins = self.walk.number;
        }
        Ok(Some(Placed { offset, frame, bytes }))
    }

    /// Where the next frame will stand.
    pub(crate) fn offset(&self) -> u64 {
        self.walk.segment.offset + self.walk.at
    }

    /// The number of the next frame.
    pub(crate) fn number(&self) -> u64 {
        self.walk.number
    }

    /// Frames below this number are known to be durable.
    pub(crate) fn durable_below(&self) -> u64 {
        if self.walk.end == u64::MAX { self.walk.durable_below } else { self.walk.end }
    }

    /// Checks the place where the chain ends.
    ///
    /// # Errors
    /// `Corrupt` if frames are missing there that were whole once.
    pub(crate) fn check(&self, file: &dyn File) -> Result<()> {
        let walk = &self.walk;
        let at = walk.segment.offset + walk.at;
        if walk.end != u64::MAX && walk.number < walk.end {
            let detail =
                format!("chain {}: frame {} is damaged; it was whole before", walk.chain, walk.number);
            return Err(Error::corrupt("log", at, detail));
        }
        if walk.end == u64::MAX {
            // The manifest's segment is in the file, and so is one with a durable frame.
            let is_whole = self.segments.len() == 1 || walk.durable_below > self.segment_begins;
            if walk.past_end && is_whole {
                let detail = format!("chain {}: the file was cut within a segment", walk.chain);
                return Err(Error::corrupt("log", at, detail));
            }
            walk.check_end(file)?;
        }
        Ok(())
    }

    pub(crate) fn end(self) -> Recovered {
        let walk = self.walk;
        let known = if walk.end == u64::MAX { walk.durable_below } else { walk.end };
        let safe_below = known.clamp(self.first_frame, walk.number);
        Recovered {
            segments: self.segments,
            end_frame: walk.number,
            safe_below,
            bytes: walk.bytes,
            clock: walk.clock,
            end_at: walk.at,
        }
    }

    /// Where the next frame will stand. None if there is no such place yet: then whoever waits for it looks
    /// again.
    pub(crate) fn tail(&self, file: &dyn File) -> Result<Option<Tail>> {
        let walk = &self.walk;
        let offset = walk.segment.offset + walk.at;
        if walk.at + ALIGN_BYTES > walk.segment.len || offset.saturating_add(ALIGN_BYTES) > len_of(file)? {
            return Ok(None);
        }
        let mut bytes = vec![0; usize_of64(ALIGN_BYTES)];
        file.read_at(&mut bytes, offset).map_err(|e| read_error(e, offset))?;
        let is_coming = Frame::parse(&bytes).is_some_and(|frame| {
            let is_next =
                (frame.file_id, frame.chain, frame.number) == (walk.file_id, walk.chain, walk.number);
            is_next && (frame.len > 0 || frame.jump || !frame.verify(&bytes))
        });
        let mark = mark_of(std::array::from_fn(|word| u64_at(&bytes, word * 8)));
        Ok(Some(Tail { at: offset, mark, is_coming }))
    }

    /// The largest time that a frame has said, in seconds. 0: none has.
    pub(crate) fn clock(&self) -> u32 {
        self.walk.clock
    }

    /// The segments so far.
    pub(crate) fn segments(&self) -> &[Extent] {
        &self.segments
    }
}

/// A frame as it stands in the file.
pub(crate) struct Placed {
    /// Where it begins. (Of a jump the first copy does.)
    pub(crate) offset: u64,
    pub(crate) frame: Frame,
    /// Header and payload, without padding.
    pub(crate) bytes: Vec<u8>,
}

/// The place where the next frame of a chain will stand.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Tail {
    pub(crate) at: u64,
    /// That of what stands there, which is another when the frame comes.
    pub(crate) mark: u64,
    /// Whether the frame's header stands there already, and the frame may be whole at any moment.
    pub(crate) is_coming: bool,
}

/// What tells one header of a frame from another, by its words: all of them, since a header may be seen while
/// it is written.
pub(crate) fn mark_of(header: [u64; HEADER_BYTES / 8]) -> u64 {
    header.iter().fold(0, |mark: u64, word| (mark.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn len_of(file: &dyn File) -> Result<u64> {
    file.len().map_err(|e| Error::io("reading the database file", e))
}
