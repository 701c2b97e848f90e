"""A program that checkers of types read in their strict modes, and the tests run."""

import asyncio
from array import array
from collections.abc import Iterator
from typing import Any, assert_type

import azekura
from azekura import aio, types


def tables(path: str) -> None:
    """Tables have the types that were given when they were opened."""
    with azekura.Database(path, durability="eventual") as db:
        born = db.table("born", key=str, value=int)
        assert_type(born, azekura.Table[str, int, str, int])
        born["ada"] = 1815
        assert_type(born["ada"], int)
        assert_type(born.get("ada"), int | None)
        assert_type(born.get("ada", "never"), int | str)
        assert_type(born.first(), tuple[str, int] | None)
        assert_type(db.stats()["commits"], int)
        assert_type([(pin["age"], pin["bytes"]) for pin in db.stats()["pins"]], list[tuple[float | None, int | None]])
        assert_type(list(born), list[str])
        assert_type(list(born.range("a", "b", reverse=True)), list[tuple[str, int]])
        assert_type(born.update("ada", lambda old: (old or 0) + 1), int | None)
        assert_type(list(born.keys() & {"ada"}), list[str])
        assert_type(list(born.items()), list[tuple[str, int]])
        assert_type(next(reversed(born.items(reverse=True))), tuple[str, int])
        assert_type(sum(born.values()) + len(born.values()), int)
        cursor = born.cursor("a", "b")
        assert_type(cursor, azekura.Cursor[str, int, str])
        if cursor.first() and cursor.next() or cursor.seek("b") or cursor.prev() or cursor.last():
            assert_type(cursor.key(), str | None)
            assert_type(cursor.value(), int | None)
        assert_type(cursor.item(), tuple[str, int] | None)
        assert_type(born.retain(lambda name, year: len(name) < year), int)
        born.merge_many({"ada": 1})
        born.merge_many(["ada"], [2], "max")
        born.put_many({"grace": 1906})
        born.put_many([("alan", 1912)])
        assert_type(born.get_many(["ada"]), list[int | None])
        raw = db.table("raw")
        raw.put("a", b"b")
        raw.merge_many([("a", b"b")], operator="append")
        raw.merge_many(["set"], [[b"a", b"b"]], "union")
        raw[bytearray(b"c")] = memoryview(b"d")
        assert_type(raw["a"], bytes)
        heat = db.table("heat", key=tuple[str, int], value=float)
        heat["oslo", 1] = -4.3
        assert_type(list(heat.prefix(("oslo",))), list[tuple[tuple[str, int], float]])
        assert_type(heat.cursor(prefix=("oslo",)).seek(("oslo",)), bool)
        small = db.table("small", "hash", key=types.u32, value=bool)
        small[7] = True
        assert_type(small[7], bool)
        assert_type(list(small.keys()), list[int])
        anything = db.table("anything", key=int, value="json")
        anything[1] = {"a": [1, None]}
        assert_type(anything[1], Any)
        pickles = db.table("pickles", value="pickle")
        pickles["a"] = {1, 2}
        numbers = db.table("numbers", key=int, value=int)
        numbers.put_many(array("q", [1]), array("q", [2]))
        numbers.put_many(numbers.to_arrow(0, 5, batch_size=10))
        assert_type(numbers.from_arrow(numbers.to_arrow()), int)
        assert_type(numbers.from_arrow([numbers.to_arrow()], key="key", value="value"), int)
        by_year = born.create_index("by_year", "v:i64le", progress=lambda done, total: None)
        assert_type(by_year, azekura.Index[str, int])
        assert_type(by_year.first(1815), tuple[str, int] | None)
        assert_type(list(by_year.range(1800, (1900,))), list[tuple[str, int]])
        assert_type(list(by_year.get(1815, keys_only=True)), list[str])
        assert_type(born.index("by_year").count(), int)
        with db.begin() as tx:
            view = tx.table(born)
            assert_type(view, azekura.Table[str, int, str, int])
            with tx.savepoint():
                view["ada"] += 1
            assert_type(tx.table("raw", key=str, value=types.f32).get("x"), float | None)
            assert_type(tx.table("raw", "ordered").get(b"x"), bytes | None)
            assert_type(tx.create_table("made", "hash", key=str, value=int).get("x"), int | None)
            assert_type(tx.create_table("raw too").get(b"x"), bytes | None)
            tx.rename_table("made", "renamed")
            tx.drop_table("renamed")
        assert_type(db.transact(lambda tx: tx.table(born)["ada"]), int)
        assert_type(db.transact(lambda tx: None, durability="eventual", isolation="snapshot"), None)
        db.compact(progress=lambda done, total: None)
        with db.snapshot() as snapshot:
            assert_type(snapshot.table(born).count(), int)


def backups(path: str, saved: str) -> None:
    """Backups return named tuples."""
    with azekura.Database(path) as db:
        report = db.backup(saved, progress=lambda done, total: None)
        assert_type(report, azekura.BackupReport)
        assert_type(report.new_bytes, int)
    repository = azekura.Repository(saved)
    assert_type([point.time.year for point in repository.points()], list[int])
    assert_type(repository.restore(f"{path}.again", point=report.point).point.number, int)
    assert_type(repository.verify().problems, list[str])
    assert_type(repository.prune("7d,4w").removed, list[int])


def mappings(path: str) -> None:
    """A mapping is one of bytes."""
    with azekura.open(path, "c", 0o600) as fruit:
        fruit["apple"] = "red"
        assert_type(fruit["apple"], bytes)
        walk: Iterator[bytes] = iter(fruit)
        assert_type(next(walk), bytes)
    assert_type(azekura.whichdb(path), str | None)


async def awaited(path: str) -> None:
    """The variants for asyncio have the same types."""
    async with await aio.open(path) as db:
        born = await db.table("born", key=str, value=int)
        await born.put("ada", 1815)
        assert_type(await born.get("ada"), int | None)
        async for name, year in born.prefix("a"):
            assert_type((name, year), tuple[str, int])
        by_year = await born.create_index("by_year", "v:i64le")
        async for key in by_year.get(keys_only=True, reverse=True):
            assert_type(key, str)
        assert_type(await by_year.last(1815), tuple[str, int] | None)
        cursor = await born.cursor(prefix="a")
        if await cursor.next() or await cursor.seek("ada"):
            assert_type(await cursor.item(), tuple[str, int] | None)
        async with db.begin() as tx:
            async with await tx.savepoint():
                assert_type(await tx.table(born).take("ada"), int | None)
        assert_type(await db.transact(lambda tx: tx.table("born", key=str, value=int).count()), int)


def program(path: str) -> None:
    """All of it."""
    tables(path)
    backups(path, f"{path}.saved")
    mappings(f"{path}.mapping")
    asyncio.run(awaited(path))
