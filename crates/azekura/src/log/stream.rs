//! The records that run through the frames of a chain.

use crate::base::codec::{u64_at, usize_of, usize_of64};
use crate::base::error::Result;
use crate::format::frame::{Frame, NO_RECORD, RecordPart, read_record};

/// The records that run through the frames.
#[derive(Default)]
pub(crate) struct Stream {
    bytes: Vec<u8>,
    /// How many of them were read.
    read: usize,
    /// Whether the beginning of a record was seen. Bytes before that cannot be read.
    inside: bool,
}

impl Stream {
    /// Takes the next frame's payload, and calls `apply` for the commits that end in it.
    pub(crate) fn add(
        &mut self,
        frame: &Frame,
        payload: &[u8],
        offset: u64,
        apply: &mut impl FnMut(u64, Vec<RecordPart>) -> Result<()>,
    ) -> Result<()> {
        self.push(frame, payload);
        while let Some((seq, parts)) = self.next_commit(offset)? {
            apply(seq, parts)?;
        }
        Ok(())
    }

    /// Takes the next frame's payload.
    pub(crate) fn push(&mut self, frame: &Frame, payload: &[u8]) {
        let mut payload = payload;
        if !self.inside {
            // The first frames may end a record that began in a segment that was given back.
            if frame.first_record == NO_RECORD || usize_of(frame.first_record) > payload.len() {
                return;
            }
            payload = &payload[usize_of(frame.first_record)..];
            self.inside = true;
        }
        self.bytes.drain(..std::mem::take(&mut self.read));
        self.bytes.extend_from_slice(payload);
    }

    /// The next commit that is whole. `offset` is that of the last frame.
    pub(crate) fn next_commit(&mut self, offset: u64) -> Result<Option<(u64, Vec<RecordPart>)>> {
        let rest = &self.bytes[self.read..];
        if rest.len() < 8 {
            return Ok(None);
        }
        let len = u64_at(rest, 0);
        if len > (rest.len() - 8) as u64 {
            return Ok(None);
        }
        let end = 8 + usize_of64(len);
        let commit = read_record(&rest[8..end], offset)?;
        self.read += end;
        Ok(Some(commit))
    }
}
