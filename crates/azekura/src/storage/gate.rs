//! The file as the engine has it: no byte passes in a forked child, nor once the database is closed.
//!
//! Closing gives the lock up while others may hold cursors and transactions, and from then on somebody else
//! may write to the file. A read that was under way might see his bytes. So the gate is looked at *after* a
//! read: it is shut before the lock is given up, and was open when the read had ended, so the lock was still
//! held when the last byte came, and no byte is a stranger's. A read that finds it shut is an error, whatever
//! it has brought. (Pages would notice by themselves: their checksums name the file, the run and the page.
//! Large values have a checksum of their bytes only.) What was read before, and stands in memory, is never
//! changed.
//!
//! A write looks before, and those who close wait until it has ended (`Life::while_open`).

use super::{DiskRoom, File, FileMapping};
use crate::base::error::Error;
use crate::base::life::Life;
use std::io;
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

    /// The error goes through the system's as its cause (`Error::io` takes it out again).
    fn check(&self) -> io::Result<()> {
        self.life.check().map_err(|e: Error| io::Error::other(e))
    }

    fn check_after<T>(&self, read: io::Result<T>) -> io::Result<T> {
        // What was read is in place before the look.
        fence(Ordering::Acquire);
        self.check()?;
        read
    }

    fn is_open(&self) -> bool {
        self.life.check().is_ok()
    }

    /// Calls what changes the file.
    fn change<T>(&self, f: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.life.while_open(f).map_err(io::Error::other)?
    }
}

impl File for Gate {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.check_after(self.file.read_at(buf, offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.change(|| self.file.write_at(buf, offset))
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

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    /// Those who read there have the file's lock kept for them (`storage/lease.rs`).
    fn mapping(&self) -> Option<Arc<FileMapping>> {
        self.file.mapping()
    }
}
