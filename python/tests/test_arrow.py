"""Arrow data: from this package's own batches, from batches made by hand, and from other libraries if they are
there."""

import array
import ctypes
import itertools
import unittest

import azekura
from azekura import types
from tests.common import TestCase, library

pyarrow, polars, duckdb = library("pyarrow"), library("polars"), library("duckdb", "pyarrow")


class Schema(ctypes.Structure):
    """As the C data interface has it."""


class Array(ctypes.Structure):
    """As the C data interface has it."""


Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.c_void_p), ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))),
    ("private", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))), ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))), ("private", ctypes.c_void_p),
]

_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class ByHand:
    """A column, or a structure of columns, as another library would give it."""

    def __init__(self, form, length, buffers=(), children=(), offset=0, nulls=None, name=b""):
        self.kept, self.released = [], 0
        self.schema, self.array = Schema(), Array()
        self.schema.format, self.schema.name, self.schema.flags = form, name, 2
        self.schema.n_children = self.array.n_children = len(children)
        self.array.length, self.array.offset = length, offset
        self.array.null_count = 0 if nulls is None else -1
        pointers = [self.pointer(nulls)] + [self.pointer(data) for data in buffers]
        self.array.n_buffers = len(pointers)
        self.array.buffers = (ctypes.c_void_p * len(pointers))(*pointers)
        self.array.children = (ctypes.POINTER(Array) * len(children))(*(ctypes.pointer(c.array) for c in children))
        self.schema.children = (ctypes.POINTER(Schema) * len(children))(*(ctypes.pointer(c.schema) for c in children))
        self.kept.append(children)
        self.schema.release = type(self.schema.release)(self.on_release)
        self.array.release = type(self.array.release)(self.on_release)

    def pointer(self, data):
        if data is None:
            return None
        held = ctypes.create_string_buffer(bytes(data), max(len(bytes(data)), 1))
        self.kept.append(held)
        return ctypes.addressof(held)

    def on_release(self, which):
        self.released += 1
        where = ctypes.addressof(which.contents) + type(which.contents).release.offset
        ctypes.memset(where, 0, ctypes.sizeof(ctypes.c_void_p))

    def __arrow_c_array__(self, requested_schema=None):
        # The structures are moved out of the capsules, so they are copies of this object's.
        moved = type(self.schema).from_buffer_copy(self.schema), type(self.array).from_buffer_copy(self.array)
        self.kept.append(moved)
        schema, data = (ctypes.addressof(part) for part in moved)
        return _capsule(schema, b"arrow_schema", None), _capsule(data, b"arrow_array", None)


def offsets(code, *parts):
    """The buffers of bytes or text: offsets and data."""
    ends = itertools.accumulate((len(part) for part in parts), initial=0)
    return array.array(code, ends).tobytes(), b"".join(parts)


def views(*parts):
    """The buffers of views: the views, one of data, and its length."""
    made, data = b"", b""
    for part in parts:
        made += len(part).to_bytes(4, "little")
        if len(part) <= 12:
            made += part.ljust(12, b"\0")
        else:
            made += part[:4] + (0).to_bytes(4, "little") + len(data).to_bytes(4, "little")
            data += part
    return made, data, len(data).to_bytes(8, "little")


def ints(*numbers):
    return array.array("q", numbers).tobytes()


