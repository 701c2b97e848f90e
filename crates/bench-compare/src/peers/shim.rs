//! Peers behind the C ABI of shim/peer.h.

use super::abi::{
    ASCENDING, CREATE, DURABLE, INDEXED, OnHandle, RawBytes, RawError, RawOpen, RawPeer, RawRange, RawSeen,
    berkeley_hash, berkeley_tree, kyoto_hash, kyoto_tree, leveldb, lmdb, rocksdb, sqlite, tkrzw_hash,
    tkrzw_tree, tokyo_hash, tokyo_tree,
};
use super::libraries;
use super::{About, Each, Open, Peer, Reader, Store, Way, Writer};
use crate::failure::{Failure, Result};
use crate::records::ScanSum;
use std::ffi::{CStr, CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;

/// The peers behind shims.
pub fn peers() -> Vec<(About, Option<Box<dyn Peer>>)> {
    let mut peers = kyoto_and_tkrzw();
    peers.extend(tokyo_and_berkeley());
    peers.extend(trees());
    let boxed = |(about, raw): (About, Option<&'static RawPeer>)| {
        let peer = raw.map(|raw| -> Box<dyn Peer> { Box::new(ShimPeer { about, raw }) });
        (about, peer)
    };
    peers.into_iter().map(boxed).collect()
}

type Known = (About, Option<&'static RawPeer>);

fn kyoto_and_tkrzw() -> Vec<Known> {
    let one = "one transaction at a time, whose changes readers see before it commits";
    let none = "a batch is a loop of puts";
    let forward = "a batch is a loop of puts; not asked to go backward, since after reopening 1.0.25 misses most records so";
    let kyoto = |name, title| About { caveat: one, get: libraries::get("kyoto"), ..About::new(name, title) };
    let tkrzw = |name, title| About {
        transactions: false,
        bounded: false,
        caveat: none,
        get: libraries::get("tkrzw"),
        ..About::new(name, title)
    };
    vec![
        (About { ordered: false, ..kyoto("kyoto-hash", "Kyoto HashDB") }, kyoto_hash()),
        (kyoto("kyoto-tree", "Kyoto TreeDB"), kyoto_tree()),
        (About { ordered: false, ..tkrzw("tkrzw-hash", "Tkrzw HashDBM") }, tkrzw_hash()),
        (About { caveat: forward, ..tkrzw("tkrzw-tree", "Tkrzw TreeDBM") }, tkrzw_tree()),
    ]
}

fn trees() -> Vec<Known> {
    let told = "is told that keys ascend, with MDB_APPEND at every put";
    let mapped = "its tables are mapped outside the budget";
    let lmdb_about =
        |name, title| About { bounded: false, get: libraries::get("lmdb"), ..About::new(name, title) };
    let append = About { ascending_only: true, caveat: told, ..lmdb_about("lmdb-append", "LMDB, append") };
    let leveldb_about = About {
        bounded: false,
        caveat: mapped,
        get: libraries::get("leveldb"),
        ..About::new("leveldb", "LevelDB")
    };
    let plain = |name, title, get| About { get, backups: true, ..About::new(name, title) };
    let rocks = plain("rocksdb", "RocksDB", libraries::get("rocksdb"));
    vec![
        (About { backups: true, ..lmdb_about("lmdb", "LMDB") }, lmdb()),
        (append, lmdb()),
        (leveldb_about, leveldb()),
        (rocks, rocksdb()),
        (About { indexes: true, ..plain("sqlite", "SQLite", libraries::get("sqlite")) }, sqlite()),
    ]
}

fn tokyo_and_berkeley() -> Vec<Known> {
    let one = "one transaction at a time, whose changes readers see before it commits";
    let locks = "readers wait for a transaction that changes their page";
    let tokyo = |name, title| About { caveat: one, get: libraries::get("tokyo"), ..About::new(name, title) };
    let berkeley =
        |name, title| About { caveat: locks, get: libraries::get("berkeley"), ..About::new(name, title) };
    vec![
        (About { ordered: false, ..tokyo("tokyo-hash", "Tokyo HDB") }, tokyo_hash()),
        (tokyo("tokyo-tree", "Tokyo BDB"), tokyo_tree()),
        (About { ordered: false, ..berkeley("berkeley-hash", "Berkeley DB hash") }, berkeley_hash()),
        (berkeley("berkeley-tree", "Berkeley DB btree"), berkeley_tree()),
    ]
}

/// A peer behind a shim.
pub struct ShimPeer {
    /// What is known of it.
    pub about: About,
    /// Its functions.
    pub raw: &'static RawPeer,
}

/// A peer's functions with its name: to call them, and to say which failed.
#[derive(Clone, Copy)]
struct Calls {
    name: &'static str,
    raw: &'static RawPeer,
}

impl Calls {
    /// Makes a call that may fill in an error. `failed` tells from the call's result whether it did.
    #[inline]
    fn run<T>(
        self,
        call: impl FnOnce(&'static RawPeer, *mut RawError) -> T,
        failed: impl FnOnce(&T) -> bool,
    ) -> Result<T> {
        let mut error = std::mem::MaybeUninit::<RawError>::uninit();
        let result = call(self.raw, error.as_mut_ptr());
        if !failed(&result) {
            return Ok(result);
        }
        // SAFETY: a failed call has filled in the error with text that ends in a zero byte.
        let text = unsafe { CStr::from_ptr((&raw const (*error.as_ptr()).text).cast()) };
        Err(Failure::Peer { peer: self.name, message: text.to_string_lossy().into_owned() })
    }

    #[inline]
    fn on(self, handle: *mut c_void, pick: impl FnOnce(&RawPeer) -> OnHandle) -> Result<()> {
        // SAFETY: this peer opened the handle for this kind of call, and it is still open.
        let call = |raw: &'static RawPeer, error| unsafe { pick(raw)(handle, error) };
        self.run(call, |code| *code != 0)?;
        Ok(())
    }
}

impl Peer for ShimPeer {
    fn about(&self) -> &About {
        &self.about
    }

    fn version(&self) -> String {
        // SAFETY: the shim returns text that lives as long as the process.
        unsafe { CStr::from_ptr((self.raw.version)()) }.to_string_lossy().into_owned()
    }

    fn configuration(&self) -> String {
        // SAFETY: as above.
        unsafe { CStr::from_ptr(self.raw.configuration) }.to_string_lossy().into_owned()
    }

    fn open(&self, how: &Open) -> Result<Box<dyn Store>> {
        let calls = Calls { name: self.about.name, raw: self.raw };
        let path = c_path(&how.dir)?;
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        let open = RawOpen {
            path: path.as_ptr(),
            budget_bytes: how.budget_bytes,
            records: how.records,
            raw_bytes: how.raw_bytes,
            flags: flag(how.create, CREATE)
                | flag(how.durable, DURABLE)
                | flag(how.indexed, INDEXED)
                | flag(how.ascending && self.about.ascending_only, ASCENDING),
        };
        // SAFETY: `open` and its path outlive the call.
        let handle =
            calls.run(|raw, error| unsafe { (raw.store_open)(&raw const open, error) }, |p| p.is_null())?;
        Ok(Box::new(ShimStore { calls, handle }))
    }

    fn restore(&self, from: &Path, to: &Path) -> Result<()> {
        let calls = Calls { name: self.about.name, raw: self.raw };
        let Some(restore) = self.raw.restore else { return Err(super::no_backups(self.about.name)) };
        let (from, to) = (c_path(from)?, c_path(to)?);
        // SAFETY: both paths outlive the call.
        calls.run(|_, error| unsafe { restore(from.as_ptr(), to.as_ptr(), error) }, |code| *code != 0)?;
        Ok(())
    }
}

fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

struct ShimStore {
    calls: Calls,
    handle: *mut c_void,
}

// SAFETY: the libraries allow any thread to use and close a store.
unsafe impl Send for ShimStore {}
// SAFETY: as above. What belongs to one thread is in the writers and readers.
unsafe impl Sync for ShimStore {}

impl ShimStore {
    fn close_now(&mut self) -> Result<()> {
        let handle = std::mem::replace(&mut self.handle, ptr::null_mut());
        if handle.is_null() {
            return Ok(());
        }
        self.calls.on(handle, |raw| raw.store_close)
    }
}

impl Store for ShimStore {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        // SAFETY: the store is open.
        let open = |raw: &RawPeer, error| unsafe { (raw.writer_open)(self.handle, error) };
        let handle = self.calls.run(open, |p| p.is_null())?;
        Ok(Box::new(ShimWriter { store: self, handle }))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        // SAFETY: the store is open.
        let open = |raw: &RawPeer, error| unsafe { (raw.reader_open)(self.handle, error) };
        let handle = self.calls.run(open, |p| p.is_null())?;
        Ok(Box::new(ShimReader { store: self, handle, keys: Vec::new(), values: Vec::new() }))
    }

    fn sync(&self) -> Result<()> {
        self.calls.on(self.handle, |raw| raw.store_sync)
    }

    fn settle(&self) -> Result<bool> {
        match self.calls.raw.store_settle {
            Some(settle) => self.calls.on(self.handle, |_| settle).map(|()| true),
            None => Ok(false),
        }
    }

    fn backup(&self, to: &Path) -> Result<()> {
        let Some(backup) = self.calls.raw.backup else { return Err(super::no_backups(self.calls.name)) };
        let to = c_path(to)?;
        // SAFETY: the store is open. The path outlives the call.
        let call = |_: &RawPeer, error| unsafe { backup(self.handle, to.as_ptr(), error) };
        self.calls.run(call, |code| *code != 0)?;
        Ok(())
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.close_now()
    }
}

impl Drop for ShimStore {
    fn drop(&mut self) {
        // The store is open here only after another failure. That one is reported.
        let _ = self.close_now();
    }
}

struct ShimWriter<'store> {
    store: &'store ShimStore,
    handle: *mut c_void,
}

impl Writer for ShimWriter<'_> {
    #[inline]
    fn begin(&mut self) -> Result<()> {
        self.store.calls.on(self.handle, |raw| raw.begin)
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        // SAFETY: the writer is open. Key and value outlive the call.
        let put = |raw: &RawPeer, error| unsafe {
            (raw.put)(self.handle, key.as_ptr(), key.len(), value.as_ptr(), value.len(), error)
        };
        self.store.calls.run(put, |code| *code != 0)?;
        Ok(())
    }

    #[inline]
    fn remove(&mut self, key: &[u8]) -> Result<()> {
        // SAFETY: the writer is open. The key outlives the call.
        let remove =
            |raw: &RawPeer, error| unsafe { (raw.remove)(self.handle, key.as_ptr(), key.len(), error) };
        self.store.calls.run(remove, |code| *code != 0)?;
        Ok(())
    }

    #[inline]
    fn commit(&mut self) -> Result<()> {
        self.store.calls.on(self.handle, |raw| raw.commit)
    }
}

