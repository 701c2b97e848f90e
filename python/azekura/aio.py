"""Databases for asyncio: each call is awaited, and is done by one of a few threads.

    async with await azekura.aio.open("people.azk") as db:
        born = await db.table("born", key=str, value=int)
        await born.put("ada", 1815)
        async with db.begin() as tx:
            await tx.table(born).put("grace", 1906)
        async for name, year in born.prefix("a"):
            print(name, year)

The engine's calls let other threads run, so the event loop goes on meanwhile. A call costs some 50 µs more than
without asyncio, so many records are better put, read and walked over by one call. If a task is cancelled while
it waits, what the engine has begun goes on to its end. The next step of a walk gives what the cancelled one
would have given.
"""

import asyncio
import functools
from concurrent.futures import ThreadPoolExecutor

from . import _azekura, _errors
from ._database import Database as _Database
from ._walks import Records
from ._walks import walk as _walk

# The methods that are as those of the plain classes, but awaited.
_OF_TABLES = (
    "get", "put", "remove", "add", "replace", "append", "increment", "merge", "merge_many", "compare_and_swap", "update",
    "take", "first", "last", "pop_first", "pop_last", "count", "stats", "clear", "remove_range", "retain", "put_many",
    "get_many", "to_arrow", "from_arrow", "indexes", "drop_index", "put_for", "put_until", "expire", "ttl",
    "usual_ttl", "set_usual_ttl", "set_feed",
)
_OF_INDEXES = ("first", "last", "count")
_OF_CURSORS = ("first", "last", "seek", "next", "prev", "key", "value", "item")
_WALKS = ("range", "prefix", "items", "keys", "values", "drain")
_WALKS_OF_INDEXES = ("get", "prefix", "range")
_OF_DATABASES = (
    "drop_table", "rename_table", "sync", "flush", "compact", "shrink", "check", "stats", "backup", "backup_to",
    "copy_to", "transact", "feed_info", "set_feed_limits", "feed_cursor", "set_feed_cursor",
)


def _awaited(of, name):
    """A method that runs the plain one in a thread."""
    plain = getattr(of, name)

    @functools.wraps(plain, assigned=("__name__", "__doc__"))
    async def method(self, *arguments, **options):
        return await self._run(getattr(self._plain, name), *arguments, **options)

    return method


class Table:
    """A table whose methods are those of `azekura.Table`, awaited; walks are asynchronous iterators.

    >>> import asyncio, azekura.aio, os, tempfile
    >>> async def main():
    ...     async with await azekura.aio.open(os.path.join(tempfile.mkdtemp(), "t.azk")) as db:
    ...         visits = await db.table("visits", "hash", key=str, value=int)
    ...         await asyncio.gather(*(visits.increment("home") for _ in range(10)))
    ...         return await visits.get("home"), await visits.contains("about"), [key async for key in visits]
    >>> asyncio.run(main())
    (10, False, ['home'])
    """

    def __init__(self, run, plain):
        self._run, self._plain = run, plain

    @property
    def name(self):
        """The table's name; empty if it was dropped."""
        return self._plain.name

    @property
    def kind(self):
        """'ordered' or 'hash'."""
        return self._plain.kind

    async def create_index(self, name, spec, *, progress=None):
        """Makes an index, or opens the one that is there: `azekura.Table.create_index`, awaited."""
        return Index(self._run, await self._run(self._plain.create_index, name, spec, progress=progress))

    async def index(self, name):
        """The index of that name."""
        return Index(self._run, await self._run(self._plain.index, name))

    async def cursor(self, lo=None, hi=None, *, prefix=None):
        """A cursor over the table, or over a part of it: `azekura.Table.cursor`, awaited."""
        return Cursor(self._run, await self._run(self._plain.cursor, lo, hi, prefix=prefix))

    async def contains(self, key):
        """Whether a key is there."""
        return await self._run(self._plain.__contains__, key)

    def __aiter__(self):
        return self.keys()

    def __repr__(self):
        return f"<azekura.aio.Table {self._plain.name!r} ({self._plain.kind})>"


for _name in _OF_TABLES:
    setattr(Table, _name, _awaited(_azekura.Table, _name))
for _name in _WALKS:
    setattr(Table, _name, _walk(_azekura.Table, _name))


class Cursor:
    """A cursor whose methods are those of `azekura.Cursor`, awaited.

    >>> import asyncio, azekura.aio, os, tempfile
    >>> async def main():
    ...     async with await azekura.aio.open(os.path.join(tempfile.mkdtemp(), "t.azk")) as db:
    ...         born = await db.table("born", key=str, value=int)
    ...         await born.put_many({"ada": 1815, "alan": 1912, "grace": 1906})
    ...         cursor = await born.cursor()
    ...         return await cursor.seek("b"), await cursor.key(), await cursor.prev(), await cursor.item()
    >>> asyncio.run(main())
    (True, 'grace', True, ('alan', 1912))
    """

    def __init__(self, run, plain):
        self._run, self._plain = run, plain


for _name in _OF_CURSORS:
    setattr(Cursor, _name, _awaited(_azekura.Cursor, _name))


