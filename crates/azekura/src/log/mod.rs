//! The log: what makes a commit durable before its memtable reaches the file as a run.
//!
//! Commits fill a queue; frames are written from it when a durable commit asks for it, when the
//! eventual delay has passed, or at `sync`. What a flush has made durable by then is dropped from
//! the queue and never written. A chain is a list of segments; each ends in a jump to the next, so
//! that only the first need stand in the manifest.
//!
//! Lock order: checkpoint lock, `io`, `queue`.

pub(crate) mod recovery;
mod writer;

pub(crate) use writer::{Log, LogStart, segment_list};
