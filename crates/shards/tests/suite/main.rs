//! Sets of shards, as programs use them.

mod common;
mod crash;
mod damage;
mod descriptors;
mod merges;
mod model;
mod writers;
