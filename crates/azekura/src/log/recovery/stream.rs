//! The commits in the frames of a chain, one stream of records.

use crate::base::codec::{u64_at, usize_of, usize_of64};
use crate::base::error::Result;
use crate::format::frame::{Frame, NO_RECORD, RecordPart, read_record};

/// The records that run through the frames.
#[derive(Default)]
pub(crate) struct Stream {
    bytes: Vec<u8>,
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
        let mut payload = payload;
        if !self.inside {
            // The first frames may end a record that began in a segment that was given back.
            if frame.first_record == NO_RECORD || usize_of(frame.first_record) > payload.len() {
                return Ok(());
            }
            payload = &payload[usize_of(frame.first_record)..];
            self.inside = true;
        }
        self.bytes.extend_from_slice(payload);
        let mut at = 0;
        while self.bytes.len() - at >= 8 {
            let len = u64_at(&self.bytes, at);
            if len > (self.bytes.len() - at - 8) as u64 {
                break;
            }
            let end = at + 8 + usize_of64(len);
            let (seq, parts) = read_record(&self.bytes[at + 8..end], offset)?;
            apply(seq, parts)?;
            at = end;
        }
        self.bytes.drain(..at);
        Ok(())
    }
}