class Batches(TestCase):
    def test_from_table_to_table(self):
        """Every type goes out and comes in again as it was."""
        db = self.database()
        cases = (
            (bytes, bytes, {b"%d" % n: b"x" * (n % 40) for n in range(1000)}),
            (str, "json", {f"ä{n}": {"n": n} for n in range(1000)}),
            (int, float, {n - 500: n / 3 for n in range(1000)}),
            (float, int, {n / 7: -n for n in range(1000)}),
            (types.u16, types.i8, {n: n % 256 - 128 for n in range(1000)}),
            (types.i32, types.f32, {-n: n / 2 for n in range(1000)}),
            (types.u64, bool, {2**64 - 1 - n: n % 3 == 0 for n in range(1000)}),
            (bool, str, {False: "no", True: "yes"}),
            (tuple[str, int], tuple[bool, bytes], {("\0ä", n): (n % 2 == 0, b"\0%d" % n) for n in range(1000)}),
            (tuple[bytes, tuple[float, str]], "pickle", {(b"\0", (n / 2, "")): (n, {n}) for n in range(1000)}),
        )
        for number, (key, value, records) in enumerate(cases):
            table = db.table(f"from {number}", key=key, value=value)
            table.put_many(records)
            other = db.table(f"to {number}", key=key, value=value)
            other.put_many(table.to_arrow(batch_size=300))
            self.assertEqual(dict(other.items()), records, (key, value))
            self.assertEqual(list(other.items()), list(table.items()))

    def test_ranges_and_moments(self):
        db = self.database()
        table, other = db.table("t", key=int, value=int), db.table("other", key=int, value=int)
        table.put_many((n, n) for n in range(100))
        some = table.to_arrow(10, 20, batch_size=3)
        table.clear()
        for _ in range(2):
            other.clear()
            other.put_many(some)
            self.assertEqual(list(other), list(range(10, 20)))
        with db.begin() as tx:
            tx.table(table)[5] = 6
            tx.table(other).put_many(tx.table(table).to_arrow())
            self.assertEqual(tx.table(other)[5], 6)
        with self.assertRaises(azekura.TransactionOver):
            other.put_many(tx.table(table).to_arrow())
        hashed = db.table("h", "hash", key=int, value=int)
        hashed.put_many(other.to_arrow())
        self.assertEqual(dict(hashed.items()), dict(other.items()))
        with self.assertRaises(azekura.WrongType):
            hashed.to_arrow(1, 2)
        with self.assertRaises(ValueError):
            table.to_arrow(batch_size=0)
        table.put_many((n, n) for n in range(9))
        db.table("t").remove(b"\x80" + bytes(6) + b"\x01")
        text = db.table("t", key=str)
        with self.assertRaisesRegex(ValueError, "no str"):
            other.put_many(text.to_arrow())

    def test_what_is_not_read_is_freed(self):
        db = self.database()
        table = db.table("t", key=int, value=int)
        table.put_many((n, n) for n in range(1000))
        batches = table.to_arrow(batch_size=10)
        for _ in range(100):
            batches.__arrow_c_stream__()
            batches.__arrow_c_schema__()
        stream = batches.__arrow_c_stream__()

        class Once:
            def __arrow_c_stream__(self, requested_schema=None):
                return stream

        db.table("to", key=int, value=int).put_many(Once())
        with self.assertRaisesRegex(ValueError, "consumed"):
            db.table("to", key=int, value=int).put_many(Once())
        batches = table.to_arrow()
        db.close()
        with self.assertRaises(azekura.Closed):
            batches.__arrow_c_stream__()


