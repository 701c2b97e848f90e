//! Shipping the log of the checkpoint that the mirror has, as it grows.
//!
//! Only frames of which a later one says that they are durable are shipped. So the last ones come when others
//! follow, or when the source's log rests. Frames that know of a newer checkpoint wait for that one: a table
//! may have got another name in it, and a commit after that does not belong to a state before it.

use super::chain::LogReader;
use super::dest::{Going, Stop};
use super::going::{Mirror, Told};
use super::source::MirrorSource;
use crate::base::error::{Error, Result};
use crate::base::sync::Instant;
use crate::format::superblock::Superblock;
use std::time::Duration;

/// How often a mirror that rests looks whether its source still has its name.
const NAME_LOOKS: Duration = Duration::from_secs(1);

/// A log that has not grown for so long rests, and what stands behind its end is looked at.
const QUIET: Duration = Duration::from_secs(1);

impl Mirror {
    /// Ships durable frames. False if there were none.
    pub(super) fn ship_log(&mut self, block: &Superblock, told: Told<'_>) -> Going<bool> {
        let number = block.number;
        self.attach(block)?;
        let file_len = self.source.len()?;
        let Some(log) = &mut self.log else { return Ok(false) };
        let read = log.read(self.source.log.as_ref(), file_len);
        let batch = log.take_durable(number);
        let any = self.unless_overtaken(number, read)?;
        if any {
            (self.is_end_checked, self.came_at) = (false, Instant::now());
        }
        if batch.is_empty() {
            self.rest(number)?;
            return Ok(any);
        }
        let is_newest = |source: &MirrorSource| source.is_newest(number);
        self.ship_values(&batch, &is_newest, true, told)?;
        // What frames lead to is sure only if the checkpoint was the newest all the time.
        if !is_newest(&self.source)? {
            return Err(Stop::Overtaken);
        }
        self.ship_frames(&batch)?;
        let dest = self.dest()?;
        dest.commit = batch.iter().filter_map(|arrival| arrival.commit).fold(dest.commit, u64::max);
        if let Some(last) = batch.last() {
            dest.vouch(last.chain)?;
        }
        self.gauge.goes_on();
        self.note_lag();
        Ok(true)
    }

    /// Begins to read the log of the checkpoint that the mirror has.
    fn attach(&mut self, block: &Superblock) -> Going<()> {
        if self.log.is_some() {
            return Ok(());
        }
        if !self.pins.contains_key(&block.number) {
            let pin = self.source.pin(block.number)?;
            if self.source.newest()?.as_ref() != Some(block) {
                return Err(Stop::Overtaken);
            }
            self.pins.insert(block.number, pin);
            self.is_doubtful = false;
        }
        let log = LogReader::new(block.file_id, &self.dest()?.manifest);
        self.log = Some(log);
        Ok(())
    }

    /// Nothing is to be shipped for now.
    fn rest(&mut self, number: u64) -> Going<()> {
        self.let_go()?;
        self.note_lag();
        self.gauge.rests();
        if self.named_at.elapsed() >= NAME_LOOKS {
            self.named_at = Instant::now();
            // Another file may have got the name, and this one nobody writes any more.
            if let Some(block) = self.source.newest_by_name()? {
                self.check_source(&block)?;
            }
        }
        if !self.is_end_checked && self.came_at.elapsed() >= QUIET {
            self.is_end_checked = true;
            let Some(log) = &self.log else { return Ok(()) };
            let checked = log.check(self.source.log.as_ref());
            // The frame may have come meanwhile.
            if matches!(checked, Err(Error::Corrupt { .. })) && self.log_goes_on()? {
                return Ok(());
            }
            self.unless_overtaken(number, checked)?;
        }
        Ok(())
    }

    fn log_goes_on(&mut self) -> Result<bool> {
        self.source.look(self.tail(), Duration::ZERO)?;
        let file_len = self.source.len()?;
        match &mut self.log {
            Some(log) => log.read(self.source.log.as_ref(), file_len),
            None => Ok(false),
        }
    }

    /// Where the source's next frame will stand. 0: nobody knows.
    pub(super) fn tail(&self) -> u64 {
        self.log.as_ref().map_or(0, LogReader::tail)
    }

    /// Gives back what readers of the mirror have kept, and pins in the source that nobody needs any more.
    pub(super) fn let_go(&mut self) -> Result<()> {
        let Some(dest) = &mut self.dest else { return Ok(()) };
        if dest.states.len() > 1 {
            dest.find_pins()?;
        }
        dest.cut_end()?;
        self.pins.retain(|number, _| dest.states.contains_key(number));
        Ok(())
    }

    /// Notes what lacks of the log.
    pub(super) fn note_lag(&mut self) {
        let commit = self.dest.as_ref().map_or(0, |dest| dest.commit);
        let (newest, bytes) = self.log.as_ref().map_or((None, 0), LogReader::waiting);
        let commits = newest.map_or(0, |newest| newest.saturating_sub(commit));
        self.gauge.lacks(commits, bytes);
    }
}
