//! Status numbers: those of the engine's errors, and those of this interface.

use azekura::Error;
use std::ffi::{CStr, c_char};

/// What a call returns. Positive numbers are errors of the engine and never change their meaning. Negative
/// numbers are of this interface. There may be more in later versions.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum azk_status {
    /// The call succeeded.
    AZK_OK = 0,
    /// The key is absent, or the cursor is at its end. This is no error and leaves no message.
    AZK_NOT_FOUND = -1,
    /// The value does not fit into the buffer. Its length was given. This is no error and leaves no message.
    AZK_BUFFER_TOO_SMALL = -2,
    /// The callback has ended the walk. This is no error and leaves no message.
    AZK_STOPPED = -3,
    /// The handle is NULL, was freed or closed, is of another type, or is no handle.
    AZK_BAD_HANDLE = -4,
    /// The handle is in use by another call, in another thread or around this callback.
    AZK_BUSY = -5,
    /// There is no memory for the result, or too many handles are open.
    AZK_NO_MEMORY = -6,
    /// A defect of the library. Free the handles of the call. At worst the file is as after a crash.
    AZK_PANIC = -7,
    /// An error of the engine for which this header has no number. The message says which.
    AZK_OTHER = -8,
    /// The file exists and is not an Azekura database.
    AZK_NOT_A_DATABASE = 1,
    /// The file was written by a newer version of the format.
    AZK_NEWER_VERSION = 2,
    /// Another handle, of this or another process, has the file open.
    AZK_LOCKED = 3,
    /// Bytes in the file are not what was written. The message says where.
    AZK_CORRUPT = 4,
    /// A key, value, name or transaction is over its limit.
    AZK_TOO_LARGE = 5,
    /// Another transaction has changed what this one used. Nothing was changed; run the transaction again.
    AZK_CONFLICT = 6,
    /// The database is open read-only.
    AZK_READ_ONLY = 7,
    /// The disk is full. Nothing acknowledged is lost. Try again when there is room.
    AZK_NO_SPACE = 8,
    /// The system reported an error.
    AZK_IO = 9,
    /// An earlier write or sync failed, so the handle can acknowledge nothing more. Close the database and
    /// open it again.
    AZK_POISONED = 10,
    /// There is no table of that name, or it was dropped.
    AZK_NO_SUCH_TABLE = 11,
    /// A table of that name exists already.
    AZK_TABLE_EXISTS = 12,
    /// The table is of the other kind, or the value has the wrong form.
    AZK_WRONG_TYPE = 13,
    /// An argument or option has no meaning.
    AZK_INVALID = 14,
    /// The file cannot be opened, locked or made; it does not exist; or it exists and was to be new.
    AZK_OPEN = 15,
    /// The database was closed.
    AZK_CLOSED = 16,
    /// The database was opened by the parent of this process.
    AZK_FORKED = 17,
    /// The file was cut: it can only be opened read-only.
    AZK_TRUNCATED = 18,
    /// The disk is full, and closing would lose commits. The handle stays open.
    AZK_NOT_DURABLE = 19,
    /// Two records would have the same values in a unique index. Nothing was changed.
    AZK_NOT_UNIQUE = 20,
    /// The table has no index of that name.
    AZK_NO_SUCH_INDEX = 21,
    /// The writer does not keep any more what this snapshot of a follower reads. Take another one.
    AZK_SNAPSHOT_TOO_OLD = 22,
    /// The feed of changes has not all of them any more after that commit.
    AZK_FEED_GAP = 23,
    /// A mirror is required, and none has acknowledged the commit in time. It is committed, durably in this
    /// file: to commit it again would be wrong.
    AZK_MIRROR_BEHIND = 24,
}

use azk_status::*;