class OthersData(TestCase):
    def test_columns(self):
        db = self.database()
        words = (b"a", b"", "ä is longer than twelve".encode(), b"twelve bytes")
        for form, buffers in (
            (b"u", offsets("i", *words)), (b"U", offsets("q", *words)), (b"vu", views(*words)),
            (b"z", offsets("i", *words)), (b"Z", offsets("q", *words)), (b"vz", views(*words)),
        ):
            table = db.table(f"t{form}", key=bytes if b"z" in form.lower() else str, value=int)
            keys = ByHand(form, 4, buffers)
            table.put_many(keys, ByHand(b"l", 4, [ints(1, 2, 3, 4)]))
            self.assertEqual(keys.released, 2, "the schema and the array")
            as_text = [word if b"z" in form.lower() else word.decode() for word in words]
            self.assertEqual(dict(table.items()), dict(zip(as_text, (1, 2, 3, 4))), form)
            self.assertEqual(table.get_many(ByHand(form, 4, buffers)), [1, 2, 3, 4])
        fixed = db.table("fixed", value=bool)
        fixed.put_many(ByHand(b"w:2", 3, [b"aabbcc"]), ByHand(b"b", 3, [b"\x05"]))
        self.assertEqual(dict(fixed.items()), {b"aa": True, b"bb": False, b"cc": True})
        mixed = db.table("mixed", key=int, value=str)
        mixed.put_many(array.array("q", [7, 8]), ByHand(b"u", 2, offsets("i", b"x", b"y")))
        self.assertEqual(dict(mixed.items()), {7: "x", 8: "y"})

    def test_structures_and_offsets(self):
        db = self.database()
        table = db.table("t", key=int, value=str)
        key = ByHand(b"l", 5, [ints(9, 1, 2, 3, 4)], name=b"key", offset=0)
        value = ByHand(b"u", 4, offsets("i", b"-", b"a", b"b", b"c", b"d"), name=b"value", offset=1)
        other = ByHand(b"b", 5, [b"\0"], name=b"other")
        # Of the structure's rows the first two are left out.
        table.put_many(ByHand(b"+s", 2, children=(value, other, key), offset=2))
        self.assertEqual(dict(table.items()), {2: "c", 3: "d"})
        pairs = db.table("pairs", key=tuple[int, str], value=int)
        key = ByHand(b"+s", 2, children=(ByHand(b"l", 2, [ints(1, 2)]), ByHand(b"u", 2, offsets("i", b"\0", b""))))
        pairs.put_many(ByHand(b"+s", 2, children=(key, ByHand(b"l", 2, [ints(5, 6)]))))
        self.assertEqual(dict(pairs.items()), {(1, "\0"): 5, (2, ""): 6})

    def test_nulls(self):
        db = self.database()
        table = db.table("t", key=int, value=int)
        numbers = lambda nulls, offset=0: ByHand(b"l", 2, [ints(1, 2, 3)], nulls=nulls, offset=offset)
        table.put_many(numbers(b"\x03"), numbers(b"\x06", 1))
        self.assertEqual(dict(table.items()), {1: 2, 2: 3})
        with self.assertRaisesRegex(ValueError, "row 1 is null"):
            table.put_many(numbers(b"\x03"), numbers(b"\x02", 1))
        with self.assertRaisesRegex(ValueError, "row 0 is null"):
            table.put_many(ByHand(b"+s", 2, children=(numbers(None), numbers(None)), nulls=b"\x02"))
        # A null in a column that is neither does not matter; in a part of a tuple it does.
        named = lambda name, nulls: ByHand(b"l", 2, [ints(4, 5)], nulls=nulls, name=name)
        table.put_many(ByHand(b"+s", 2, children=(named(b"key", b"\3"), named(b"x", b"\0"), named(b"value", None))))
        self.assertEqual(table.get_many([4, 5]), [4, 5])
        with self.assertRaisesRegex(ValueError, "row 1 is null"):
            table.put_many(ByHand(b"+s", 2, children=(named(b"key", None), named(b"value", b"\1"))))
        pairs = db.table("pairs", key=tuple[int, int], value=int)
        key = lambda nulls: ByHand(b"+s", 2, children=(named(b"a", None), named(b"b", nulls)), name=b"key")
        with self.assertRaisesRegex(ValueError, "row 0 is null"):
            pairs.put_many(key(b"\2"), named(b"value", None))
        with self.assertRaisesRegex(ValueError, "row 0 is null"):
            pairs.put_many(ByHand(b"+s", 2, children=(key(b"\2"), named(b"value", None))))
        self.assertEqual(pairs.count(), 0)

    def test_rows_beyond_all_numbers(self):
        table = self.database().table("t", key=int, value=int)
        far = ByHand(b"l", 2**63 - 1, [ints(1)], offset=2**63 - 1)
        with self.assertRaisesRegex(ValueError, "not of its type"):
            table.put_many(ByHand(b"+s", 2**63 - 1, children=(far, far), offset=2**63 - 1))

    def test_wrong_data(self):
        db = self.database()
        table = db.table("t", key=int, value=str)
        number, text = ByHand(b"l", 1, [ints(1)]), ByHand(b"u", 1, offsets("i", b"a"))
        for keys, values in (
            (text, text),
            (number, number),
            (ByHand(b"L", 1, [ints(1)]), text),
            (number, ByHand(b"u", 1, offsets("i", b"\xff"))),
            (number, ByHand(b"u", 1, (array.array("i", [3, 1]).tobytes(), b"abc"))),
            (number, ByHand(b"vu", 1, (b"\x20\0\0\0abcd\x09\0\0\0\0\0\0\0", b"x" * 32, ints(32)))),
            (number, ByHand(b"u", 1)),
            (number, ByHand(b"tdD", 1, [ints(1)])),
            (ByHand(b"l", 2, [ints(1, 2)]), text),
            (number, ["a"]),
        ):
            with self.assertRaises((ValueError, TypeError)):
                table.put_many(keys, values)
        for records in (number, ByHand(b"+s", 1, children=(number,)), ByHand(b"+s", 1, children=(number, text, text))):
            with self.assertRaises(ValueError):
                table.put_many(records)
        with self.assertRaises(ValueError):
            db.table("floats", key=float).get_many(ByHand(b"g", 1, [array.array("d", [float("nan")]).tobytes()]))
        self.assertEqual(table.count(), 0)


