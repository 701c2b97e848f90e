"""Azekura: an embedded, transactional key-value store in one file."""

from collections.abc import Callable, Iterator, MutableMapping
from os import PathLike
from types import TracebackType
from typing import Literal, TypeVar

from typing_extensions import Buffer, Self

from . import _azekura
from . import types as types
from ._azekura import Cursor as Cursor
from ._azekura import Feed as Feed
from ._azekura import Index as Index
from ._azekura import RecordBatches as RecordBatches
from ._azekura import Records as Records
from ._azekura import Repository as Repository
from ._azekura import Savepoint as Savepoint
from ._azekura import ShardDraft as ShardDraft
from ._azekura import ShardedReader as ShardedReader
from ._azekura import ShardPacker as ShardPacker
from ._azekura import ShardWriter as ShardWriter
from ._azekura import Snapshot as Snapshot
from ._azekura import Table as Table
from ._azekura import Transaction as Transaction
from ._azekura import restore_stream as restore_stream
from ._reports import BackupReport as BackupReport
from ._reports import Change as Change
from ._reports import FeedInfo as FeedInfo
from ._reports import Point as Point
from ._reports import PruneReport as PruneReport
from ._reports import RestoreReport as RestoreReport
from ._reports import VerifyReport as VerifyReport

_R = TypeVar("_R")
_D = TypeVar("_D")
_Bytes = str | Buffer

class Database(_azekura.Database):
    """A database: one file with any number of tables."""
    def transact(
        self,
        fn: Callable[[Transaction], _R],
        retries: int = 100,
        *,
        durability: Literal["sync", "eventual"] | None = None,
        isolation: Literal["serializable", "snapshot"] = "serializable",
    ) -> _R:
        """Calls `fn` with a write transaction and commits it, again after each conflict."""

class Mapping(MutableMapping[_Bytes, bytes]):
    """What `azekura.open` gives: a mapping from bytes to bytes. Text is taken as its UTF-8."""
    def __getitem__(self, key: _Bytes) -> bytes: ...
    def __setitem__(self, key: _Bytes, value: _Bytes) -> None: ...
    def __delitem__(self, key: _Bytes) -> None: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def keys(self) -> list[bytes]: ...  # type: ignore[override]
    def setdefault(self, key: _Bytes, default: _Bytes = b"") -> bytes: ...
    def firstkey(self) -> bytes | None: ...
    def nextkey(self, key: _Bytes) -> bytes | None: ...
    def sync(self) -> None: ...
    def reorganize(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

def open(
    path: str | PathLike[str],
    flag: Literal["r", "w", "c", "n"] = "r",
    mode: int = 0o666,
    *,
    kind: Literal["ordered", "hash"] | None = None,
    table: str = "main",
    memory_bytes: int = ...,
    durability: Literal["sync", "eventual"] = "eventual",
) -> Mapping:
    """Opens a file as `dbm` does and gives its table `table` as a mapping of bytes."""

def register_dbm(default: bool = True) -> None:
    """Makes `dbm.open` and `shelve.open` open databases of Azekura, and with `default` make them."""

def whichdb(filename: str | PathLike[str]) -> str | None:
    """What `dbm.whichdb` says of a file, and 'azekura' of a database of Azekura."""

class Error(Exception):
    """What goes wrong in a database."""

    @property
    def path(self) -> str | None: ...

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

error = Error
