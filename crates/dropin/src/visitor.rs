//! The caller's callbacks.

use crate::access::Access;
use crate::codes::{KCFILEPROC, KCVISITEMPTY, KCVISITFULL, KCVISNOP, KCVISREMOVE};
use crate::errors::Outcome;
use std::ffi::{c_char, c_void};

/// A visitor of records.
#[derive(Clone, Copy)]
pub(crate) struct Visitor {
    full: KCVISITFULL,
    empty: KCVISITEMPTY,
    opaque: *mut c_void,
}

// SAFETY: only a scan in parallel sends a visitor to other threads, and its caller answers for that.
unsafe impl Send for Visitor {}
// SAFETY: as above.
unsafe impl Sync for Visitor {}

/// What a visitor wants done.
pub(crate) enum Answer<'a> {
    Leave,
    Remove,
    Set(&'a [u8]),
}

impl Visitor {
    pub(crate) fn new(full: KCVISITFULL, empty: KCVISITEMPTY, opaque: *mut c_void) -> Visitor {
        Visitor { full, empty, opaque }
    }

    /// Calls the visitor for a key, and for its value if there is a record. A missing callback leaves it.
    pub(crate) fn visit<'a>(&self, key: &[u8], value: Option<&'a [u8]>) -> Answer<'a> {
        let mut len = 0;
        let (at, key_len) = (key.as_ptr().cast::<c_char>(), key.len());
        let answer = match (value, self.full, self.empty) {
            (Some(value), Some(full), _) => {
                let (value, value_len) = (value.as_ptr().cast::<c_char>(), value.len());
                // SAFETY: key and value live as long as the call. The caller answers for its callback.
                unsafe { full(at, key_len, value, value_len, &raw mut len, self.opaque) }
            }
            // SAFETY: as above.
            (None, _, Some(empty)) => unsafe { empty(at, key_len, &raw mut len, self.opaque) },
            _ => return Answer::Leave,
        };
        if answer.is_null() || KCVISNOP.is(answer) || isize::try_from(len).is_err() {
            return Answer::Leave;
        }
        if KCVISREMOVE.is(answer) {
            return Answer::Remove;
        }
        // SAFETY: the pointer is not NULL and memory can have that length. The caller answers for the bytes,
        // which may be those of the value that it was given.
        Answer::Set(unsafe { std::slice::from_raw_parts(answer.cast(), len) })
    }

    /// Visits the record of a key, and does what the visitor wants if it may. Returns whether a record was
    /// removed.
    pub(crate) fn apply(
        &self,
        access: &mut Access<'_>,
        key: &[u8],
        value: Option<&[u8]>,
        writes: bool,
    ) -> Outcome<bool> {
        match self.visit(key, value) {
            Answer::Set(new) if writes => access.put(key, new)?,
            Answer::Remove if writes && value.is_some() => {
                access.remove(key)?;
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }
}

/// A callback for a file.
pub(crate) struct FileProc {
    proc: KCFILEPROC,
    opaque: *mut c_void,
}

impl FileProc {
    pub(crate) fn new(proc: KCFILEPROC, opaque: *mut c_void) -> FileProc {
        FileProc { proc, opaque }
    }

    /// Whether it succeeds, or is not there. Counting may be a scan, so it is done for a callback only.
    pub(crate) fn call(&self, access: &Access<'_>) -> Outcome<bool> {
        let Some(proc) = self.proc else { return Ok(true) };
        let (path, count, size) = (&access.open.path, access.count()?, access.open.size());
        // SAFETY: the path lives as long as the call. The caller answers for its callback.
        Ok(unsafe { proc(path.as_ptr(), count, size, self.opaque) } != 0)
    }
}
