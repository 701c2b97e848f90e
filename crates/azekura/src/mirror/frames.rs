//! Shipping frames: the values to which they lead, a sync, the frames, another sync. So whatever frame a crash
//! leaves in the mirror, what it leads to is there.

use super::chain::Arrival;
use super::dest::{Going, Stop};
use super::going::{Mirror, Told};
use super::places::goal_of;
use super::source::Source;
use crate::base::error::Result;
use crate::base::limits::align_up;

impl Mirror {
    /// Copies the large values to which frames lead.
    pub(super) fn ship_values(
        &mut self,
        batch: &[Arrival],
        is_good: &dyn Fn(&Source) -> Result<bool>,
        told: Told<'_>,
    ) -> Going<()> {
        let mut any = false;
        for piece in batch.iter().flat_map(|arrival| &arrival.values) {
            self.copy(piece, is_good, told)?;
            self.dest()?.claim(piece.offset, piece.bytes);
            any = true;
        }
        // Also if nothing was copied now: a step that was overtaken may have copied it, and not synced.
        if any {
            self.dest()?.sync()?;
        }
        Ok(())
    }

    /// Writes frames that the mirror has not, and makes them durable.
    pub(super) fn ship_frames(&mut self, batch: &[Arrival]) -> Going<()> {
        let dest = self.dest()?;
        let mut bytes = 0;
        for arrival in batch {
            if arrival.is_lacking(&dest.places) {
                dest.put_frame(arrival)?;
                bytes += arrival.placed.bytes.len() as u64;
            }
        }
        if bytes > 0 {
            dest.sync()?;
        }
        for arrival in batch {
            if arrival.is_lacking(&dest.places) {
                dest.places.shipped(arrival);
            }
            let copies = if arrival.placed.frame.jump { 2 } else { 1 };
            dest.claim(arrival.placed.offset, copies * align_up(arrival.placed.bytes.len() as u64));
            dest.places.reaches(goal_of(arrival).map_or(0, |goal| goal.end()));
        }
        self.gauge.copied(bytes);
        self.pace.wait(bytes);
        Ok(())
    }

    /// The error of a read, unless the source was faster.
    pub(super) fn unless_overtaken<T>(&self, number: u64, read: Result<T>) -> Going<T> {
        match read {
            Err(_) if !self.source.is_newest(number)? => Err(Stop::Overtaken),
            read => Ok(read?),
        }
    }
}
