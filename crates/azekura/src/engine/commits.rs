//! What the parts need of the engine that change tables, or what is fed, by commits of their own.

use super::Engine;
use super::batch::Batch;
use crate::base::error::{Error, Result};
use crate::values::{Segment, ValuePointer};
use std::sync::Arc;

/// Commits batches. That needs nearly all of the engine, so those who do it now and then have only this of
/// it.
pub(super) trait Commits {
    /// An error if the handle cannot write.
    fn check_writable(&self) -> Result<()>;

    /// Commits a batch and gives its sequence number.
    fn commit(&self, batch: Batch) -> Result<u64>;

    /// Commits a batch that makes tables.
    fn commit_created(&self, batch: &dyn Fn() -> Batch) -> Result<u64>;

    /// See `Engine::wait_for_mirrors`.
    fn wait_for_mirrors(&self, commit: u64) -> Result<()>;

    /// Makes every commit so far durable. The background looks after what follows.
    fn sync_and_look_after(&self) -> Result<()>;

    /// Stores a large value for a commit to come. `frees`: the commit makes room in the end.
    fn store_large(&self, value: &[u8], frees: bool) -> Result<(ValuePointer, Arc<Segment>)>;
}

impl Commits for Engine {
    fn check_writable(&self) -> Result<()> {
        self.check_writable()
    }

    fn commit(&self, batch: Batch) -> Result<u64> {
        self.commit(batch)
    }

    fn commit_created(&self, batch: &dyn Fn() -> Batch) -> Result<u64> {
        self.store.bulk.unnoted(|| match self.commit(batch()) {
            // With what the log has in the manifest, the log has room again.
            Err(Error::NoSpace { .. }) => self.flush().and_then(|()| self.commit(batch())),
            done => done,
        })
    }

    fn wait_for_mirrors(&self, commit: u64) -> Result<()> {
        self.wait_for_mirrors(commit)
    }

    fn sync_and_look_after(&self) -> Result<()> {
        self.look_after();
        self.sync()
    }

    fn store_large(&self, value: &[u8], frees: bool) -> Result<(ValuePointer, Arc<Segment>)> {
        self.store_large(value, frees)
    }
}
