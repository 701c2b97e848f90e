//! The log: what makes a commit durable before its memtable reaches the file as a run.
//!
//! Commits fill a queue, most of them by reference to the memtable. Frames are written from it when a durable
//! commit asks for that, when the eventual delay has passed, or at `sync`. Commits that a flush has made
//! durable by then are dropped from the queue and never written. A chain is a list of segments. Each ends in
//! a jump to the next, so the manifest names only the first. (`image`: the log of a copy, written at once.)
//!
//! Lock order: checkpoint lock, `io`, `queue`.

pub(crate) mod image;
pub(crate) mod recovery;
pub(crate) mod stream;
mod writer;

pub(crate) use writer::{Inserted, Log, LogStart, segment_list};
