"""The bytes of types, which are those of the engine's typed tables, and files that these have written."""

import json
import os
import unittest

import azekura
from azekura import types
from tests.common import TestCase

NAMES = {"str": str, "bytes": bytes, "bool": bool, "json": "json", "tuple": tuple, "i64": int, "f64": float}
NAMES |= {name: getattr(types, name) for name in ("u8", "u16", "u32", "u64", "i8", "i16", "i32", "f32")}


def of_type(value, name):
    """A value of the list as Python has it."""
    if name == "bytes":
        return bytes.fromhex(value)
    if name.startswith("tuple"):
        parts = name.removeprefix("tuple[").removesuffix("]").split(", ", len(value) - 1)
        return tuple(of_type(part, part_name) for part, part_name in zip(value, parts, strict=True))
    return value


def forms():
    """The lines of the list."""
    with open(os.path.join(os.path.dirname(__file__), "forms.txt"), encoding="utf-8") as file:
        for line in file:
            if not line.startswith("#"):
                name, role, value, data = line.rstrip("\n").split("\t")
                yield name, role, of_type(json.loads(value), name), bytes.fromhex(data)


def same(one, other):
    """Whether two values are equal, and of one type and sign."""
    return repr(one) == repr(other)


class Forms(TestCase):
    def test_types_have_the_bytes_of_the_list(self):
        db, tried = self.database(), 0
        for number, (name, role, value, data) in enumerate(forms()):
            spec = eval(name, {}, NAMES)
            if role != "value":
                db.table(f"key {number}", key=spec)[value] = b"x"
                self.assertEqual(list(db.table(f"key {number}")), [data], (name, value))
                (read,) = db.table(f"key {number}", key=spec)
                self.assertTrue(same(read, value) or (read, value) == (0, 0), (name, value, read))
                tried += 1
            if role != "key":
                db.table(f"value {number}", value=spec)["k"] = value
                self.assertEqual(db.table(f"value {number}")["k"], data, (name, value))
                read = db.table(f"value {number}", value=spec)["k"]
                self.assertTrue(same(read, value), (name, value, read))
                tried += 1
        self.assertGreater(tried, 45)

    def test_what_does_not_fit(self):
        db = self.database()
        for name, wrong in (("u8", 256), ("u8", -1), ("i8", 128), ("i16", -32_769), ("u32", 2**32), ("u64", 2**64)):
            with self.assertRaises(OverflowError):
                db.table("t", key=getattr(types, name))[wrong] = ""
        for spec, wrong in ((types.u8, 1.5), (types.f32, "1"), (bool, 1), (bool, None)):
            with self.assertRaises(TypeError):
                db.table("t", value=spec)["k"] = wrong
        with self.assertRaises(ValueError):
            db.table("t", key=types.f32)[float("nan")] = ""
        db.table("t")[b"\x02"] = b"\x02"
        for spec in (bool, types.u16, tuple[bool, bool]):
            with self.assertRaises(azekura.WrongType):
                list(db.table("t", key=spec))
            with self.assertRaises(azekura.WrongType):
                db.table("t", value=spec)[b"\x02"]

    def test_pickles(self):
        table = self.database().table("t", key=str, value="pickle")
        table["a"] = {1, 2, ("x", 3.5)}
        self.assertEqual(table["a"], {1, 2, ("x", 3.5)})
        table.put_many({"b": [1], "c": None})
        self.assertEqual(dict(table.items())["b"], [1])


@unittest.skipUnless(os.environ.get("AZEKURA_EXCHANGE"), "the test command says where the engine's file is")
class Exchange(unittest.TestCase):
    """Files from one to the other. `typed_exchange` of the engine's tests is the other side."""

    FOLDER = os.environ.get("AZEKURA_EXCHANGE", "")
    TABLES = (
        ("born", "ordered", str, types.u16, {"ada": 1815, "grace": 1906, "\0ä": 0}),
        ("heat", "ordered", tuple[str, int], float, {("oslo", 1): -4.25, ("oslo", 7): 17.5, ("rome", -1): 0.0}),
        ("seen", "hash", types.u32, bool, {7: True, 2**32 - 1: False}),
        ("places", "ordered", float, tuple[bytes, str], {-1.5: (b"\0\1", ""), 2.25: (b"", "x\0")}),
        ("people", "hash", bytes, "json", {b"\xff": {"born": 1815, "works": ["Notes"]}}),
    )

    def test_written_for_the_engine(self):
        with azekura.Database(os.path.join(self.FOLDER, "python.azk"), durability="eventual") as db:
            for name, kind, key, value, records in self.TABLES:
                db.table(name, kind, key=key, value=value).put_many(records)

    def test_written_by_the_engine(self):
        with azekura.Database(os.path.join(self.FOLDER, "rust.azk"), read_only=True) as db:
            self.assertEqual(db.tables(), {name: kind for name, kind, *_ in self.TABLES})
            for name, _, key, value, records in self.TABLES:
                table = db.table(name, key=key, value=value)
                self.assertEqual(dict(table.items()), records, name)
                self.assertEqual(table.get_many(list(records)), list(records.values()), name)
