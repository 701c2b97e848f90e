//! The one error type of the engine. Every variant says what was found, where, and what was expected.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The result of every fallible operation of the engine.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong. The set may grow; match with a wildcard arm.
///
/// `NotADatabase`, `Locked`, `Truncated` and `Open` name the file, and so does damage in a repository of
/// backups, which has many files. All others are of the file that was opened, or was to be, and say only what
/// is wrong and where in it: [`Db::path`](crate::Db::path) has its name.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-error-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// use azekura::Error;
/// match db.open_table("fruit") {
///     Err(Error::NoSuchTable { name }) => assert_eq!(name, "fruit"),
///     Err(other) => return Err(other),
///     Ok(_) => unreachable!("nobody has made it"),
/// }
/// // Each has a number that stays, and is an error of the system for who wants one.
/// let error = db.open_table("fruit").err().unwrap();
/// println!("{}: {error}", db.path().display());
/// assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::NotFound);
/// # db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file exists and is not an Azekura database.
    #[error("not an Azekura database: {path} ({reason})")]
    NotADatabase {
        /// The file.
        path: String,
        /// What was found instead of a superblock.
        reason: String,
    },
    /// The file was written by a newer version of the format.
    #[error("the file has format version {found}; this library reads up to version {supported}")]
    NewerVersion {
        /// The version in the file.
        found: u32,
        /// The newest version this library understands.
        supported: u32,
    },
    /// Another process (or another handle of this one) has the file open.
    #[error("{path} is locked: another handle has it open")]
    Locked {
        /// The file.
        path: String,
        /// Whether the lock asked for was the writer's.
        exclusive: bool,
    },
    /// Bytes in the file are not what was written.
    #[error("corrupt {what} at file offset {offset}: {detail}")]
    Corrupt {
        /// The kind of structure: superblock, manifest, page, log frame, value, and so on.
        what: &'static str,
        /// Where it begins, in bytes from the start of the file. 0 also for what has no place of its own.
        offset: u64,
        /// What was expected and what was found.
        detail: String,
    },
    /// The file ends before its contents do: it was cut, or not copied whole. It cannot be opened for
    /// writing, so that nothing more is lost. Opened read-only, it gives what is there, and errors for the
    /// rest.
    #[error(
        "{path} was cut: it has {file_bytes} bytes, its contents need {least_bytes} at least; it can only be read"
    )]
    Truncated {
        /// The file.
        path: String,
        /// Its length.
        file_bytes: u64,
        /// The least length that its contents need.
        least_bytes: u64,
    },
    /// A key, value, name or transaction is over its limit.
    #[error("{what} too large: {found} bytes, at most {limit} are allowed")]
    TooLarge {
        /// What was too large.
        what: &'static str,
        /// Its size in bytes.
        found: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// Another transaction committed a change to something this one read or wrote.
    /// Nothing was changed; run the transaction again.
    #[error("conflict on table {table:?}: another transaction committed a change to what this one used")]
    Conflict {
        /// The table in which the two met.
        table: String,
    },
    /// A record would have the same values in a unique index as another one. Nothing was changed.
    #[error(
        "index {index:?} of table {table:?} is unique: the records with the keys {} and {} would have the same \
         values in it",
        shown(key),
        shown(other)
    )]
    NotUnique {
        /// The table.
        table: String,
        /// The index.
        index: String,
        /// The key of the one that was written.
        key: Vec<u8>,
        /// The key of the other.
        other: Vec<u8>,
    },
    /// The table has no index of that name.
    #[error("table {table:?} has no index named {name:?}")]
    NoSuchIndex {
        /// The table.
        table: String,
        /// The name asked for.
        name: String,
    },
    /// A follower has read for so long that the writer does not keep any more what it reads: the writer's
    /// limits ([`Options::pinned_bytes_max`](crate::Options::pinned_bytes_max),
    /// [`Options::pinned_age_max`](crate::Options::pinned_age_max)) were passed. Begin another transaction,
    /// or call again: that reads the newest checkpoint.
    #[error(
        "the snapshot is too old: the writer's limits for followers were passed, and it keeps checkpoint \
         {honoured_from} and later ones, not {checkpoint}; begin anew"
    )]
    SnapshotTooOld {
        /// The checkpoint that was read.
        checkpoint: u64,
        /// The oldest one that the writer keeps for followers.
        honoured_from: u64,
    },
    /// The feed has not all changes after a commit any more, or never had: its limits
    /// ([`Db::set_feed_limits`](crate::Db::set_feed_limits)) were passed, or nothing was fed then.
    #[error(
        "the feed has not all changes after commit {after} any more; it has those after commit {resume_at}"
    )]
    FeedGap {
        /// The commit after which changes were asked for.
        after: u64,
        /// The commit after which the feed has all changes.
        resume_at: u64,
    },
    /// A mirror is required ([`Options::require_mirror`](crate::Options::require_mirror)), and none has
    /// acknowledged a durable commit within [`Options::mirror_timeout`](crate::Options::mirror_timeout). **It
    /// is committed, durably in this file**, and readers see it. To commit it again would be wrong. A mirror
    /// will have it later, if there is one.
    #[error(
        "commit {commit} is durable in this file, but no synchronous mirror has acknowledged it within {:.3} s",
        waited.as_secs_f64()
    )]
    MirrorBehind {
        /// The commit.
        commit: u64,
        /// For how long it was waited.
        waited: Duration,
    },
    /// A write was asked of a read-only handle.
    #[error("the database is open read-only")]
    ReadOnly,
    /// The disk is full. Nothing acknowledged is lost. The same call can be made again when there is room.
    #[error("no space left on the device while {during}")]
    NoSpace {
        /// What the engine was doing.
        during: &'static str,
    },
    /// The disk is full, and closing would lose commits that are not durable yet. The handle stays open and
    /// usable. The commits stay in memory and are written as soon as there is room.
    #[error("not closed: up to {commits} commits ({bytes} bytes) are not durable yet, and there is {cause}")]
    NotDurable {
        /// How many commits at most.
        commits: u64,
        /// What waits to be written, in bytes.
        bytes: u64,
        /// Why it could not be written.
        cause: Box<Error>,
    },
    /// The operating system reported an error.
    #[error("I/O error while {during}: {source}")]
    Io {
        /// What the engine was doing.
        during: &'static str,
        /// The error itself.
        source: Arc<io::Error>,
    },
    /// An earlier write or sync failed, so the handle can acknowledge nothing more. Reopen the file.
    #[error("the handle is poisoned by an earlier failure ({cause}); reopen the database")]
    Poisoned {
        /// The failure that poisoned it.
        cause: String,
    },
    /// There is no table of that name.
    #[error("no table named {name:?}")]
    NoSuchTable {
        /// The name asked for.
        name: String,
    },
    /// A table of that name exists already.
    #[error("a table named {name:?} exists already")]
    TableExists {
        /// The name asked for.
        name: String,
    },
    /// A table is of the other kind, or a value has the wrong form for the operation.
    #[error("wrong type: {detail}")]
    WrongType {
        /// What was expected and what was found.
        detail: String,
    },
    /// An option or argument has no meaning.
    #[error("invalid argument: {detail}")]
    Invalid {
        /// Which one, and why.
        detail: String,
    },
    /// The file cannot be opened: it does not exist and was not to be created, or it exists and was to be
    /// new, or the system refuses to open, lock or create it.
    #[error("{path}: {detail}")]
    Open {
        /// The file.
        path: String,
        /// Of which kind the system's error was, or would have been: `NotFound` if it does not exist,
        /// `AlreadyExists` if it was to be new; `Other` where there is none.
        kind: io::ErrorKind,
        /// Why it could not be opened.
        detail: String,
    },
    /// The database was closed, perhaps through another handle.
    #[error("the database is closed")]
    Closed,
    /// The handle was opened before a fork, and this process is the child. A child cannot use its parent's
    /// handles.
    #[error("the database was opened by the parent of this process: it cannot be used in a forked child")]
    Forked,
}

