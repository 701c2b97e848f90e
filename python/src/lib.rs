//! The extension module behind the Python package `azekura`, over the engine's public API.
//!
//! - `codec`, `numbers`: Python's keys and values as bytes, in a fitting order.
//! - `errors`: one exception class for each error; the classes are Python's (`azekura/_errors.py`).
//! - `shared`: transactions that several threads may hold.
//! - `rows`, `batch`: many records in one call.
//! - `arrow`: records in columns, to and from other libraries.
//! - `records`: iterators, which fetch some hundred records at a time. `cursor`: what goes to and fro.
//! - `shards`: sets of shards.
//! - `long`: calls that may take long, their progress and Ctrl-C.
//! - `database`, `backup`, `table`, `ranges`, `many`, `index`, `feed`, `transaction`: the classes.
//!
//! The engine works while the thread is detached from the interpreter. No Python code runs while a
//! transaction's lock is held, so no thread can wait for itself.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod arrow;
mod backup;
mod batch;
mod codec;
mod cursor;
mod database;
mod errors;
mod feed;
mod index;
mod long;
mod many;
mod merging;
mod numbers;
mod ranges;
mod records;
mod rows;
mod shards;
mod shared;
mod table;
mod times;
mod transaction;

use pyo3::prelude::*;

#[pymodule]
mod _azekura {
    #[pymodule_export]
    use crate::arrow::RecordBatches;
    #[pymodule_export]
    use crate::backup::{Repository, restore_stream};
    #[pymodule_export]
    use crate::cursor::Cursor;
    #[pymodule_export]
    use crate::database::Database;
    #[pymodule_export]
    use crate::feed::Feed;
    #[pymodule_export]
    use crate::index::Index;
    #[pymodule_export]
    use crate::records::Records;
    #[pymodule_export]
    use crate::shards::{
        ShardBatch, ShardBatches, ShardDraft, ShardPacker, ShardWriter, ShardedReader, shard_hashes,
    };
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::transaction::{Savepoint, Snapshot, Transaction};
}
