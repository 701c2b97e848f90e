"""Databases: tables, transactions, upkeep, errors, forks."""

import array
import collections
import itertools
import multiprocessing
import errno
import os
import pickle
import re
import signal
import subprocess
import sys
import time

import azekura
from tests.common import TestCase


class Tables(TestCase):
    def test_made_renamed_dropped(self):
        db = self.database()
        db.table("a")
        db.table("b", "hash")
        self.assertEqual(db.tables(), {"a": "ordered", "b": "hash"})
        self.assertEqual(db.table("b").kind, "hash")
        with self.assertRaises(azekura.WrongType):
            db.table("b", "ordered")
        handle = db.table("a")
        db.rename_table("a", "c")
        self.assertEqual(handle.name, "c")
        with self.assertRaises(azekura.TableExists):
            db.rename_table("c", "b")
        db.drop_table("c")
        for gone in (lambda: handle.get("x"), lambda: db.drop_table("c"), lambda: handle.put("x", "y")):
            with self.assertRaises(azekura.NoSuchTable):
                gone()
        with self.assertRaises(azekura.WrongType):
            db.table("b").range("a", "b")
        with self.assertRaises(azekura.TooLarge):
            db.table("x" * 256)
        with self.assertRaises(ValueError):
            db.table("x", "heap")

    def test_upkeep(self):
        db = self.database()
        table = db.table("t", key=int)
        table.put_many((n, b"x" * 100) for n in range(20_000))
        db.sync()
        db.flush()
        table.remove_range(0, 19_000)
        db.compact()
        told = []
        before, after = db.shrink(progress=lambda done, total: told.append((done, total)))
        self.assertLess(after, before)
        self.assertEqual(db.check(progress=lambda done, total: told.append((done, total))), [])
        self.assertTrue(told)
        self.assertTrue(all(0 <= done <= total for done, total in told))
        self.assertGreater(db.stats()["commits"], 0)
        with self.assertRaises(ZeroDivisionError):
            db.check(progress=lambda done, total: 1 // 0)
        with self.assertRaises(TypeError):
            db.check(progress=7)

    def test_how_far_merges_are(self):
        db = self.database()
        table, told = db.table("t", key=int), []
        values = [os.urandom(100) for _ in range(50_000)]
        table.put_many(enumerate(values))
        db.compact(progress=lambda done, total: told.append((done, total)))
        self.assertEqual(told[0][0], 0)
        self.assertEqual(told, sorted(told))
        # It is about as much as there is.
        (total,) = {total for _, total in told}
        self.assertEqual(told[-1], (total, total))
        self.assertTrue(5_000_000 < total < 15_000_000, total)
        self.assertEqual(table.stats()["levels"], 1)
        with self.assertRaises(ZeroDivisionError):
            db.compact(lambda done, total: 1 // 0)
        with self.assertRaises(TypeError):
            db.compact(progress=7)
        self.assertEqual(db.check(), [])

    def test_damage_is_found(self):
        with azekura.Database(self.path) as db:
            db.table("t").put_many((f"{n}", os.urandom(50)) for n in range(2000))
        with open(self.path, "r+b") as file:
            file.seek(os.path.getsize(self.path) // 2)
            file.write(b"damage")
        with azekura.Database(self.path) as db:
            self.assertTrue(db.check())
            with self.assertRaises(azekura.Corrupt) as raised:
                list(db.table("t").items())
            self.assertRegex(str(raised.exception), f"^{re.escape(self.path)}: corrupt .* at file offset")


class Errors(TestCase):
    def test_opening(self):
        with self.assertRaises(azekura.CannotOpen):
            azekura.Database(self.path, create=False)
        with self.assertRaises(FileNotFoundError) as raised:
            azekura.Database(self.path, read_only=True)
        self.assertEqual(raised.exception.errno, errno.ENOENT)
        self.assertIsInstance(raised.exception, azekura.CannotOpen)
        with self.assertRaises(FileNotFoundError):
            azekura.Database(os.path.join(self.path, "no", "such", "folder"))
        self.assertFalse(os.path.exists(self.path))
        db = self.database()
        with self.assertRaises(azekura.Locked) as raised:
            azekura.Database(self.path)
        self.assertIsInstance(raised.exception, OSError)
        self.assertIsInstance(raised.exception, azekura.Error)
        db.close()
        with self.assertRaises(FileExistsError) as raised:
            azekura.Database(self.path, exclusive=True)
        self.assertEqual(raised.exception.errno, errno.EEXIST)
        other = os.path.join(self.folder, "other")
        with open(other, "w") as file:
            file.write("something else" * 1000)
        with self.assertRaises(azekura.NotADatabase):
            azekura.Database(other)
        for wrong in ({"durability": "never"}, {"eventual_delay": -1}, {"memory_bytes": 1}):
            with self.assertRaises(ValueError):
                azekura.Database(self.path, **wrong)
        with self.assertRaises(TypeError):
            azekura.Database(self.path, cache=1)
        with self.assertRaises(TypeError):
            azekura.Database(7)

    def test_closed(self):
        db = azekura.Database(self.path)
        table = db.table("t")
        table.put_many((f"{n}", "") for n in range(1000))
        walk, tx, snapshot = iter(table), db.begin(), db.snapshot()
        tx.table(table)["x"] = "y"
        next(walk)
        db.close()
        db.close()
        for use in (
            lambda: table.get("1"),
            lambda: table.put("1", "2"),
            lambda: list(walk),
            lambda: tx.commit(),
            lambda: snapshot.table("t"),
            lambda: snapshot.table(table).get("1"),
            lambda: db.table("t"),
            lambda: db.sync(),
            lambda: db.check(),
            lambda: table.get_many(["1"]),
            lambda: table.put_many([("1", "2")]),
        ):
            with self.assertRaises(azekura.Closed) as raised:
                use()
            self.assertEqual(raised.exception.path, self.path)
            self.assertEqual(str(raised.exception), f"{self.path}: the database is closed")

    def test_errors_say_of_which_file(self):
        db, other = self.database(), azekura.Database(self.path + "2")
        numbers, index = other.table("n"), other.table("i").create_index("by_value", "v")
        numbers["text"] = "no number"
        tx = other.begin()
        uses = [
            (azekura.NoSuchTable, lambda: other.drop_table("none")),
            (azekura.NoSuchTable, lambda: tx.table("none")),
            (azekura.NoSuchTable, lambda: other.snapshot().table("none")),
            (azekura.WrongType, lambda: numbers.increment("text")),
            (azekura.WrongType, lambda: tx.table(numbers).increment("text")),
            (azekura.NoSuchIndex, lambda: numbers.index("none")),
            (azekura.Invalid, lambda: numbers.create_index("bad", "what")),
            (azekura.Invalid, lambda: next(index.get(1, 2))),
            (azekura.ReadOnly, lambda: other.snapshot().table(numbers).put("a", "b")),
        ]
        for kind, use in uses:
            with self.assertRaises(kind) as raised:
                use()
            self.assertEqual(raised.exception.path, str(other.path))
            self.assertIn(f"{self.path}2: ", str(raised.exception))
            self.assertEqual(pickle.loads(pickle.dumps(raised.exception)).path, raised.exception.path)
        # An error that names its file does so once, and one of no file names none.
        with self.assertRaises(azekura.Locked) as raised:
            azekura.Database(self.path)
        self.assertEqual((str(raised.exception).count(self.path), raised.exception.path), (1, None))
        with self.assertRaises(azekura.TransactionOver) as raised:
            tx.rollback()
            tx.commit()
        self.assertIsNone(raised.exception.path)
        other.close()
        db.close()

    def test_read_only(self):
        with azekura.Database(self.path) as db:
            db.table("t")["a"] = "1"
        with azekura.Database(self.path, read_only=True) as one, azekura.Database(self.path, read_only=True) as two:
            self.assertEqual(one.table("t")["a"], two.table("t")["a"])
            with self.assertRaises(azekura.ReadOnly):
                one.table("t")["a"] = "2"
            with self.assertRaises(azekura.ReadOnly):
                one.table("new")

    def test_limits(self):
        table = self.database().table("t")
        with self.assertRaises(azekura.TooLarge):
            table[b"k" * 65_537] = b""
        with self.assertRaises(ValueError):
            table.put_many([(b"k" * 65_537, b"")])


class Transactions(TestCase):
    def test_all_or_nothing(self):
        db = self.database()
        a, b = db.table("a", value=int), db.table("b", "hash", key=int, value=str)
        with db.begin() as tx:
            tx.table(a)["x"] = 1
            tx.table(b).put_many({1: "one", 2: "two"})
            self.assertEqual(tx.table(a)["x"], 1)
            self.assertEqual(tx.table("a").count(), 1)
            self.assertEqual(tx.table(b).get_many([2, 3]), ["two", None])
            self.assertEqual(a.count(), 0)
        self.assertEqual((a["x"], b[2]), (1, "two"))
        with self.assertRaises(ZeroDivisionError), db.begin() as tx:
            tx.table(a)["x"] = 1 // 0
        with self.assertRaises(RuntimeError), db.begin() as tx:
            tx.table(a)["x"] = 2
            del tx.table(b)[1]
            raise RuntimeError
        self.assertEqual((a["x"], b[1]), (1, "one"))
        with db.begin(durability="sync", isolation="snapshot") as tx:
            view = tx.table(a)
            view["x"] = 3
            tx.rollback()
        self.assertEqual(a["x"], 1)
        for use in (lambda: view["x"], tx.commit, tx.rollback, lambda: tx.table(a).put("x", 1)):
            with self.assertRaises(azekura.TransactionOver):
                use()
        for wrong in ({"durability": "x"}, {"isolation": "x"}):
            with self.assertRaises(ValueError):
                db.begin(**wrong)
        with self.assertRaises(azekura.NoSuchTable):
            db.begin().table("none")
        with self.assertRaises(TypeError):
            db.begin().table(7)

    def test_tables_of_other_databases(self):
        other = self.enterContext(azekura.Database(self.path + "2")).table("t")
        db = self.database()
        with self.assertRaises(azekura.Invalid):
            db.begin().table(other).put("a", "b")

    def test_savepoints(self):
        db = self.database()
        table = db.table("t", key=str, value=int)
        with db.begin() as tx:
            view = tx.table(table)
            view["a"] = 1
            first = tx.savepoint()
            view["b"] = 2
            second = tx.savepoint()
            view["c"] = 3
            second.rollback()
            self.assertEqual(list(view), ["a", "b"])
            first.rollback()
            view["d"] = 4
            first.rollback()
            self.assertEqual(list(view), ["a"])
            with self.assertRaises(azekura.Invalid):
                second.rollback()
            with tx.savepoint():
                view["e"] = 5
            with self.assertRaises(ZeroDivisionError), tx.savepoint():
                view["f"] = 1 // 0
        self.assertEqual(list(table), ["a", "e"])
        with self.assertRaises(azekura.TransactionOver):
            first.rollback()
        with self.assertRaises(azekura.TransactionOver):
            tx.savepoint()

    def test_tables_in_transactions(self):
        db = self.database()
        old = db.table("old", key=str, value=int)
        old["a"] = 1
        with db.begin(durability="eventual") as tx:
            made = tx.create_table("made", "hash", key=str, value=int)
            made["x"] = 2
            self.assertEqual((made["x"], list(made), made.kind), (2, ["x"], "hash"))
            self.assertEqual(db.tables(), {"old": "ordered"})
            with self.assertRaises(azekura.NoSuchTable):
                db.snapshot().table("made")
            with self.assertRaises(azekura.TableExists):
                tx.create_table("made")
            with self.assertRaises(azekura.WrongType):
                tx.table("made", "ordered")
            self.assertEqual(tx.table("made", "hash", key=str, value=int)["x"], 2)
            self.assertEqual(tx.table("more", "ordered").kind, "ordered")
            with self.assertRaises(ValueError):
                tx.create_table("other", "sideways")
            with self.assertRaises(TypeError):
                tx.table(old, "ordered")
            with self.assertRaises(ZeroDivisionError), tx.savepoint():
                tx.drop_table("old")
                with self.assertRaises(azekura.NoSuchTable):
                    tx.table(old)["a"]
                tx.rename_table("made", "old")
                self.assertEqual(tx.table("old", key=str, value=int)["x"], 2)
                1 // 0
            self.assertEqual(tx.table(old)["a"], 1)
            tx.rename_table("old", "older")
            tx.drop_table("more")
            with self.assertRaises(azekura.NoSuchTable):
                tx.table("old")
        self.assertEqual(db.tables(), {"made": "hash", "older": "ordered"})
        self.assertEqual((db.table("made", key=str, value=int)["x"], old["a"]), (2, 1))
        with self.assertRaises(azekura.TransactionOver):
            tx.create_table("late")
        with self.assertRaises(ZeroDivisionError), db.begin() as tx:
            tx.create_table("never")["a"] = b"1"
            1 // 0
        one, two = db.begin(), db.begin()
        one.create_table("same")["a"] = b"1"
        two.create_table("same")["a"] = b"2"
        one.commit()
        with self.assertRaises(azekura.Conflict):
            two.commit()
        self.assertEqual(list(db.table("same").items()), [(b"a", b"1")])
        self.assertNotIn("never", db.tables())

    def test_snapshots(self):
        db = self.database()
        table = db.table("t", key=int, value=int)
        table.put_many((n, n) for n in range(100))
        with db.snapshot() as snapshot:
            view = snapshot.table(table)
            table.clear()
            self.assertEqual(view.count(), 100)
            self.assertEqual(view[7], 7)
            self.assertEqual(view.get_many([8, 100]), [8, None])
            self.assertEqual(list(view.range(3, 5)), [(3, 3), (4, 4)])
            with self.assertRaises(azekura.ReadOnly):
                view[1] = 1
            with self.assertRaises(azekura.ReadOnly):
                view.put_many([(1, 1)])
        with self.assertRaises(azekura.TransactionOver):
            view.count()
        self.assertEqual(table.count(), 0)

    def test_conflicts(self):
        db = self.database()
        table = db.table("t", key=str, value=int)
        table["n"] = 0
        tx = db.begin()
        tx.table(table)["n"] += 1
        table["n"] = 5
        with self.assertRaises(azekura.Conflict):
            tx.commit()
        self.assertEqual(table["n"], 5)

        calls = []

        def disturbed(tx):
            calls.append(tx.table(table)["n"])
            tx.table(table)["n"] = calls[-1] + 1
            if len(calls) < 8:
                table["n"] += 10
            return "done"

        self.assertEqual(db.transact(disturbed), "done")
        self.assertEqual(calls, [5, 15, 25, 35, 45, 55, 65, 75])
        self.assertEqual(table["n"], 76)

        def always(tx):
            tx.table(table)["n"] += 1
            table["n"] += 1

        with self.assertRaises(azekura.Conflict):
            db.transact(always, retries=3)
        self.assertEqual(table["n"], 80)
        with self.assertRaises(ZeroDivisionError):
            db.transact(lambda tx: 1 // 0)

    def test_how_durable_and_how_isolated(self):
        db = self.database(durability="sync")
        table = db.table("t", key=str, value=int)
        table.put_many({"a": 1, "b": 1})
        calls = []

        def skewed(tx):
            calls.append(1)
            seen = tx.table(table)["b"]
            if len(calls) == 1:
                table["b"] += 1
            tx.table(table)["a"] = seen

        # What this one reads changes meanwhile, which only matters to one that is serializable.
        db.transact(skewed, isolation="snapshot")
        self.assertEqual((len(calls), table["a"]), (1, 1))
        calls.clear()
        db.transact(skewed)
        self.assertEqual((len(calls), table["a"]), (2, 3))
        before = db.stats()["syncs"]
        for _ in range(20):
            db.transact(lambda tx: tx.table(table).increment("a"), durability="eventual")
        eventual = db.stats()["syncs"] - before
        for _ in range(20):
            db.transact(lambda tx: tx.table(table).increment("a"), durability="sync")
        self.assertLess(eventual, 10)
        self.assertGreaterEqual(db.stats()["syncs"] - before - eventual, 20)
        for wrong in ({"durability": "never"}, {"isolation": "none"}):
            with self.assertRaises(ValueError):
                db.transact(lambda tx: None, **wrong)


class Interrupts(TestCase):
    """Ctrl-C in a call that takes long ends it, and the database is as it was."""

    def interrupted(self, work, after=0.15):
        """Calls `work` with a signal on its way; returns how long it took."""
        # A program in the background ignores Ctrl-C from its start.
        ours = {
            signal.SIGINT: signal.default_int_handler,
            signal.SIGALRM: lambda *_: signal.raise_signal(signal.SIGINT),
        }
        for number, handler in ours.items():
            self.addCleanup(signal.signal, number, signal.signal(number, handler))
        signal.setitimer(signal.ITIMER_REAL, after)
        begun = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            work()
        return time.monotonic() - begun

    def test_puts_and_walks(self):
        db = self.database()
        table = db.table("t", key=int, value=int)
        table[0] = 1
        # No code of Python runs while these are taken.
        self.interrupted(lambda: table.put_many(itertools.repeat((1, 1))))
        self.interrupted(lambda: table.get_many(itertools.repeat(1)))
        self.assertEqual(list(table.items()), [(0, 1)])
        table.put_many(array.array("q", range(200_000)), array.array("q", range(200_000)))
        self.interrupted(lambda: [list(table) for _ in range(1000)])
        self.assertEqual(db.check(), [])

    def test_calls_of_the_engine(self):
        db = self.database()
        db.table("t", key=int).put_many((n, b"x" * 50) for n in range(50_000))
        for call in (db.check, db.compact, lambda: db.backup(f"{self.path}.saved")):
            self.interrupted(lambda: [call() for _ in range(100_000)], after=0.1)
        # What was begun goes on by itself.
        self.assertEqual(db.check(), [])

    def test_counts(self):
        db = self.database()
        table, records, took = db.table("t", key=int, value=int), 0, 0
        while took < 0.2:
            more = array.array("q", range(records, 2 * records + 500_000))
            table.put_many(more, more)
            records += len(more)
            with db.begin() as tx:
                # What a transaction sees is counted by a scan.
                begun = time.monotonic()
                self.assertEqual(tx.table(table).count(), records)
                took = time.monotonic() - begun
        table[-1] = -1
        with db.snapshot() as snapshot, db.begin() as tx:
            for view in (tx.table(table), snapshot.table(table)):
                # No code of Python runs between the calls.
                calls = itertools.starmap(view.count, itertools.repeat((), 20))
                self.assertLess(self.interrupted(lambda: collections.deque(calls, maxlen=0), after=0.01), 10 * took)
                self.assertEqual(view.count(), records + 1)

    def test_flushes(self):
        """The call ends, and the flush goes on."""
        db = self.database(memory_bytes=1 << 30)
        table = db.table("t", key=int)
        keys = array.array("q", range(1_000_000))
        value = memoryview(os.urandom(100_000_000)).cast("B", (1_000_000, 100))
        table.put_many(keys, value)
        begun = time.monotonic()
        db.flush()
        took = time.monotonic() - begun
        table.put_many(keys, value)
        self.assertLess(self.interrupted(db.flush, after=0.01), max(took / 2, 0.1))
        db.sync()
        self.assertEqual(table.count(), 1_000_000)
        self.assertEqual(db.check(), [])

    def test_closing(self):
        """Who interrupts it waits for it all the same with another call, or at the end of the program."""
        slow = (
            "import azekura, signal, sys, threading, time\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "db = azekura.Database(sys.argv[1], durability='eventual', eventual_delay=1000)\n"
            "table = db.table('t', key=int)\n"
            "table.put_many((n, b'x' * 200) for n in range(400_000))\n"
            "signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.001)\n"
            "try:\n"
            "    [db.close() for _ in range(1_000_000)]\n"
            "except KeyboardInterrupt:\n"
            "    print('interrupted')\n"
        )
        done = subprocess.run([sys.executable, "-c", slow, self.path], check=True, capture_output=True, text=True)
        self.assertEqual(done.stdout, "interrupted\n")
        with azekura.Database(self.path) as db:
            self.assertEqual(db.table("t", key=int).count(), 400_000)
            self.assertEqual(db.stats()["log_commits"], 0)


    def test_closing_one_that_is_forgotten(self):
        """The end of the program waits for an interrupted call, though nobody has the database any more."""
        slow = (
            "import azekura, signal, sys\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))\n"
            "def write():\n"
            "    db = azekura.Database(sys.argv[1], durability='eventual', eventual_delay=1000)\n"
            "    table = db.table('t', key=int)\n"
            "    table.put_many((n, b'x' * 200) for n in range(1_000_000))\n"
            "    signal.setitimer(signal.ITIMER_REAL, 0.001)\n"
            "    with db:\n"
            "        pass\n"
            "try:\n"
            "    write()\n"
            "    signal.pause()\n"
            "except KeyboardInterrupt:\n"
            "    print('interrupted')\n"
        )
        done = subprocess.run([sys.executable, "-c", slow, self.path], check=True, capture_output=True, text=True)
        self.assertEqual(done.stdout, "interrupted\n")
        with azekura.Database(self.path) as db:
            self.assertEqual(db.table("t", key=int).count(), 1_000_000)
            self.assertEqual(db.stats()["log_commits"], 0)

    def test_an_interrupt_at_the_end_keeps_no_other_from_being_closed(self):
        program = (
            "import azekura, ctypes, sys\n"
            "class Interrupted(azekura.Database):\n"
            "    def close(self):\n"
            "        raise KeyboardInterrupt\n"
            "those = [Interrupted(f'{sys.argv[1]}.{n}') for n in range(8)]\n"
            "db = azekura.Database(sys.argv[1], durability='eventual', eventual_delay=1000)\n"
            "db.table('t', key=int).put_many((n, b'x') for n in range(1000))\n"
            # So that it is not closed by going.
            "ctypes.pythonapi.Py_IncRef(ctypes.py_object(db))\n"
        )
        done = subprocess.run([sys.executable, "-c", program, self.path], capture_output=True, text=True)
        self.assertIn("KeyboardInterrupt", done.stderr)
        with azekura.Database(self.path) as db:
            self.assertEqual(db.table("t", key=int).count(), 1000)
            self.assertEqual(db.stats()["log_commits"], 0)


def count_there(path):
    """How many records there are, counted by another process."""
    with azekura.Database(path, read_only=True) as db:
        return os.getpid(), db.table("t", key=int).count()


class Forks(TestCase):
    def test_other_processes_open_the_file_themselves(self):
        with azekura.Database(self.path) as db:
            table = db.table("t", key=int)
            table.put_many((n, "") for n in range(1000))
            for handle in (db, table, db.snapshot(), db.begin(), iter(table)):
                with self.assertRaises(TypeError):
                    pickle.dumps(handle)
            # Whoever reads keeps the file's lock.
            del handle
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            counted = pool.map(count_there, [self.path] * 4, chunksize=1)
        self.assertEqual({count for _, count in counted}, {1000})
        self.assertNotIn(os.getpid(), {process for process, _ in counted})

    def test_a_child_is_refused(self):
        db = self.database()
        table = db.table("t")
        table.put_many((f"{n}", "") for n in range(1000))
        walk, tx = iter(table), db.begin()
        view = tx.table(table)
        view["own"] = "1"
        child = os.fork()
        if child == 0:
            refused = 0
            for use in (
                lambda: table.get("1"),
                lambda: table.put("1", "2"),
                lambda: list(walk),
                lambda: view.put("1", "2"),
                lambda: db.begin().table(table).get("1"),
                tx.commit,
                db.sync,
                db.close,
            ):
                try:
                    use()
                except azekura.Forked:
                    refused += 1
            os._exit(refused)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 8)
        tx.commit()
        self.assertEqual(table["own"], b"1")
        self.assertEqual(db.check(), [])

    def test_what_is_open_at_the_end_is_closed(self):
        opened = "import azekura, sys; db = azekura.Database(sys.argv[1], durability='eventual', eventual_delay=1000)"
        writes = ("db.table('t')[sys.argv[2]] = ''", "t = db.table('t'); del db; t[sys.argv[2]] = ''")
        for number, write in enumerate(writes):
            subprocess.run([sys.executable, "-c", f"{opened}; {write}", self.path, str(number)], check=True)
            with azekura.Database(self.path) as db:
                self.assertIn(str(number), db.table("t"))
                self.assertEqual(db.stats()["log_commits"], 0)
