//! The stores that are compared, behind one small interface.
//!
//! A [`Peer`] opens a [`Store`] in a directory of its own; threads write through a [`Writer`] each
//! and read through a [`Reader`] each. Nothing here is measured or verified: the workloads do that.
//!
//! Most peers run in this process. Those that cannot (see [`Place`]) are driven through a helper
//! process, which is told whole batches at a time and measures the peer's own calls: a workload takes
//! its times from [`Store::clock`] there, and gets through [`Reader::get_each`] rather than one by one.

mod azekura;
mod crates;
mod helper;
#[expect(dead_code, reason = "what the build needs of it")]
mod libraries;
pub mod listing;
mod mariadb;
#[cfg(test)]
pub mod memory;
mod shim;

#[cfg(test)]
pub mod tests;

use crate::counters;
use crate::failure::Result;
use crate::records::ScanSum;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How to open a store.
#[derive(Debug, Clone)]
pub struct Open {
    /// An existing directory, the store's own.
    pub dir: PathBuf,
    /// Memory for caches, buffers and mappings together, where the peer lets us say.
    pub budget_bytes: u64,
    /// How many records there will be; for peers that must be told.
    pub records: u64,
    /// Bytes of all those records' keys and values.
    pub raw_bytes: u64,
    /// Start with an empty database.
    pub create: bool,
    /// A commit returns when its records are on the device.
    pub durable: bool,
    /// Every key put will be greater than the one before.
    pub ascending: bool,
}

/// Where a peer's code runs. A process started for a peer is killed when this one ends, whatever ends it,
/// and its counters are those that `measure::counters` gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In this process.
    Here,
    /// In a helper process written in the language named, which measures the peer's calls itself.
    Helper(&'static str),
    /// In a server process, behind a socket; times are those that its client sees.
    Server,
}

/// What is known of a peer without opening it.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// As given to `--peers`.
    pub name: &'static str,
    /// As printed.
    pub title: &'static str,
    /// One of Azekura's table kinds.
    pub ours: bool,
    /// Is told that keys ascend, so it runs only where they do.
    pub ascending_only: bool,
    /// Keeps keys in order, so [`Reader::range`] works.
    pub ordered: bool,
    /// Transactions are atomic.
    pub transactions: bool,
    /// Memory, mappings included, keeps to the budget that it is told.
    pub bounded: bool,
    /// Where it runs.
    pub place: Place,
    /// Takes nothing but keys and values of 8 bytes each: a table of numbers in SQL.
    pub numbers_only: bool,
    /// What sets it apart in a comparison, or nothing.
    pub caveat: &'static str,
    /// How to get it, or nothing if it is built with this program.
    pub get: &'static str,
}

impl About {
    /// A peer in this process that does all that the comparison asks for.
    pub const fn new(name: &'static str, title: &'static str) -> Self {
        Self {
            name,
            title,
            ours: false,
            ascending_only: false,
            ordered: true,
            transactions: true,
            bounded: true,
            place: Place::Here,
            numbers_only: false,
            caveat: "",
            get: "",
        }
    }
}

/// A kind of store.
pub trait Peer: Send + Sync {
    /// What is known of it.
    fn about(&self) -> &About;
    /// The library's version.
    fn version(&self) -> String;
    /// The configuration chosen, in words.
    fn configuration(&self) -> String;
    /// Opens or creates a store.
    fn open(&self, how: &Open) -> Result<Box<dyn Store>>;
    /// Bytes on disk of the store in a directory: of all files there, unless the peer keeps files
    /// that do not grow with the records.
    fn file_bytes(&self, dir: &Path) -> u64 {
        counters::directory_bytes(dir)
    }
}

/// An open store, for any number of threads.
pub trait Store: Send + Sync {
    /// A writer for the calling thread.
    fn writer(&self) -> Result<Box<dyn Writer + '_>>;
    /// A reader for the calling thread; it may go on seeing the state of now.
    fn reader(&self) -> Result<Box<dyn Reader + '_>>;
    /// Makes all that is committed durable.
    fn sync(&self) -> Result<()>;
    /// Finishes work that would otherwise go on in the background; `false` if there is no such work.
    fn settle(&self) -> Result<bool>;
    /// The time that the peer's calls took so far, by the clock of its helper process; `None` for all
    /// others, whose time is that of the calls made here.
    fn clock(&self) -> Option<Duration> {
        None
    }
    /// Closes the store.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Writes transactions, one after the other.
pub trait Writer {
    /// Begins a transaction.
    fn begin(&mut self) -> Result<()>;
    /// Puts a record.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
    /// Removes a record, if it is there.
    fn remove(&mut self, key: &[u8]) -> Result<()>;
    /// Commits the transaction.
    fn commit(&mut self) -> Result<()>;
}

/// Which way a range goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To ever greater keys.
    Up,
    /// To ever smaller keys.
    Down,
}

/// Takes the place of a key in the list that was asked for, and its value.
pub type Each<'a> = &'a mut dyn FnMut(usize, Option<&[u8]>);

/// Reads records.
pub trait Reader {
    /// Sees what is committed by now, at the latest from the next call on, and at every call after
    /// it if that costs the peer nothing.
    fn refresh(&mut self) -> Result<()>;
    /// The value of a key.
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>>;
    /// Gets keys one after the other, each by a call of its own to the peer. A helper process is told
    /// all of them at once, and makes the calls; elsewhere this is a loop of [`get`](Reader::get).
    fn get_each(&mut self, keys: &[&[u8]], each: Each<'_>) -> Result<()> {
        for (at, key) in keys.iter().enumerate() {
            each(at, self.get(key)?);
        }
        Ok(())
    }
    /// Gets many keys by one call to the peer, in any order; `false`, without a call of `each`, if the
    /// peer has no such call.
    fn get_many(&mut self, keys: &[&[u8]], each: Each<'_>) -> Result<bool> {
        let _ = (keys, each);
        Ok(false)
    }
    /// Visits every record, in the order that suits the peer best.
    fn scan(&mut self) -> Result<ScanSum>;
    /// Visits at most `limit` records in the order of their keys: from `from` on (itself included, if
    /// it is there), or from the first or last record on. `None` if the peer keeps no order, or cannot
    /// go that way. A reverse scan is `range(None, u64::MAX, Way::Down)`.
    fn range(&mut self, from: Option<&[u8]>, limit: u64, way: Way) -> Result<Option<ScanSum>> {
        let _ = (from, limit, way);
        Ok(None)
    }
}

/// Every peer by name, with the peer itself if its library was there when this program was built.
pub fn all() -> Vec<(About, Option<Box<dyn Peer>>)> {
    let mut peers = azekura::peers();
    peers.extend(shim::peers());
    peers.extend(crates::peers());
    peers.extend(helper::peers());
    peers.extend(mariadb::peers());
    peers
}
