//! Peers in languages that this program cannot call. Each store runs in a helper process.
//!
//! A transaction is gathered here and sent with its commit. Many gets are sent together. The helper measures
//! the peer's own calls, so that the cost of the connection does not count as the peer's: [`Store::clock`].

pub mod process;
mod programs;
mod wire;

use super::{About, Each, Open, Peer, PeerPlace, Reader, Store, Way, Writer};
use crate::failure::{Failure, Result};
use crate::records::ScanSum;
use process::Process;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wire::Wire;

/// The peers behind helpers.
pub fn peers() -> Vec<(About, Option<Box<dyn Peer>>)> {
    let go = |name, title| About {
        place: PeerPlace::Helper("Go"),
        get: "install Go 1.25 or later; its modules are fetched",
        ..About::new(name, title)
    };
    let list = "a transaction's inserts into a page are one sorted list until the commit";
    let bolt = About { bounded: false, caveat: list, ..go("bbolt", "bbolt") };
    let level = About {
        bounded: false,
        caveat: "Go's collector keeps to the budget as far as it can",
        ..go("goleveldb", "goleveldb")
    };
    let codernity = About {
        ordered: false,
        transactions: false,
        bounded: false,
        indexes: true,
        place: PeerPlace::Helper("Python"),
        caveat: "a batch is a loop of inserts",
        get: "apt install python3-venv; the package is fetched",
        ..About::new("codernitydb", "CodernityDB")
    };
    [bolt, level, codernity]
        .into_iter()
        .map(|about| {
            let peer = HelperPeer { about };
            let there = peer.command().is_some();
            (about, there.then(|| -> Box<dyn Peer> { Box::new(peer) }))
        })
        .collect()
}

struct HelperPeer {
    about: About,
}

impl HelperPeer {
    /// The command that runs the helper. Its last argument, the name of the socket, is missing.
    fn command(&self) -> Option<Command> {
        if self.about.name == "codernitydb" {
            let mut command = Command::new(programs::python()?);
            // The buckets of the index use Python's hash, which otherwise differs between processes.
            command.arg(programs::python_script()).env("PYTHONHASHSEED", "0");
            return Some(command);
        }
        let mut command = Command::new(programs::go()?);
        command.arg(self.about.name);
        Some(command)
    }
}

impl Peer for HelperPeer {
    fn about(&self) -> &About {
        &self.about
    }

    fn version(&self) -> String {
        match self.about.name {
            "bbolt" => programs::go_version("go.etcd.io/bbolt"),
            "goleveldb" => without_commit(programs::go_version("github.com/syndtr/goleveldb")),
            _ => programs::python_version("codernitydb3"),
        }
        .to_owned()
    }

    fn configuration(&self) -> String {
        let own = match self.about.name {
            "bbolt" => {
                "NoSync and NoGrowSync unless durable, NoFreelistSync, freelist as a map, InitialMmapSize 4 x the \
                 data (16 GiB at least); one read transaction a phase, renewed at each get beside a writer"
            }
            "goleveldb" => {
                "WriteBuffer 8 MiB, BlockCacheCapacity budget / 2, SetMemoryLimit(budget), 10-bit Bloom filter, \
                 tables of 16 MiB, no compression, no compaction by seeks; a Batch a transaction, synced only \
                 when durable; settled by CompactRange"
            }
            _ => {
                "a document {v: value} a record, its _id the key (a hash of it above 31 bytes), in the id index \
                 with a bucket a record; PYTHONHASHSEED=0; the storage's get without the print that the port \
                 left in it; fsync after a transaction only when durable; for the index workload a HashIndex of v[:8]"
            }
        };
        format!("{own}; timed in the helper around the calls of a batch, without the connection's part")
    }

    fn open(&self, how: &Open) -> Result<Box<dyn Store>> {
        static STORES: AtomicU64 = AtomicU64::new(0);
        let name = self.about.name;
        let number = STORES.fetch_add(1, Ordering::Relaxed);
        let socket = format!("bench-compare-{}-{number}", std::process::id());
        let mut command =
            self.command().ok_or_else(|| Failure::peer(name, "open", &"its helper is not there"))?;
        let process = Process::start_ready(name, command.arg(&socket))?;
        let clock = AtomicU64::new(0);
        let mut control = Wire::connect(name, &socket)?;
        control.flag(how.create).flag(how.durable).u64(how.budget_bytes).u64(how.records).u64(how.raw_bytes);
        control.bytes(how.dir.as_os_str().as_bytes());
        control.ask(wire::OPEN, "open", &clock)?;
        if how.indexed && how.create {
            control.ask(wire::INDEX, "open: adding an index", &clock)?;
        }
        Ok(Box::new(HelperStore {
            name,
            ordered: self.about.ordered,
            indexed: how.indexed,
            socket,
            clock,
            control: Mutex::new(control),
            _process: process,
        }))
    }
}

/// A version between two releases ends in a second hyphen and the commit.
fn without_commit(version: &str) -> &str {
    match version.rsplit_once('-') {
        Some((dated, _)) if dated.contains('-') => dated,
        _ => version,
    }
}