/// Keys are shown up to this length.
const KEY_BYTES_SHOWN: usize = 40;

/// A key as text.
pub(crate) fn shown(key: &[u8]) -> String {
    let cut = key.len() > KEY_BYTES_SHOWN;
    let text = key[..key.len().min(KEY_BYTES_SHOWN)].escape_ascii();
    if cut { format!("\"{text}\"… ({} bytes)", key.len()) } else { format!("\"{text}\"") }
}

impl Error {
    /// Wraps an error of the operating system. A full disk becomes `NoSpace`. An error of the gate
    /// (`storage/gate.rs`) becomes itself again.
    pub(crate) fn io(during: &'static str, source: io::Error) -> Error {
        if let Some(error) = source.get_ref().and_then(|cause| cause.downcast_ref::<Error>()) {
            return error.clone();
        }
        let no_space = rustix::io::Errno::NOSPC.raw_os_error();
        let over_quota = rustix::io::Errno::DQUOT.raw_os_error();
        match source.raw_os_error() {
            Some(code) if code == no_space || code == over_quota => Error::NoSpace { during },
            _ => Error::Io { during, source: Arc::new(source) },
        }
    }

    /// A file that cannot be opened.
    pub(crate) fn open(path: &Path, kind: io::ErrorKind, detail: impl Into<String>) -> Error {
        Error::Open { path: path.display().to_string(), kind, detail: detail.into() }
    }