class FromArrow(TestCase):
    def test_back_from_to_arrow(self):
        """What went out by `to_arrow` comes in again: as one, and in parts."""
        db = self.database()
        table, other = db.table("t", key=tuple[int, str], value=float), db.table("o", key=tuple[int, str], value=float)
        table.put_many({(n % 10, str(n)): n / 7 for n in range(1000)})
        self.assertEqual(other.from_arrow(table.to_arrow(batch_size=7)), 1000)
        self.assertEqual(list(other.items()), list(table.items()))
        other.clear()
        parts = (table.to_arrow((n,), (n + 1,)) for n in range(10))
        self.assertEqual(other.from_arrow(parts), 1000)
        self.assertEqual(list(other.items()), list(table.items()))
        self.assertEqual((other.from_arrow([]), other.from_arrow(table.to_arrow((77,)))), (0, 0))
        with self.assertRaises(azekura.ReadOnly), db.snapshot() as snapshot:
            snapshot.table(other).from_arrow(table.to_arrow())

    def test_names_of_columns(self):
        db = self.database()
        column = lambda name, *numbers: ByHand(b"l", len(numbers), [ints(*numbers)], name=name)
        make = lambda *columns: ByHand(b"+s", 2, children=columns)
        a, b, c = lambda: column(b"a", 1, 2), lambda: column(b"b", 3, 4), lambda: column(b"c", 5, 6)
        for given, names, due in (
            (make(a(), b()), {}, {1: 3, 2: 4}),
            (make(a(), b()), {"key": "b"}, {3: 1, 4: 2}),
            (make(a(), b()), {"value": "a"}, {3: 1, 4: 2}),
            (make(a(), b(), c()), {"key": "c", "value": "a"}, {5: 1, 6: 2}),
            (make(a(), column(b"key", 7, 8)), {}, {7: 1, 8: 2}),
            (make(a(), column(b"key", 7, 8), c()), {"value": "c"}, {7: 5, 8: 6}),
            (make(column(b"value", 9, 9), a()), {}, {1: 9, 2: 9}),
            ([make(a(), b()), make(b(), a())], {"key": "a", "value": "b"}, {1: 3, 2: 4}),
        ):
            table = db.table("t", key=int, value=int)
            table.clear()
            self.assertEqual(table.from_arrow(given, **names), 4 if isinstance(given, list) else 2)
            self.assertEqual(dict(table.items()), due)
        for given, names in (
            (make(a(), b()), {"key": "x"}),
            (make(a(), b()), {"value": "x"}),
            (make(a(), b(), c()), {"key": "a"}),
            (make(a(), b(), c()), {}),
            (a(), {}),
        ):
            with self.assertRaises(ValueError):
                table.from_arrow(given, **names)
        for wrong in (7, [7], {1: 2}, [(1, 2)], None):
            with self.assertRaises(TypeError):
                table.from_arrow(wrong)

    def test_all_or_none(self):
        db = self.database()
        table, words = db.table("t", key=int, value=int), db.table("w", key=int, value=str)
        good = lambda: ByHand(b"+s", 1, children=(ByHand(b"l", 1, [ints(1)]), ByHand(b"l", 1, [ints(2)])))
        words[1] = "x"
        with self.assertRaises(ValueError):
            table.from_arrow([good(), words.to_arrow()])
        self.assertEqual(table.count(), 0)
        with db.begin() as tx:
            view = tx.table(table)
            view[5] = 6
            with self.assertRaises(TypeError):
                view.from_arrow([good(), 7])
            self.assertEqual(dict(view.items()), {5: 6})
            self.assertEqual(view.from_arrow(good()), 1)
        self.assertEqual(dict(table.items()), {1: 2, 5: 6})


