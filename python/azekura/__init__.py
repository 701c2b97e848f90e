"""Azekura: an embedded, transactional key-value store in one file.

- `open(path, flag)`: a mapping of bytes, as `dbm` has it.
- `Database(path)`: ordered and hash tables, typed keys and values, transactions, snapshots.

Every call releases the interpreter's lock while the engine works. A handle belongs to the process that has
made it: in a forked child it is `Forked`.
"""

from ._azekura import Records, Snapshot, Table, Transaction
from ._database import Database
from ._errors import (
    CannotOpen,
    Closed,
    Conflict,
    Corrupt,
    Error,
    Forked,
    Invalid,
    Io,
    Locked,
    NewerVersion,
    NoSpace,
    NoSuchTable,
    NotADatabase,
    NotDurable,
    Poisoned,
    ReadOnly,
    TableExists,
    TooLarge,
    TransactionOver,
    Truncated,
    WrongType,
)
from ._mapping import Mapping, open

# As `dbm` modules have it.
error = Error

__all__ = [
    "CannotOpen", "Closed", "Conflict", "Corrupt", "Database", "Error", "Forked", "Invalid", "Io", "Locked",
    "Mapping", "NewerVersion", "NoSpace", "NoSuchTable", "NotADatabase", "NotDurable", "Poisoned", "ReadOnly",
    "Records", "Snapshot", "Table", "TableExists", "TooLarge", "Transaction", "TransactionOver", "Truncated",
    "WrongType", "error", "open",
]
