"""Databases for asyncio."""

import asyncio
import inspect
import os
import re
import threading
import unittest

import azekura
from azekura import aio
from tests.common import TestCase


class Gate:
    """A value that is pickled at once, and comes back only when `go_on` is set."""

    go_on = threading.Event()

    def __reduce__(self):
        return Gate.passed, ()

    @staticmethod
    def passed():
        Gate.go_on.wait(20)
        return "passed"


class Asyncio(TestCase, unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.db = await self.enterAsyncContext(await aio.open(self.path, durability="eventual"))

    async def test_tables(self):
        table = await self.db.table("t", key=str, value=int)
        await table.put("a", 1)
        await table.put_many({f"{n:05}": n for n in range(3000)})
        self.assertEqual((await table.get("a"), await table.get("b", 7)), (1, 7))
        self.assertTrue(await table.contains("a"))
        self.assertEqual(await table.increment("n"), 1)
        await table.merge("n", 5, "max")
        await table.merge("n", -5)
        await table.merge_many({"n": 1})
        self.assertEqual(await table.update("n", lambda old: old + 4), 5)
        self.assertEqual(await table.get_many(["n", "x"]), [5, None])
        self.assertEqual([key async for key in table][:2], ["00000", "00001"])
        self.assertEqual([record async for record in table.range("00005", "00007")], [("00005", 5), ("00006", 6)])
        self.assertEqual(len([value async for value in table.values(reverse=True)]), 3002)
        self.assertEqual([key async for key, _ in table.drain("02998")], ["02998", "02999", "a", "n"])
        self.assertEqual(await table.count(), 2998)
        with self.assertRaises(TypeError):
            await table.put(1, 1)
        self.assertEqual(await self.db.tables(), {"t": "ordered"})
        self.assertIn("'t'", repr(table))

    async def test_transactions(self):
        table = await self.db.table("t", key=str, value=int)
        async with self.db.begin() as tx:
            view = tx.table(table)
            await view.put("a", 1)
            savepoint = await tx.savepoint()
            await view.put("b", 2)
            await savepoint.rollback()
            self.assertIsNone(await table.get("a"))
        async with self.db.snapshot() as before:
            await table.put("c", 3)
            self.assertEqual([key async for key in before.table(table)], ["a"])
            self.assertEqual(await before.table("t", key=str, value=int).count(), 1)
        with self.assertRaises(ZeroDivisionError):
            async with self.db.begin() as tx:
                await tx.table(table).put("a", 1 // 0)
        async with self.db.begin() as tx:
            made = await tx.create_table("made", key=str, value=int)
            await made.put("x", 1)
            await tx.rename_table("made", "renamed")
            self.assertEqual(await tx.table("renamed", "ordered", key=str, value=int).get("x"), 1)
        self.assertEqual(await self.db.tables(), {"t": "ordered", "renamed": "ordered"})
        async with self.db.begin() as tx:
            await tx.drop_table("renamed")
        self.assertEqual(await self.db.tables(), {"t": "ordered"})

        async with self.db.begin() as tx:
            view = tx.table(table)
            with self.assertRaises(ZeroDivisionError):
                async with await tx.savepoint():
                    await view.put("undone", 1 // await view.increment("undone", 0))
            async with await tx.savepoint():
                await view.put("done", 1)
        self.assertEqual((await table.get("undone"), await table.take("done")), (None, 1))

        def add(tx):
            tx.table(table._plain)["a"] += 10
            return "done"

        adding = (self.db.transact(add, durability="eventual") for _ in range(20))
        self.assertEqual(await asyncio.gather(*adding), ["done"] * 20)
        self.assertEqual(await table.get("a"), 201)

    async def test_cursors(self):
        table = await self.db.table("t", key=str, value=int)
        await table.put_many({"a": 1, "b": 2, "c": 3})
        cursor = await table.cursor("a", "c")
        self.assertTrue(await cursor.last())
        self.assertEqual((await cursor.key(), await cursor.value(), await cursor.item()), ("b", 2, ("b", 2)))
        self.assertFalse(await cursor.next())
        self.assertTrue(await cursor.first() and await cursor.next() and await cursor.prev())
        self.assertEqual(await cursor.key(), "a")
        self.assertTrue(await cursor.seek("aa"))
        self.assertEqual(await cursor.key(), "b")
        async with self.db.snapshot() as before:
            cursor = await before.table(table).cursor(prefix="c")
            self.assertTrue(await cursor.next())
            self.assertEqual(await cursor.item(), ("c", 3))

    async def test_the_loop_goes_on(self):
        table = await self.db.table("t")
        begun, go_on = threading.Event(), threading.Event()

        def slow(old):
            begun.set()
            go_on.wait(20)
            return b"slow"

        waiting = asyncio.create_task(table.update("a", slow))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        await table.put("b", "quick")
        cancelled = asyncio.create_task(table.update("c", slow))
        await asyncio.sleep(0)
        cancelled.cancel()
        go_on.set()
        self.assertEqual(await waiting, b"slow")
        with self.assertRaises(asyncio.CancelledError):
            await cancelled

    async def test_a_cancelled_step_loses_nothing(self):
        table = await self.db.table("t", key=int, value="pickle")
        for walk in (table.items, table.drain):
            await table.put_many((n, Gate() if n == 0 else n) for n in range(100))
            Gate.go_on.clear()
            records = walk()
            for _ in range(2):
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(anext(records), 0.02)
            both = [asyncio.create_task(anext(records)) for _ in range(2)]
            await asyncio.sleep(0)
            Gate.go_on.set()
            found = sorted(await asyncio.gather(*both)) + [record async for record in records]
            self.assertEqual(found, [(0, "passed"), *((n, n) for n in range(1, 100))])
            with self.assertRaises(StopAsyncIteration):
                await anext(records)
        self.assertEqual(await table.count(), 0)

    async def test_errors_of_walks(self):
        table = await self.db.table("t", key=int, value=bytes)
        await table.put_many((n, b"\xff" if n == 20 else b"%d" % n) for n in range(30))
        records = (await self.db.table("t", key=int, value=str)).drain()
        found = [await anext(records) for _ in range(20)]
        with self.assertRaises(azekura.WrongType):
            await anext(records)
        found += [record async for record in records]
        self.assertEqual(found, [(n, str(n)) for n in range(30) if n != 20])
        hashed = await self.db.table("h", "hash")
        records = hashed.prefix("a")
        with self.assertRaises(azekura.WrongType):
            await anext(records)
        with self.assertRaises(StopAsyncIteration):
            await anext(records)

    async def test_upkeep(self):
        table = await self.db.table("t", key=int)
        await table.put_many((n, "x") for n in range(1000))
        self.assertEqual(await self.db.check(), [])
        self.assertEqual((await self.db.backup(os.path.join(self.folder, "saved"))).point, 1)
        await self.db.close()
        await self.db.close()
        for call in (lambda: table.get(1), lambda: anext(table.items()), self.db.check):
            with self.assertRaises(azekura.Closed):
                await call()
        with self.assertRaises(azekura.CannotOpen):
            await aio.open(os.path.join(self.folder, "none"), create=False)

    def test_nothing_is_left_out(self):
        """What the plain classes have is here too, and the stubs name it."""
        plain = {name for name in dir(azekura.Table) if not name.startswith("_")}
        self.assertEqual(plain - set(dir(aio.Table)), set())
        plain = {name for name in dir(azekura.Database) if not name.startswith("_")}
        self.assertEqual(plain - set(dir(aio.Database)), set())
        plain = {name for name in dir(azekura.Cursor) if not name.startswith("_")}
        self.assertEqual(plain - set(dir(aio.Cursor)), set())
        with open(os.path.join(os.path.dirname(azekura.__file__), "aio.pyi"), encoding="utf-8") as file:
            stubs = file.read()
        for name, thing in vars(aio).items():
            if not inspect.isclass(thing) or thing.__module__ != "azekura.aio" or name.startswith("_"):
                continue
            stub = re.search(rf"^class {name}\b.*?(?=^class |^async def|\Z)", stubs, re.MULTILINE | re.DOTALL)
            named = set(re.findall(r"^    (?:async )?def ([a-z]\w*)", stub[0], re.MULTILINE))
            self.assertEqual(named, {member for member in dir(thing) if not member.startswith("_")}, name)
