//! What commits have done with tables: how these are called since then, how long their records live, and
//! which are gone.

use super::log::{Commit, Commits};
use crate::format::frame::TableChange;
use std::collections::HashMap;

/// What became of tables, as far as there are commits that say so: for each the number of the newest one.
#[derive(Default)]
pub(super) struct Fates {
    renamed: HashMap<u32, (u64, String)>,
    dropped: HashMap<u32, Dropped>,
    made: HashMap<u32, u64>,
    lives: HashMap<u32, (u64, u64)>,
}

/// The newest commit that drops a table.
struct Dropped {
    seq: u64,
    checkpoint: u64,
    /// Something newer of the table was found.
    is_undone: bool,
}

impl Fates {
    /// What commits say.
    pub(super) fn of(commits: &Commits) -> Fates {
        let mut fates = Fates::default();
        for (&seq, &Commit { checkpoint, ref parts }) in commits {
            for part in parts {
                if let Some(TableChange::Dropped(id)) = &part.change {
                    fates.dropped.insert(*id, Dropped { seq, checkpoint, is_undone: false });
                    continue;
                }
                if let Some(dropped) = fates.dropped.get_mut(&part.table) {
                    // Commits of an earlier handle that a crash has left have larger numbers, too.
                    dropped.is_undone |= seq > dropped.seq && checkpoint >= dropped.checkpoint;
                }
                match &part.change {
                    Some(TableChange::Renamed(id, name)) => {
                        fates.renamed.insert(*id, (seq, name.to_string()));
                    }
                    Some(TableChange::Made(table)) => {
                        fates.made.insert(table.id, seq);
                        fates.lives.insert(table.id, (seq, table.ttl_ms));
                    }
                    Some(TableChange::Lives(id, ttl_ms)) => {
                        fates.lives.insert(*id, (seq, *ttl_ms));
                    }
                    Some(TableChange::Dropped(_)) | None => {}
                }
            }
        }
        fates
    }

    /// Whether there is a commit that has made the table.
    pub(super) fn is_made(&self, id: u32) -> bool {
        self.made.contains_key(&id)
    }

    /// Whether a commit after this one has made the table.
    pub(super) fn is_made_after(&self, id: u32, seq: u64) -> bool {
        self.made.get(&id).is_some_and(|&made| made > seq)
    }

    /// The commit after this one that has dropped the table. A commit in the log need not have been
    /// acknowledged: what a crash has left behind a missing frame never happened. So if there is anything
    /// newer of the table, nobody has dropped it.
    pub(super) fn dropped_after(&self, id: u32, seq: u64) -> Option<u64> {
        self.dropped
            .get(&id)
            .filter(|dropped| dropped.seq > seq && !dropped.is_undone)
            .map(|dropped| dropped.seq)
    }

    /// The name that a commit after this one gave the table.
    pub(super) fn name_after(&self, id: u32, seq: u64) -> Option<&str> {
        self.renamed.get(&id).filter(|(at, _)| *at > seq).map(|(_, name)| name.as_str())
    }

    /// How long the table's records live if nothing else is said, as a commit after this one says, in
    /// milliseconds. 0: until they are removed.
    pub(super) fn ttl_after(&self, id: u32, seq: u64) -> Option<u64> {
        self.lives.get(&id).filter(|(at, _)| *at > seq).map(|&(_, ttl_ms)| ttl_ms)
    }
}
