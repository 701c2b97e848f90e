//! What a cursor's place knows (`place.rs` says how it moves).

use crate::errors::Failure;
use azekura::Cursor;

/// A place among the records of a database.
#[derive(Default)]
pub(crate) struct CursorPlace {
    pub(crate) at: Option<Record>,
    pub(crate) walk: Option<Walk>,
    /// Whether a call with `step` goes to the record before.
    pub(crate) back: bool,
    /// Why the last step of a call that succeeded has failed. The next call is told.
    pub(crate) failed: Option<Failure>,
}

/// The record of a place.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) key: Vec<u8>,
    /// If it is not large.
    pub(crate) value: Option<Vec<u8>>,
    /// The opening of the database that it is of.
    pub(crate) opening: u64,
}

/// A cursor of the engine that stands beside the record.
pub(crate) struct Walk {
    pub(crate) cursor: Cursor,
    /// The store's version when it was made.
    pub(crate) version: u64,
    /// Whether it stands behind the record, as after a step forward.
    pub(crate) behind: bool,
}