/// All statuses with their names.
pub(crate) const ALL: [(azk_status, &CStr); 33] = [
    (AZK_OK, c"AZK_OK"),
    (AZK_NOT_FOUND, c"AZK_NOT_FOUND"),
    (AZK_BUFFER_TOO_SMALL, c"AZK_BUFFER_TOO_SMALL"),
    (AZK_STOPPED, c"AZK_STOPPED"),
    (AZK_BAD_HANDLE, c"AZK_BAD_HANDLE"),
    (AZK_BUSY, c"AZK_BUSY"),
    (AZK_NO_MEMORY, c"AZK_NO_MEMORY"),
    (AZK_PANIC, c"AZK_PANIC"),
    (AZK_OTHER, c"AZK_OTHER"),
    (AZK_NOT_A_DATABASE, c"AZK_NOT_A_DATABASE"),
    (AZK_NEWER_VERSION, c"AZK_NEWER_VERSION"),
    (AZK_LOCKED, c"AZK_LOCKED"),
    (AZK_CORRUPT, c"AZK_CORRUPT"),
    (AZK_TOO_LARGE, c"AZK_TOO_LARGE"),
    (AZK_CONFLICT, c"AZK_CONFLICT"),
    (AZK_READ_ONLY, c"AZK_READ_ONLY"),
    (AZK_NO_SPACE, c"AZK_NO_SPACE"),
    (AZK_IO, c"AZK_IO"),
    (AZK_POISONED, c"AZK_POISONED"),
    (AZK_NO_SUCH_TABLE, c"AZK_NO_SUCH_TABLE"),
    (AZK_TABLE_EXISTS, c"AZK_TABLE_EXISTS"),
    (AZK_WRONG_TYPE, c"AZK_WRONG_TYPE"),
    (AZK_INVALID, c"AZK_INVALID"),
    (AZK_OPEN, c"AZK_OPEN"),
    (AZK_CLOSED, c"AZK_CLOSED"),
    (AZK_FORKED, c"AZK_FORKED"),
    (AZK_TRUNCATED, c"AZK_TRUNCATED"),
    (AZK_NOT_DURABLE, c"AZK_NOT_DURABLE"),
    (AZK_NOT_UNIQUE, c"AZK_NOT_UNIQUE"),
    (AZK_NO_SUCH_INDEX, c"AZK_NO_SUCH_INDEX"),
    (AZK_SNAPSHOT_TOO_OLD, c"AZK_SNAPSHOT_TOO_OLD"),
    (AZK_FEED_GAP, c"AZK_FEED_GAP"),
    (AZK_MIRROR_BEHIND, c"AZK_MIRROR_BEHIND"),
];

fn with_number(number: i32) -> Option<(azk_status, &'static CStr)> {
    // An enum without fields is its number.
    ALL.into_iter().find(|(status, _)| *status as i32 == number)
}

/// Why a call fails. Small, since it is part of every result.
#[derive(Debug)]
pub(crate) struct Failure(Box<Cause>);

#[derive(Debug)]
enum Cause {
    /// An error of the engine.
    Engine(Error),
    /// An error of this interface.
    Here(azk_status, String),
}

/// The result of a step that may fail within a call.
pub(crate) type Outcome<T> = Result<T, Failure>;

impl From<Error> for Failure {
    #[cold]
    fn from(error: Error) -> Failure {
        Failure(Box::new(Cause::Engine(error)))
    }
}

/// A failure of this interface.
#[cold]
pub(crate) fn failure(status: azk_status, message: impl Into<String>) -> Failure {
    Failure(Box::new(Cause::Here(status, message.into())))
}

/// The failure of an argument that has no meaning.
#[cold]
pub(crate) fn invalid(message: impl Into<String>) -> Failure {
    failure(AZK_INVALID, format!("invalid argument: {}", message.into()))
}

impl Failure {
    pub(crate) fn status(&self) -> azk_status {
        match &*self.0 {
            Cause::Engine(error) => status_of(error),
            Cause::Here(status, _) => *status,
        }
    }

    pub(crate) fn message(self) -> String {
        match *self.0 {
            Cause::Engine(error) => match crate::files::name() {
                Some(file) if !names_its_file(&error) => format!("{file}: {error}"),
                _ => error.to_string(),
            },
            Cause::Here(_, message) => message,
        }
    }
}

/// Whether the text of an error begins with, or is about, the file that it names.
fn names_its_file(error: &Error) -> bool {
    let naming =
        [AZK_NOT_A_DATABASE, AZK_LOCKED, AZK_OPEN, AZK_TRUNCATED].map(|status| status_of(error) == status);
    naming.contains(&true)
}

/// The status with the number of an error.
pub(crate) fn status_of(error: &Error) -> azk_status {
    i32::try_from(error.code()).ok().and_then(with_number).map_or(AZK_OTHER, |(status, _)| status)
}

/// The name of a status, as in this header. "unknown status" for any other number. The text stays for good.
#[unsafe(no_mangle)]
pub extern "C" fn azk_status_name(status: i32) -> *const c_char {
    with_number(status).map_or(c"unknown status", |(_, name)| name).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_their_numbers() {
        let error = Error::TooLarge { what: "key", found: 2, limit: 1 };
        assert_eq!(status_of(&error), AZK_TOO_LARGE);
        assert_eq!(status_of(&error) as u32, error.code());
        assert_eq!(status_of(&Error::Forked) as u32, Error::Forked.code());
        let cause = Box::new(Error::NoSpace { during: "a test" });
        assert_eq!(status_of(&Error::NotDurable { commits: 1, bytes: 1, cause }), AZK_NOT_DURABLE);
    }

    #[test]
    fn numbers_have_one_name_each() {
        for (status, name) in ALL {
            assert_eq!(ALL.iter().filter(|(other, named)| *other == status || *named == name).count(), 1);
            assert_eq!(format!("{status:?}").as_bytes(), name.to_bytes());
        }
    }
}
