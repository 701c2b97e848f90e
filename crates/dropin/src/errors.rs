//! Errors: a code of Kyoto's and a text, which each thread keeps for each database.

use crate::codes::*;
use azekura::Error;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char};

/// Why a call fails.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: i32,
    said: Cow<'static, CStr>,
}

pub(crate) type Outcome<T> = Result<T, Failure>;

/// The last error of each database, for one thread.
type Last = HashMap<u64, (i32, Cow<'static, CStr>)>;

thread_local! {
    static LAST: RefCell<Last> = RefCell::default();
}

/// The place of errors of calls that name no database.
pub(crate) const NO_DATABASE: u64 = 0;

/// A failure with a text that is known beforehand.
pub(crate) const fn failure(code: i32, said: &'static CStr) -> Failure {
    Failure { code, said: Cow::Borrowed(said) }
}

/// A failure with a text of its own.
#[cold]
pub(crate) fn told(code: i32, said: String) -> Failure {
    // A text ends at its first zero byte.
    let bytes: Vec<u8> = said.into_bytes().into_iter().map(|b| if b == 0 { b'?' } else { b }).collect();
    Failure { code, said: Cow::Owned(CString::new(bytes).unwrap_or_default()) }
}

pub(crate) const NOT_OPENED: Failure = failure(KCEINVALID, c"not opened");
pub(crate) const NO_RECORD: Failure = failure(KCENOREC, c"no record");
pub(crate) const NOT_WRITER: Failure = failure(KCENOPERM, c"permission denied: opened for reading");

impl From<Error> for Failure {
    #[cold]
    fn from(error: Error) -> Failure {
        let code = match &error {
            Error::NotADatabase { .. }
            | Error::NewerVersion { .. }
            | Error::Corrupt { .. }
            | Error::Truncated { .. } => KCEBROKEN,
            Error::Locked { .. } | Error::ReadOnly => KCENOPERM,
            Error::Open { .. } | Error::NoSuchTable { .. } => KCENOREPOS,
            Error::TooLarge { .. } | Error::WrongType { .. } | Error::Invalid { .. } | Error::Closed => {
                KCEINVALID
            }
            Error::NoSpace { .. } | Error::Io { .. } | Error::Poisoned { .. } | Error::NotDurable { .. } => {
                KCESYSTEM
            }
            Error::Conflict { .. } | Error::NotUnique { .. } | Error::Forked => KCELOGIC,
            _ => KCEMISC,
        };
        told(code, error.to_string())
    }
}

/// Keeps a failure for the thread to ask for.
#[cold]
pub(crate) fn keep(database: u64, failure: Failure) {
    // While a thread ends nobody can ask.
    let _ending = LAST.try_with(|last| last.borrow_mut().insert(database, (failure.code, failure.said)));
}

/// The code and the text of the thread's last failure with a database. The text stays until the next one.
pub(crate) fn last(database: u64) -> (i32, *const c_char) {
    let find = |last: &RefCell<Last>| last.borrow().get(&database).map(|(code, said)| (*code, said.as_ptr()));
    LAST.try_with(find).ok().flatten().unwrap_or((KCESUCCESS, c"no error".as_ptr()))
}

/// Forgets a database's failure in this thread.
pub(crate) fn forget(database: u64) {
    let _ending = LAST.try_with(|last| last.borrow_mut().remove(&database));
}

/// What a code means, in two words or three.
pub(crate) fn name_of(code: i32) -> &'static CStr {
    match code {
        KCESUCCESS => c"success",
        KCENOIMPL => c"not implemented",
        KCEINVALID => c"invalid operation",
        KCENOREPOS => c"no repository",
        KCENOPERM => c"no permission",
        KCEBROKEN => c"broken file",
        KCEDUPREC => c"record duplication",
        KCENOREC => c"no record",
        KCELOGIC => c"logical inconsistency",
        KCESYSTEM => c"system error",
        _ => c"miscellaneous error",
    }
}
