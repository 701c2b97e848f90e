//! Programs written for Kyoto Cabinet's functions for C, or for ndbm, relinked with Azekura.
//!
//! `kclangc.h` and `ndbm.h` have the names and types that such programs know. A database is a file of Azekura
//! with one table, "main", so the `azekura` command and all other languages read it too.
//!
//! Every function has the same frame (`call`). It catches panics, and keeps for each thread what went wrong.
//! A database object is a `Store`. Its lock decides who waits for whom. What is done to records goes
//! through an `Access`, which writes to the transaction under way, if there is one.
//!
//! `kclangc.h` is generated from the documentation here, so this is written for readers of C.

#![deny(missing_docs)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]
// The names are C's. The headers say once, for all functions, what a caller must keep to.
#![allow(non_camel_case_types, clippy::upper_case_acronyms, clippy::missing_safety_doc)]

mod access;
mod bulk;
mod call;
mod claim;
mod codes;
mod cursor;
mod db;
mod errors;
mod files;
mod index;
mod list;
mod map;
mod matching;
mod memory;
mod name;
mod ndbm;
mod number;
mod numbers;
mod open;
mod place;
mod records;
mod snapshot;
mod standing;
mod store;
mod text;
mod transaction;
mod visit;
mod visitor;

pub use bulk::*;
pub use codes::*;
pub use cursor::*;
pub use db::*;
pub use files::*;
pub use index::*;
pub use list::*;
pub use map::*;
pub use matching::*;
pub use memory::{kcfree, kcmalloc};
pub use ndbm::*;
pub use numbers::*;
pub use records::*;
pub use snapshot::*;
pub use text::*;
pub use transaction::*;
pub use visit::*;
