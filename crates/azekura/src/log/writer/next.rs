//! What is known of the segment that is to follow the last one. `ahead.rs` makes it.

use crate::base::sync::Instant;
use crate::space::Extent;

/// How far the last segment was filled, and when.
pub(super) struct Mark {
    pub(super) at: u64,
    pub(super) time: Instant,
}

impl Mark {
    pub(super) fn now(at: u64) -> Mark {
        Mark { at, time: Instant::now() }
    }
}

/// The segment that is to follow the last one. Begun under `io`.
#[derive(Clone, Copy, Default)]
pub(super) enum Ahead {
    #[default]
    Nothing,
    /// There is room for it, and nothing was written.
    Wanted(Extent),
    /// The log's thread fills it.
    InMaking(Extent),
    /// As `InMaking`, but nobody wants it any more. The log's thread frees it.
    GivenUp(Extent),
    Made(Extent),
    /// The log's thread frees what nobody wanted.
    Freeing,
}

impl Ahead {
    pub(super) fn extent(self) -> Option<Extent> {
        match self {
            Ahead::Nothing | Ahead::Freeing => None,
            Ahead::Wanted(e) | Ahead::InMaking(e) | Ahead::GivenUp(e) | Ahead::Made(e) => Some(e),
        }
    }
}
