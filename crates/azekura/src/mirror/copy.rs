//! Copying a piece of a run or a value segment, as far as the mirror lacks it. What it has elsewhere, since
//! the source has moved it, is copied from there (`moved`).
//!
//! A file that was left unfinished, or that has been the mirror until another one is built, may have the
//! right bytes in the right place already. Where the source is on another machine it is asked for a digest of
//! what stands there, and bytes are sent only if these differ. Such a source is asked for some steps before
//! they are wanted, so that a long way to it costs its time once for each piece, and not for each step.

use super::copied::{Piece, Stretch};
use super::dest::{Going, Stop};
use super::going::{Mirror, Told};
use super::source::MirrorSource;
use crate::base::codec::usize_of64;
use crate::base::error::{Error, Result};
use crate::format::point::digest;
use crate::storage::{File, read_error};
use std::sync::Arc;

/// So much is copied between two looks at what the caller wants.
pub(super) const STEP_BYTES: u64 = 1 << 20;
/// So many bytes are asked for before they are wanted.
const EARLY_BYTES: u64 = 8 << 20;
/// And in no more questions than these, however short the steps are. They find room in any pipe while the
/// other end waits for somebody to take its answers.
const EARLY_STEPS: u64 = 16;

impl Mirror {
    /// Copies what lacks of a piece from the source. `is_good` says after each read whether the bytes are
    /// what they should be. False if nothing lacks.
    pub(super) fn copy(
        &mut self,
        piece: &Piece,
        is_good: &dyn Fn(&MirrorSource) -> Result<bool>,
        told: Told<'_>,
    ) -> Going<bool> {
        let lacking = self.dest()?.copied.lacks(piece);
        let any = !lacking.is_empty();
        lacking.into_iter().try_for_each(|piece| self.ship(piece, is_good, told))?;
        Ok(any)
    }

    /// The same where what the mirror has elsewhere of the part is surely of the same part.
    pub(super) fn copy_or_move(
        &mut self,
        piece: &Piece,
        is_good: &dyn Fn(&MirrorSource) -> Result<bool>,
        told: Told<'_>,
    ) -> Going<()> {
        let copied = &self.dest()?.copied;
        let lacking = copied.lacks(piece);
        let stretches: Vec<Stretch> = lacking.iter().flat_map(|piece| copied.stretches(piece)).collect();
        for Stretch { piece, elsewhere } in stretches {
            let is_here = match elsewhere {
                Some(there) => self.copy_within(piece, &there, is_good, told)?,
                None => false,
            };
            if !is_here {
                self.ship(piece, is_good, told)?;
            }
        }
        Ok(())
    }

    /// Copies a piece from the source.
    pub(super) fn ship(
        &mut self,
        piece: Piece,
        is_good: &dyn Fn(&MirrorSource) -> Result<bool>,
        told: Told<'_>,
    ) -> Going<()> {
        let mut steps = Steps { piece, step: self.pace.step_bytes().unwrap_or(STEP_BYTES), at: 0, asked: 0 };
        self.source.reads_anew()?;
        while let Some(part) = steps.next() {
            if !self.find_step(&part, is_good)? {
                self.ask_early(&mut steps)?;
                self.copy_step(&part, is_good)?;
            }
            self.goes_on(told)?;
        }
        Ok(())
    }

    /// Says how it goes, and whether the caller wants no more.
    pub(super) fn goes_on(&mut self, told: Told<'_>) -> Going<()> {
        self.tell();
        if told(&self.status()) { Ok(()) } else { Err(Stop::Ended) }
    }

    fn copy_step(&mut self, part: &Piece, is_good: &dyn Fn(&MirrorSource) -> Result<bool>) -> Going<()> {
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

    /// Asks a source on another machine for the steps to come, unless perhaps they need not be sent.
    fn ask_early(&mut self, steps: &mut Steps) -> Result<()> {
        let is_found = self.may_find()?;
        let Some(afar) = self.source.afar.clone().filter(|_| !is_found) else { return Ok(()) };
        while let Some(part) = steps.next_early() {
            afar.will_read(part.offset, part.bytes).map_err(|e| read_error(e, part.offset))?;
        }
        Ok(())
    }

    /// Whether what is to be copied may be here already.
    fn may_find(&mut self) -> Result<bool> {
        let has_old = self.old.is_some();
        let dest = self.dest()?;
        Ok(dest.block.is_none() && (has_old || dest.left() > 0))
    }

    /// Takes bytes that are here already, if a source on another machine says that they are right.
    fn find_step(&mut self, part: &Piece, is_good: &dyn Fn(&MirrorSource) -> Result<bool>) -> Going<bool> {
        let Some(afar) = self.source.afar.clone() else { return Ok(false) };
        let here = self.bytes_here(part)?;
        if here.is_empty() {
            return Ok(false);
        }
        let expected = afar.digest(part.offset, part.bytes).map_err(|e| read_error(e, part.offset));
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
        if !self.may_find()? {
            return Ok(Vec::new());
        }
        let dest = self.dest()?;
        let unfinished = (part.offset + part.bytes <= dest.left()).then(|| dest.file.clone());
        let old = self.old.as_ref().map(|old| old.file.clone());
        let read = |file: Arc<dyn File>| {
            let mut bytes = vec![0; usize_of64(part.bytes)];
            file.read_at(&mut bytes, part.offset).is_ok().then_some(bytes)
        };
        Ok(unfinished.into_iter().chain(old).filter_map(read).collect())
    }
}

impl MirrorSource {
    /// Whatever was asked for early is not taken.
    fn reads_anew(&self) -> Result<()> {
        let Some(afar) = &self.afar else { return Ok(()) };
        afar.reads_anew().map_err(|e| Error::io("reading the source", e))
    }
}

/// The steps in which a piece is copied.
struct Steps {
    piece: Piece,
    step: u64,
    /// So much of the piece was given.
    at: u64,
    /// So much of it was asked for.
    asked: u64,
}

impl Steps {
    fn part(&self, at: u64) -> Option<Piece> {
        Some(self.piece.part_at(at, self.step)).filter(|part| part.bytes > 0)
    }

    fn next(&mut self) -> Option<Piece> {
        let part = self.part(self.at)?;
        self.at += part.bytes;
        Some(part)
    }

    /// The next part that was not asked for, beginning with the one that was given last. None if enough was.
    fn next_early(&mut self) -> Option<Piece> {
        self.asked = self.asked.max(self.at.saturating_sub(self.step));
        let early_bytes = EARLY_BYTES.min(EARLY_STEPS.saturating_mul(self.step));
        let part = self.part(self.asked).filter(|_| self.asked < self.at.saturating_add(early_bytes))?;
        self.asked += part.bytes;
        Some(part)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::format::point::PartId;

    /// So many questions are outstanding at most, and so many bytes.
    fn outstanding(step: u64) -> (usize, u64) {
        let piece = Piece { part: PartId::Run(1), at: 0, offset: 8192, bytes: 64 << 20 };
        let mut steps = Steps { piece, step, at: 0, asked: 0 };
        let (mut asked, mut given, mut most) = (0, 0, (0, 0));
        while steps.next().is_some() {
            asked += std::iter::from_fn(|| steps.next_early()).count();
            most = most.max((asked - given, steps.asked - steps.at));
            given += 1;
        }
        assert_eq!((asked, steps.asked), (given, piece.bytes), "each step is asked for once");
        most
    }

    #[test]
    fn few_questions_are_outstanding_however_short_the_steps_are() {
        assert_eq!(outstanding(4096), (17, 16 * 4096));
        assert_eq!(outstanding(STEP_BYTES), (9, EARLY_BYTES));
    }
}
