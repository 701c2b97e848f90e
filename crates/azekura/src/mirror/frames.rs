//! Shipping frames: the values to which they lead, a sync, the frames, another sync. So whatever frame a
//! crash leaves in the mirror, what it leads to is there.

use super::chain::Arrival;
use super::copied::Piece;
use super::dest::{Going, Stop};
use super::going::{Mirror, Told};
use super::places::goal_of;
use super::source::MirrorSource;
use crate::base::error::{Error, Result};

impl Mirror {
    /// Copies the large values to which frames lead, and those that the state before shows with the frames
    /// which are to come. `is_kept`: whether these are surely still in their places in the source.
    pub(super) fn ship_values(
        &mut self,
        batch: &[Arrival],
        is_good: &dyn Fn(&MirrorSource) -> Result<bool>,
        is_kept: bool,
        told: Told<'_>,
    ) -> Going<()> {
        let mut any = false;
        for arrival in batch {
            for piece in &arrival.values {
                self.copy(piece, is_good, told)?;
                self.dest()?.claim(piece.offset, piece.bytes);
                any = true;
            }
            for piece in self.blocks_shown(arrival)? {
                let lacking = self.dest()?.copied.lacks(&piece);
                match self.copy(&piece, is_good, told) {
                    // Nothing has kept it there, and the file is shorter now.
                    Err(Stop::Failed(Error::Corrupt { .. })) => return Err(Stop::Taken),
                    copied => copied?,
                };
                if !is_kept {
                    // Perhaps they are bytes of something else.
                    let dest = self.dest()?;
                    lacking.iter().for_each(|piece| dest.copied.forget(piece.offset, piece.bytes));
                }
                any = true;
            }
        }
        // Also if nothing was copied now: a step that was overtaken may have copied it, and not synced.
        if any {
            self.dest()?.sync()?;
        }
        Ok(())
    }

    /// The blocks of large values that the newest state shows as soon as a frame is there.
    fn blocks_shown(&mut self, arrival: &Arrival) -> Result<Vec<Piece>> {
        let dest = self.dest()?;
        let shown = dest.shows(arrival).then(|| arrival.shown.iter().flat_map(|value| &value.blocks));
        Ok(shown.into_iter().flatten().copied().collect())
    }

    /// Compares the values that the newest state shows as soon as frames are there with their checksums.
    /// Where nothing has kept them in the source, others may stand in their places.
    pub(super) fn check_shown(&mut self, batch: &[Arrival]) -> Going<()> {
        let dest = self.dest()?;
        let mut shown = batch.iter().filter(|arrival| dest.shows(arrival)).flat_map(|arrival| &arrival.shown);
        if shown.all(|value| dest.has_value(value)) { Ok(()) } else { Err(Stop::Taken) }
    }

    /// Writes frames that the mirror has not, and makes them durable. If there is no room for one, those
    /// before it are there.
    pub(super) fn ship_frames(&mut self, batch: &[Arrival]) -> Going<()> {
        let dest = self.dest()?;
        let (mut there, mut bytes, mut done) = (0, 0, Ok(()));
        for arrival in batch {
            if arrival.is_lacking(&dest.places) {
                done = dest.put_frame(arrival);
                if done.is_err() {
                    break;
                }
                dest.claim_shown(arrival);
                bytes += arrival.placed.bytes.len() as u64;
            }
            there += 1;
        }
        if bytes > 0 {
            dest.sync()?;
        }
        for arrival in &batch[..there] {
            if arrival.is_lacking(&dest.places) {
                dest.places.shipped(arrival);
            }
            let (offset, bytes) = arrival.extent();
            dest.claim(offset, bytes);
            dest.places.reaches(goal_of(arrival).map_or(0, |goal| goal.end()));
        }
        self.gauge.copied(bytes);
        self.pace.wait(bytes);
        done
    }

    /// The error of a read, unless the source was faster.
    pub(super) fn unless_overtaken<T>(&self, number: u64, read: Result<T>) -> Going<T> {
        match read {
            Err(_) if !self.source.is_newest(number)? => Err(Stop::Overtaken),
            read => Ok(read?),
        }
    }
}
