"""A database as `dbm` has it: one mapping of bytes, in a file."""

import itertools
import operator
import os
from collections.abc import MutableMapping

from ._database import Database

# The permissions that the engine asks the system for.
_MODE = 0o666
# What opening the file needs.
_OWNER = 0o600


class Mapping(MutableMapping):
    """What `azekura.open` gives: a mapping from bytes to bytes. Text is taken as its UTF-8.

    Iterating shows the records as they were when it began, so records may be added and deleted meanwhile.

    >>> import azekura, os, tempfile
    >>> with azekura.open(os.path.join(tempfile.mkdtemp(), "fruit.azk"), "c") as fruit:
    ...     fruit["apple"] = "red"
    ...     fruit[b"pear"] = b"green"
    ...     fruit["apple"], len(fruit), fruit.keys(), "plum" in fruit
    (b'red', 2, [b'apple', b'pear'], False)
    """

    def __init__(self, database, table):
        self._database = database
        self._table = table
        # A walk by firstkey and nextkey: the key that was given last, and the keys to come.
        self._last, self._rest = None, iter(())

    def __getitem__(self, key):
        return self._table[key]

    def __setitem__(self, key, value):
        self._table[key] = value

    def __delitem__(self, key):
        del self._table[key]

    def __contains__(self, key):
        return key in self._table

    def __iter__(self):
        return iter(self._table)

    def __len__(self):
        return self._table.count()

    def __bool__(self):
        return next(iter(self._table), None) is not None

    def get(self, key, default=None):
        """The value of a key, or `default`."""
        return self._table.get(key, default)

    def keys(self):
        """A list of all keys."""
        return list(iter(self._table))

    def items(self):
        """A view of the records as pairs."""
        return self._table.items()

    def values(self):
        """A view of the values."""
        return self._table.values()

    def setdefault(self, key, default=b""):
        """The value of a key, which is set to `default` if it is absent, as one step."""
        while True:
            value = self._table.get(key)
            if value is not None:
                return value
            self._table.add(key, default)

    def update(self, other=(), /, **more):
        """Sets the values of many keys in one step, all or none: from a mapping, from pairs, from keywords."""
        if hasattr(other, "items"):
            pairs = other.items()
        elif hasattr(other, "keys"):
            pairs = ((key, other[key]) for key in other.keys())
        else:
            pairs = other
        self._table.put_many(itertools.chain(pairs, more.items()))

    def clear(self):
        """Removes all records."""
        self._table.clear()

    def firstkey(self):
        """The first key, or None: where a walk by `nextkey` begins."""
        self._rest = iter(self._table)
        self._last = next(self._rest, None)
        return self._last

    def nextkey(self, key):
        """The key after `key`, or None.

        A walk that follows the keys one by one, as they are given, sees the mapping as it was at its
        `firstkey`. A walk from any other key looks at it as it is now.
        """
        key = key.encode() if isinstance(key, str) else bytes(key)
        if key != self._last:
            self._rest = self._after(key)
        self._last = next(self._rest, None)
        return self._last

    def _after(self, key):
        if self._table.kind == "ordered":
            return (found for found, _ in self._table.range(key + b"\0"))
        rest = iter(self._table)
        return rest if key in rest else iter(())

    def sync(self):
        """Returns when everything written so far is durable."""
        self._database.sync()

    def reorganize(self):
        """Gives free space back to the file system."""
        self._database.shrink()

    def close(self):
        """Makes everything durable and closes the file. A second time is no error."""
        self._database.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _make(path, mode):
    """Makes an empty file for `mode`, of which the engine makes a database. False if there is a file already.

    At no moment has anybody else more permissions than `mode` says. The owner can write to it for now.
    """
    # A link that dangles says where the file is made.
    path = os.path.realpath(path) if os.path.islink(path) else path
    try:
        made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), mode | _OWNER)
    except FileExistsError:
        return False
    os.close(made)
    return True


def open(
    path, flag="r", mode=_MODE, *, kind=None, table="main", memory_bytes=256 << 20, durability="eventual"
):
    """Opens a file as `dbm` does and gives its table `table` as a mapping of bytes.

    flag: 'r' to read, 'w' to read and write a file that exists, 'c' also makes it, 'n' also empties it. mode:
    who may read and write a file that is made here, less what the umask denies. A database is no program, so
    nobody may execute it.
    What is written is durable within a second, at `sync` and at `close`. With durability='sync' each write
    is durable when it returns. A new table is ordered unless kind='hash'.

    >>> import azekura, os, shelve, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "shelf.azk")
    >>> with shelve.Shelf(azekura.open(path, "c")) as shelf:
    ...     shelf["point"] = {"x": 1, "y": 2}
    >>> with shelve.Shelf(azekura.open(path)) as shelf:
    ...     shelf["point"]["y"]
    2
    """
    if flag not in ("r", "w", "c", "n"):
        raise ValueError(f"flag is 'r', 'w', 'c' or 'n', not {flag!r}")
    path, mode = os.fspath(path), operator.index(mode)
    options, creates = {"memory_bytes": memory_bytes, "durability": durability}, flag in ("c", "n")
    made = creates and mode & _MODE != _MODE and _make(path, mode & _MODE)
    database = Database(path, read_only=flag == "r", create=creates, **options)
    try:
        if made and mode & _OWNER != _OWNER:
            os.chmod(path, os.stat(path).st_mode & mode & _MODE)
        if flag == "n":
            for name in database.tables():
                database.drop_table(name)
        return Mapping(database, database.table(table, kind))
    except BaseException:
        database.close()
        raise