class Index:
    """An index whose methods are those of `azekura.Index`, awaited; walks are asynchronous iterators.

    >>> import asyncio, azekura.aio, os, tempfile
    >>> async def main():
    ...     async with await azekura.aio.open(os.path.join(tempfile.mkdtemp(), "t.azk")) as db:
    ...         born = await db.table("born", key=str, value=int)
    ...         await born.put_many({"ada": 1815, "alan": 1912})
    ...         by_year = await born.create_index("by_year", "v:i64le")
    ...         return await by_year.first(1912), [key async for key in by_year.range(1800, 1900, keys_only=True)]
    >>> asyncio.run(main())
    (('alan', 1912), ['ada'])
    """

    def __init__(self, run, plain):
        self._run, self._plain = run, plain

    @property
    def name(self):
        """Its name."""
        return self._plain.name

    @property
    def spec(self):
        """What it is of: its fields and options."""
        return self._plain.spec


for _name in _OF_INDEXES:
    setattr(Index, _name, _awaited(_azekura.Index, _name))
for _name in _WALKS_OF_INDEXES:
    setattr(Index, _name, _walk(_azekura.Index, _name))


class _Moment:
    """A transaction or a snapshot: it begins with its `async with` block, and ends with it."""

    def __init__(self, run, begin):
        self._run, self._begin, self._plain = run, begin, None

    async def __aenter__(self):
        self._plain = await self._run(self._begin)
        return self

    async def __aexit__(self, kind, value, traceback):
        await self._run(self._plain.__exit__, kind, value, traceback)
        return False

    def table(self, table, *kind, **types):
        """The table of a name or of a Table, as it is seen here. In a transaction a name may have a kind: then
        a table that is not there is made."""
        plain = table._plain if isinstance(table, Table) else table
        return Table(self._run, self._plain.table(plain, *kind, **types))


class Transaction(_Moment):
    """A write transaction. It commits at the end of its block; if an exception leaves that, it rolls back.

    >>> import asyncio, azekura.aio, os, tempfile
    >>> async def main():
    ...     async with await azekura.aio.open(os.path.join(tempfile.mkdtemp(), "t.azk")) as db:
    ...         accounts = await db.table("accounts", key=str, value=int)
    ...         async with db.begin() as tx:
    ...             view = tx.table(accounts)
    ...             await view.put_many({"alice": -5, "bob": 5})
    ...         return [record async for record in accounts.items()]
    >>> asyncio.run(main())
    [('alice', -5), ('bob', 5)]
    """

    async def commit(self):
        """Makes all writes visible at once, and durable."""
        await self._run(self._plain.commit)

    async def rollback(self):
        """Drops all writes."""
        await self._run(self._plain.rollback)

    async def create_table(self, name, kind="ordered", **types):
        """Makes a table, which is there when the transaction is committed, and before that for it alone."""
        return Table(self._run, await self._run(self._plain.create_table, name, kind, **types))

    async def rename_table(self, old, new):
        """Renames a table. Its handles stay good."""
        await self._run(self._plain.rename_table, old, new)

    async def drop_table(self, name):
        """Removes a table with all its records and its indexes."""
        await self._run(self._plain.drop_table, name)

    async def savepoint(self):
        """Remembers the writes so far. `await` its `rollback` to return to them. As an `async with` block it does
        so if an exception leaves the block: `async with await tx.savepoint():`."""
        return Savepoint(self._run, await self._run(self._plain.savepoint))


class Savepoint:
    """A place in a write transaction to which it can return, as often as it likes.

    >>> import asyncio, azekura.aio, os, tempfile
    >>> async def main():
    ...     async with await azekura.aio.open(os.path.join(tempfile.mkdtemp(), "t.azk")) as db:
    ...         table = await db.table("t", key=str, value=int)
    ...         async with db.begin() as tx:
    ...             view = tx.table(table)
    ...             await view.put("a", 1)
    ...             try:
    ...                 async with await tx.savepoint():
    ...                     await view.put("b", 1 // 0)
    ...             except ZeroDivisionError:
    ...                 pass                     # "a" stays
    ...         return [key async for key in table]
    >>> asyncio.run(main())
    ['a']
    """

    def __init__(self, run, plain):
        self._run, self._plain = run, plain

    async def rollback(self):
        """Undoes the transaction's writes since this savepoint."""
        await self._run(self._plain.rollback)

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, value, traceback):
        await self._run(self._plain.__exit__, kind, value, traceback)
        return False


class Snapshot(_Moment):
    """The database at one moment.

    >>> import asyncio, azekura.aio, os, tempfile
    >>> async def main():
    ...     async with await azekura.aio.open(os.path.join(tempfile.mkdtemp(), "t.azk")) as db:
    ...         table = await db.table("t", key=str, value=int)
    ...         async with db.snapshot() as before:
    ...             await table.put("a", 1)
    ...             return await before.table(table).get("a"), await table.get("a")
    >>> asyncio.run(main())
    (None, 1)
    """


