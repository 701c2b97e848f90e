//! Shipping the log while a checkpoint is copied, so that a mirror is not behind by the time that takes.
//!
//! Frames that know of a checkpoint after the mirror's newest state mostly have to wait for it. Here they come to
//! that state at once, where they say the same in both: no checkpoint since has changed the tables, and no
//! commit is missing in the log because a flush has made it needless. Each of these checkpoints is pinned while
//! it is the newest one, so what frames lead to stays where it is. If one was missed, or anything else is
//! otherwise, frames wait again. A writer that may revoke pins is not believed.

use super::chain::{Ahead, LogReader};
use super::dest::Going;
use super::going::{Mirror, Told};
use crate::base::error::{Error, Result};
use crate::base::key::TableKind;
use crate::base::sync::Instant;
use crate::format::manifest::Manifest;
use crate::format::superblock::Superblock;
use std::time::Duration;

/// How often is looked for frames. Each time a sync follows, of all that was copied meanwhile.
const LOOKS: Duration = Duration::from_millis(5);

/// Whether two manifests have the same tables by the same names.
fn has_same_tables(a: &Manifest, b: &Manifest) -> bool {
    fn named(manifest: &Manifest) -> impl Iterator<Item = (u32, TableKind, &str)> {
        manifest.tables.iter().map(|table| (table.id, table.kind, &*table.name))
    }
    named(a).eq(named(b))
}

impl Mirror {
    /// Lets the log go on while a checkpoint is copied, if it may. `log`: that of the newest state.
    pub(super) fn begin_ahead(&mut self, log: Option<LogReader>, block: &Superblock, manifest: &Manifest) {
        let number = self.number();
        let Some(dest) = &self.dest else { return };
        let Some(own) = &dest.block else { return };
        let is_kept =
            self.pins.contains_key(&number) && own.pins.revocable_from == 0 && block.pins.revocable_from == 0;
        let is_same = own.expires == block.expires && has_same_tables(&dest.manifest, manifest);
        if is_kept && block.number == number + 1 && is_same {
            let until = block.number;
            self.ahead = log.map(|log| Ahead { log, until, is_watched: true, looked_at: Instant::now() });
        }
    }

    /// Ships what has come, now and then.
    pub(super) fn go_ahead(&mut self, told: Told<'_>) -> Going<()> {
        let Some(mut ahead) = self.ahead.take_if(|ahead| ahead.looked_at.elapsed() >= LOOKS) else {
            return Ok(());
        };
        // It is not the next state to which the frames come now.
        let next = self.dest()?.next.take();
        let shipped = self.ship_ahead(&mut ahead, told);
        self.dest()?.next = next;
        ahead.looked_at = Instant::now();
        if shipped? {
            self.ahead = Some(ahead);
        }
        Ok(())
    }

    /// False if nothing more can come to the newest state.
    fn ship_ahead(&mut self, ahead: &mut Ahead, told: Told<'_>) -> Going<bool> {
        if ahead.is_watched {
            ahead.is_watched = self.watch(ahead)?;
        }
        let file_len = self.source.len()?;
        if ahead.log.read(self.source.file.as_ref(), file_len).is_err() {
            // Whoever reads it for the next state says what is wrong.
            return Ok(false);
        }
        let batch = ahead.log.take_ahead(ahead.until);
        if !batch.is_empty() {
            self.ship_values(&batch, &|_| Ok(true), true, told)?;
            self.ship_frames(&batch)?;
            self.note_shipped(&batch)?;
        }
        let (newest, _) = ahead.log.waiting();
        let commit = self.dest()?.commit;
        self.gauge.goes_ahead(commit, newest.map_or(0, |newest| newest.saturating_sub(commit)));
        Ok(!ahead.log.is_broken())
    }

    /// Pins the source's newest checkpoint, if there is one more. False if frames that know of it must wait.
    fn watch(&mut self, ahead: &mut Ahead) -> Result<bool> {
        let Some(block) = self.source.newest()?.filter(|block| block.number > ahead.until) else {
            return Ok(true);
        };
        if block.number != ahead.until + 1 || block.pins.revocable_from > 0 {
            return Ok(false);
        }
        let pin = self.source.pin(block.number)?;
        if self.source.newest()?.as_ref() != Some(&block) {
            return Ok(false);
        }
        let manifest = match self.source.manifest(&block) {
            Ok((manifest, _)) => manifest,
            Err(Error::Corrupt { .. } | Error::Truncated { .. }) => return Ok(false),
            Err(e) => return Err(e),
        };
        let own = self.dest()?;
        let is_marked = own.block.as_ref().is_some_and(|own| own.expires == block.expires);
        if !is_marked || !has_same_tables(&own.manifest, &manifest) {
            return Ok(false);
        }
        self.pins.insert(block.number, pin);
        ahead.until = block.number;
        Ok(true)
    }
}
