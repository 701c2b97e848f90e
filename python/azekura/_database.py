"""`Database`: the extension's class, with the parts that are simpler in Python."""

import atexit
import random
import time
import weakref

from . import _azekura
from ._errors import Conflict, Error

_PAUSE_FIRST_SECONDS = 20e-6
_PAUSE_MAX_SECONDS = 5e-3
_TRIES_AT_ONCE = 4

_open = weakref.WeakSet()
# Those of which a thread of the engine may still be closing the file: the program does not end before that.
_closing = set()


@atexit.register
def _close_all():
    """Closes what is open when the program ends. So eventual commits are durable then."""
    first = None
    for database in {*_open, *_closing}:
        try:
            database.close()
        except Error:
            # A forked child's copy of its parent's database, or a full disk. Nobody is there to be told.
            pass
        except BaseException as error:
            # An interrupt ends the wait for one of them. The others are closed all the same.
            first = first or error
    if first is not None:
        raise first


class Database(_azekura.Database):
    """A database: one file with any number of tables.

    >>> import azekura, os, tempfile
    >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "people.azk"))
    >>> born = db.table("born", key=str, value=int)
    >>> born["ada"] = 1815
    >>> born.put_many({"grace": 1906, "alan": 1912})
    >>> list(born.prefix("a"))
    [('ada', 1815), ('alan', 1912)]
    >>> with db.begin() as tx:                  # all or nothing
    ...     tx.table(born)["ada"] += 1
    ...     tx.table(born).remove("alan")
    >>> list(born.items(reverse=True))
    [('grace', 1906), ('ada', 1816)]
    >>> db.close()

    memory_bytes: the budget for everything. durability: 'sync' (commits are durable when they return) or
    'eventual' (within `eventual_delay` seconds). read_only: several processes may open a file so. create:
    whether to make the file. exclusive: whether to fail if it exists. mapped: whether the file is read
    through a mapping. follow: to read while another process writes. 'checkpoints' shows what that process
    has flushed, 'log' every durable commit. pinned_bytes_max, pinned_age_max: how many bytes of the file
    followers may keep, and for how many seconds an old snapshot of theirs is good. After that it raises
    `SnapshotTooOld`. mirror_timeout: for how many seconds a durable commit waits for a mirror that is kept
    synchronously, while there is one. require_mirror: whether it fails with `MirrorBehind` when nobody has
    mirrored it by then. (It is committed all the same.)
    """

    def __init__(self, *arguments, **options):
        super().__init__()
        _open.add(self)

    def close(self):
        """Closes the database for everybody who has a handle of it, and makes everything durable.

        Closing again is no error. If Ctrl-C has ended the call, the database is closed all the same, and
        another call waits for that. So does the end of the program, also if nobody has the database any more.
        """
        _closing.add(self)
        try:
            super().close()
        except Error:
            _closing.discard(self)
            raise
        _closing.discard(self)

    def __exit__(self, *_):
        self.close()

    def transact(self, fn, retries=100, *, durability=None, isolation="serializable"):
        """Calls `fn` with a write transaction, commits it, and gives what `fn` gave.

        If another transaction has changed meanwhile what this one has read, all is done again with a new
        one. So `fn` should change nothing else. After `retries` conflicts it raises `Conflict`. `durability` and
        `isolation` are those of `begin`.

        >>> import azekura, os, tempfile
        >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "stock.azk"))
        >>> stock = db.table("stock", key=str, value=int)
        >>> stock["apples"] = 3
        >>> def sell(tx):
        ...     left = tx.table(stock)["apples"] - 1
        ...     tx.table(stock)["apples"] = left
        ...     return left
        >>> db.transact(sell)
        2
        >>> db.close()
        """
        tries = 0
        while True:
            try:
                with self.begin(durability=durability, isolation=isolation) as tx:
                    result = fn(tx)
                return result
            except Conflict:
                if tries >= retries:
                    raise
            tries += 1
            if tries > _TRIES_AT_ONCE:
                # The wait is random, so that two who have met do not meet again.
                pause = _PAUSE_FIRST_SECONDS * 2 ** min(tries - _TRIES_AT_ONCE, 16)
                time.sleep(min(pause, _PAUSE_MAX_SECONDS) * random.uniform(0.3, 1))
