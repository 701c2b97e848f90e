//! Sets of shards: the classes, over the crate `azekura-shards`.
//!
//! - `form`: the columns of a set, and batches of them as encoded records.
//! - `builder`: records as batches of the columns that are wanted.
//! - `draft`: a version that is written.
//! - `reader`: a version that is read.

mod builder;
mod draft;
mod form;
mod reader;

pub use draft::{ShardDraft, ShardWriter, shard_hashes};
pub use reader::{ShardBatch, ShardBatches, ShardedReader};
