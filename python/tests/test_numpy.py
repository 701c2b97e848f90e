"""Records in NumPy's arrays."""

import unittest

from tests.common import TestCase, library

numpy = library("numpy")


@unittest.skipUnless(numpy, "NumPy is not installed")
class NumPy(TestCase):
    def both_ways(self, table, keys, values, due):
        """Puts arrays, and gets them back by an array of keys; also from within a transaction."""
        table.put_many(keys, values)
        self.assertEqual(dict(table.items()), due)
        self.assertEqual(table.get_many(keys), list(due.values()))
        table.clear()

    def test_numbers(self):
        db = self.database()
        keys = numpy.array([5, -1, 2**40], dtype=numpy.int64)
        values = numpy.array([1, 2, -(2**63)], dtype=numpy.int64)
        self.both_ways(db.table("int", key=int, value=int), keys, values, {5: 1, -1: 2, 2**40: -(2**63)})
        floats = numpy.array([0.5, -1.5, float("inf")])
        self.both_ways(db.table("float", key=float, value=float), floats, floats, {x: x for x in floats.tolist()})
        from azekura import types
        for width in (8, 16, 32, 64):
            for letter, name in (("u", "uint"), ("i", "int")):
                column = numpy.array([0, 1, 100], dtype=f"{name}{width}")
                one = getattr(types, f"{letter}{width}")
                table = db.table(f"{letter}{width}", "hash", key=one, value=one)
                self.both_ways(table, column, column[::-1], {0: 100, 1: 1, 100: 0})
        small = numpy.array([0.5, 2.0], dtype=numpy.float32)
        self.both_ways(db.table("f32", key=types.f32, value=types.f32), small, small, {0.5: 0.5, 2.0: 2.0})

    def test_rows(self):
        table = self.database().table("t")
        # Text of a fixed width has zeros at its end, and they belong to the record.
        words = numpy.array([b"ada", b"alan", b"gracehop"], dtype="S8")
        self.both_ways(table, words, words, {b.ljust(8, b"\0"): b.ljust(8, b"\0") for b in words.tolist()})
        rows = numpy.arange(12, dtype=numpy.uint8).reshape(3, 4)
        self.both_ways(table, rows, rows[:, :1], {bytes(row): bytes(row[:1]) for row in rows})
        raw = numpy.frombuffer(b"aaaabbbb", dtype="V4")
        self.both_ways(table, raw, raw, {b"aaaa": b"aaaa", b"bbbb": b"bbbb"})
        pairs = numpy.array([(1, 2), (3, 4)], dtype=[("a", "<u2"), ("b", "<u4")])
        self.both_ways(table, pairs, pairs, {pair.tobytes(): pair.tobytes() for pair in pairs})

    def test_arrays_with_gaps(self):
        """Parts of arrays, turned and transposed ones: what counts is what they show."""
        db = self.database()
        table = db.table("n", key=int, value=int)
        many = numpy.arange(100, dtype=numpy.int64)
        self.both_ways(table, many[::7], many[::-7][:15], dict(zip(range(0, 100, 7), range(99, 0, -7))))
        grid = numpy.arange(12, dtype=numpy.uint8).reshape(3, 4)
        due = {bytes(column): bytes(column) for column in grid.T}
        self.both_ways(db.table("t"), grid.T, numpy.asfortranarray(grid.T), due)

    def test_many_pieces(self):
        db = self.database()
        table = db.table("n", "hash", key=int, value=int)
        keys = numpy.random.default_rng(1).permutation(numpy.arange(200_000, dtype=numpy.int64))
        with db.begin() as tx:
            tx.table(table).put_many(keys, keys * 3)
            self.assertEqual(tx.table(table).get_many(keys[:5]), (keys[:5] * 3).tolist())
        self.assertEqual(table.get_many(keys), (keys * 3).tolist())
        self.assertEqual(table.count(), 200_000)

    def test_objects_are_a_list(self):
        table = self.database().table("t", key=str, value=int)
        names = numpy.array(["ada", "alan"], dtype=object)
        self.both_ways(table, names, numpy.array([1, 2], dtype=object), {"ada": 1, "alan": 2})

    def test_wrong_arrays(self):
        db = self.database()
        ints, raw, text = db.table("n", key=int, value=int), db.table("t"), db.table("s", key=str)
        good = numpy.arange(3, dtype=numpy.int64)
        for wrong, said in (
            (good.astype(numpy.int32), '4 bytes of format "i", numbers of type i64 are due'),
            (good.astype(numpy.uint64), '8 bytes of format "L", numbers of type i64 are due'),
            (good.astype(numpy.float64), 'format "d", numbers of type i64 are due'),
            (good.astype(">i8"), 'format ">q", numbers of type i64 are due'),
            (good.astype(bool), 'format "?", numbers of type i64 are due'),
            (good.astype(complex), 'format "Zd", numbers of type i64 are due'),
            (numpy.zeros((3, 2), dtype=numpy.int64), '16 bytes of format "l", numbers of type i64 are due'),
            (numpy.array(["a", "b", "c"]), 'format "1w", numbers of type i64 are due'),
            (good[:2], "3 keys have 2 values"),
        ):
            with self.assertRaisesRegex(ValueError, said.replace("?", r"\?")):
                ints.put_many(good, wrong)
        for column in (numpy.array(["a", "b", "c"]), numpy.array(7), numpy.array(b"x", dtype="S8")):
            with self.assertRaises(ValueError):
                raw.put_many(column, column)
            with self.assertRaises(ValueError):
                raw.get_many(column)
        with self.assertRaisesRegex(ValueError, "buffers are for tables of bytes or numbers"):
            text.put_many(numpy.array([b"a", b"b"]), numpy.array([b"a", b"b"]))
        # NumPy gives no buffer of these, and what they consist of is nothing that the table takes.
        with self.assertRaises((TypeError, ValueError)):
            ints.put_many(good, numpy.array([1, 2, 3], dtype="M8[s]"))
        self.assertEqual((ints.count(), raw.count(), text.count()), (0, 0, 0))
