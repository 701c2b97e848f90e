//! Frames, as they are written to the last segment of a chain, and the jump from one segment to the next.

use super::{BULK_BYTES, Blank, Io, JUMP_BYTES, Log, LogSegment, PAYLOAD_BYTES_MAX, next_segment_bytes, no_segment};
use crate::base::codec::{u32_of, usize_of64};
use crate::base::error::{Error, Result};
use crate::base::limits::{ALIGN_BYTES, align_up};
use crate::base::sync::atomic::Ordering;
use crate::format::frame::{Frame, HEADER_BYTES, NO_RECORD};
use crate::space::Extent;

/// Cuts a stream of records into frames.
pub(super) struct FrameWriter<'a> {
    log: &'a Log,
    io: &'a mut Io,
    frame: Vec<u8>,
    first_record: u32,
    /// Something was written that the next durable write does not cover.
    unsynced: bool,
}

impl<'a> FrameWriter<'a> {
    pub(super) fn new(log: &'a Log, io: &'a mut Io) -> FrameWriter<'a> {
        FrameWriter { log, io, frame: vec![0; HEADER_BYTES], first_record: NO_RECORD, unsynced: false }
    }

    /// Appends whole records, the last of commit `seq`.
    pub(super) fn add_records(&mut self, mut bytes: &[u8], seq: u64) -> Result<()> {
        if self.first_record == NO_RECORD {
            self.first_record = u32_of(self.frame.len() - HEADER_BYTES);
        }
        while !bytes.is_empty() {
            let room = HEADER_BYTES + PAYLOAD_BYTES_MAX - self.frame.len();
            let n = room.min(bytes.len());
            self.frame.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            self.touch(seq);
            if self.frame.len() == HEADER_BYTES + PAYLOAD_BYTES_MAX {
                self.write_frame(false)?;
            }
        }
        Ok(())
    }

    fn touch(&mut self, seq: u64) {
        if let Some(s) = self.io.segments.back_mut() {
            s.last_seq = s.last_seq.max(seq);
        }
    }

    pub(super) fn finish(mut self) -> Result<()> {
        if self.frame.len() > HEADER_BYTES {
            self.write_frame(true)?;
        }
        if self.unsynced {
            self.log.file.sync_data().map_err(|e| Error::io("syncing the log", e))?;
        }
        Ok(())
    }

    /// Writes the frame at hand; durably if it is the last and nothing else waits for a sync.
    fn write_frame(&mut self, last: bool) -> Result<()> {
        let need = align_up(self.frame.len() as u64);
        self.make_room(need)?;
        let len = u32_of(self.frame.len() - HEADER_BYTES);
        self.frame.resize(usize_of64(need), 0);
        self.seal(len, self.first_record, false);
        let Some(segment) = self.io.segments.back() else { return Err(no_segment()) };
        let offset = segment.extent.offset + self.io.at;
        let file = &self.log.file;
        if last && !self.unsynced {
            self.log.bulk.note_durable(self.frame.len());
            file.write_durable_at(&self.frame, offset).map_err(|e| Error::io("writing the log", e))?;
        } else {
            file.write_at(&self.frame, offset).map_err(|e| Error::io("writing the log", e))?;
            self.unsynced = true;
        }
        self.io.at += need;
        self.io.next_frame += 1;
        self.frame.clear();
        self.frame.resize(HEADER_BYTES, 0);
        self.first_record = NO_RECORD;
        Ok(())
    }

    fn seal(&mut self, len: u32, first_record: u32, jump: bool) {
        let frame = Frame {
            file_id: self.log.file_id,
            chain: self.io.chain,
            number: self.io.next_frame,
            len,
            first_record,
            jump,
            checkpoint: self.log.checkpoint.load(Ordering::Acquire),
            durable_below: self.io.durable_below,
        };
        frame.seal(&mut self.frame);
    }

    /// Sees to it that a frame of `need` bytes, and a jump behind it, fit the last segment.
    fn make_room(&mut self, need: u64) -> Result<()> {
        let Some(last) = self.io.segments.back() else { return Err(no_segment()) };
        if self.io.at + need + JUMP_BYTES <= last.extent.len {
            return Ok(());
        }
        let old = last.extent;
        let extent = match self.io.spare.take() {
            Some(spare) if need + JUMP_BYTES <= spare.len => spare,
            spare => {
                spare.into_iter().for_each(|small| self.log.space.free(small));
                let len = align_up(next_segment_bytes(old.len).max(need + 2 * JUMP_BYTES));
                let blank = if need >= BULK_BYTES { Blank::Reserved } else { Blank::Written };
                self.log.new_extent(len, blank)?
            }
        };
        self.jump_to(extent)
    }

    /// Ends the last segment with a jump, for which there is always room, and goes on in another.
    pub(super) fn jump_to(&mut self, extent: Extent) -> Result<()> {
        let Some(last) = self.io.segments.back() else { return Err(no_segment()) };
        let (old, touched) = (last.extent, last.last_seq);
        let records = std::mem::replace(&mut self.frame, vec![0; usize_of64(ALIGN_BYTES)]);
        self.frame[HEADER_BYTES..HEADER_BYTES + 8].copy_from_slice(&extent.offset.to_le_bytes());
        self.frame[HEADER_BYTES + 8..HEADER_BYTES + 16].copy_from_slice(&extent.len.to_le_bytes());
        self.seal(16, NO_RECORD, true);
        // Twice, for all that follows hangs on it and nothing behind it in the segment could tell.
        self.frame.extend_from_within(..);
        let at = old.offset + self.io.at;
        self.log.file.write_at(&self.frame, at).map_err(|e| Error::io("writing the log", e))?;
        self.unsynced = true;
        self.frame = records;
        self.io.next_frame += 1;
        self.io.at = 0;
        let first_frame = self.io.next_frame;
        self.io.segments.push_back(LogSegment { extent, first_frame, last_seq: touched });
        Ok(())
    }
}
