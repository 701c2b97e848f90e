//! Azekura: an embedded, transactional key-value store in one file.
//!
//! A database is a file; it holds named tables that are either *ordered* (keys in byte order, with
//! ranges, prefixes and cursors) or *hash* (the fastest lookups). Keys and values are any bytes.
//! Inserts cost the same whether there are a thousand records or a billion, and small records take
//! less room than their raw size.
//!
//! ```
//! # let path = std::env::temp_dir().join(format!("azekura-doc-lib-{}.azk", std::process::id()));
//! use azekura::{Db, Options, TableDefinition};
//!
//! const BORN: TableDefinition<str, u16> = TableDefinition::ordered("born");
//!
//! let db = Db::open(&path, Options::new())?;
//! let born = db.typed_table(&BORN)?;
//! born.put("ada", 1815)?;                            // a durable transaction of its own
//! assert_eq!(born.get("ada")?, Some(1815));
//!
//! let mut txn = db.write();                          // several writes, all or nothing
//! born.write_in(&mut txn).put("grace", 1906)?;
//! born.write_in(&mut txn).remove("ada")?;
//! txn.commit()?;
//!
//! for record in born.range("a"..)? {
//!     let (name, year) = record?;
//!     println!("{name} {year}");
//! }
//! # drop(born); db.close()?; std::fs::remove_file(&path).unwrap();
//! # Ok::<(), azekura::Error>(())
//! ```
//!
//! A [`TypedTable`] is a [`Table`] and two types. The table itself is of plain bytes, and takes whatever has
//! some:
//!
//! ```
//! # let path = std::env::temp_dir().join(format!("azekura-doc-lib-bytes-{}.azk", std::process::id()));
//! # use azekura::{Db, Options, TableKind};
//! # let db = Db::open(&path, Options::new())?;
//! let born = db.table("born", TableKind::Ordered)?;
//! born.put("ada", "1815")?;
//! assert_eq!(born.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
//!
//! let mut cursor = born.cursor()?;                   // the fastest way to walk: nothing is copied
//! while let Some((key, value)) = cursor.next()? {
//!     println!("{} {}", String::from_utf8_lossy(key), String::from_utf8_lossy(value.bytes()?));
//! }
//! # drop(cursor); drop(born); db.close()?; std::fs::remove_file(&path).unwrap();
//! # Ok::<(), azekura::Error>(())
//! ```
//!
//! Start at [`Db`], [`Table`] and [`TypedTable`]; transactions are [`ReadTxn`] and [`WriteTxn`]; [`Options`]
//! has the few choices there are, of which [`Durability`] is the one that matters.
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
//! for the child. So it does with the pins of a [follower](Options::follow).
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
mod index;
mod log;
mod memtable;
mod merge;
mod mirror;
mod run;
mod salvage;
mod space;
pub mod storage;
mod txn;
mod typed;
mod values;

pub use api::{
    AnyTxn, Change, ChangeKind, CheckReport, Db, Durability, FedTableInfo, Feed, FeedContent, FeedCursor,
    FeedInfo, Freshness, Index, IndexInfo, IndexKeys, IndexRead, IndexRecords, LevelStats, Merge, Options,
    PinStats, ShrinkReport, Stats, Table, TableInfo, TableStats,
};
pub use backup::{
    BackupReport, CopyOptions, Keep, LogKeeper, LogKept, PointInfo, PointList, PruneReport, Repository,
    RestoreReport, VerifyReport, Which, restore_stream, restore_stream_on,
};
pub use base::error::{Error, Result};
pub use base::key::{TableKind, hash_of};
pub use base::limits::{ELEMENT_BYTES_MAX, KEY_BYTES_MAX, NAME_BYTES_MAX, VALUE_BYTES_MAX};
pub use cursor::{Cursor, KeyRange, LazyValue, Records};
pub use engine::Progress;
pub use index::{IndexSpec, IndexValue};
pub use mirror::{
    Mirror, MirrorPipe, MirrorReport, MirrorStatus, promote, promote_on, stream_mirror, stream_mirror_on,
};
pub use salvage::{SalvageReport, SalvagedTable, salvage, salvage_on};
pub use txn::{Isolation, Lifetime, ReadTxn, Savepoint, ValueRef, WriteOptions, WriteTxn};
#[cfg(feature = "serde")]
pub use typed::Json;
pub use typed::{
    Key, KeyBytes, KeyPart, Prefix, TableDefinition, TypedCursor, TypedRead, TypedRecords, TypedTable,
    TypedWrite, Value,
};

/// The program of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The program of the page on mirrors.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/mirror.md")]
struct Mirrors;
