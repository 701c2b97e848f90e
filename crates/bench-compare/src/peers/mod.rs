//! The stores that are compared, behind one small interface.
//!
//! A [`Peer`] opens a [`Store`] in a directory of its own; threads write through a [`Writer`] each
//! and read through a [`Reader`] each. Nothing here is measured or verified: the workloads do that.

mod azekura;
#[cfg(test)]
pub mod memory;
mod shim;

#[cfg(test)]
pub mod tests;

use crate::failure::Result;
use crate::records::ScanSum;
use std::path::PathBuf;

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
    /// What sets it apart in a comparison, or nothing.
    pub caveat: &'static str,
    /// Debian's package of its headers, or nothing if it is built with this program.
    pub package: &'static str,
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
    /// Closes the store.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Writes transactions, one after the other.
pub trait Writer {
    /// Begins a transaction.
    fn begin(&mut self) -> Result<()>;
    /// Puts a record.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
    /// Commits the transaction.
    fn commit(&mut self) -> Result<()>;
}

/// Reads records.
pub trait Reader {
    /// Sees what is committed by now, at the latest from the next call on, and at every call after
    /// it if that costs the peer nothing.
    fn refresh(&mut self) -> Result<()>;
    /// The value of a key.
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>>;
    /// Gets many keys in one call, in any order; `false`, without a call of `each`, if the peer has no
    /// such call.
    fn get_many(&mut self, keys: &[&[u8]], each: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<bool> {
        let _ = (keys, each);
        Ok(false)
    }
    /// Visits every record.
    fn scan(&mut self) -> Result<ScanSum>;
}

/// Every peer by name, with the peer itself if its library was there when this program was built.
pub fn all() -> Vec<(About, Option<Box<dyn Peer>>)> {
    let mut peers = azekura::peers();
    peers.extend(shim::peers());
    peers
}