impl Drop for ShimWriter<'_> {
    fn drop(&mut self) {
        // SAFETY: the writer is open, and nothing uses it after this.
        unsafe { (self.store.calls.raw.writer_close)(self.handle) }
    }
}

struct ShimReader<'store> {
    store: &'store ShimStore,
    handle: *mut c_void,
    /// Room for the keys and values of `get_many`.
    keys: Vec<RawBytes>,
    values: Vec<RawBytes>,
}

impl Reader for ShimReader<'_> {
    #[inline]
    fn refresh(&mut self) -> Result<()> {
        self.store.calls.on(self.handle, |raw| raw.refresh)
    }

    #[inline]
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        let (mut value, mut bytes) = (ptr::null(), 0usize);
        // SAFETY: the reader is open. The key and both results outlive the call.
        let get = |raw: &RawPeer, error| unsafe {
            (raw.get)(self.handle, key.as_ptr(), key.len(), &raw mut value, &raw mut bytes, error)
        };
        match self.store.calls.run(get, |code| *code < 0)? {
            0 => Ok(None),
            _ if bytes == 0 => Ok(Some(&[])),
            // SAFETY: the value stays in place until the next call on this reader. That call needs the reader
            // mutably, which the returned slice forbids while it lives.
            _ => Ok(Some(unsafe { std::slice::from_raw_parts(value, bytes) })),
        }
    }

    fn get_many(&mut self, keys: &[&[u8]], each: Each<'_>) -> Result<bool> {
        let Some(get_many) = self.store.calls.raw.get_many else {
            return Ok(false);
        };
        self.keys.clear();
        self.keys.extend(keys.iter().map(|key| RawBytes { at: key.as_ptr(), count: key.len() }));
        self.values.clear();
        self.values.resize(keys.len(), RawBytes::NONE);
        let (asked, answers) = (self.keys.as_ptr(), self.values.as_mut_ptr());
        // SAFETY: the reader is open. The keys and the places for values, as many as passed, outlive the
        // call.
        let call = |_: &RawPeer, error| unsafe { get_many(self.handle, asked, keys.len(), answers, error) };
        self.store.calls.run(call, |code| *code != 0)?;
        for (at, value) in self.values.iter().enumerate() {
            each(
                at,
                match value {
                    RawBytes { at, .. } if at.is_null() => None,
                    RawBytes { count: 0, .. } => Some(&[]),
                    // SAFETY: the value stays in place until the next call on this reader. The reader is
                    // borrowed until the last value was passed on.
                    RawBytes { at, count } => Some(unsafe { std::slice::from_raw_parts(*at, *count) }),
                },
            );
        }
        Ok(true)
    }

    fn scan(&mut self) -> Result<ScanSum> {
        let mut seen = RawSeen::default();
        // SAFETY: the reader is open. The result outlives the call.
        let scan = |raw: &RawPeer, error| unsafe { (raw.scan)(self.handle, &raw mut seen, error) };
        self.store.calls.run(scan, |code| *code != 0)?;
        Ok(ScanSum { records: seen.records, sum: seen.sum })
    }

    fn range(&mut self, from: Option<&[u8]>, limit: u64, way: Way) -> Result<Option<ScanSum>> {
        let Some(range) = self.store.calls.raw.range else {
            return Ok(None);
        };
        let asked = RawRange {
            from: from.map_or(ptr::null(), <[u8]>::as_ptr),
            from_bytes: from.map_or(0, <[u8]>::len),
            limit,
            down: c_int::from(way == Way::Down),
        };
        let mut seen = RawSeen::default();
        // SAFETY: the reader is open. The key, the request and the result outlive the call.
        let call = |_: &RawPeer, error| unsafe { range(self.handle, &raw const asked, &raw mut seen, error) };
        let code = self.store.calls.run(call, |code| *code < 0)?;
        Ok((code == 0).then_some(ScanSum { records: seen.records, sum: seen.sum }))
    }

    fn find(&mut self, field: &[u8; 8]) -> Result<Option<ScanSum>> {
        let raw = &self.store.calls.raw;
        let Some(find) = raw.find else { return Ok(None) };
        let (mut seen, at) = (RawSeen::default(), field.as_ptr());
        // SAFETY: the reader is open. The field and the result outlive the call.
        let call = |_: &RawPeer, error| unsafe { find(self.handle, at, field.len(), &raw mut seen, error) };
        self.store.calls.run(call, |code| *code != 0)?;
        Ok(Some(ScanSum { records: seen.records, sum: seen.sum }))
    }
}

impl Drop for ShimReader<'_> {
    fn drop(&mut self) {
        // SAFETY: the reader is open, and nothing uses it after this.
        unsafe { (self.store.calls.raw.reader_close)(self.handle) }
    }
}
