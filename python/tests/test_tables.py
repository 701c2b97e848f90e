"""Tables: single operations, ranges, batches, types, wrong arguments."""

import array
import collections
import ctypes
import gc
import math
import random
import struct
from datetime import datetime, timedelta, timezone

import azekura
from tests.common import TestCase


class Operations(TestCase):
    def test_get_put_remove(self):
        table = self.database().table("t")
        table.put("a", "1")
        table[b"b"] = bytearray(b"2")
        table[memoryview(b"c")] = b""
        self.assertEqual(table.get("a"), b"1")
        self.assertEqual(table["b"], b"2")
        self.assertEqual(table["c"], b"")
        self.assertIsNone(table.get("d"))
        self.assertEqual(table.get("d", 7), 7)
        with self.assertRaises(KeyError) as raised:
            table["d"]
        self.assertEqual(raised.exception.args, ("d",))
        table.remove("a")
        table.remove("a")
        del table["b"]
        with self.assertRaises(KeyError):
            del table["b"]
        self.assertNotIn("b", table)
        self.assertIn("c", table)
        self.assertEqual(table.count(), 1)
        table.clear()
        self.assertEqual(list(table), [])

    def test_atomic_operations(self):
        db = self.database()
        for kind in ("ordered", "hash"):
            table = db.table(kind, kind)
            self.assertTrue(table.add("a", "1"))
            self.assertFalse(table.add("a", "2"))
            self.assertTrue(table.replace("a", "3"))
            self.assertFalse(table.replace("b", "3"))
            table.append("a", "4")
            self.assertEqual(table["a"], b"34")
            self.assertEqual(table.increment("n"), 1)
            self.assertEqual(table.increment("n", -3), -2)
            self.assertEqual(table["n"], struct.pack("<q", -2))
            table.merge("n")
            table.merge("n", 4)
            self.assertEqual(table["n"], struct.pack("<q", 3))
            table.merge("l", b"ada", "append")
            table.merge("l", "bob", "append")
            self.assertEqual(table["l"], b"adabob")
            table.merge("s", [b"bob", b"ada"], "union")
            table.merge("s", [b"eve", b"bob"], "union")
            table.merge("s", [], "union")
            self.assertEqual(table["s"], b"adabobeve")
            for wrong in [[b"ada", b"adam"], [b""], [b"a" * 256]]:
                with self.assertRaises(ValueError):
                    table.merge("s", wrong, "union")
            for operator in ["append", "union"]:
                with self.assertRaises(TypeError):
                    table.merge("s", operator=operator)
            table.merge_many({"n": 10, "m": 1})
            table.merge_many([("n", 1), ("n", 1)])
            table.merge_many(["n", "m"], [100, 0], "min")
            self.assertEqual(table.get_many(["n", "m"]), [struct.pack("<q", 15), struct.pack("<q", 0)])
            table.merge_many({"l": "eve"}, operator="append")
            table.merge_many(iter([("s", [b"zoe"]), ("s", []), ("new", [b"a"])]), operator="union")
            self.assertEqual(table.get_many(["l", "s", "new"]), [b"adabobeve", b"adabobevezoe", b"a"])
            for wrong in [["n"], [("n", 1, 2)], [("n", "x")], {"n": None}, 7]:
                with self.assertRaises((TypeError, ValueError)):
                    table.merge_many(wrong)
            with self.assertRaises(ValueError):
                table.merge_many(["n", "m"], [1])
            # What comes before the error is not merged either.
            with self.assertRaises(TypeError):
                table.merge_many([("n", 1000), ("m", "x")])
            with self.assertRaises(ValueError):
                table.merge_many({"n": 1000}, operator="mean")
            self.assertEqual(table["n"], struct.pack("<q", 15))
            with db.begin() as tx:
                view = tx.table(table)
                view.merge_many({"n": 5, "fresh": 1})
                view["text"] = "no number"
                # In a transaction nothing of the call stays, and all that was before.
                with self.assertRaises(azekura.WrongType):
                    view.merge_many([("n", 1000), ("text", 1)])
                self.assertEqual(view["n"], struct.pack("<q", 20))
            self.assertEqual((table["n"], table["text"]), (struct.pack("<q", 20), b"no number"))
            with db.snapshot() as snapshot, self.assertRaises(azekura.ReadOnly):
                snapshot.table(table).merge_many({"n": 1})
            self.assertFalse(table.compare_and_swap("a", "x", "y"))
            self.assertTrue(table.compare_and_swap("a", "34", None))
            self.assertTrue(table.compare_and_swap("a", None, "5"))
            self.assertEqual(table.take("a"), b"5")
            self.assertEqual(table.take("a", "gone"), "gone")

    def test_records_go_by_themselves(self):
        db = self.database()
        for kind in ("ordered", "hash"):
            table = db.table(kind, kind)
            table.put_for("a", "1", 3600)
            self.assertTrue(3500 < table.ttl("a") <= 3600)
            table.put("b", "2")
            self.assertEqual(table.ttl("b"), math.inf)
            self.assertIsNone(table.ttl("c"))
            self.assertTrue(table.expire("b", 60.5))
            self.assertTrue(60 < table.ttl("b") <= 60.5)
            self.assertTrue(table.expire("b", None))
            self.assertEqual(table.ttl("b"), math.inf)
            self.assertTrue(table.expire("a", 0))
            self.assertFalse(table.expire("a", 60))
            self.assertEqual(list(table), [b"b"])
            with db.begin() as txn:
                own = txn.table(table)
                own.put_for("d", "4", 60)
                self.assertTrue(50 < own.ttl("d") <= 60)
            for wrong in (-1, math.nan):
                with self.assertRaises(ValueError):
                    table.put_for("e", "5", wrong)
            with self.assertRaises(TypeError):
                table.put_for("e", "5", "60")
            soon = datetime.now() + timedelta(minutes=1)
            table.put_until("e", "5", soon)
            self.assertTrue(50 < table.ttl("e") <= 60)
            with db.begin() as txn:
                own = txn.table(table)
                own.put_until("f", "6", soon.astimezone(timezone.utc))
                self.assertTrue(50 < own.ttl("f") <= 60)
            table.put_until("e", "5", datetime(2020, 1, 1, tzinfo=timezone.utc))
            self.assertNotIn("e", table)
            table.put_until("e", "5", None)
            self.assertEqual(table.ttl("e"), math.inf)
            with self.assertRaises(ValueError):
                table.put_until("e", "5", datetime(1960, 1, 1, tzinfo=timezone.utc))
            with self.assertRaises(TypeError):
                table.put_until("e", "5", 60)
            cache = db.table(f"cache {kind}", kind, ttl=60)
            cache["x"] = "1"
            cache.put_until("v", "2", None)
            self.assertEqual(cache.ttl("v"), math.inf)
            cache.put_for("y", "2", None)
            self.assertTrue(50 < cache.ttl("x") <= 60)
            self.assertEqual(cache.ttl("y"), math.inf)
            self.assertTrue(db.table(f"cache {kind}").ttl("x") <= 60)
            self.assertTrue(db.table(f"cache {kind}", ttl=60).ttl("x") <= 60)
            with self.assertRaises(azekura.WrongType):
                db.table(f"cache {kind}", ttl=61)
            self.assertEqual((cache.usual_ttl(), table.usual_ttl()), (60.0, None))
            cache.set_usual_ttl(3600)
            cache["z"] = "3"
            self.assertTrue(cache.ttl("x") <= 60 and 3500 < cache.ttl("z") <= 3600)
            with db.begin() as txn:
                own = txn.table(cache)
                own.set_usual_ttl(None)
                own["w"] = "4"
                self.assertEqual((own.usual_ttl(), cache.usual_ttl(), own.ttl("w")), (None, 3600.0, math.inf))
            self.assertIsNone(cache.usual_ttl())
            for wrong in (0, -1, math.nan):
                with self.assertRaises(ValueError):
                    cache.set_usual_ttl(wrong)
            with self.assertRaises(azekura.ReadOnly), db.snapshot() as snapshot:
                snapshot.table(cache).set_usual_ttl(60)
            with self.assertRaises(ValueError):
                db.table("none", ttl=0)

    def test_updates(self):
        db = self.database()
        table = db.table("t", key=str, value=int)
        self.assertEqual(table.update("a", lambda old: (old or 0) + 5), 5)
        self.assertEqual(table.update("a", lambda old: old * 2), 10)
        self.assertIsNone(table.update("a", lambda old: None))
        self.assertIsNone(table.update("a", lambda old: old))
        self.assertNotIn("a", table)
        table["a"] = 1
        calls = []

        def disturbed(old):
            calls.append(old)
            if old < 4:
                table["a"] = old + 1
            return old * 100

        self.assertEqual(table.update("a", disturbed), 400)
        self.assertEqual(calls, [1, 2, 3, 4])
        with self.assertRaises(ZeroDivisionError):
            table.update("a", lambda old: 1 // 0)
        with self.assertRaises(TypeError):
            table.update("a", lambda old: "text")
        self.assertEqual(table["a"], 400)
        with db.begin() as tx:
            self.assertEqual(tx.table(table).update("a", lambda old: old + 1), 401)
        with db.snapshot() as snapshot, self.assertRaises(azekura.ReadOnly):
            snapshot.table(table).update("a", lambda old: self.fail("nothing can be written"))
        self.assertEqual(table["a"], 401)

    def test_both_ends(self):
        db = self.database()
        table = db.table("t", key=int, value=str)
        for of in (table.first, table.last, table.pop_first, table.pop_last):
            self.assertIsNone(of())
        table.put_many((n, str(n)) for n in range(10))
        self.assertEqual((table.first(), table.last()), ((0, "0"), (9, "9")))
        self.assertEqual((table.pop_first(), table.pop_last()), ((0, "0"), (9, "9")))
        with db.begin() as tx:
            view = tx.table(table)
            self.assertEqual((view.pop_first(), view.first(), view.last()), ((1, "1"), (2, "2"), (8, "8")))
        with db.snapshot() as snapshot:
            self.assertEqual(snapshot.table(table).first(), (2, "2"))
            with self.assertRaises(azekura.ReadOnly):
                snapshot.table(table).pop_last()
        self.assertEqual(list(table), list(range(2, 9)))
        hashed = db.table("h", "hash")
        hashed["a"] = "b"
        self.assertEqual(hashed.pop_first(), (b"a", b"b"))

    def test_retain_and_drain(self):
        db = self.database()
        table = db.table("t", key=int, value=int)
        table.put_many((n, n % 10) for n in range(2000))
        self.assertEqual(table.retain(lambda key, value: value < 5), 1000)
        self.assertEqual(table.retain(lambda key, value: False, 100, 200), 50)
        with self.assertRaises(ZeroDivisionError):
            table.retain(lambda key, value: 1 // (1000 - key))
        self.assertEqual(table.count(), 950)
        tries = []

        def disturbed(key, value):
            if key == 0:
                tries.append(value)
                if len(tries) < 3:
                    table[0] = value + 1
            return key != 0

        self.assertEqual(table.retain(disturbed), 1)
        self.assertEqual(tries, [0, 1, 2])
        drained = table.drain(hi=20)
        self.assertEqual(next(iter(table)), 20)
        self.assertEqual(list(drained), [(n, n) for n in range(1, 5)] + [(n, n - 10) for n in range(10, 15)])
        with db.begin() as tx:
            view = tx.table(table)
            self.assertEqual(view.retain(lambda key, value: value), len(list(table.items())) // 5)
            self.assertEqual([key for key, _ in view.drain(1990)], [1991, 1992, 1993, 1994])
            tx.rollback()
        hashed = db.table("h", "hash", value=int)
        hashed.put_many((f"{n}", n) for n in range(100))
        self.assertEqual(hashed.retain(lambda key, value: value % 2), 50)
        self.assertEqual(sorted(value for _, value in hashed.drain()), list(range(1, 100, 2)))
        with self.assertRaises(azekura.WrongType):
            hashed.drain("a")
        with db.snapshot() as snapshot, self.assertRaises(azekura.ReadOnly):
            snapshot.table(table).retain(lambda key, value: False)

    def test_figures(self):
        db = self.database()
        table = db.table("t", key=int)
        table.put_many((n, b"x" * 100) for n in range(10_000))
        self.assertEqual(table.stats()["records_estimate"], 10_000)
        db.compact()
        stats = table.stats()
        self.assertEqual((stats["levels"], stats["memory_bytes"]), (1, 0))
        self.assertGreater(stats["run_bytes"], 10_000)

    def test_ranges(self):
        table = self.database().table("t")
        table.put_many((f"{n:03}", str(n)) for n in range(1000))
        keys = lambda records: [key for key, _ in records]
        self.assertEqual(keys(table.range("003", "006")), [b"003", b"004", b"005"])
        self.assertEqual(keys(table.range("003", "006", reverse=True)), [b"005", b"004", b"003"])
        self.assertEqual(keys(table.range(hi="002")), [b"000", b"001"])
        self.assertEqual(keys(table.range("998")), [b"998", b"999"])
        self.assertEqual(keys(table.prefix("12")), [b"12%d" % n for n in range(10)])
        self.assertEqual(keys(table.prefix("12", reverse=True)), [b"12%d" % n for n in range(9, -1, -1)])
        self.assertEqual(len(list(table.items())), 1000)
        self.assertEqual(list(table.values(reverse=True)), [b"%d" % n for n in range(999, -1, -1)])
        self.assertEqual(list(table.keys()), [b"%03d" % n for n in range(1000)])
        table.remove_range("001", "999")
        self.assertEqual(list(table), [b"000", b"999"])

    def test_iterators_see_their_moment(self):
        table = self.database().table("t", key=int, value=int)
        table.put_many((n, n) for n in range(2000))
        seen = []
        for key in table:
            seen.append(key)
            del table[key]
            table[key + 10_000] = 0
        self.assertEqual(seen, list(range(2000)))
        self.assertEqual(list(table), list(range(10_000, 12_000)))

    def test_large_values(self):
        table = self.database().table("t")
        large = random.Random(1).randbytes(3_000_000)
        table["large"] = large
        table.put_many([("other", large[:100_000])])
        self.assertEqual(table["large"], large)
        self.assertEqual(dict(table.items()), {b"large": large, b"other": large[:100_000]})
        self.assertEqual(table.get_many(["other", "none", "large"]), [large[:100_000], None, large])


class Batches(TestCase):
    def test_pairs_sequences_and_dicts(self):
        table = self.database().table("t", key=str, value=int)
        table.put_many({"a": 1, "b": 2})
        table.put_many([("c", 3), ["d", 4]])
        table.put_many(("e", "f"), (5, 6))
        table.put_many([])
        table.put_many(collections.ChainMap({"a": 1}))
        table.put_many(table)
        self.assertEqual(dict(table.items()), dict(zip("abcdef", range(1, 7))))
        self.assertEqual(table.get_many(["f", "x", "a"]), [6, None, 1])
        self.assertEqual(table.get_many(key for key in "ab"), [1, 2])
        self.assertEqual(table.get_many([]), [])

    def test_many_records_are_one_transaction(self):
        table = self.database().table("t", key=int, value=int)

        def pairs():
            yield from ((n, n) for n in range(20_000))
            raise RuntimeError("enough")

        with self.assertRaisesRegex(RuntimeError, "enough"):
            table.put_many(pairs())
        self.assertEqual(table.count(), 0)
        for wrong in ([(1, 2, 3)], [1], [("a", 1)], 7):
            with self.assertRaises((TypeError, ValueError)):
                table.put_many(wrong)
        with self.assertRaises(ValueError):
            table.put_many([1, 2], [3])
        self.assertEqual(table.count(), 0)

    def test_a_call_that_fails_leaves_nothing_in_its_transaction(self):
        db = self.database()
        table = db.table("t", key=int, value=int)

        def pairs(end):
            yield from ((n, n) for n in range(10_000))
            end()

        with db.begin() as tx:
            view = tx.table(table)
            view[0] = 7
            with self.assertRaises(ZeroDivisionError):
                view.put_many(pairs(lambda: 1 // 0))
            self.assertEqual(list(view.items()), [(0, 7)])
            with self.assertRaises(ValueError):
                view.put_many(array.array("q", range(3)), array.array("i", range(3)))
            view[1] = 8
        self.assertEqual(list(table.items()), [(0, 7), (1, 8)])
        tx = db.begin()
        # Whoever ends the transaction meanwhile gets that error.
        with self.assertRaises(azekura.TransactionOver):
            tx.table(table).put_many(pairs(tx.rollback))

    def test_buffers_of_objects(self):
        raw = self.database().table("raw")
        objects = (ctypes.py_object * 2)(b"a", b"longer")
        raw.put_many(objects, objects)
        self.assertEqual(dict(raw.items()), {b"a": b"a", b"longer": b"longer"})
        self.assertEqual(raw.get_many(objects), [b"a", b"longer"])

        class Pair(ctypes.Structure):
            _fields_ = [("a", ctypes.c_int), ("b", ctypes.py_object)]

        class Named(ctypes.Structure):
            _fields_ = [("P", ctypes.c_int), ("Os", ctypes.c_int)]

        addresses = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_wchar_p, ctypes.POINTER(ctypes.c_int), Pair)
        for kind in (*addresses, ctypes.CFUNCTYPE(None)):
            with self.assertRaisesRegex(ValueError, "addresses"):
                raw.put_many((kind * 2)(), [b"", b""])
            with self.assertRaisesRegex(ValueError, "addresses"):
                raw.get_many((kind * 2)())
        raw.put_many((Named * 1)(), [b"8 bytes"])
        self.assertEqual(raw.get_many([bytes(8)]), [b"8 bytes"])

    def test_buffers(self):
        db = self.database()
        numbers = db.table("numbers", key=int, value=float)
        numbers.put_many(array.array("q", [3, -1, 2]), array.array("d", [0.3, -0.1, 0.2]))
        self.assertEqual(list(numbers.items()), [(-1, -0.1), (2, 0.2), (3, 0.3)])
        self.assertEqual(numbers.get_many(array.array("q", [2, 7, 3])), [0.2, None, 0.3])
        floats = db.table("floats", key=float, value=int)
        floats.put_many(array.array("d", [0.5, -math.inf]), array.array("q", [1, -2]))
        self.assertEqual(list(floats.items()), [(-math.inf, -2), (0.5, 1)])
        rows = memoryview(b"aabbccdd").cast("B", (4, 2))
        raw = db.table("raw")
        raw.put_many(rows, memoryview(b"1234").cast("B", (4, 1)))
        self.assertEqual(list(raw.items()), [(b"aa", b"1"), (b"bb", b"2"), (b"cc", b"3"), (b"dd", b"4")])
        self.assertEqual(raw.get_many(rows), [b"1", b"2", b"3", b"4"])
        numbers.put_many(array.array("q"), array.array("d"))
        self.assertEqual(numbers.get_many(array.array("q")), [])

    def test_wrong_buffers(self):
        db = self.database()
        numbers = db.table("numbers", key=int, value=int)
        good = array.array("q", [1])
        for keys, values in (
            (array.array("i", [1]), good),
            (array.array("d", [1]), good),
            (array.array("Q", [1]), good),
            (good, array.array("q", [1, 2])),
            (good, array.array("q")),
        ):
            with self.assertRaises(ValueError):
                numbers.put_many(keys, values)
        with self.assertRaises(ValueError):
            db.table("floats", key=float).get_many(array.array("d", [math.nan]))
        with self.assertRaises(TypeError):
            db.table("raw").get_many(b"abc")
        with self.assertRaises(TypeError):
            db.table("raw").put_many("abc", "def")
        with self.assertRaises(ValueError):
            db.table("text", key=str).get_many(good)
        self.assertEqual(numbers.count(), 0)


class Types(TestCase):
    def same_order(self, spec, keys):
        """Keys come in the order that `sorted` gives, and as they were."""
        db = self.database()
        table = db.table("t", key=spec, value=int)
        table.put_many((key, n) for n, key in enumerate(keys))
        self.assertEqual(list(table), sorted(set(keys)))
        self.assertEqual(list(table.keys(reverse=True)), sorted(set(keys), reverse=True))
        lo, hi = sorted(random.Random(3).sample(sorted(set(keys)), 2))
        between = [key for key, _ in table.range(lo, hi)]
        self.assertEqual(between, [key for key in sorted(set(keys)) if lo <= key < hi])
        for key in keys:
            self.assertIn(key, table)

    def test_ints(self):
        draw = random.Random(1)
        edges = [0, 1, -1, 255, 256, -256, 2**63 - 1, -(2**63)]
        self.same_order(int, edges + [draw.randrange(-(2**63), 2**63) >> draw.randrange(60) for _ in range(500)])

    def test_floats(self):
        draw = random.Random(1)
        edges = [0.0, 1.0, -1.0, math.inf, -math.inf, 5e-324, -5e-324, 1.7e308, -1.7e308]
        self.same_order(float, edges + [draw.gauss(0, 10 ** draw.randrange(-9, 9)) for _ in range(500)])

    def test_text(self):
        draw = random.Random(1)
        alphabet = "\0\1aäz\u07ff\u0800\ud7ff\uffff\U00010000\U0010ffff"
        self.same_order(str, ["".join(draw.choices(alphabet, k=draw.randrange(5))) for _ in range(500)])

    def test_bytes(self):
        draw = random.Random(1)
        self.same_order(bytes, [draw.randbytes(draw.randrange(5)) for _ in range(500)])

    def test_tuples(self):
        draw = random.Random(1)
        text = lambda: "".join(draw.choices("\0\1a\U0010ffff", k=draw.randrange(4)))
        data = lambda: bytes(draw.choices(b"\x00\x01\xfe\xff", k=draw.randrange(4)))
        keys = [(text(), draw.randrange(-2, 2), data(), (draw.choice([-0.5, 0.5]), text())) for _ in range(1000)]
        self.same_order(tuple[str, int, bytes, tuple[float, str]], keys)

    def test_tuples_in_parts(self):
        table = self.database().table("t", key=tuple[str, int], value="json")
        table.put_many({("a", 1): 1, ("a", 2): [2], ("aa", 1): None, ("b", -1): {"x": "ä"}})
        self.assertEqual(list(table.prefix(("a",))), [(("a", 1), 1), (("a", 2), [2])])
        self.assertEqual([key for key, _ in table.range(("a", 2), ("b",))], [("a", 2), ("aa", 1)])
        self.assertEqual(table[("b", -1)], {"x": "ä"})
        for wrong in (("a",), ("a", 1, 2)):
            with self.assertRaises(ValueError):
                table[wrong]
        for wrong in ("a", ["a", 1], (1, "a"), 7):
            with self.assertRaises(TypeError):
                table[wrong]
        with self.assertRaises(KeyError) as raised:
            table["z", 9]
        self.assertEqual(raised.exception.args, (("z", 9),))

    def test_zeros_are_one_key(self):
        table = self.database().table("t", key=float)
        table[-0.0] = "zero"
        self.assertEqual(table[0.0], b"zero")
        with self.assertRaises(ValueError):
            table[math.nan] = ""

    def test_values(self):
        db = self.database()
        for spec, value in ((int, -(2**63)), (float, -0.25), (str, "ä\0"), (bytes, b"\xff"), ("json", [1, {"a": None}])):
            table = db.table("t", value=spec)
            table["k"] = value
            self.assertEqual(table["k"], value)
            self.assertIs(type(table["k"]), type(value))
        counters = db.table("counters", key=str, value=int)
        self.assertEqual(counters.increment("n", 5), 5)
        self.assertEqual(counters["n"], 5)

    def test_wrong_types(self):
        db = self.database()
        for wrong in (list, tuple, tuple[int, ...], tuple[()], "json", dict, 7):
            with self.assertRaises(TypeError):
                db.table("t", key=wrong)
        for wrong in (tuple[list, int], "marshal", list):
            with self.assertRaises(TypeError):
                db.table("t", value=wrong)
        numbers = db.table("t", key=int, value=int)
        for key, value in (("1", 1), (1.5, 1), (None, 1), (1, "1"), (1, 0.5)):
            with self.assertRaises(TypeError):
                numbers[key] = value
        for key in (2**63, -(2**63) - 1):
            with self.assertRaises(OverflowError):
                numbers[key] = 1
        with self.assertRaises(TypeError):
            numbers.append(1, 1)
        with self.assertRaises(TypeError):
            numbers.prefix(1)
        with self.assertRaises(TypeError):
            db.table("t", value=str).increment("a")
        with self.assertRaises(UnicodeEncodeError):
            db.table("t", key=str)["\ud800"]
        with self.assertRaises(TypeError):
            db.table("t")[5] = b""
        self.assertEqual(numbers.count(), 0)

    def test_bytes_that_are_not_of_the_type(self):
        db = self.database()
        db.table("t")["\xff"] = b"\xff\xfe\xfd"
        for spec in (int, float, str, "json"):
            with self.assertRaises((azekura.WrongType, ValueError)):
                db.table("t", value=spec)["\xff"]
        for spec in (int, float, tuple[str, int], tuple[int]):
            with self.assertRaises(azekura.WrongType):
                list(db.table("t", key=spec))

    def test_a_walk_goes_on_behind_what_is_not_of_the_type(self):
        db = self.database()
        given = {1: b"a", 2: b"\xff", 3: b"c", 4: b"d"}
        db.table("t", key=int, value=bytes).put_many(given)
        db.table("t")[b"\x80" + bytes(6) + b"\x02\x00"] = b"of a key that is no int"
        table = db.table("t", key=int, value=str)
        for walk in (table.items, table.range, table.drain):
            found, wrong, records = [], 0, iter(walk())
            while True:
                try:
                    found.append(next(records))
                except StopIteration:
                    break
                except azekura.WrongType:
                    wrong += 1
            self.assertEqual((found, wrong), ([(1, "a"), (3, "c"), (4, "d")], 2), walk)
        self.assertEqual(table.count(), 0)

    def test_handles_outlive_the_database_object(self):
        table = azekura.Database(self.path, durability="eventual").table("t")
        gc.collect()
        table["a"] = "1"
        self.assertEqual(table["a"], b"1")
