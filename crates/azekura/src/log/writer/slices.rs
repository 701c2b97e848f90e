//! Writing what waits in the queue, a slice at a time.

use super::frames::FrameWriter;
use super::{
    BULK_BYTES, Blank, Body, Io, JUMP_BYTES, Log, PAYLOAD_BYTES_MAX, Pending, SEGMENT_BYTES_MAX, no_segment,
    segment_list,
};
use crate::base::codec::Writer;
use crate::base::error::{Error, Result};
use crate::base::limits::{ALIGN_BYTES, align_up};
use crate::base::sync::MutexGuard;
use crate::base::sync::atomic::Ordering;
use crate::format::frame::{HEADER_BYTES, begin_record, end_record, write_part};
use std::collections::VecDeque;

impl Log {
    /// Writes what waits, a slice at a time. So no segment is as long as a long queue, which counts because
    /// the last segment of a chain is kept. If there is no room for a slice, the slices before it stay
    /// durable.
    ///
    /// Between two slices others may have the log. Above all that is the checkpoint of a flush, which makes
    /// the rest of a bulk needless. Without the pause a long queue would hold up the flush, and with it the
    /// writers.
    pub(super) fn write_queue(&self, io: &mut MutexGuard<'_, Io>, goal: u64) -> Result<()> {
        let Some(newest) = self.queue.lock().pending.back().map(|p| p.last_seq) else { return Ok(()) };
        let goal = goal.min(newest);
        while self.durable_seq() < goal {
            let pending = self.take_slice();
            let Some(last_seq) = pending.back().map(|p| p.last_seq) else { break };
            if let Err(e) = self.make_ready(io, &pending) {
                let mut queue = self.queue.lock();
                queue.bytes += pending.iter().map(Pending::bytes).sum::<usize>();
                pending.into_iter().rev().for_each(|p| queue.pending.push_front(p));
                self.full.store(true, Ordering::Release);
                return if matches!(e, Error::NoSpace { .. }) { Err(e) } else { self.poison.guard(Err(e)) };
            }
            let done = self.write_pending(io, &pending);
            self.poison.guard(done)?;
            self.full.store(false, Ordering::Release);
            self.group_is_durable(io);
            self.note_length(io);
            self.durable_seq.fetch_max(last_seq, Ordering::AcqRel);
            if last_seq < goal {
                MutexGuard::bump(io);
                self.poison.check()?;
            }
        }
        Ok(())
    }

    /// The oldest pieces of the queue, as many as fill a segment.
    fn take_slice(&self) -> VecDeque<Pending> {
        let mut queue = self.queue.lock();
        let (mut slice, mut bytes) = (VecDeque::new(), 0);
        while bytes < SEGMENT_BYTES_MAX
            && let Some(p) = queue.pending.pop_front()
        {
            bytes += p.written_bytes_max();
            queue.bytes -= p.bytes().min(queue.bytes);
            slice.push_back(p);
        }
        slice
    }

    fn write_pending(&self, io: &mut Io, pending: &VecDeque<Pending>) -> Result<()> {
        let mut out = FrameWriter::new(self, io);
        for p in pending {
            match &p.body {
                Body::Bytes(bytes) => out.add_records(bytes, p.last_seq)?,
                Body::Entries(entries) => out.add_records(&entries.encode(), p.last_seq)?,
                Body::Chunks(chunks) => {
                    let mut w = Writer::default();
                    let start = begin_record(&mut w, p.last_seq, chunks.len());
                    for (table, chunk) in chunks {
                        write_part(
                            &mut w,
                            *table,
                            &segment_list(&chunk.segments),
                            &chunk.ranges,
                            &chunk.block,
                        );
                    }
                    end_record(&mut w, start);
                    out.add_records(&w.bytes, p.last_seq)?;
                }
            }
        }
        out.finish()
    }

    /// Makes large values durable. Allocates the next segment if the last one may be too short for what is to
    /// be written.
    fn make_ready(&self, io: &mut Io, pending: &VecDeque<Pending>) -> Result<()> {
        if pending.iter().any(|p| p.large) {
            self.values.sync()?;
        }
        self.poison.check()?;
        let Some(last) = io.segments.back() else { return Err(no_segment()) };
        let payload: u64 = pending.iter().map(Pending::written_bytes_max).sum();
        // Each frame has a header and is padded to a whole block. A jump may cut one frame in two.
        let frames = payload / PAYLOAD_BYTES_MAX as u64 + 2;
        let need = payload + frames * (HEADER_BYTES as u64 + ALIGN_BYTES);
        let last = last.extent;
        if io.at + need + JUMP_BYTES <= last.len {
            return Ok(());
        }
        io.spare = io.spare.or_else(|| self.take_made());
        if io.spare.is_some_and(|s| need + JUMP_BYTES <= s.len) {
            return Ok(());
        }
        let least = align_up(need + JUMP_BYTES);
        let blank = if payload >= BULK_BYTES { Blank::Reserved } else { Blank::Written };
        let fresh = match self.new_extent(self.next_segment_bytes(last.len).max(least), blank) {
            // A nearly full disk may have room for just what waits.
            Err(Error::NoSpace { .. }) => self.new_extent(least, blank)?,
            other => other?,
        };
        if let Some(small) = io.spare.replace(fresh) {
            self.room.space.free(small);
        }
        Ok(())
    }
}
