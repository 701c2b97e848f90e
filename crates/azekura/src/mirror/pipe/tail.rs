//! What stands at the log's tail: the frames that have come, and the blocks behind them.

use super::LOG_BYTES_MAX;
use crate::base::codec::{u64_at, usize_of64};
use crate::base::limits::{ALIGN_BYTES, align_up};
use crate::format::frame::{Frame, HEADER_BYTES};
use crate::format::point::digest;
use crate::storage::File;
use std::io;

/// Frames that follow each other, and the two blocks behind them.
#[derive(Default)]
pub(super) struct Frames {
    pub(super) bytes: Vec<u8>,
    /// That of the two blocks behind the frames, as far as the file goes. 0: it ends before them, or it is
    /// not known where the next frame will stand.
    pub(super) mark: u64,
    /// Where these blocks stand.
    pub(super) end: u64,
    /// Whether the first frame is there, all of it.
    pub(super) is_whole: bool,
    /// Whether the first frame is just being written.
    pub(super) is_coming: bool,
}

impl Frames {
    pub(super) fn at(file: &dyn File, tail: u64) -> io::Result<Frames> {
        let len = file.len()?;
        let mut frames = Frames { end: tail, ..Frames::default() };
        let mut number = None;
        loop {
            let Some(first) = read_within(file, len, frames.end, ALIGN_BYTES)? else { return Ok(frames) };
            let frame = Frame::parse(&first).filter(|frame| number.is_none_or(|n| frame.number == n));
            let room = (LOG_BYTES_MAX - frames.bytes.len()) as u64;
            let size = frame.as_ref().and_then(frame_bytes).filter(|size| size + 2 * ALIGN_BYTES <= room);
            let (Some(frame), Some(size)) = (frame, size) else {
                break frames.add_behind(file, len, &first)?;
            };
            let whole = read_within(file, len, frames.end, size)?.filter(|bytes| frame.verify(bytes));
            let Some(whole) = whole else {
                frames.is_coming = !frames.is_whole;
                break frames.add_behind(file, len, &first)?;
            };
            frames.is_whole = true;
            frames.bytes.extend(whole);
            if frame.jump {
                return Ok(frames);
            }
            (frames.end, number) = (frames.end + size, frame.number.checked_add(1));
        }
        Ok(frames)
    }

    /// The head of the first frame, if all of that is there.
    pub(super) fn first(&self) -> Option<&[u8]> {
        self.bytes.get(..HEADER_BYTES).filter(|_| self.is_whole)
    }

    /// Adds the blocks behind the frames, where who reads the chain looks for the next one, or for the second
    /// copy of a jump. What is no frame goes as zeros.
    fn add_behind(&mut self, file: &dyn File, len: u64, first: &[u8]) -> io::Result<()> {
        let second = read_within(file, len, self.end + ALIGN_BYTES, ALIGN_BYTES)?.unwrap_or_default();
        self.mark = mark_of(&[first, &second].concat());
        let is_frame = |block: &[u8]| Frame::parse(block).is_some();
        let add = |bytes: &mut Vec<u8>, block: &[u8], is_sent: bool| {
            let end = bytes.len() + block.len();
            if is_sent { bytes.extend_from_slice(block) } else { bytes.resize(end, 0) }
        };
        add(&mut self.bytes, first, is_frame(first));
        // It may be the rest of that frame.
        add(&mut self.bytes, &second, is_frame(first) || is_frame(&second));
        Ok(())
    }
}

/// What tells two blocks from what stood there before. Never 0: that is what nobody has seen.
fn mark_of(blocks: &[u8]) -> u64 {
    u64_at(&digest(blocks).to_le_bytes(), 0).max(1)
}

/// The bytes that a frame takes. None if none follows it in its place.
fn frame_bytes(frame: &Frame) -> Option<u64> {
    let size = align_up(HEADER_BYTES as u64 + u64::from(frame.len));
    match frame {
        Frame { jump: true, .. } => Some(2 * ALIGN_BYTES).filter(|_| size == ALIGN_BYTES),
        Frame { len: 0, .. } => None,
        _ => Some(size),
    }
}

/// None where the file ends before that.
fn read_within(file: &dyn File, len: u64, offset: u64, bytes: u64) -> io::Result<Option<Vec<u8>>> {
    if offset.checked_add(bytes).is_none_or(|end| end > len) {
        return Ok(None);
    }
    let mut read = vec![0; usize_of64(bytes)];
    match file.read_at(&mut read, offset) {
        Ok(()) => Ok(Some(read)),
        // It was cut meanwhile.
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn a_frame_takes_whole_blocks() {
        let frame = Frame { len: 1, ..frame() };
        assert_eq!(frame_bytes(&frame), Some(4096));
        assert_eq!(frame_bytes(&Frame { len: 4096, ..frame }), Some(8192));
        assert_eq!(frame_bytes(&Frame { len: 0, ..frame }), None, "the next one takes its place");
        assert_eq!(frame_bytes(&Frame { len: 16, jump: true, ..frame }), Some(8192), "it stands twice");
        assert_eq!(frame_bytes(&Frame { len: 9000, jump: true, ..frame }), None);
    }

    /// A frame without a payload.
    pub(in super::super) fn frame() -> Frame {
        Frame {
            file_id: 1,
            chain: 1,
            number: 1,
            len: 0,
            first_record: 0,
            jump: false,
            clock: 0,
            checkpoint: 1,
            durable_below: 0,
        }
    }
}
