//! How a checkpoint is asked for, and what else it may say.

use crate::space::Extent;
use crate::values::Segment;
use std::sync::Arc;

/// What the checkpoint is for.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::engine) enum Purpose {
    /// Record the state as it is.
    Plain,
    /// Also name the log's chain, so that frames may be written.
    StartLog,
    /// Everything is flushed: end the chain.
    Close,
}

/// Parts of a value segment that have been copied elsewhere.
pub(in crate::engine) struct ValueMove {
    pub(in crate::engine) segment: Arc<Segment>,
    /// Where the segment's bytes stand then.
    pub(in crate::engine) extents: Vec<Extent>,
    /// What of its former extents is free then.
    pub(in crate::engine) left: Vec<Extent>,
}
