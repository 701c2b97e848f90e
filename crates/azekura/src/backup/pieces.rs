//! Parts of a database, piece by piece.

use super::pace::Pace;
use crate::base::codec::{u32_of, usize_of64};
use crate::base::error::Result;
use crate::engine::{Capture, CapturePart, Progress};
use crate::format::point::{PIECE_BYTES_MAX, PartId, Piece, digest};

/// The pieces of so many bytes: number, beginning and length of each.
pub(super) fn cuts(bytes: u64) -> impl Iterator<Item = (u32, u64, usize)> {
    let most = PIECE_BYTES_MAX as u64;
    (0..).zip(0..bytes.div_ceil(most)).map(move |(index, n)| {
        let start = n * most;
        (index, start, usize_of64((bytes - start).min(most)))
    })
}

/// Reads all that was captured, and hands each piece and its bytes to `take`. A piece whose digest is `known`
/// is neither read nor handed on. Gives all pieces, by their offsets in the copy. Reading waits for `pace`.
pub(super) fn read_pieces(
    capture: &Capture,
    known: impl Fn(PartId, u32, u32) -> Option<u128>,
    mut take: impl FnMut(&Piece, &[u8]) -> Result<()>,
    pace: &mut Pace<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Piece>> {
    let mut step = Progress { done: 0, total: capture.bytes() };
    let mut pieces = Vec::new();
    let mut buffer = Vec::new();
    if step.total > 0 {
        progress(step);
    }
    for part in &capture.parts {
        for (index, start, len) in cuts(part.bytes) {
            let known = known(part.id, index, u32_of(len));
            let piece = |digest| Piece {
                part: part.id,
                index,
                offset: part.offset + start,
                bytes: u32_of(len),
                digest,
            };
            let piece = match known {
                Some(digest) => piece(digest),
                None => {
                    buffer.resize(len, 0);
                    read_piece(capture, part, start, &mut buffer, pace)?;
                    let piece = piece(digest(&buffer));
                    take(&piece, &buffer)?;
                    piece
                }
            };
            pieces.push(piece);
            step.done += len as u64;
            progress(step);
        }
    }
    Ok(pieces)
}

fn read_piece(
    capture: &Capture,
    part: &CapturePart,
    start: u64,
    buffer: &mut [u8],
    pace: &mut Pace<'_>,
) -> Result<()> {
    let mut next = start;
    let step = pace.step_bytes().map_or(buffer.len(), usize_of64);
    for some in buffer.chunks_mut(step.max(1)) {
        pace.wait(some.len() as u64);
        capture.read(part, next, some)?;
        next += some.len() as u64;
    }
    if pace.step_bytes().is_some() {
        return Ok(());
    }
    // The disk goes on while this piece is handed on.
    capture.will_read(part, next, (part.bytes - next).min(PIECE_BYTES_MAX as u64));
    Ok(())
}
