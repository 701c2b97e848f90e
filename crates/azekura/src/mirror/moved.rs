//! Copying within the mirror what its source has moved: idle time moves whole levels to the file's front.
//!
//! The place from which it is copied is read first, all of it, and compared with the digest that was taken
//! when these bytes came. If there is none, because they came before the mirror was opened, a source on
//! another machine is asked for those of its steps. What cannot be compared, or is not the same, comes from
//! the source.

use super::copied::{Piece, Standing};
use super::copy::STEP_BYTES;
use super::dest::{Dest, Going, Stop};
use super::going::{Mirror, Told};
use super::source::MirrorSource;
use crate::base::codec::usize_of64;
use crate::base::error::Result;
use crate::base::fault::fault;
use crate::base::limits::ALIGN_BYTES;
use crate::format::point::digest;
use crate::storage::read_error;

impl Mirror {
    /// Copies a piece from another place of the mirror. False if that is not sure to be the same.
    pub(super) fn copy_within(
        &mut self,
        piece: Piece,
        there: &Standing,
        is_good: &dyn Fn(&MirrorSource) -> Result<bool>,
        told: Told<'_>,
    ) -> Going<bool> {
        if there.digest.is_none() {
            return self.copy_asking(piece, there, is_good, told);
        }
        let Some(bytes) = self.dest()?.standing(&piece, there) else { return Ok(false) };
        self.put_moved(&piece, &bytes)?;
        self.goes_on(told)?;
        Ok(true)
    }

    /// The same step by step, where a source on another machine says what is right.
    fn copy_asking(
        &mut self,
        piece: Piece,
        there: &Standing,
        is_good: &dyn Fn(&MirrorSource) -> Result<bool>,
        told: Told<'_>,
    ) -> Going<bool> {
        let Some(afar) = self.source.afar.clone() else { return Ok(false) };
        let step = self.pace.step_bytes().unwrap_or(STEP_BYTES);
        for from in (0..piece.bytes).step_by(usize_of64(step)) {
            let part = piece.part_at(from, step);
            let expected = afar.digest(part.offset, part.bytes).map_err(|e| read_error(e, part.offset));
            if !is_good(&self.source)? {
                return Err(Stop::Overtaken);
            }
            let expected = expected?;
            match self.dest()?.read_standing(&part, there).filter(|bytes| digest(bytes) == expected) {
                Some(bytes) => self.put_moved(&part, &bytes)?,
                None => self.ship(part, is_good, told)?,
            }
            self.goes_on(told)?;
        }
        Ok(true)
    }

    fn put_moved(&mut self, piece: &Piece, bytes: &[u8]) -> Going<()> {
        self.pace.wait(piece.bytes);
        self.dest()?.put(piece, bytes)?;
        self.gauge.moved(piece.bytes);
        Ok(())
    }
}

impl Dest {
    /// The bytes of a piece that stands elsewhere, if they are what has come.
    fn standing(&self, piece: &Piece, there: &Standing) -> Option<Vec<u8>> {
        let mut all = self.read_standing(&there.piece, there)?;
        if fault!("mirror_move_wrong") {
            let len = all.len();
            all.rotate_left(usize_of64(ALIGN_BYTES).min(len));
        } else if there.digest != Some(digest(&all)) {
            return None;
        }
        let from = usize_of64(piece.at.checked_sub(there.piece.at)?);
        let to = from.checked_add(usize_of64(piece.bytes))?;
        all.truncate(to);
        (all.len() == to).then(|| all.split_off(from))
    }

    /// Reads a part of what stood in a place when that was looked at.
    fn read_standing(&self, part: &Piece, there: &Standing) -> Option<Vec<u8>> {
        if !self.copied.has(there) {
            return None;
        }
        let mut bytes = vec![0; usize_of64(part.bytes)];
        let offset = there.piece.offset + part.at.checked_sub(there.piece.at)?;
        self.file.read_at(&mut bytes, offset).is_ok().then_some(bytes)
    }
}
