//! What the engine of a follower has beside the others' parts (`follow.rs`).
//!
//! Lock order: `turn` comes before all others.

use super::found::LogTail;
use super::state::State;
use crate::base::sync::{Mutex, Rank};
use crate::engine::config::Freshness;
use crate::format::superblock::Superblock;
use crate::values::Segment;
use std::sync::Arc;

/// What a follower's engine has that no other has.
pub(super) struct Follower {
    pub(super) freshness: Freshness,
    pub(super) file_id: u64,
    pub(super) lineage: u64,
    /// Held by who catches up.
    pub(super) turn: Mutex<()>,
}

impl Follower {
    pub(super) fn new(freshness: Freshness, block: &Superblock) -> Follower {
        let Superblock { file_id, lineage, .. } = *block;
        Follower { freshness, file_id, lineage, turn: Mutex::ranked(Rank::Following, ()) }
    }
}

/// What an engine that was made for one checkpoint keeps for its follower.
pub(super) struct Looked {
    /// The value segments to which it refers.
    pub(super) _segments: Vec<Arc<Segment>>,
    /// The state without the log.
    pub(super) at_checkpoint: Arc<State>,
    /// Whether that has a part of a commit, and the log the rest.
    pub(super) is_torn: bool,
    /// None if it is not known how far it was read.
    pub(super) tail: Mutex<Option<LogTail>>,
}
