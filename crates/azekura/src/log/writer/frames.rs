//! Frames, as they are written to the last segment of a chain, and jumps from one segment to the next.

use super::next::Mark;
use super::{BULK_BYTES, Blank, Io, JUMP_BYTES, Jump, Log, LogSegment, PAYLOAD_BYTES_MAX, no_segment};
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
    /// Whether something was written that the next durable write does not cover.
    unsynced: bool,
}

impl<'a> FrameWriter<'a> {
    pub(super) fn new(log: &'a Log, io: &'a mut Io) -> FrameWriter<'a> {
        FrameWriter { log, io, frame: vec![0; HEADER_BYTES], first_record: NO_RECORD, unsynced: false }
    }

    /// Appends whole records. The last one is of commit `seq`.
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
            let sync = || self.log.file.sync_data().map_err(|e| Error::io("syncing the log", e));
            self.log.poison.guard_sync(sync)?;
        }
        Ok(())
    }

    /// Writes the current frame. The write is durable if the frame is the last and nothing else waits for a
    /// sync.
    fn write_frame(&mut self, last: bool) -> Result<()> {
        let need = align_up(self.frame.len() as u64);
        self.make_room(need)?;
        let len = u32_of(self.frame.len() - HEADER_BYTES);
        self.frame.resize(usize_of64(need), 0);
        let number = self.io.next_frame;
        self.log.seal(
            self.io,
            number,
            &mut self.frame,
            Payload { len, first_record: self.first_record, jump: false },
        );
        let Some(segment) = self.io.segments.back() else { return Err(no_segment()) };
        let offset = segment.extent.offset + self.io.at;
        let file = &self.log.file;
        let mut is_alone = false;
        if last && !self.unsynced {
            self.log.bulk.note_durable(self.frame.len());
            let write = || file.write_durable_at(&self.frame, offset);
            self.log.poison.guard_sync(|| write().map_err(|e| Error::io("writing the log", e)))?;
            is_alone = true;
        } else {
            file.write_at(&self.frame, offset).map_err(|e| Error::io("writing the log", e))?;
            self.unsynced = true;
        }
        self.io.at += need;
        self.io.next_frame += 1;
        self.io.vouched_below = self.io.durable_below;
        if is_alone {
            self.log.look_ahead(self.io);
        } else {
            self.io.mark = Mark::now(self.io.at);
        }
        self.frame.clear();
        self.frame.resize(HEADER_BYTES, 0);
        self.first_record = NO_RECORD;
        Ok(())
    }

    /// Makes sure that a frame of `need` bytes, and a jump behind it, fit into the last segment.
    fn make_room(&mut self, need: u64) -> Result<()> {
        let Some(last) = self.io.segments.back() else { return Err(no_segment()) };
        if self.io.at + need + JUMP_BYTES <= last.extent.len {
            return Ok(());
        }
        let old = last.extent;
        let extent = match self.io.spare.take().or_else(|| self.log.take_made()) {
            Some(spare) if need + JUMP_BYTES <= spare.len => spare,
            spare => {
                spare.into_iter().for_each(|small| self.log.room.space.free(small));
                let len = align_up(self.log.next_segment_bytes(old.len).max(need + 2 * JUMP_BYTES));
                let blank = if need >= BULK_BYTES { Blank::Reserved } else { Blank::Written };
                self.log.new_extent(len, blank)?
            }
        };
        self.jump_to(extent)
    }

    /// Ends the last segment with a jump, for which there is always room, and goes on in `extent`.
    pub(super) fn jump_to(&mut self, extent: Extent) -> Result<()> {
        let Some(last) = self.io.segments.back() else { return Err(no_segment()) };
        let (old, touched) = (last.extent, last.last_seq);
        let number = self.io.next_frame;
        // Twice: all that follows depends on the jump, and no frame behind it in the segment could vouch for
        // it.
        let twins = self.log.jump_block(self.io, number, extent).repeat(2);
        let at = old.offset + self.io.at;
        self.log.file.write_at(&twins, at).map_err(|e| Error::io("writing the log", e))?;
        self.io.jumps.push(Jump { twin_at: at + ALIGN_BYTES, number, goal: extent });
        self.unsynced = true;
        self.io.next_frame += 1;
        self.io.at = 0;
        self.io.mark = Mark::now(0);
        let first_frame = self.io.next_frame;
        self.io.segments.push_back(LogSegment { extent, first_frame, last_seq: touched });
        Ok(())
    }
}

/// What a frame's header says of its payload.
struct Payload {
    len: u32,
    first_record: u32,
    jump: bool,
}

impl Log {
    /// Completes a frame whose payload is in place.
    fn seal(&self, io: &Io, number: u64, block: &mut [u8], Payload { len, first_record, jump }: Payload) {
        let frame = Frame {
            file_id: self.file_id,
            chain: io.chain,
            number,
            len,
            first_record,
            jump,
            checkpoint: self.checkpoint.load(Ordering::Acquire),
            durable_below: io.durable_below,
            clock: self.clock.seconds(),
        };
        frame.seal(block);
    }

    fn jump_block(&self, io: &Io, number: u64, goal: Extent) -> Vec<u8> {
        let mut block = vec![0; usize_of64(ALIGN_BYTES)];
        block[HEADER_BYTES..HEADER_BYTES + 8].copy_from_slice(&goal.offset.to_le_bytes());
        block[HEADER_BYTES + 8..HEADER_BYTES + 16].copy_from_slice(&goal.len.to_le_bytes());
        self.seal(io, number, &mut block, Payload { len: 16, first_record: NO_RECORD, jump: true });
        block
    }

    /// Writes a frame without records, unsynced, which says that the frames before it are durable. It has the
    /// number and the place of the next frame, which will overwrite it. A jump would fit there, so there is
    /// always room. It is not counted as a frame: it may be lost, and then frames behind it could not be
    /// reached.
    pub(super) fn vouch_by_frame(&self, io: &mut Io) -> Result<()> {
        let Some(segment) = io.segments.back() else { return Err(no_segment()) };
        let mut block = vec![0; usize_of64(ALIGN_BYTES)];
        self.seal(io, io.next_frame, &mut block, Payload { len: 0, first_record: NO_RECORD, jump: false });
        let at = segment.extent.offset + io.at;
        self.file.write_at(&block, at).map_err(|e| Error::io("writing the log", e))?;
        io.vouched_below = io.durable_below;
        Ok(())
    }

    /// Writes the second copy of a jump again, unsynced. It says that the frames after the jump are durable,
    /// up to `durable_below`. The first copy stays, so a torn write does no harm.
    pub(super) fn vouch_in_jump(&self, io: &Io, jump: &Jump) -> Result<()> {
        let block = self.jump_block(io, jump.number, jump.goal);
        self.file.write_at(&block, jump.twin_at).map_err(|e| Error::io("writing the log", e))
    }
}
