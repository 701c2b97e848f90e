//! The engine's view of the file: no byte passes in a forked child, nor once the database is closed.
//!
//! Closing releases the file's lock while programs may still hold cursors and transactions. From then on
//! another process may write to the file, and a read that is under way might see its bytes. So a read checks
//! the gate *afterwards*. Closing shuts the gate before it releases the lock. If the gate is open after the
//! read, the lock was held until the last byte came, so no byte is foreign. If it is shut, the read fails,
//! whatever it has brought. (Pages would notice by themselves: their checksums name file, run and page. The
//! checksum of a large value covers its bytes only.) Bytes that were read earlier, into memory, never change.
//!
//! A write checks beforehand, and closing waits until it has ended (`Life::while_open`).

use super::forward::forward_file;
use super::{DiskRoom, File, FileMapping};
use crate::base::error::Error;
use crate::base::life::Life;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

pub(crate) struct Gate {
    file: Arc<dyn File>,
    life: Arc<Life>,
}

impl Gate {
    pub(crate) fn new(file: Arc<dyn File>, life: Arc<Life>) -> Gate {
        Gate { file, life }
    }

    /// The engine's error travels as the cause of a system error. `Error::io` takes it out again.
    fn check(&self) -> io::Result<()> {
        self.life.check().map_err(|e: Error| io::Error::other(e))
    }

    fn check_after<T>(&self, read: io::Result<T>) -> io::Result<T> {
        // The bytes are in place before the check.
        fence(Ordering::Acquire);
        self.check()?;
        read
    }

    fn is_open(&self) -> bool {
        self.life.check().is_ok()
    }

    /// Calls `f`, which changes the file.
    fn change<T>(&self, f: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.life.while_open(f).map_err(io::Error::other)?
    }
}

impl File for Gate {
    // A lease keeps the file's lock for those who read in the mapping (`storage/lease.rs`).
    forward_file!(file: unlock, pins, acknowledged, mapping);

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.check_after(self.file.read_at(buf, offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.change(|| self.file.write_at(buf, offset))
    }

    fn write_settled_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.change(|| self.file.write_settled_at(buf, offset))
    }

    fn write_durable_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.change(|| self.file.write_durable_at(buf, offset))
    }

    fn write_back(&self, offset: u64, len: u64) {
        if self.is_open() {
            self.file.write_back(offset, len);
        }
    }

    fn wait_written(&self, offset: u64, len: u64) {
        if self.is_open() {
            self.file.wait_written(offset, len);
        }
    }

    fn will_read(&self, offset: u64, len: u64) {
        if self.is_open() {
            self.file.will_read(offset, len);
        }
    }

    fn forget(&self, offset: u64, len: u64) {
        let _closed = self.life.while_open(|| self.file.forget(offset, len));
    }

    fn sync_data(&self) -> io::Result<()> {
        self.change(|| self.file.sync_data())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.change(|| self.file.sync_all())
    }

    fn len(&self) -> io::Result<u64> {
        self.check_after(self.file.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(|| self.file.set_len(len))
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<bool> {
        self.change(|| self.file.allocate(offset, len))
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.change(|| self.file.punch(offset, len))
    }

    fn disk_room(&self) -> io::Result<Option<DiskRoom>> {
        self.check()?;
        self.file.disk_room()
    }

    fn try_lock(&self, exclusive: bool) -> io::Result<bool> {
        self.check()?;
        self.file.try_lock(exclusive)
    }

    fn pin(&self, number: u64) -> io::Result<()> {
        self.check()?;
        self.file.pin(number)
    }

    fn unpin(&self, number: u64) {
        // A forked child shares its parent's pins.
        if !self.life.is_forked() {
            self.file.unpin(number);
        }
    }
}
