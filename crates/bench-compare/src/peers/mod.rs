//! The stores that are compared, behind one small interface.
//!
//! A [`Peer`] opens a [`Store`] in a directory of its own. Each thread writes through its own [`Writer`] and
//! reads through its own [`Reader`]. Nothing here is measured or verified: the workloads do that.
//!
//! Most peers run in this process. Those that cannot (see [`PeerPlace`]) run in a helper process. It is told
//! whole batches at a time and measures the peer's own calls. For these a workload takes its times from
//! [`Store::clock`], and gets through [`Reader::get_each`] and not one by one.

mod all;
mod azekura;
mod crates;
mod engines;
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

pub use all::all;

use crate::counters;
use crate::failure::{Failure, Result};
use crate::records::ScanSum;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How to open a store.
#[derive(Debug, Clone)]
pub struct Open {
    /// An existing directory that belongs to the store.
    pub dir: PathBuf,
    /// Memory for caches, buffers and mappings together, where the peer allows it to be set.
    pub budget_bytes: u64,
    /// How many records there will be, for peers that must be told.
    pub records: u64,
    /// Bytes of all those records' keys and values.
    pub raw_bytes: u64,
    /// Start with an empty database.
    pub create: bool,
    /// A commit returns when its records are on the device.
    pub durable: bool,
    /// Every key put will be greater than the one before.
    pub ascending: bool,
    /// Keep an index of the first 8 bytes of values.
    pub indexed: bool,
    /// Records are gone by themselves so long after they were put. Only for peers that can do that.
    pub lives: Option<Duration>,
    /// Keep what every transaction changes, for [`Store::changes`]. Only for peers that can do that.
    pub fed: bool,
}

/// Where a peer's code runs. A process started for a peer is killed when this one ends, for whatever reason.
/// `measure::counters` then gives the counters of that process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerPlace {
    /// In this process.
    Here,
    /// In a helper process written in the named language. It measures the peer's calls itself.
    Helper(&'static str),
    /// In a server process behind a socket. The times are those that its client sees.
    Server,
}

/// What is known about a peer without opening it.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// As given to `--peers`.
    pub name: &'static str,
    /// As printed.
    pub title: &'static str,
    /// One of Azekura's table kinds.
    pub ours: bool,
    /// It is told that keys ascend, so it runs only where they do.
    pub ascending_only: bool,
    /// Keeps keys in order, so [`Reader::range`] works.
    pub ordered: bool,
    /// Transactions are atomic.
    pub transactions: bool,
    /// Its memory, mappings included, keeps to the given budget.
    pub bounded: bool,
    /// Where it runs.
    pub place: PeerPlace,
    /// It takes only keys and values of 8 bytes each: a table of numbers in SQL.
    pub numbers_only: bool,
    /// Keeps indexes of values.
    pub indexes: bool,
    /// Lets records go by themselves after some time, as soon as it is over.
    pub expires: bool,
    /// Keeps what was changed for a reader, in the order of the commits.
    pub feeds: bool,
    /// Has a call for a backup while others write.
    pub backs_up: bool,
    /// A writer that finds another one at work sleeps, and looks again later.
    pub sleeps: bool,
    /// What makes it different in a comparison, or empty.
    pub caveat: &'static str,
    /// How to get it. Empty if it is built with this program.
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
            place: PeerPlace::Here,
            numbers_only: false,
            indexes: false,
            expires: false,
            feeds: false,
            backs_up: false,
            sleeps: false,
            caveat: "",
            get: "",
        }
    }
}

/// A kind of store.
pub trait Peer: Send + Sync {
    /// What is known about it.
    fn about(&self) -> &About;
    /// The library's version.
    fn version(&self) -> String;
    /// The chosen configuration, in words.
    fn configuration(&self) -> String;
    /// Opens or creates a store.
    fn open(&self, how: &Open) -> Result<Box<dyn Store>>;
    /// Makes a store in an existing directory from the newest backup in another one, durably.
    fn restore(&self, from: &Path, dir: &Path) -> Result<()> {
        copy_files(from, dir)
    }
    /// The bytes on disk of the store in a directory. Files that do not grow with the records are left out.
    fn file_bytes(&self, dir: &Path) -> u64 {
        counters::directory_bytes(dir)
    }
}

