"""Live views of tables, and cursors."""

import collections.abc
import itertools

import azekura
from tests.common import TestCase


class Views(TestCase):
    def test_they_are_live(self):
        db = self.database()
        for kind in ("ordered", "hash"):
            table = db.table(kind, kind, key=str, value=int)
            keys, items, values = table.keys(), table.items(), table.values()
            self.assertEqual((len(keys), len(items), len(values)), (0, 0, 0))
            self.assertFalse(keys)
            table.put_many({"a": 1, "b": 2, "c": 3})
            self.assertEqual((len(keys), len(items), len(values)), (3, 3, 3))
            self.assertTrue(keys)
            for _ in range(2):
                self.assertEqual(sorted(keys), ["a", "b", "c"])
                self.assertEqual(sorted(items), [("a", 1), ("b", 2), ("c", 3)])
                self.assertEqual(sorted(values), [1, 2, 3])
            for forward in (keys, items, values):
                self.assertEqual(list(reversed(forward)), list(forward)[::-1])
            self.assertEqual(list(table.keys(reverse=True)), list(keys)[::-1])
            self.assertEqual(list(reversed(table.items(reverse=True))), list(items))
            self.assertIn("a", keys)
            self.assertNotIn("x", keys)
            self.assertIn(("a", 1), items)
            self.assertNotIn(("a", 2), items)
            self.assertNotIn(("x", 1), items)
            self.assertIn(3, values)
            self.assertNotIn(4, values)
            del table["a"]
            self.assertEqual((len(keys), sorted(values)), (2, [2, 3]))
            self.assertIn(kind, repr(keys))

    def test_values_whose_keys_go_meanwhile(self):
        table = self.database().table("t", key=int, value=int)
        table.put_many((n, n) for n in range(3000))

        class Other:
            """Nothing equals it. Who compares it finds that others have removed all."""

            def __eq__(self, _):
                table.clear()
                return False

        self.assertNotIn(Other(), table.values())
        self.assertEqual(table.count(), 0)
        table[1] = 1
        self.assertIn(1, table.values())
        self.assertNotIn(None, table.values())

    def test_each_walk_is_of_its_moment(self):
        table = self.database().table("t", key=int, value=int)
        table.put_many((n, n) for n in range(3000))
        keys = table.keys()
        for key in keys:
            table.remove(key)
            table[key + 10_000] = 1
        self.assertEqual(list(keys), list(range(10_000, 13_000)))

    def test_as_sets(self):
        table = self.database().table("t", key=str, value=int)
        table.put_many({"a": 1, "b": 2, "c": 3})
        keys, items = table.keys(), table.items()
        self.assertIsInstance(keys, collections.abc.KeysView)
        self.assertIsInstance(items, collections.abc.ItemsView)
        self.assertIsInstance(table.values(), collections.abc.ValuesView)
        self.assertEqual(keys & {"a", "x"}, {"a"})
        self.assertEqual({"a", "x"} & keys, {"a"})
        self.assertEqual(keys | ["x"], {"a", "b", "c", "x"})
        self.assertEqual(keys - {"a"}, {"b", "c"})
        self.assertEqual({"a", "x"} - keys, {"x"})
        self.assertEqual(keys ^ {"a", "x"}, {"b", "c", "x"})
        self.assertEqual(keys, {"a", "b", "c"})
        self.assertTrue({"a"} < keys <= {"a", "b", "c", "d"})
        self.assertTrue(keys.isdisjoint({"x", "y"}))
        self.assertEqual(items & {("a", 1), ("b", 1)}, {("a", 1)})
        self.assertEqual(items, {"a": 1, "b": 2, "c": 3}.items())
        # What the table takes for no key is none in its views.
        with self.assertRaises(TypeError):
            5 in keys
        with self.assertRaises(TypeError):
            hash(keys)

    def test_in_transactions_and_snapshots(self):
        db = self.database()
        table = db.table("t", key=str, value=int)
        table["a"] = 1
        with db.snapshot() as before, db.begin() as tx:
            own, old = tx.table(table).keys(), before.table(table).keys()
            tx.table(table)["b"] = 2
            self.assertEqual((list(own), list(old), list(table.keys())), (["a", "b"], ["a"], ["a"]))
            self.assertEqual((len(own), "b" in own, "b" in old), (2, True, False))
        self.assertEqual(list(table.keys()), ["a", "b"])
        with self.assertRaises(azekura.TransactionOver):
            len(own)

    def test_from_one_table_to_another(self):
        db = self.database()
        table, copy = db.table("t", key=str, value=int), db.table("copy", key=str, value=int)
        table.put_many({"a": 1, "b": 2})
        copy.put_many(table.items())
        copy.put_many(table.keys(), itertools.repeat(7, 2))
        self.assertEqual(dict(copy.items()), {"a": 7, "b": 7})
        self.assertEqual(table.get_many(table.keys()), [1, 2])