class Feed:
    """An asynchronous iterator over the feed of changes. It waits for the next change, for ever or as long as
    `wait` says; other calls go on meanwhile.

    >>> import asyncio, azekura.aio, os, tempfile
    >>> async def main():
    ...     async with await azekura.aio.open(os.path.join(tempfile.mkdtemp(), "t.azk")) as db:
    ...         born = await db.table("born", key=str, value=int)
    ...         await born.set_feed("values")
    ...         feed = db.feed((await db.feed_info()).newest, tables=[born])
    ...         first = asyncio.create_task(anext(feed))
    ...         await born.put("ada", 1815)
    ...         change = await first
    ...         return change.kind, change.key, change.value, feed.position == change.commit
    >>> asyncio.run(main())
    ('put', 'ada', 1815, True)
    """

    _LOOK_SECONDS = 0.05

    def __init__(self, run, begin, wait):
        self._run, self._begin, self._wait, self._plain = run, begin, wait, None
        self._position = None
        # The step that is under way. If its task is cancelled, the next one gets what it gives.
        self._step = None

    def __aiter__(self):
        return self

    async def __anext__(self):
        loop = asyncio.get_running_loop()
        ends = loop.time() + self._wait
        if self._plain is None:
            self._plain = await self._run(self._begin)
            self._position = self._plain.position
        while True:
            if self._step is None:
                self._step = asyncio.ensure_future(self._run(self._take))
            try:
                change, position = await asyncio.shield(self._step)
            except asyncio.CancelledError:
                if self._step.cancelled():
                    self._step = None
                raise
            except BaseException:
                self._step = None
                raise
            self._step, self._position = None, position
            if change is not None:
                return change
            left = ends - loop.time()
            if left <= 0:
                raise StopAsyncIteration
            await asyncio.sleep(min(left, self._LOOK_SECONDS))

    @property
    def position(self):
        """The newest commit of which all changes were given; None before the first step."""
        return self._position

    def _take(self):
        # What a step that was cancelled has taken counts as given when it is.
        return next(self._plain, None), self._plain.position


class Database:
    """A database for asyncio. `await azekura.aio.open(path)` gives one.

    >>> import asyncio, azekura.aio, os, tempfile
    >>> async def main():
    ...     async with await azekura.aio.open(os.path.join(tempfile.mkdtemp(), "t.azk")) as db:
    ...         born = await db.table("born", key=str, value=int)
    ...         await born.put("ada", 1815)
    ...         year = await db.transact(lambda tx: tx.table("born", key=str, value=int)["ada"])
    ...         return year, await db.tables(), await db.check()
    >>> asyncio.run(main())
    (1815, {'born': 'ordered'}, [])
    """

    def __init__(self, plain, threads):
        self._plain = plain
        self._threads, self._closed = threads, False

    async def _run(self, call, *arguments, **options):
        if self._closed:
            raise _errors.Closed("the database is closed")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, functools.partial(call, *arguments, **options))

    @property
    def path(self):
        """The path of the file."""
        return self._plain.path

    async def table(self, name, kind=None, *, key=None, value=None, ttl=None):
        """The table of a name, made if there is none, as of `azekura.Database`."""
        plain = await self._run(self._plain.table, name, kind, key=key, value=value, ttl=ttl)
        return Table(self._run, plain)

    async def tables(self):
        """The names of all tables, each with its kind."""
        return await self._run(self._plain.tables)

    def begin(self, **options):
        """A write transaction, for `async with`."""
        return Transaction(self._run, functools.partial(self._plain.begin, **options))

    def snapshot(self):
        """The database at the beginning of an `async with` block."""
        return Snapshot(self._run, self._plain.snapshot)

    def feed(self, after, *, tables=None, wait=float("inf")):
        """What commits after a number have done to the tables that are fed, for `async for`. `tables`: those whose
        keys and values are of their types."""
        plain = [table._plain for table in tables] if tables is not None else None
        return Feed(self._run, functools.partial(self._plain.feed, after, tables=plain), wait)

    async def close(self):
        """Makes everything durable and closes the file. A second time is no error."""
        # By another thread: the pool's may be gone already.
        await asyncio.to_thread(self._plain.close)
        self._closed = True
        self._threads.shutdown(wait=False)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()


for _name in _OF_DATABASES:
    setattr(Database, _name, _awaited(_Database, _name))


async def open(path, *, threads=4, **options):
    """Opens a database with the options of `azekura.Database`. As many calls are done at once as there are
    `threads`.

    >>> import asyncio, azekura.aio, os, tempfile
    >>> async def main():
    ...     db = await azekura.aio.open(os.path.join(tempfile.mkdtemp(), "t.azk"), threads=2, durability="eventual")
    ...     await (await db.table("t", key=str, value=int)).put("a", 1)
    ...     await db.close()
    >>> asyncio.run(main())
    """
    pool = ThreadPoolExecutor(threads, thread_name_prefix="azekura")
    try:
        opened = functools.partial(_Database, path, **options)
        return Database(await asyncio.get_running_loop().run_in_executor(pool, opened), pool)
    except BaseException:
        pool.shutdown(wait=False)
        raise
