//! What the engines of a follower have beside the others' parts (`follow.rs`).
//!
//! Lock order: `turn` comes before all others.

use super::found::LogTail;
use crate::base::limits::ALIGN_BYTES;
use crate::base::sync::thread::sleep;
use crate::base::sync::{Mutex, Rank};
use crate::engine::config::Freshness;
use crate::format::superblock::{HONOURED_AT, Superblock, twin_number};
use crate::run::PageSource;
use crate::storage::{File, Watched};
use crate::values::Segment;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How often a superblock that is being written is read again, and the pause before the third and later
/// looks.
const TORN_LOOKS: u32 = 50;
const TORN_PAUSE: Duration = Duration::from_millis(1);

/// Whether another process may write the file.
pub(super) enum Following {
    /// The engine has the file's lock.
    No,
    /// The engine is that of a follower's handle.
    Handle(Follower),
    /// The engine was made for one checkpoint. States of a follower hold it.
    Checkpoint(Looked),
}

impl Following {
    #[inline(always)]
    pub(super) fn handle(&self) -> Option<&Follower> {
        if let Following::Handle(follower) = self { Some(follower) } else { None }
    }

    pub(super) fn checkpoint(&self) -> Option<&Looked> {
        if let Following::Checkpoint(looked) = self { Some(looked) } else { None }
    }
}

/// What the engine of a follower's handle has that no other has.
pub(super) struct Follower {
    pub(super) freshness: Freshness,
    pub(super) file_id: u64,
    pub(super) lineage: u64,
    /// Held by who catches up.
    pub(super) turn: Mutex<()>,
    /// The file as it is read under pins that may be revoked, once there are such.
    watched: OnceLock<Watched>,
    /// Where pages are kept then.
    pub(super) copies: OnceLock<PageSource>,
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
}

/// From which checkpoint on the writers honour pins. While copy A is being written, what it said before is
/// not known, and that may have revoked pins already. So it is read again, and if it stays torn, copy B says
/// what was there before.
pub(crate) fn honoured_from(file: &dyn File) -> io::Result<u64> {
    let mut bytes = [0; 16];
    for look in 0..TORN_LOOKS {
        file.read_at(&mut bytes, HONOURED_AT)?;
        if let Some(number) = twin_number(bytes) {
            return Ok(number);
        }
        if look > 0 {
            sleep(TORN_PAUSE);
        }
    }
    file.read_at(&mut bytes, ALIGN_BYTES + HONOURED_AT)?;
    let torn =
        || io::Error::new(io::ErrorKind::InvalidData, "both superblocks are damaged where pins are named");
    twin_number(bytes).ok_or_else(torn)
}

/// What an engine that was made for one checkpoint keeps for its follower.
pub(super) struct Looked {
    /// The value segments to which it refers.
    pub(super) _segments: Vec<Arc<Segment>>,
    /// The superblock, which names the manifest.
    pub(super) block: Box<Superblock>,
    /// None if it is not known how far it was read.
    pub(super) tail: Mutex<Option<LogTail>>,
}