class Cursors(TestCase):
    def test_to_and_fro(self):
        table = self.database().table("t", key=int, value=str)
        table.put_many((n, str(n)) for n in range(0, 100, 10))
        cursor = table.cursor()
        self.assertEqual((cursor.key(), cursor.value(), cursor.item()), (None, None, None))
        self.assertTrue(cursor.next())
        self.assertEqual(cursor.item(), (0, "0"))
        self.assertFalse(cursor.prev())
        self.assertFalse(cursor.prev())
        self.assertIsNone(cursor.item())
        self.assertTrue(cursor.next())
        self.assertEqual(cursor.key(), 0)
        self.assertTrue(cursor.seek(35))
        self.assertEqual(cursor.item(), (40, "40"))
        self.assertTrue(cursor.prev())
        self.assertEqual(cursor.item(), (30, "30"))
        self.assertTrue(cursor.next())
        self.assertEqual((cursor.key(), cursor.value()), (40, "40"))
        self.assertFalse(cursor.seek(91))
        self.assertIsNone(cursor.key())
        self.assertTrue(cursor.prev())
        self.assertEqual(cursor.key(), 90)
        self.assertTrue(cursor.last())
        self.assertFalse(cursor.next())
        self.assertTrue(cursor.first())
        self.assertTrue(cursor.next())
        self.assertEqual(cursor.key(), 10)

    def test_parts_of_a_table(self):
        table = self.database().table("t", key=tuple[str, int])
        table.put_many({(name, n): f"{n}" for name in "abc" for n in range(5)})
        cursor = table.cursor(("a", 3), ("b",))
        seen = []
        while cursor.next():
            seen.append(cursor.key())
        self.assertEqual(seen, [("a", 3), ("a", 4)])
        cursor = table.cursor(prefix=("b",))
        self.assertTrue(cursor.last())
        self.assertEqual(cursor.item(), (("b", 4), b"4"))
        self.assertTrue(cursor.seek(("a",)))
        self.assertEqual(cursor.key(), ("b", 0))
        self.assertFalse(cursor.seek(("c", 1)))
        with self.assertRaises(ValueError):
            table.cursor(("a",), prefix=("b",))
        with self.assertRaises(TypeError):
            cursor.seek("a")

    def test_hash_tables_have_no_places(self):
        table = self.database().table("t", "hash", key=int, value=int)
        table.put_many((n, n) for n in range(100))
        cursor, seen = table.cursor(), []
        while cursor.next():
            seen.append(cursor.key())
        self.assertEqual(seen, list(table))
        self.assertEqual(sorted(seen), list(range(100)))
        for call in (lambda: cursor.seek(1), lambda: table.cursor(1), lambda: table.cursor(hi=1)):
            with self.assertRaises(azekura.WrongType):
                call()

    def test_it_shows_its_moment(self):
        db = self.database()
        table = db.table("t", key=str, value=int)
        table.put_many({"a": 1, "b": 2})
        cursor = table.cursor()
        table.clear()
        self.assertTrue(cursor.last())
        self.assertEqual(cursor.item(), ("b", 2))
        table["c"] = 3
        with db.snapshot() as before, db.begin() as tx:
            own = tx.table(table)
            own["d"] = 4
            mine, old = own.cursor(), before.table(table).cursor()
            own["e"] = 5
            self.assertTrue(mine.last() and old.last())
            self.assertEqual((mine.key(), old.key()), ("d", "c"))
        # They may outlive what they were made in.
        self.assertTrue(mine.prev())
        self.assertEqual(mine.item(), ("c", 3))

    def test_values_are_read_when_asked_for(self):
        db = self.database()
        table = db.table("t", key=int)
        table.put_many((n, bytes([n]) * (1 << 20)) for n in range(8))
        db.flush()
        cursor = table.cursor()
        for n in range(8):
            self.assertTrue(cursor.next())
            self.assertEqual(cursor.key(), n)
            if n % 2:
                for _ in range(2):
                    self.assertEqual(cursor.value(), bytes([n]) * (1 << 20))

    def test_errors(self):
        db = self.database()
        db.table("t")[b"\xff"] = b"x"
        table = db.table("t", key=str)
        cursor = table.cursor()
        self.assertTrue(cursor.next())
        with self.assertRaises(azekura.WrongType):
            cursor.key()
        self.assertEqual(cursor.value(), b"x")
        db.close()
        for call in (cursor.next, cursor.key, cursor.first, table.cursor):
            with self.assertRaises(azekura.Closed):
                call()
