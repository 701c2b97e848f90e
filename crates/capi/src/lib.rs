//! Azekura for C: the functions of `include/azekura.h`, over the public interface of the crate `azekura`.
//!
//! Every function has the same frame. `Caller::call` catches panics and turns errors into a number and a
//! message. Handles are looked up (`slots`); bytes, names and places for results are checked (`arguments`).
//! The rest is one call of the engine.
//!
//! The header is generated from the documentation here, so this is written for readers of C. The header's
//! first page is in `cbindgen.toml`.

#![deny(missing_docs)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]
// The names are C's. The header says once, for all functions, what a caller must keep to.
#![allow(non_camel_case_types, clippy::missing_safety_doc)]

#[cfg(not(target_pointer_width = "64"))]
compile_error!("a handle is a number of 64 bits");

mod arguments;
mod backup;
mod call;
mod cursor;
mod cursors;
mod db;
mod edges;
mod expiry;
mod feed;
mod files;
mod get;
mod handles;
mod held;
mod index;
mod lookup;
mod many;
mod memory;
mod merging;
mod options;
mod put;
mod read;
mod removing;
mod scan;
mod seat;
mod shards;
mod slots;
mod stats;
mod status;
mod tables;
mod update;
mod upkeep;
mod write;
mod write_get;
mod write_put;
mod write_tables;
mod wrong;

pub use arguments::azk_bytes;
pub use backup::*;
pub use call::*;
pub use cursor::*;
pub use cursors::*;
pub use db::*;
pub use edges::*;
pub use expiry::*;
pub use feed::*;
pub use get::*;
pub use handles::*;
pub use index::*;
pub use lookup::*;
pub use many::*;
pub use memory::azk_free;
pub use merging::*;
pub use options::*;
pub use put::*;
pub use read::*;
pub use removing::*;
pub use scan::*;
pub use shards::*;
pub use stats::*;
pub use status::*;
pub use tables::*;
pub use update::*;
pub use upkeep::*;
pub use write::*;
pub use write_get::*;
pub use write_put::*;
pub use write_tables::*;