@unittest.skipUnless(polars, "Polars is not installed")
class Polars(TestCase):
    def test_frames_in_and_out(self):
        db = self.database()
        table = db.table("t", key=str, value=int)
        frame = polars.DataFrame({"n": range(3000), "name": [f"ä{n:05}" for n in range(3000)]})
        self.assertEqual(table.from_arrow(frame, key="name", value="n"), 3000)
        table.from_arrow(frame.slice(100, 5).with_columns(polars.col("n") + 10_000), key="name", value="n")
        back = polars.DataFrame(table.to_arrow(batch_size=700))
        due = [(f"ä{n:05}", n + 10_000 if 100 <= n < 105 else n) for n in range(3000)]
        self.assertEqual(back.rows(), due)


@unittest.skipUnless(duckdb, "DuckDB is not installed")
class DuckDb(TestCase):
    def test_queries_in_and_out(self):
        db = self.database()
        table = db.table("t", key=int, value=float)
        query = duckdb.sql("SELECT range AS key, range / 2 AS value, 'x' AS other FROM range(5000)")
        self.assertEqual(table.from_arrow(query), 5000)
        rows = pyarrow.table(table.to_arrow(4000))
        self.assertEqual(duckdb.sql("SELECT count(*), sum(value) FROM rows").fetchall(), [(1000, 2249750.0)])


@unittest.skipUnless(pyarrow, "PyArrow is not installed")
class PyArrow(TestCase):
    def test_tables_in_and_out(self):
        db = self.database()
        table = db.table("t", key=str, value=int)
        given = pyarrow.table({"key": [f"{n:05}" for n in range(5000)], "value": list(range(5000))})
        table.put_many(given.slice(10, 100))
        self.assertEqual(table.count(), 100)
        table.put_many(pyarrow.Table.from_batches(given.to_batches(max_chunksize=700)))
        back = pyarrow.table(table.to_arrow(batch_size=999))
        self.assertEqual(back.column("key").to_pylist(), given.column("key").to_pylist())
        self.assertEqual(back.column("value").to_pylist(), given.column("value").to_pylist())
        back.validate(full=True)
        again = db.table("again", key=str, value=int)
        self.assertEqual(again.from_arrow(given.to_batches(max_chunksize=700)), 5000)
        self.assertEqual(again.from_arrow(pyarrow.RecordBatchReader.from_batches(given.schema, given.to_batches())), 5000)
        self.assertEqual(list(again.items()), list(table.items()))
        self.assertEqual(table.get_many(given.column("key").slice(7, 2)), [7, 8])
        self.assertEqual(table.get_many(pyarrow.array(["00003", "x"])), [3, None])
        pairs = db.table("pairs", key=tuple[int, str], value=bool)
        pairs.put_many({(n, "x"): n % 3 == 0 for n in range(1000)})
        back = pyarrow.table(pairs.to_arrow((5,)))
        back.validate(full=True)
        self.assertEqual(back.column("key").to_pylist()[0], {"0": 5, "1": "x"})
        self.assertEqual(back.column("value").to_pylist(), [n % 3 == 0 for n in range(5, 1000)])

    def test_errors_are_told(self):
        db = self.database()
        db.table("t")[b"\xff"] = b""
        with self.assertRaisesRegex(Exception, "no str"):
            pyarrow.table(db.table("t", key=str).to_arrow())

        def broken():
            yield pyarrow.record_batch({"key": [1], "value": [1]})
            raise RuntimeError("the reader is broken")

        schema = pyarrow.schema([("key", pyarrow.int64()), ("value", pyarrow.int64())])
        numbers = db.table("n", key=int, value=int)
        with self.assertRaisesRegex(ValueError, "the reader is broken"):
            numbers.put_many(pyarrow.RecordBatchReader.from_batches(schema, broken()))
        self.assertEqual(numbers.count(), 0)
