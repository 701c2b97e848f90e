"""Threads that share handles. In a build of Python without the interpreter's lock they do so all at once."""

import array
import sys
import sysconfig
import threading
import unittest

import azekura
from tests.common import TestCase


def is_free_threaded():
    """Whether this Python has been built without the interpreter's lock."""
    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


if is_free_threaded():

    class Lock(unittest.TestCase):
        def test_the_package_does_not_bring_it_back(self):
            self.assertFalse(sys._is_gil_enabled())


class Threads(TestCase):
    def run_all(self, work, threads=6):
        failures = []

        def guarded(number):
            try:
                work(number)
            except BaseException as failure:
                failures.append(failure)

        running = [threading.Thread(target=guarded, args=(number,)) for number in range(threads)]
        [thread.start() for thread in running]
        [thread.join() for thread in running]
        self.assertEqual(failures, [])

    def test_counting_together(self):
        db = self.database()
        table = db.table("t", value=int)

        def add_one(tx):
            tx.table(table)["n"] = tx.table(table).get("n", 0) + 1

        def work(number):
            for _ in range(100):
                db.transact(add_one, retries=10_000)
                table.increment("m")

        self.run_all(work)
        self.assertEqual((table["n"], table["m"]), (600, 600))

    def test_one_transaction_in_many_threads(self):
        db = self.database()
        table = db.table("t", key=int, value=int)
        tx = db.begin()
        shared, snapshot = tx.table(table), db.snapshot().table(table)

        def work(number):
            for n in range(500):
                shared[number * 1000 + n] = n
                self.assertNotIn(n, snapshot)
            self.assertGreaterEqual(len(list(shared.range(number * 1000))), 500)

        self.run_all(work)
        tx.commit()
        self.assertEqual(table.count(), 3000)

    def test_closing_under_way(self):
        db = azekura.Database(self.path, durability="eventual")
        table = db.table("t", key=int, value=int)
        begun = threading.Barrier(6)

        def work(number):
            begun.wait()
            try:
                for n in range(1_000_000):
                    if number == 0 and n == 200:
                        db.close()
                    table[n] = number
                    table.get(n)
            except azekura.Closed:
                return
            self.fail("it was closed")

        self.run_all(work)

    def test_one_iterator_in_many_threads(self):
        db = self.database()
        table = db.table("t", key=int, value=int)
        table.put_many((n, n) for n in range(30_000))
        for walk, due in (
            (iter(table.items()), [(n, n) for n in range(30_000)]),
            (table.range(10_000, reverse=True), [(n, n) for n in range(10_000, 30_000)]),
            (iter(table), list(range(30_000))),
            (table.drain(hi=5_000), [(n, n) for n in range(5_000)]),
        ):
            parts = [[] for _ in range(6)]
            self.run_all(lambda number: parts[number].extend(walk))
            # Each record went to one of them, and to each in their order.
            self.assertEqual(sorted(sum(parts, [])), due)
            for part in parts:
                self.assertIn(part, (sorted(part), sorted(part, reverse=True)))

    def test_an_iterator_that_asks_itself(self):
        db = self.database()
        table = db.table("t", key=int, value="pickle")
        table.put_many((n, Asking()) for n in range(3))
        Asking.walk = iter(table.values())
        try:
            with self.assertRaises(RuntimeError):
                next(Asking.walk)
            # The record is passed over, and the iterator is as good as before.
            Asking.walk, walk = iter(()), Asking.walk
            self.assertEqual(len(list(walk)), 2)
        finally:
            Asking.walk = iter(())

    def test_everything_at_once(self):
        """Every kind of call on one table, by many threads, with a sum that only whole commits keep."""
        db = self.database()
        table, tags = db.table("t", key=int, value=int), db.table("tags", "hash", key=str, value="json")
        table.put_many((n, 100) for n in range(50))
        index = tags.create_index("by_owner", "v./owner:i64")

        def move(number, n):
            def once(tx):
                view, low, high = tx.table(table), (number * 7 + n) % 50, (number + n * 11) % 50
                if low != high:
                    view[low], view[high] = view[low] - 1, view[high] + 1
            db.transact(once, retries=100_000)

        def work(number):
            for n in range(60):
                move(number, n)
                with db.snapshot() as now:
                    self.assertEqual(sum(now.table(table).values()), 5_000)
                self.assertEqual(sum(value for _, value in table.items()), 5_000)
                tags[f"{number}-{n}"] = {"owner": number, "n": n}
                self.assertEqual(tags[f"{number}-{n}"]["n"], n)
                self.assertEqual(len(list(index.get(number))), n + 1)
                self.assertEqual(table.get_many(array.array("q", [-1, 99])), [None, None])
                if n % 20 == number:
                    db.flush()
                    self.assertGreater(db.stats()["commits"], 0)

        self.run_all(work)
        self.assertEqual((sum(table.values()), tags.count()), (5_000, 360))
        self.assertEqual(db.check(), [])

    def test_buffers_that_others_change(self):
        """What is read of a buffer may be any mixture, but its rows are rows, and nothing is torn down."""
        db = self.database()
        table = db.table("t", key=int, value=int)
        keys, values = array.array("q", range(1_000)), array.array("q", [0] * 1_000)
        key = bytearray(b"k" * 100)
        plain = db.table("plain")

        def work(number):
            for n in range(30):
                for place in range(0, 1_000, 7):
                    values[place] = number
                table.put_many(keys, values)
                key[n % 100] = number
                plain[bytes(key)] = key
                self.assertEqual(len(plain[b"k" * 100] if b"k" * 100 in plain else key), 100)

        self.run_all(work)
        self.assertEqual(list(table), list(range(1_000)))
        self.assertLessEqual(set(table.values()), set(range(6)))

    def test_one_mapping_in_many_threads(self):
        with azekura.open(self.path, "c") as mapping:
            def work(number):
                for n in range(200):
                    mapping[f"{number}-{n}"] = b"x"
                    self.assertEqual(mapping.setdefault("first", str(number)), mapping["first"])
                self.assertGreaterEqual(len(mapping.keys()), 200)

            self.run_all(work)
            self.assertEqual(len(mapping), 1201)


class Asking:
    """A value that, when it is read, asks the iterator that reads it."""

    walk = iter(())

    def __reduce__(self):
        return (Asking.read, ())

    @staticmethod
    def read():
        next(Asking.walk, None)
        return Asking()


if __name__ == "__main__":
    unittest.main()
