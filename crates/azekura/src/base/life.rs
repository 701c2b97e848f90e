//! Whether the handles of an open database may still be used. They may if the database is open and this
//! process opened it. A forked child may not use them.
//!
//! One number holds whether the database is closed and how many tables were dropped. So a write of a
//! transaction checks both with a few loads, without a search for its table.

use super::error::{Error, Result};
use super::process::Process;
use super::sync::RwLock;
use super::sync::atomic::{AtomicU64, Ordering};

/// The state of an open database that all its handles share.
pub(crate) struct Life {
    /// One more than the number of dropped tables, with the bit `CLOSED`.
    changes: AtomicU64,
    /// A call that changes the file holds it shared; closing takes it alone. A leaf.
    changing: RwLock<()>,
    process: Process,
}

const CLOSED: u64 = 1 << 63;

/// A moment at which the database was open. See `Life::is_still`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Moment(u64);

impl Life {
    pub(crate) fn new() -> Life {
        Life { changes: AtomicU64::new(1), changing: RwLock::default(), process: Process::current() }
    }

    /// Fails in a forked child, and once the database is closed.
    #[inline(always)]
    pub(crate) fn check(&self) -> Result<()> {
        if self.changes.load(Ordering::Acquire) & CLOSED == 0 && self.process.is_current() {
            Ok(())
        } else {
            Err(self.end())
        }
    }

    /// As `check`. Also returns the moment, for a later `is_still`.
    pub(crate) fn now(&self) -> Result<Moment> {
        let changes = self.changes.load(Ordering::Acquire);
        self.check().map(|()| Moment(changes & !CLOSED))
    }

    /// Whether the database is open and no table was dropped since `moment`.
    #[inline(always)]
    pub(crate) fn is_still(&self, moment: Moment) -> bool {
        self.changes.load(Ordering::Acquire) == moment.0 && self.process.is_current()
    }

    #[cold]
    fn end(&self) -> Error {
        if self.is_forked() { Error::Forked } else { Error::Closed }
    }

    /// Whether this process is a forked child. Then nothing of the handle may be used and no lock taken: the
    /// thread that held a lock at the fork does not exist in the child.
    pub(crate) fn is_forked(&self) -> bool {
        !self.process.is_current()
    }

    /// Notes that a table was dropped.
    pub(crate) fn note_dropped(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Calls `f`, which changes the file. Closing waits until `f` has returned.
    pub(crate) fn while_open<T>(&self, f: impl FnOnce() -> T) -> Result<T> {
        // Checked before the lock too: in a forked child nobody may be there to release it.
        self.check()?;
        let _changing = self.changing.read();
        self.check()?;
        Ok(f())
    }

    /// Closes the database, after all calls that change the file have ended. REQUIRES: not in a forked child.
    pub(crate) fn close(&self) {
        let _changing = self.changing.write();
        self.changes.fetch_or(CLOSED, Ordering::AcqRel);
    }
}
