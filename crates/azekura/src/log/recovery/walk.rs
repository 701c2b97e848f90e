//! The frames of one chain, one after the other, and what the place says where they end.

use crate::base::codec::{u64_at, usize_of, usize_of64};
use crate::base::error::{Error, Result};
use crate::base::fault::fault;
use crate::base::limits::{ALIGN_BYTES, SUPERBLOCKS_BYTES, align_up};
use crate::format::frame::{Frame, HEADER_BYTES};
use crate::space::Extent;
use crate::storage::{File, read_error};

/// Where the reading of one chain has come to.
#[derive(Clone)]
pub(super) struct Walk {
    pub(super) file_len: u64,
    pub(super) file_id: u64,
    /// The number of the superblock in force.
    pub(super) checkpoint: u64,
    pub(super) chain: u64,
    pub(super) segment: Extent,
    pub(super) at: u64,
    pub(super) number: u64,
    pub(super) end: u64,
    /// The largest `durable_below` so far, of the manifest or of a frame.
    pub(super) durable_below: u64,
    /// Bytes of the frames so far.
    pub(super) bytes: u64,
    /// The largest time of the frames so far.
    pub(super) clock: u32,
    /// Whether the file ended at the next frame, or within it.
    pub(super) past_end: bool,
}

impl Walk {
    /// The next frame and its bytes. None where the chain ends. A jump stands twice: if the first copy is
    /// damaged, the second one counts.
    pub(super) fn next_frame(&mut self, file: &dyn File) -> Result<Option<(Frame, Vec<u8>)>> {
        let (at, number, bytes) = (self.at, self.number, self.bytes);
        if let Some(found) = self.frame_here(file)? {
            self.hear_twin(file, &found.0)?;
            return Ok(Some(found));
        }
        let past_end = self.past_end;
        if fault!("ignore_gap")
            && let Some(found) = self.behind_gap(file)?
        {
            return Ok(Some(found));
        }
        self.at = at + ALIGN_BYTES;
        match self.frame_here(file)? {
            Some(found) if found.0.jump => Ok(Some(found)),
            other => {
                self.past_end = past_end;
                if other.is_some() {
                    (self.number, self.bytes) = (number, bytes);
                }
                self.at = at;
                Ok(None)
            }
        }
    }

    /// Reads the second copy of a jump. It may have been written again later, and then it knows of frames in
    /// the next segment that were durable.
    fn hear_twin(&mut self, file: &dyn File, jump: &Frame) -> Result<()> {
        let offset = self.segment.offset + self.at;
        if !jump.jump || self.at + ALIGN_BYTES > self.segment.len || offset + ALIGN_BYTES > self.file_len {
            return Ok(());
        }
        let mut bytes = vec![0; usize_of64(ALIGN_BYTES)];
        file.read_at(&mut bytes, offset).map_err(|e| read_error(e, offset))?;
        let Some(twin) = Frame::parse(&bytes) else { return Ok(()) };
        let is_twin = Frame {
            checkpoint: jump.checkpoint,
            durable_below: jump.durable_below,
            clock: jump.clock,
            ..twin
        } == *jump;
        if is_twin && HEADER_BYTES + usize_of(twin.len) <= bytes.len() && twin.verify(&bytes) {
            self.durable_below = self.durable_below.max(twin.durable_below);
        }
        Ok(())
    }

    /// The next whole frame of the segment, whatever is missing before it. This is a fault.
    fn behind_gap(&mut self, file: &dyn File) -> Result<Option<(Frame, Vec<u8>)>> {
        let (at, number) = (self.at, self.number);
        while self.at + ALIGN_BYTES < self.segment.len {
            self.at += ALIGN_BYTES;
            for ahead in 1..4 {
                self.number = number + ahead;
                if let Some(found) = self.frame_here(file)? {
                    return Ok(Some(found));
                }
            }
        }
        (self.at, self.number) = (at, number);
        Ok(None)
    }

    /// Whether the next frame is there, as far as `next_frame` could tell.
    pub(super) fn has_next(&self, file: &dyn File) -> Result<bool> {
        self.clone().next_frame(file).map(|found| found.is_some())
    }

