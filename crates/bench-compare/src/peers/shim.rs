//! Peers behind the C ABI of shim/peer.h.

mod known;
mod raw;

pub use known::mariadb;
pub use raw::RawPeer;

use super::{About, Changes, Each, Open, Peer, Reader, Store, Way, Writer, copy_files};
use crate::failure::{Failure, Result};
use crate::records::ScanSum;
use known::Known;
use raw::{
    ASCENDING, CREATE, DURABLE, FED, INDEXED, OnHandle, RawBytes, RawError, RawOpen, RawRange, RawSeen,
};
use std::ffi::{CStr, CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;

/// The peers behind shims.
pub fn peers() -> Vec<(About, Option<Box<dyn Peer>>)> {
    let boxed = |(about, raw): Known| {
        let peer = raw.map(|raw| -> Box<dyn Peer> { Box::new(ShimPeer { about, raw }) });
        (about, peer)
    };
    known::all().into_iter().map(boxed).collect()
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
        let path = path_of(&how.dir)?;
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        let open = RawOpen {
            path: path.as_ptr(),
            budget_bytes: how.budget_bytes,
            records: how.records,
            raw_bytes: how.raw_bytes,
            flags: flag(how.create, CREATE)
                | flag(how.durable, DURABLE)
                | flag(how.indexed, INDEXED)
                | flag(how.fed, FED)
                | flag(how.ascending && self.about.ascending_only, ASCENDING),
            lives_ms: how.lives.map_or(0, |lives| u64::try_from(lives.as_millis()).unwrap_or(u64::MAX)),
        };
        // SAFETY: `open` and its path outlive the call.
        let handle =
            calls.run(|raw, error| unsafe { (raw.store_open)(&raw const open, error) }, |p| p.is_null())?;
        Ok(Box::new(ShimStore { calls, handle, fed: how.fed }))
    }

    fn restore(&self, from: &Path, dir: &Path) -> Result<()> {
        let Some(restore) = self.raw.restore else { return copy_files(from, dir) };
        let (calls, from, to) =
            (Calls { name: self.about.name, raw: self.raw }, path_of(from)?, path_of(dir)?);
        // SAFETY: both paths outlive the call.
        let call = |_: &RawPeer, error| unsafe { restore(from.as_ptr(), to.as_ptr(), error) };
        calls.run(call, |code| *code != 0).map(|_| ())
    }
}

fn path_of(dir: &Path) -> Result<CString> {
    let named = |error| Failure::Usage(format!("{}: {error}", dir.display()));
    CString::new(dir.as_os_str().as_bytes()).map_err(named)
}

struct ShimStore {
    calls: Calls,
    handle: *mut c_void,
    fed: bool,
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

    fn changes(&self) -> Result<Option<Box<dyn Changes + '_>>> {
        let Some(open) = self.calls.raw.changes_open.filter(|_| self.fed) else { return Ok(None) };
        // SAFETY: the store is open.
        let call = |_: &RawPeer, error| unsafe { open(self.handle, error) };
        let handle = self.calls.run(call, |p| p.is_null())?;
        Ok(Some(Box::new(ShimChanges { store: self, handle })))
    }

    fn back_up(&self, to: &Path) -> Result<bool> {
        let Some(back_up) = self.calls.raw.back_up else { return Ok(false) };
        let to = path_of(to)?;
        // SAFETY: the store is open. The path outlives the call.
        let call = |_: &RawPeer, error| unsafe { back_up(self.handle, to.as_ptr(), error) };
        self.calls.run(call, |code| *code != 0).map(|_| true)
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
    fn add(&mut self, key: &[u8], n: u64) -> Result<bool> {
        let Some(add) = self.store.calls.raw.add else { return Ok(false) };
        // SAFETY: the writer is open. The key outlives the call.
        let call = |_: &RawPeer, error| unsafe { add(self.handle, key.as_ptr(), key.len(), n, error) };
        self.store.calls.run(call, |code| *code != 0)?;
        Ok(true)
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

struct ShimChanges<'store> {
    store: &'store ShimStore,
    handle: *mut c_void,
}

impl Changes for ShimChanges<'_> {
    fn take(&mut self, limit: u64) -> Result<ScanSum> {
        let calls = self.store.calls;
        let Some(take) = calls.raw.changes_take else { return Ok(ScanSum::default()) };
        let mut seen = RawSeen::default();
        // SAFETY: the reader of changes is open. The result outlives the call.
        let call = |_: &RawPeer, error| unsafe { take(self.handle, limit, &raw mut seen, error) };
        calls.run(call, |code| *code != 0)?;
        Ok(ScanSum { records: seen.records, sum: seen.sum })
    }
}

impl Drop for ShimChanges<'_> {
    fn drop(&mut self) {
        if let Some(close) = self.store.calls.raw.changes_close {
            // SAFETY: the reader of changes is open, and nothing uses it after this.
            unsafe { close(self.handle) }
        }
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