struct HelperStore {
    name: &'static str,
    ordered: bool,
    indexed: bool,
    socket: String,
    /// Nanoseconds that the peer's calls took.
    clock: AtomicU64,
    control: Mutex<Wire>,
    /// Ends together with the store.
    _process: Process,
}

impl HelperStore {
    fn ask(&self, kind: u8, call: &str) -> Result<bool> {
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(control.ask(kind, call, &self.clock)?.first() == Some(&1))
    }

    fn short(&self, call: &str) -> Failure {
        Failure::peer(self.name, call, &"a short answer")
    }
}

impl Store for HelperStore {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        let wire = Wire::connect(self.name, &self.socket)?;
        Ok(Box::new(HelperWriter { store: self, wire, open: false }))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        let mut wire = Wire::connect(self.name, &self.socket)?;
        // The helper opens its reader at the first request. A snapshot must show the present state.
        wire.ask(wire::REFRESH, "refresh", &self.clock)?;
        Ok(Box::new(HelperReader { store: self, wire, value: Vec::new() }))
    }

    fn sync(&self) -> Result<()> {
        self.ask(wire::SYNC, "sync").map(|_| ())
    }

    fn settle(&self) -> Result<bool> {
        self.ask(wire::SETTLE, "settle")
    }

    fn clock(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.clock.load(Ordering::Relaxed)))
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.ask(wire::CLOSE, "close").map(|_| ())
    }
}

struct HelperWriter<'store> {
    store: &'store HelperStore,
    wire: Wire,
    open: bool,
}

impl HelperWriter<'_> {
    #[inline]
    fn change(&mut self, remove: bool, key: &[u8], value: &[u8]) -> Result<()> {
        self.wire.flag(remove).length(key.len()).length(value.len()).bytes(key).bytes(value);
        if self.wire.body_bytes() >= wire::BODY_BYTES_MAX {
            self.wire.ask(wire::APPLY, "put", &self.store.clock)?;
        }
        Ok(())
    }
}

impl Writer for HelperWriter<'_> {
    fn begin(&mut self) -> Result<()> {
        self.wire.forget();
        self.open = true;
        Ok(())
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.change(false, key, value)
    }

    #[inline]
    fn remove(&mut self, key: &[u8]) -> Result<()> {
        self.change(true, key, &[])
    }

    fn commit(&mut self) -> Result<()> {
        self.open = false;
        self.wire.ask(wire::COMMIT, "commit", &self.store.clock)?;
        Ok(())
    }
}

impl Drop for HelperWriter<'_> {
    fn drop(&mut self) {
        if self.open {
            self.wire.forget();
            // The helper also abandons it when the connection is gone, but only some time later.
            let _ = self.wire.ask(wire::ABANDON, "abandon", &self.store.clock);
        }
    }
}

struct HelperReader<'store> {
    store: &'store HelperStore,
    wire: Wire,
    value: Vec<u8>,
}

impl HelperReader<'_> {
    fn sum(&mut self, kind: u8, call: &str) -> Result<ScanSum> {
        let mut body = self.wire.ask(kind, call, &self.store.clock)?;
        let (records, sum) = (wire::take_u64(&mut body), wire::take_u64(&mut body));
        match (records, sum) {
            (Some(records), Some(sum)) => Ok(ScanSum { records, sum }),
            _ => Err(self.store.short(call)),
        }
    }
}

impl Reader for HelperReader<'_> {
    fn refresh(&mut self) -> Result<()> {
        self.wire.ask(wire::REFRESH, "refresh", &self.store.clock)?;
        Ok(())
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        let mut found = false;
        let Self { store, wire, value } = self;
        wire.length(key.len()).bytes(key);
        let mut body = wire.ask(wire::GET, "get", &store.clock)?;
        if let Some(got) = wire::take_value(&mut body).ok_or_else(|| store.short("get"))? {
            found = true;
            value.clear();
            value.extend_from_slice(got);
        }
        Ok(found.then_some(self.value.as_slice()))
    }

    fn get_each(&mut self, keys: &[&[u8]], each: Each<'_>) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        for key in keys {
            self.wire.length(key.len()).bytes(key);
        }
        let mut body = self.wire.ask(wire::GET, "get", &self.store.clock)?;
        for at in 0..keys.len() {
            each(at, wire::take_value(&mut body).ok_or_else(|| self.store.short("get"))?);
        }
        Ok(())
    }

    fn scan(&mut self) -> Result<ScanSum> {
        self.sum(wire::SCAN, "scan")
    }

    fn range(&mut self, from: Option<&[u8]>, limit: u64, way: Way) -> Result<Option<ScanSum>> {
        if !self.store.ordered {
            return Ok(None);
        }
        self.wire.u64(limit).flag(way == Way::Down).flag(from.is_some()).bytes(from.unwrap_or_default());
        self.sum(wire::RANGE, "range").map(Some)
    }

    fn find(&mut self, field: &[u8; 8]) -> Result<Option<ScanSum>> {
        if !self.store.indexed {
            return Ok(None);
        }
        self.wire.bytes(field);
        self.sum(wire::FIND, "find").map(Some)
    }
}
