"""Asynchronous iterators over tables and indexes, for `azekura.aio`."""

import asyncio
import functools
import itertools

_FETCH_FIRST = 16
_FETCH_MAX = 512


class Records:
    """An asynchronous iterator over keys, values or items of a table, as it was at the first step.

    >>> import asyncio, azekura.aio, os, tempfile
    >>> async def main():
    ...     async with await azekura.aio.open(os.path.join(tempfile.mkdtemp(), "t.azk")) as db:
    ...         born = await db.table("born", key=str, value=int)
    ...         await born.put_many({"ada": 1815, "alan": 1912})
    ...         return [name async for name, year in born.range("a") if year > 1900]
    >>> asyncio.run(main())
    ['alan']
    """

    def __init__(self, run, begin):
        self._run, self._begin = run, begin
        self._plain, self._fetched, self._fetch = iter(()), iter(()), _FETCH_FIRST
        # The fetch that is under way, and what it has raised.
        self._filling, self._failed = None, None

    def __aiter__(self):
        return self

    async def __anext__(self):
        while True:
            for record in self._fetched:
                return record
            if self._failed is not None:
                failed, self._failed = self._failed, None
                raise failed
            if self._filling is None:
                self._filling = asyncio.ensure_future(self._fill())
            # If the task that waits here is cancelled, the fetch goes on. The next step waits for the same one.
            if not await asyncio.shield(self._filling):
                raise StopAsyncIteration

    async def _fill(self):
        """Fetches the next records. False at the end."""
        try:
            some, self._failed = await self._run(self._more)
            self._fetched = iter(some)
            return bool(some) or self._failed is not None
        finally:
            self._filling = None

    def _more(self):
        some = []
        try:
            # Called only once: a second `drain` would not give what the first has taken.
            begin, self._begin = self._begin, None
            if begin is not None:
                self._plain = iter(begin())
            for record in itertools.islice(self._plain, self._fetch):
                some.append(record)
        except Exception as error:
            # The records before it come first.
            return some, error
        self._fetch = min(self._fetch * 2, _FETCH_MAX)
        return some, None


# It is known by the module that has it for programs.
Records.__module__ = "azekura.aio"


def walk(of, name):
    """A method that gives an asynchronous iterator over what the plain one gives."""
    plain = getattr(of, name)

    @functools.wraps(plain, assigned=("__name__", "__doc__"))
    def method(self, *arguments, **options):
        return Records(self._run, functools.partial(getattr(self._plain, name), *arguments, **options))

    return method