/// An open store, for any number of threads.
pub trait Store: Send + Sync {
    /// A writer for the calling thread.
    fn writer(&self) -> Result<Box<dyn Writer + '_>>;
    /// A reader for the calling thread. It may keep seeing the present state.
    fn reader(&self) -> Result<Box<dyn Reader + '_>>;
    /// A reader of all changes since the store was made, if it was opened to keep them. `None` otherwise.
    fn changes(&self) -> Result<Option<Box<dyn Changes + '_>>> {
        Ok(None)
    }
    /// Copies all that is committed to an existing directory, durably, while other threads write. A
    /// directory that has a backup gets what has changed since, if the peer backs up by increments.
    /// Otherwise a new copy takes the place of the old one. `false` if the peer has no such call.
    fn back_up(&self, to: &Path) -> Result<bool> {
        let _ = to;
        Ok(false)
    }
    /// Makes everything committed durable.
    fn sync(&self) -> Result<()>;
    /// Finishes work that would otherwise go on in the background. Returns `false` if there is no such work.
    fn settle(&self) -> Result<bool>;
    /// The time that the peer's calls have taken, by the clock of its helper process. `None` for all others:
    /// their time is that of the calls made here.
    fn clock(&self) -> Option<Duration> {
        None
    }
    /// Closes the store.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Copies the files of a directory, durably.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    let failed = || Failure::io(format!("copying {}", from.display()));
    for entry in std::fs::read_dir(from).map_err(failed())? {
        let name = entry.map_err(failed())?.file_name();
        std::fs::copy(from.join(&name), to.join(&name)).map_err(failed())?;
        let copied = std::fs::File::open(to.join(&name)).map_err(failed())?;
        copied.sync_all().map_err(failed())?;
    }
    Ok(())
}

/// Writes transactions, one after the other.
pub trait Writer {
    /// Begins a transaction.
    fn begin(&mut self) -> Result<()>;
    /// Puts a record.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
    /// Adds to the little-endian number that the value of a key is, within the transaction, in the way of the
    /// peer's users. Several writers may do it at once. If the peer has no such way, it returns `false` and
    /// nothing happens.
    fn add(&mut self, key: &[u8], n: u64) -> Result<bool> {
        let _ = (key, n);
        Ok(false)
    }
    /// Removes a record, if it is there.
    fn remove(&mut self, key: &[u8]) -> Result<()>;
    /// Commits the transaction.
    fn commit(&mut self) -> Result<()>;
}

/// Reads what was changed, in the order of the commits.
pub trait Changes {
    /// Takes the changes that follow what was taken before, at most so many, or a few more. Gives how many
    /// there were, with the sum over their keys and new values. None if there are no more at present.
    fn take(&mut self, limit: u64) -> Result<ScanSum>;
}

/// The direction of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Towards greater keys.
    Up,
    /// Towards smaller keys.
    Down,
}

/// Takes the position of a key in the list that was asked for, and its value.
pub type Each<'a> = &'a mut dyn FnMut(usize, Option<&[u8]>);

/// Reads records.
pub trait Reader {
    /// Sees everything committed by now, at the latest from the next call on. If that costs the peer nothing,
    /// it sees later commits at every later call.
    fn refresh(&mut self) -> Result<()>;
    /// The value of a key.
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>>;
    /// Gets keys one after the other, each by its own call to the peer. A helper process is told all of them
    /// at once and makes the calls. Elsewhere this is a loop of [`get`](Reader::get).
    fn get_each(&mut self, keys: &[&[u8]], each: Each<'_>) -> Result<()> {
        for (at, key) in keys.iter().enumerate() {
            each(at, self.get(key)?);
        }
        Ok(())
    }
    /// Gets many keys by one call to the peer, in any order. If the peer has no such call, it returns `false`
    /// and does not call `each`.
    fn get_many(&mut self, keys: &[&[u8]], each: Each<'_>) -> Result<bool> {
        let _ = (keys, each);
        Ok(false)
    }
    /// Visits every record, in the order that is best for the peer.
    fn scan(&mut self) -> Result<ScanSum>;
    /// Visits at most `limit` records in the order of their keys. It starts at `from` (included, if it
    /// exists), or else at the first or last record. `None` if the peer keeps no order, or cannot go that
    /// way. A reverse scan is `range(None, u64::MAX, Way::Down)`.
    fn range(&mut self, from: Option<&[u8]>, limit: u64, way: Way) -> Result<Option<ScanSum>> {
        let _ = (from, limit, way);
        Ok(None)
    }
    /// Visits the records whose values begin with these bytes, by the index. `None` if there is none.
    fn find(&mut self, field: &[u8; 8]) -> Result<Option<ScanSum>> {
        let _ = field;
        Ok(None)
    }
}
