//! Whether the handles of an open database may still be used: it was not closed, and this is the process that
//! opened it, not a forked copy.
//!
//! One number says so, and that no table was dropped since it was last looked at, so that a transaction's
//! write costs a few loads and not a search for its table.

use super::error::{Error, Result};
use super::process::Process;
use super::sync::RwLock;
use super::sync::atomic::{AtomicU64, Ordering};

/// See the module.
pub(crate) struct Life {
    /// One more than the tables dropped, and `CLOSED`.
    changes: AtomicU64,
    /// Shared by whoever changes the file, for the time of the call; taken alone by whoever closes. A leaf.
    changing: RwLock<()>,
    process: Process,
}

const CLOSED: u64 = 1 << 63;

/// A moment at which the database was open.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Moment(u64);

impl Life {
    pub(crate) fn new() -> Life {
        Life { changes: AtomicU64::new(1), changing: RwLock::default(), process: Process::current() }
    }

    /// An error in a forked child and once the database is closed.
    #[inline(always)]
    pub(crate) fn check(&self) -> Result<()> {
        if self.changes.load(Ordering::Acquire) & CLOSED == 0 && self.process.is_current() {
            Ok(())
        } else {
            Err(self.end())
        }
    }

    /// As `check`; and from when on `is_still` is to look.
    pub(crate) fn now(&self) -> Result<Moment> {
        let changes = self.changes.load(Ordering::Acquire);
        self.check().map(|()| Moment(changes & !CLOSED))
    }

    /// Whether the database is open and all the tables of that moment are there.
    #[inline(always)]
    pub(crate) fn is_still(&self, moment: Moment) -> bool {
        self.changes.load(Ordering::Acquire) == moment.0 && self.process.is_current()
    }

    #[cold]
    fn end(&self) -> Error {
        if self.is_forked() { Error::Forked } else { Error::Closed }
    }

    /// Whether this is a copy in a child: nothing of it may be used, and no lock taken, for nobody may be
    /// there to give it back.
    pub(crate) fn is_forked(&self) -> bool {
        !self.process.is_current()
    }

    /// A table is gone from the state.
    pub(crate) fn note_dropped(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Calls `f`, which changes the file, and during which nobody closes the database.
    pub(crate) fn while_open<T>(&self, f: impl FnOnce() -> T) -> Result<T> {
        // Before the lock too: in a forked child nobody may be there to give it back.
        self.check()?;
        let _changing = self.changing.read();
        self.check()?;
        Ok(f())
    }

    /// The database is closed; what was changing the file has ended. REQUIRES: not in a forked child.
    pub(crate) fn close(&self) {
        let _changing = self.changing.write();
        self.changes.fetch_or(CLOSED, Ordering::AcqRel);
    }
}
