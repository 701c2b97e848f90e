//! Transactions: reading a snapshot, collecting writes, and what a lookup finds.

mod again;
mod begin;
mod buffer;
pub(crate) mod build;
mod entries;
mod expiry;
pub(crate) mod gather;
pub(crate) mod get;
pub(crate) mod indexed;
mod isolation;
mod local;
pub(crate) mod many;
mod merging;
mod own;
mod puts;
mod read;
mod reading;
mod savepoint;
mod snapshot;
mod tables;
mod update;
pub(crate) mod value;
mod write;

pub use expiry::Lifetime;
pub use isolation::{Isolation, WriteOptions};
pub use read::ReadTxn;
pub use savepoint::Savepoint;
pub use value::ValueRef;
pub use write::WriteTxn;

pub(crate) use expiry::{expiry_after, lifetime_ms};
pub(crate) use write::check_key;
