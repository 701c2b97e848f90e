"""The exceptions: one class for each error of the engine, all of them `Error`."""

import errno
import os


class Error(Exception):
    """What goes wrong in a database. Each error is a class of its own below this one.

    >>> import azekura, os, tempfile
    >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    >>> table = db.table("t", "hash")
    >>> try:
    ...     db.table("t", "ordered")
    ... except azekura.WrongType as error:
    ...     isinstance(error, azekura.Error), isinstance(error, TypeError)
    (True, True)
    >>> db.close()
    """

    _path = None

    @property
    def path(self):
        """The database's file, if the error is about one that is open; else None."""
        return self._path


class NotADatabase(Error):
    """The file exists and is not an Azekura database."""


class NewerVersion(Error):
    """The file was written by a newer version of the format."""


class Locked(Error, OSError):
    """Another process, or another handle of this one, has the file open."""


class Corrupt(Error):
    """Bytes in the file are not what was written."""


class TooLarge(Error, ValueError):
    """A key, value, name or transaction is over its limit."""


class Conflict(Error):
    """Another transaction has changed what this one used. Nothing was written; run it again."""


class ReadOnly(Error, OSError):
    """A write was asked of a database, or of a snapshot, that is only read."""


class NoSpace(Error, OSError):
    """The disk is full. Nothing acknowledged is lost."""


class Io(Error, OSError):
    """The operating system reported an error."""


class Poisoned(Error):
    """An earlier write failed, so nothing later can be acknowledged. Open the file again."""


class NoSuchTable(Error, LookupError):
    """There is no table of that name."""


class TableExists(Error):
    """A table of that name exists already."""


class WrongType(Error, TypeError):
    """A table is of the other kind, or bytes in it are not of the type that was said."""


class Invalid(Error, ValueError):
    """An option or argument has no meaning."""


class CannotOpen(Error, OSError):
    """There is no such file and none was to be made, or the system lets nobody open it.

    It is a `FileNotFoundError`, `FileExistsError` or `PermissionError` as well if it is one of these.
    """


class _Missing(CannotOpen, FileNotFoundError):
    """There is no such file."""


class _Exists(CannotOpen, FileExistsError):
    """There is such a file, and it was to be new."""


class _NotAllowed(CannotOpen, PermissionError):
    """The system does not let this user open it."""


# What Python calls these, beside `CannotOpen`.
_CANNOT_OPEN = {errno.ENOENT: _Missing, errno.EEXIST: _Exists, errno.EACCES: _NotAllowed}


class Closed(Error, ValueError):
    """The database is closed."""


class Forked(Error):
    """The database was opened by this process's parent: a forked child opens its own."""


class Truncated(Error):
    """The file was cut. It can be opened with `read_only=True`."""


class NotDurable(Error, OSError):
    """The disk is full, and closing would lose commits. The database is still open."""


class NotUnique(Error):
    """Two records would have the same values in a unique index. Nothing was changed."""


class NoSuchIndex(Error, LookupError):
    """The table has no index of that name."""


class SnapshotTooOld(Error):
    """The writer's limits for those who follow it were passed. The next read sees the newest commit."""


class FeedGap(Error):
    """The feed of changes has not all of them any more after that commit: its limits were passed."""


class MirrorBehind(Error, OSError):
    """A mirror is required, and none has acknowledged the commit in time. It is committed: do not do it again."""


class TransactionOver(Error, ValueError):
    """The transaction was committed or rolled back."""


# By the engine's numbers, and what the system calls each.
_CLASSES = {
    1: (NotADatabase, None),
    2: (NewerVersion, None),
    3: (Locked, errno.EWOULDBLOCK),
    4: (Corrupt, None),
    5: (TooLarge, None),
    6: (Conflict, None),
    7: (ReadOnly, errno.EROFS),
    8: (NoSpace, errno.ENOSPC),
    9: (Io, errno.EIO),
    10: (Poisoned, None),
    11: (NoSuchTable, None),
    12: (TableExists, None),
    13: (WrongType, None),
    14: (Invalid, None),
    15: (CannotOpen, None),
    16: (Closed, None),
    17: (Forked, None),
    18: (Truncated, None),
    19: (NotDurable, errno.ENOSPC),
    20: (NotUnique, None),
    21: (NoSuchIndex, None),
    22: (SnapshotTooOld, None),
    23: (FeedGap, None),
    24: (MirrorBehind, errno.ETIMEDOUT),
    1000: (TransactionOver, None),
}


# What names its file itself.
_NAMES_ITS_FILE = (NotADatabase, Locked, CannotOpen, Truncated)


def make(number, message, errno_seen, path):
    """The exception for an error's number; for one that this package does not know, `Error`."""
    kind, number_of_system = _CLASSES.get(number, (Error, None))
    system = errno_seen or number_of_system
    if kind is CannotOpen:
        kind = _CANNOT_OPEN.get(system, kind)
    if path is not None and not issubclass(kind, _NAMES_ITS_FILE):
        message = f"{path}: {message}"
    made = kind(message) if system is None else kind(system, f"{message} ({os.strerror(system)})")
    made._path = path
    return made
