//! How a write transaction's snapshot begins.

use super::read::ReadTxn;
use crate::engine::Db;

/// A snapshot of what there is. Later commits of others leave a trace until `WriteTxn::end`.
pub(super) fn begin_snapshot(db: &Db) -> ReadTxn {
    if db.engine.config.follow.is_some() {
        // It can commit nothing, so nothing can conflict with it.
        return ReadTxn::new(db.clone());
    }
    let (state, seq) = db.engine.committer.track_snapshot(&db.engine.state);
    ReadTxn::from_state(db.clone(), state, seq)
}
