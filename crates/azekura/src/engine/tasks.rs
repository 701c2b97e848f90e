//! How the engine fills the parts that live for one task: each gets just the references that it may use.

use super::Engine;
use super::compaction::install::Installer;
use super::compaction::merges::Merges;
use super::relocate::Relocator;

impl Engine {
    /// Who picks merges and does them.
    pub(super) fn merges(&self) -> Merges<'_> {
        let Engine { compactor, store, values, ids, memory, pace, relief, poison, .. } = self;
        let checkpoints = self;
        let installer = self.installer();
        Merges { installer, compactor, store, values, ids, memory, pace, relief, poison, checkpoints }
    }

    /// Who moves up to so many bytes of the tail. REQUIRES: merges are held back.
    pub(super) fn relocator(&self, bytes: u64) -> Relocator<'_> {
        Relocator::new(&self.merges(), &self.log, bytes)
    }

    /// Who changes the levels that the state has.
    pub(super) fn installer(&self) -> Installer<'_> {
        let Engine { state, committer, background, checkpointer, .. } = self;
        Installer { state, committer, background, checkpointer }
    }
}
