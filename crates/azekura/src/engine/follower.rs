//! What the engine of a follower has beside the others' parts (`follow.rs`).
//!
//! Lock order: `turn` comes before all others.

use super::Engine;
use super::build::page_source;
use super::found::LogTail;
use super::memory::{Load, divide};
use super::state::State;
use crate::base::error::{Error, Result};
use crate::base::sync::{Mutex, Rank};
use crate::engine::config::{Config, Freshness};
use crate::format::superblock::{HONOURED_AT, Superblock, twin_number};
use crate::run::PageSource;
use crate::storage::{File, Watched};
use crate::values::Segment;
use std::io;
use std::sync::{Arc, OnceLock};

/// What a follower's engine has that no other has.
pub(super) struct Follower {
    pub(super) freshness: Freshness,
    pub(super) file_id: u64,
    pub(super) lineage: u64,
    /// Held by who catches up.
    pub(super) turn: Mutex<()>,
    /// The file as it is read under pins that may be revoked, once there are such.
    watched: OnceLock<Watched>,
    /// Where pages are kept then.
    copies: OnceLock<PageSource>,
}

impl Follower {
    pub(super) fn new(freshness: Freshness, block: &Superblock) -> Follower {
        let Superblock { file_id, lineage, .. } = *block;
        let (watched, copies) = (OnceLock::new(), OnceLock::new());
        Follower { freshness, file_id, lineage, turn: Mutex::ranked(Rank::Following, ()), watched, copies }
    }

    /// The file for a checkpoint whose pins may be revoked. None if they may not.
    pub(super) fn watched(&self, file: &Arc<dyn File>, block: &Superblock) -> Option<Arc<Watched>> {
        if block.pins.revocable_from == 0 {
            return None;
        }
        let all = self.watched.get_or_init(|| Watched::new(file.clone(), honoured_from, block.number));
        Some(Arc::new(all.of(block.number)))
    }

    /// Where pages are kept that are read through `watched`.
    pub(super) fn copies(&self, config: &Config) -> Result<PageSource> {
        if let Some(copies) = self.copies.get() {
            return Ok(copies.clone());
        }
        let made = page_source(None, &divide(Load::of(config)))?;
        Ok(self.copies.get_or_init(|| made).clone())
    }
}

/// From which checkpoint on the writers honour pins.
fn honoured_from(file: &dyn File) -> io::Result<u64> {
    let mut bytes = [0; 16];
    file.read_at(&mut bytes, HONOURED_AT)?;
    Ok(twin_number(bytes))
}

impl Engine {
    /// An error if what is read may not be there any more: the database was closed, or the pin was revoked.
    pub(crate) fn check_readable(&self) -> Result<()> {
        self.life.check()?;
        let watched = self.store.watched.as_ref();
        watched.map_or(Ok(()), |watched| watched.check().map_err(|e| Error::io("looking at the pins", e)))
    }
}

/// What an engine that was made for one checkpoint keeps for its follower.
pub(super) struct Looked {
    /// The value segments to which it refers.
    pub(super) _segments: Vec<Arc<Segment>>,
    /// The state without the log.
    pub(super) at_checkpoint: Arc<State>,
    /// None if it is not known how far it was read.
    pub(super) tail: Mutex<Option<LogTail>>,
}
