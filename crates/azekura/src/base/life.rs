//! Whether the handles of an open database may still be used: it was not closed, and this is the process that
//! opened it, not a forked copy.
//!
//! One number says so, and that no table was dropped since it was last looked at, so that a transaction's write
//! costs a few loads and not a search for its table.

use super::error::{Error, Result};
use super::process::Process;
use super::sync::atomic::{AtomicU64, Ordering};

/// See the module.
pub(crate) struct Life {
    /// One more than the tables dropped, and `CLOSED`.
    changes: AtomicU64,
    process: Process,
}

const CLOSED: u64 = 1 << 63;

/// A moment at which the database was open.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Moment(u64);

impl Life {
    pub(crate) fn new() -> Life {
        Life { changes: AtomicU64::new(1), process: Process::current() }
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

    /// Whether this is a copy in a child: nothing of it may be used, and no lock taken, for nobody may be there
    /// to give it back.
    pub(crate) fn is_forked(&self) -> bool {
        !self.process.is_current()
    }

    /// A table is gone from the state.
    pub(crate) fn note_dropped(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// The database is closed. REQUIRES: not in a forked child.
    pub(crate) fn close(&self) {
        self.changes.fetch_or(CLOSED, Ordering::AcqRel);
    }
}
