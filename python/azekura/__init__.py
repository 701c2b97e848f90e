"""Azekura: an embedded, transactional key-value store in one file.

- `open(path, flag)`: a mapping of bytes, as `dbm` has it.
- `Database(path)`: ordered and hash tables, typed keys and values, transactions, snapshots, backups.
- `Repository(path)`: the backups.
- `register_dbm()`: `dbm.open` and `shelve.open` open databases of Azekura.
- `ShardedReader`, `ShardDraft`: sets of shards; `azekura.spark` is their way into Apache Spark.
- `types`: numbers of other widths.

Every call releases the interpreter's lock while the engine works. A handle belongs to the process that has
made it: in a forked child it is `Forked`.
"""

from . import types
from ._azekura import (
    Cursor,
    Feed,
    Index,
    RecordBatches,
    Records,
    Repository,
    Savepoint,
    ShardDraft,
    ShardedReader,
    ShardPacker,
    ShardWriter,
    Snapshot,
    Table,
    Transaction,
    restore_stream,
)
from ._database import Database
from ._dbm import register_dbm, whichdb
from ._errors import (
    CannotOpen,
    Closed,
    Conflict,
    Corrupt,
    Error,
    FeedGap,
    Forked,
    Invalid,
    Io,
    Locked,
    MirrorBehind,
    NewerVersion,
    NoSpace,
    NoSuchIndex,
    NoSuchTable,
    NotADatabase,
    NotDurable,
    NotUnique,
    Poisoned,
    ReadOnly,
    SnapshotTooOld,
    TableExists,
    TooLarge,
    TransactionOver,
    Truncated,
    WrongType,
)
from ._mapping import Mapping, open
from ._reports import BackupReport, Change, FeedInfo, Point, PruneReport, RestoreReport, VerifyReport

# As `dbm` modules have it.
error = Error

__all__ = [
    "BackupReport", "CannotOpen", "Change", "Closed", "Conflict", "Corrupt", "Cursor", "Database", "Error", "Feed",
    "FeedGap", "FeedInfo", "Forked", "Index", "Invalid", "Io", "Locked", "Mapping", "MirrorBehind", "NewerVersion",
    "NoSpace", "NoSuchIndex", "NoSuchTable", "NotADatabase", "NotDurable", "NotUnique", "Point", "Poisoned",
    "PruneReport", "ReadOnly", "RecordBatches", "Records", "Repository", "RestoreReport", "Savepoint", "ShardDraft",
    "ShardPacker", "ShardWriter", "ShardedReader", "Snapshot", "SnapshotTooOld", "Table", "TableExists", "TooLarge",
    "Transaction", "TransactionOver", "Truncated", "VerifyReport", "WrongType", "error", "open", "register_dbm",
    "restore_stream", "types", "whichdb",
]
