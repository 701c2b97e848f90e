//! Copying a piece of a run or a value segment, as far as the mirror lacks it.
//!
//! A file that was left unfinished, or that has been the mirror until another one is built, may have the right
//! bytes in the right place already. Where the source is on another machine it is asked for a digest of what
//! stands there, and bytes are sent only if these differ.

use super::dest::{Going, Stop};
use super::going::{Mirror, Told};
use super::source::Source;
use super::spans::Piece;
use crate::base::codec::usize_of64;
use crate::base::error::Result;
use crate::format::point::digest;

/// So much is copied between two looks at what the caller wants.
const STEP_BYTES: u64 = 1 << 20;

impl Mirror {
    /// Copies what lacks of a piece. `is_good` says after each read whether the bytes are what they should be.
    pub(super) fn copy(
        &mut self,
        piece: &Piece,
        is_good: &dyn Fn(&Source) -> Result<bool>,
        told: Told<'_>,
    ) -> Going<bool> {
        let lacking = self.dest()?.copied.lacks(piece);
        let any = !lacking.is_empty();
        for piece in lacking {
            let step = self.pace.step_bytes().unwrap_or(STEP_BYTES).min(STEP_BYTES);
            let mut at = 0;
            while at < piece.bytes {
                let bytes = step.min(piece.bytes - at);
                let part = Piece { at: piece.at + at, offset: piece.offset + at, bytes, ..piece };
                if !self.find_step(&part, is_good)? {
                    self.copy_step(&part, is_good)?;
                }
                self.go_ahead(told)?;
                at += bytes;
                if !told(&self.status()) {
                    return Err(Stop::Ended);
                }
            }
        }
        Ok(any)
    }

    fn copy_step(&mut self, part: &Piece, is_good: &dyn Fn(&Source) -> Result<bool>) -> Going<()> {
        self.pace.wait(part.bytes);
        let read = self.source.read(part.offset, part.bytes);
        if !is_good(&self.source)? {
            return Err(Stop::Overtaken);
        }
        let bytes = read?;
        let dest = self.dest()?;
        if dest.finds(part, &bytes) {
            self.gauge.found(part.bytes);
        } else {
            dest.put(part, &bytes)?;
            self.gauge.copied(part.bytes);
        }
        Ok(())
    }

    /// Takes bytes that are here already, if the source says that they are right.
    fn find_step(&mut self, part: &Piece, is_good: &dyn Fn(&Source) -> Result<bool>) -> Going<bool> {
        if !self.source.has_digests() {
            return Ok(false);
        }
        let here = self.bytes_here(part)?;
        if here.is_empty() {
            return Ok(false);
        }
        let expected = self.source.digest(part.offset, part.bytes);
        if !is_good(&self.source)? {
            return Err(Stop::Overtaken);
        }
        let expected = expected?;
        let Some(bytes) = here.into_iter().find(|bytes| digest(bytes) == expected) else { return Ok(false) };
        let dest = self.dest()?;
        if !dest.finds(part, &bytes) {
            dest.put(part, &bytes)?;
        }
        self.gauge.found(part.bytes);
        Ok(true)
    }

    /// What an unfinished file, or the one that was the mirror until now, has in the place of a part.
    fn bytes_here(&mut self, part: &Piece) -> Result<Vec<Vec<u8>>> {
        let dest = self.dest()?;
        if dest.block.is_some() {
            return Ok(Vec::new());
        }
        let files = [(part.offset + part.bytes <= dest.left()).then(|| dest.file.clone())];
        let old = self.old.as_ref().map(|old| old.file.clone());
        let read = |file: std::sync::Arc<dyn crate::storage::File>| {
            let mut bytes = vec![0; usize_of64(part.bytes)];
            file.read_at(&mut bytes, part.offset).is_ok().then_some(bytes)
        };
        Ok(files.into_iter().flatten().chain(old).filter_map(read).collect())
    }
}