    /// A corruption report.
    pub(crate) fn corrupt(what: &'static str, offset: u64, detail: impl Into<String>) -> Error {
        Error::Corrupt { what, offset, detail: detail.into() }
    }

    /// A stable number for each kind of error, for other languages. A number is never reused.
    ///
    /// ```
    /// assert_eq!(azekura::Error::ReadOnly.code(), 7);
    /// ```
    pub fn code(&self) -> u32 {
        match self {
            Error::NotADatabase { .. } => 1,
            Error::NewerVersion { .. } => 2,
            Error::Locked { .. } => 3,
            Error::Corrupt { .. } => 4,
            Error::TooLarge { .. } => 5,
            Error::Conflict { .. } => 6,
            Error::ReadOnly => 7,
            Error::NoSpace { .. } => 8,
            Error::Io { .. } => 9,
            Error::Poisoned { .. } => 10,
            Error::NoSuchTable { .. } => 11,
            Error::TableExists { .. } => 12,
            Error::WrongType { .. } => 13,
            Error::Invalid { .. } => 14,
            Error::Open { .. } => 15,
            Error::Closed => 16,
            Error::Forked => 17,
            Error::Truncated { .. } => 18,
            Error::NotDurable { .. } => 19,
            Error::NotUnique { .. } => 20,
            Error::NoSuchIndex { .. } => 21,
            Error::SnapshotTooOld { .. } => 22,
            Error::FeedGap { .. } => 23,
            Error::MirrorBehind { .. } => 24,
        }
    }
}

impl From<Error> for io::Error {
    /// The system's error kind for [`Error::Io`] and [`Error::Open`], else the kind that fits best. The
    /// [`Error`] is kept as the cause.
    ///
    /// ```
    /// fn read() -> std::io::Result<()> {
    ///     Err(azekura::Error::ReadOnly)?
    /// }
    /// assert_eq!(read().unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
    /// ```
    fn from(error: Error) -> io::Error {
        use io::ErrorKind::{
            AlreadyExists, InvalidData, InvalidInput, NotFound, Other, PermissionDenied, ResourceBusy,
            StorageFull, TimedOut,
        };
        let kind = match &error {
            Error::Io { source, .. } => source.kind(),
            Error::Open { kind, .. } => *kind,
            Error::NotADatabase { .. }
            | Error::NewerVersion { .. }
            | Error::Corrupt { .. }
            | Error::Truncated { .. } => InvalidData,
            Error::Locked { .. } | Error::Conflict { .. } => ResourceBusy,
            Error::TooLarge { .. } | Error::WrongType { .. } | Error::Invalid { .. } => InvalidInput,
            Error::ReadOnly => PermissionDenied,
            Error::NoSpace { .. } | Error::NotDurable { .. } => StorageFull,
            Error::NoSuchTable { .. } | Error::NoSuchIndex { .. } => NotFound,
            Error::TableExists { .. } | Error::NotUnique { .. } => AlreadyExists,
            Error::MirrorBehind { .. } => TimedOut,
            Error::Poisoned { .. }
            | Error::SnapshotTooOld { .. }
            | Error::FeedGap { .. }
            | Error::Closed
            | Error::Forked => Other,
        };
        io::Error::new(kind, error)
    }
}
