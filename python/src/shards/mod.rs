//! Sets of shards: the classes, over the crate `azekura-shards`.
//!
//! - `form`: the columns of a set, and batches of them as encoded records.
//! - `builder`: records as batches of the columns that are wanted.
//! - `draft`: a version that is written.
//! - `pack`: rows on their way to the tasks of their shards.
//! - `reader`: a version that is read.

mod builder;
mod draft;
mod form;
mod pack;
mod reader;

pub use draft::{ShardDraft, ShardWriter, shard_hashes};
pub use pack::ShardPacker;
pub use reader::{ShardBatch, ShardBatches, ShardedReader};