    fn frame_here(&mut self, file: &dyn File) -> Result<Option<(Frame, Vec<u8>)>> {
        if self.number == self.end || self.at + ALIGN_BYTES > self.segment.len {
            return Ok(None);
        }
        let offset = self.segment.offset + self.at;
        self.past_end = offset.checked_add(ALIGN_BYTES).is_none_or(|e| e > self.file_len);
        if self.past_end {
            return Ok(None);
        }
        let mut bytes = vec![0; usize_of64(ALIGN_BYTES)];
        file.read_at(&mut bytes, offset).map_err(|e| read_error(e, offset))?;
        let Some(frame) = Frame::parse(&bytes) else { return Ok(None) };
        if frame.file_id != self.file_id || frame.chain != self.chain || frame.number != self.number {
            return Ok(None);
        }
        let size = align_up(HEADER_BYTES as u64 + u64::from(frame.len));
        self.past_end = self.at + size <= self.segment.len && offset + size > self.file_len;
        if self.at + size > self.segment.len || self.past_end {
            return Ok(None);
        }
        // Memory that nobody has touched: a false length takes none before the bytes are there.
        let mut bytes = vec![0; usize_of64(size)];
        file.read_at(&mut bytes, offset).map_err(|e| read_error(e, offset))?;
        if !frame.verify(&bytes) {
            return Ok(None);
        }
        if frame.checkpoint > self.checkpoint {
            let detail = format!(
                "checkpoint {} is lost: a log frame knows of {}",
                self.checkpoint + 1,
                frame.checkpoint
            );
            return Err(Error::corrupt("superblock", 0, detail));
        }
        self.durable_below = self.durable_below.max(frame.durable_below);
        self.clock = self.clock.max(frame.clock);
        if frame.len == 0 && !frame.jump && frame.number.checked_add(1) != Some(self.end) {
            // A frame without payload only vouches, and the next frame takes its place. So the chain ends
            // here. If frames stand behind this place, the write of the frame that took it was lost.
            return Ok(None);
        }
        self.number += 1;
        self.at += size;
        self.bytes += size;
        bytes.truncate(HEADER_BYTES + usize_of(frame.len));
        Ok(Some((frame, bytes)))
    }

    /// Checks a place where the chain seems to end. A later frame of the segment, or the jump to it, may know
    /// that the missing frame was durable. Then that frame is damaged, which is an error: its commits must
    /// not be lost in silence.
    pub(super) fn check_end(&self, file: &dyn File) -> Result<()> {
        let (at, number) = (self.at, self.number);
        let damaged = || {
            let detail = format!("chain {}: frame {number} is damaged; it was durable", self.chain);
            Err(Error::corrupt("log", self.segment.offset + at, detail))
        };
        if self.durable_below > number {
            return damaged();
        }
        let mut later = at + ALIGN_BYTES;
        while later + ALIGN_BYTES <= self.segment.len
            && self.segment.offset + later + ALIGN_BYTES <= self.file_len
        {
            if self.knows_of(file, later, number)? {
                return damaged();
            }
            later += ALIGN_BYTES;
        }
        Ok(())
    }

    /// Whether there is a whole frame at `at` that knows frame `number` to be durable.
    fn knows_of(&self, file: &dyn File, at: u64, number: u64) -> Result<bool> {
        let offset = self.segment.offset + at;
        let mut bytes = vec![0; usize_of64(ALIGN_BYTES)];
        file.read_at(&mut bytes, offset).map_err(|e| read_error(e, offset))?;
        let Some(frame) = Frame::parse(&bytes) else { return Ok(false) };
        let ours = frame.file_id == self.file_id && frame.chain == self.chain;
        let size = align_up(HEADER_BYTES as u64 + u64::from(frame.len));
        let inside = at + size <= self.segment.len && offset + size <= self.file_len;
        if !ours || !inside || frame.durable_below <= number || frame.number <= number {
            return Ok(false);
        }
        let mut bytes = vec![0; usize_of64(size)];
        file.read_at(&mut bytes, offset).map_err(|e| read_error(e, offset))?;
        Ok(frame.verify(&bytes))
    }

    pub(super) fn jump(&mut self, bytes: &[u8], seen: &[Extent]) -> Result<Extent> {
        let bad = |detail: &str| Error::corrupt("log", self.segment.offset + self.at, detail);
        if bytes.len() < HEADER_BYTES + 16 {
            return Err(bad("a jump without a goal"));
        }
        let extent = Extent { offset: u64_at(bytes, HEADER_BYTES), len: u64_at(bytes, HEADER_BYTES + 8) };
        let aligned = extent.offset.is_multiple_of(ALIGN_BYTES)
            && extent.len.is_multiple_of(ALIGN_BYTES)
            && extent.len > 0;
        let inside = extent.offset >= SUPERBLOCKS_BYTES
            && extent.offset.checked_add(extent.len).is_some_and(|e| e <= i64::MAX as u64);
        if !aligned || !inside || seen.iter().any(|s| s.offset == extent.offset) {
            return Err(bad("a jump to an impossible segment"));
        }
        self.segment = extent;
        self.at = 0;
        Ok(extent)
    }
}
