//! Sharded, immutable, versioned sets of records: directories of Azekura databases, for lookup tables that
//! one machine should not build alone.
//!
//! ```text
//! t.azs/
//!   manifest-0001.json      what version 1 has: it counts from the moment that this file has its name
//!   v0001/shard-00042-…azk  a shard: a database with one table, "main"
//!   .new-…/                 a version that is being written
//!   set.lock                locked while a version gets its name, or anything is removed
//! ```
//!
//! A set is of hash tables or of ordered tables. The shard of a key of a *hash* set is the top of the key's
//! hash, under a seed that all shards share. So records in the order of that hash are an ascending load of
//! one shard after the other. The shards of an *ordered* set have ranges of keys that do not overlap, as it
//! turned out when they were written.
//!
//! A version is written by any number of processes: a [`Draft`] is begun, [`ShardWriter`]s write the shards,
//! each under the name of its attempt, and [`Draft::commit`] names the attempts that count. [`Packer`] and
//! [`Unpacker`] are for records that come in no order and have to be moved to the writer of their shard. What
//! a version has never changes. A [`ShardedReader`] reads the newest version, and goes to a newer one when it
//! is told to; what others hold of the older one stays readable.
//!
//! ```
//! # let path = std::env::temp_dir().join(format!("azekura-doc-shards-{}.azs", std::process::id()));
//! use azekura_shards::{Draft, ShardedReader, Spec, hash_of};
//!
//! let draft = Draft::begin(&path, &Spec::hash(4))?;
//! let mut records = vec![("ada", "1815"), ("alan", "1912"), ("grace", "1906")];
//! records.sort_by_key(|(key, _)| hash_of(key.as_bytes(), draft.spec().hash_seed));
//! let mut files = Vec::new();
//! for shard in 0..4 {                                     // in four processes, or on four machines
//!     let mut writer = draft.writer(shard, "a")?;
//!     for (key, value) in &records {
//!         if draft.spec().shard_of(key.as_bytes()) == Some(shard) {
//!             writer.put(key.as_bytes(), value.as_bytes())?;
//!         }
//!     }
//!     files.push(writer.finish()?);
//! }
//! draft.commit(&files)?;
//!
//! let reader = ShardedReader::open(&path)?;
//! assert_eq!(reader.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
//! # drop(reader); std::fs::remove_dir_all(&path).unwrap();
//! # Ok::<(), azekura::Error>(())
//! ```
//!
//! Errors are the engine's. What a manifest says is not trusted: it is bounded, its names lead nowhere but
//! into its version's folder, and every shard is compared with what is said of it.

#![deny(missing_docs)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod draft;
mod error;
mod lock;
mod manifest;
mod merge;
mod names;
mod order;
mod pack;
mod prune;
mod reader;
mod row;
mod spec;
mod verify;
mod version;
mod writer;

pub use azekura::{Error, Result, hash_of};
pub use draft::Draft;
pub use manifest::{Manifest, ShardFile};
pub use merge::{MergeReport, merge};
pub use pack::{Pack, Packer, Unpacker};
pub use prune::{PruneReport, prune};
pub use reader::ShardedReader;
pub use row::RowForm;
pub use spec::{Column, ColumnType, SHARDS_MAX, Spec};
pub use verify::{VerifyReport, verify};
pub use version::{ReadOptions, Version, newest, versions};
pub use writer::ShardWriter;

/// The name of the one table of each shard.
pub const TABLE: &str = "main";
