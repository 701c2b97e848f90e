//! Azekura: an embedded, transactional key-value store in one file.
//!
//! A database is a file; it holds named tables that are either *ordered* (keys in byte order, with
//! ranges, prefixes and cursors) or *hash* (the fastest lookups). Keys and values are any bytes.
//! Inserts cost the same whether there are a thousand records or a billion, and small records take
//! less room than their raw size.
//!
//! ```
//! # let path = std::env::temp_dir().join(format!("azekura-doc-lib-{}.azk", std::process::id()));
//! use azekura::{Db, Options, TableKind};
//!
//! let db = Db::open(&path, Options::new())?;
//! let users = db.table("users", TableKind::Ordered)?;
//!
//! users.put(b"ada", b"1815")?;                       // a durable transaction of its own
//! assert_eq!(users.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
//!
//! let mut txn = db.write();                          // several writes, all or nothing
//! txn.put(&users, b"grace", b"1906")?;
//! txn.remove(&users, b"ada")?;
//! txn.commit()?;
//!
//! let mut cursor = users.cursor()?;
//! while let Some((key, value)) = cursor.next()? {
//!     println!("{} {}", String::from_utf8_lossy(key), String::from_utf8_lossy(value.bytes()?));
//! }
//! # drop(cursor); drop(users); db.close()?; std::fs::remove_file(&path).unwrap();
//! # Ok::<(), azekura::Error>(())
//! ```
//!
//! Start at [`Db`] and [`Table`]; transactions are [`ReadTxn`] and [`WriteTxn`]; [`Options`] has
//! the few choices there are, of which [`Durability`] is the one that matters.
//!
//! # Handles
//!
//! A [`Table`] belongs to the [`Db`] that it was opened with and that one's clones; with any other it is
//! [`Error::Invalid`]. [`Db::close`] closes the database for all who have handles of it: what they call later
//! is [`Error::Closed`]. Callbacks (of [`Db::shrink`], [`Table::get_with`], [`Table::update`] and others) may
//! call whatever they like of the same database.
//!
//! # Forks
//!
//! A handle belongs to the process that has made it. In a forked child every call that reads or writes
//! through an inherited handle, transaction or cursor is [`Error::Forked`], and dropping them does nothing:
//! the parent goes on, and loses nothing. Until it ends or calls exec the child shares the parent's lock of
//! the file: when the parent closes the database others can open the file, when it is killed they must wait
//! for the child.
//!
//! The child may open databases of its own if no other thread was at work in this library at the fork, as
//! before the parent has opened its first database. Else it should call exec, as after every fork of a
//! process with threads: what they held locked stays locked in the child.

#![deny(missing_docs)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod api;
mod backup;
mod base;
mod cache;
mod cursor;
mod engine;
mod format;
#[cfg(any(fuzzing, azekura_canary))]
pub mod fuzzing;
mod log;
mod memtable;
mod merge;
mod run;
mod salvage;
mod space;
pub mod storage;
mod txn;
mod values;

pub use api::{CheckReport, Db, Durability, LevelStats, Options, ShrinkReport, Stats, Table, TableInfo};
pub use backup::{
    BackupReport, Keep, PointInfo, PointList, PruneReport, Repository, RestoreReport, VerifyReport, Which,
    restore_stream, restore_stream_on,
};
pub use base::error::{Error, Result};
pub use base::key::TableKind;
pub use base::limits::{KEY_BYTES_MAX, NAME_BYTES_MAX, VALUE_BYTES_MAX};
pub use cursor::{Cursor, LazyValue, Records};
pub use engine::Progress;
pub use salvage::{SalvageReport, SalvagedTable, salvage, salvage_on};
pub use txn::{Isolation, ReadTxn, Savepoint, ValueRef, WriteOptions, WriteTxn};
