"""Azekura beside what else a Python program can keep records in: keys of 16 bytes, values that cannot be compressed.

    python3 compare.py --set-up DIR     makes a virtual environment with all that can be had, and runs there
    python3 compare.py [STORE…]         compares what the interpreter has

Each store runs in a process of its own, with the same records. Nothing waits for the disk at each record: a store is
told to write behind where it can be told. So a crash of the system may lose the last second everywhere; what is left
of the file then differs. Every value that is read is compared with what was put, beside the clock. The best of some
rounds counts, in which the stores take turns.
"""

import argparse
import importlib
import itertools
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import venv

HERE = os.path.dirname(os.path.abspath(__file__))
KEY_BYTES = 16
# Each step, and how its figure is shown.
STEPS = {
    "open": "ms", "put": "M/s", "put_many": "M/s", "get": "M/s", "get, snapshot": "M/s", "get_many": "M/s",
    "iterate": "M/s", "file": "B",
}
FEATURES = ("ordered", "transactions", "on the disk")


class Store:
    """What a store does at each step. None stands for a step that it has not."""

    module = None
    file_name = "store"
    # How many records are put or read by one call, where many are.
    at_once = 20_000
    # What it is: whether it keeps the keys in order, what a transaction may be, what it lays on the disk.
    features = ("?", "?", "?")

    def __init__(self, path):
        self.path = path
        self.open()

    snapshot = get_many = None

    def fill(self, pairs):
        """Puts what is not measured."""
        self.put_many(pairs)

    def close(self):
        self.db.close()


class Azekura(Store):
    module, features = "azekura", ("yes", "reads and writes", "one file")

    def open(self):
        self.db = sys.modules["azekura"].Database(self.path, durability="eventual")
        self.table = self.db.table("t")
        self.put, self.get, self.get_many = self.table.put, self.table.get, self.table.get_many
        self.put_many, self.items = self.table.put_many, self.table.items

    def snapshot(self):
        self.moment = self.db.snapshot()
        return self.moment.table(self.table).get

    def end_snapshot(self):
        self.moment.close()


class AzekuraDbm(Store):
    module, features = "azekura", ("yes", "none", "one file")

    def open(self):
        self.db = sys.modules["azekura"].open(self.path, "c")
        self.put, self.get, self.put_many, self.items = (
            self.db.__setitem__, self.db.__getitem__, self.db.update, self.db.items,
        )


class Lmdb(Store):
    module, features = "lmdb", ("yes", "one writer", "a file and its lock")

    def open(self):
        # A crash of the system may damage the file: LMDB has nothing between this and a sync for each commit.
        self.db = sys.modules["lmdb"].open(self.path, map_size=4 << 30, subdir=False, sync=False)

    def put(self, key, value):
        with self.db.begin(write=True) as txn:
            txn.put(key, value)

    def put_many(self, pairs):
        with self.db.begin(write=True) as txn, txn.cursor() as cursor:
            cursor.putmulti(pairs)

    def get(self, key):
        with self.db.begin() as txn:
            return txn.get(key)

    def snapshot(self):
        self.moment = self.db.begin()
        return self.moment.get

    def end_snapshot(self):
        self.moment.abort()

    def get_many(self, keys):
        with self.db.begin() as txn, txn.cursor() as cursor:
            return cursor.getmulti(keys)

    def items(self):
        with self.db.begin() as txn, txn.cursor() as cursor:
            yield from cursor


class Gdbm(Store):
    module, features = "dbm.gnu", ("no", "none", "one file")

    def open(self):
        self.db = sys.modules["dbm.gnu"].open(self.path, "cf")
        self.put, self.get = self.db.__setitem__, self.db.get

    def put_many(self, pairs):
        for key, value in pairs:
            self.db[key] = value

    def items(self):
        key = self.db.firstkey()
        while key is not None:
            yield key, self.db[key]
            key = self.db.nextkey(key)


class DbmSqlite(Store):
    """It waits for the disk at each put, and cannot be told not to."""

    at_once = 200
    module, features = "dbm.sqlite3", ("no", "none", "a file and its log")

    def open(self):
        self.db = sys.modules["dbm.sqlite3"].open(self.path, "c")
        self.put, self.get, self.put_many = self.db.__setitem__, self.db.__getitem__, self.db.update
        self.items = self.db.items

    def fill(self, pairs):
        """By what is below it, in one transaction."""
        with sqlite3.connect(self.path) as below:
            below.executemany("REPLACE INTO Dict (key, value) VALUES (?, ?)", pairs)
        below.close()


class Sqlite(Store):
    module, features = "sqlite3", ("yes", "one writer", "a file and its log")

    def open(self):
        self.db = sys.modules["sqlite3"].connect(self.path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = wal")
        self.db.execute("PRAGMA synchronous = normal")
        self.db.execute("CREATE TABLE IF NOT EXISTS t (k BLOB PRIMARY KEY, v BLOB) WITHOUT ROWID")

    def put(self, key, value):
        self.db.execute("INSERT OR REPLACE INTO t VALUES (?, ?)", (key, value))

    def put_many(self, pairs):
        self.db.execute("BEGIN")
        self.db.executemany("INSERT OR REPLACE INTO t VALUES (?, ?)", pairs)
        self.db.execute("COMMIT")

    def get(self, key):
        return self.db.execute("SELECT v FROM t WHERE k = ?", (key,)).fetchone()[0]

    def snapshot(self):
        self.db.execute("BEGIN")
        return self.get

    def end_snapshot(self):
        self.db.execute("COMMIT")

    def items(self):
        return self.db.execute("SELECT k, v FROM t")


class LevelDb(Store):
    module, features = "plyvel", ("yes", "batches", "a folder")

    def open(self):
        self.db = sys.modules["plyvel"].DB(self.path, create_if_missing=True, lru_cache_size=256 << 20)
        self.put, self.get, self.items = self.db.put, self.db.get, self.db.iterator

    def put_many(self, pairs):
        with self.db.write_batch() as batch:
            for key, value in pairs:
                batch.put(key, value)

    def snapshot(self):
        self.moment = self.db.snapshot()
        return self.moment.get

    def end_snapshot(self):
        self.moment.close()


class RocksDb(Store):
    module, features = "rocksdict", ("yes", "batches", "a folder")

    def open(self):
        rocksdict = sys.modules["rocksdict"]
        self.batch = rocksdict.WriteBatch
        self.db = rocksdict.Rdict(self.path, rocksdict.Options(raw_mode=True))
        self.put, self.get, self.items = self.db.__setitem__, self.db.get, self.db.items

    def put_many(self, pairs):
        batch = self.batch(raw_mode=True)
        for key, value in pairs:
            batch.put(key, value)
        self.db.write(batch)

    def snapshot(self):
        self.moment = self.db.snapshot()
        return self.moment.__getitem__

    def end_snapshot(self):
        del self.moment

    def get_many(self, keys):
        return self.db.get(keys)


class DiskCache(Store):
    module, features = "diskcache", ("no", "one writer", "a folder")

    def open(self):
        self.db = sys.modules["diskcache"].Cache(self.path, eviction_policy="none", size_limit=1 << 40)
        self.put, self.get = self.db.__setitem__, self.db.get

    def put_many(self, pairs):
        with self.db.transact():
            for key, value in pairs:
                self.db[key] = value

    def items(self):
        for key in self.db:
            yield key, self.db[key]


STORES = {
    "azekura": Azekura, "azekura.open": AzekuraDbm, "lmdb": Lmdb, "dbm.gnu": Gdbm, "dbm.sqlite3": DbmSqlite,
    "sqlite3": Sqlite, "plyvel": LevelDb, "rocksdict": RocksDb, "diskcache": DiskCache,
}
PACKAGES = ("lmdb", "plyvel", "rocksdict", "diskcache")


def rate(work, records, seconds, at_once=200, check=None):
    """How many records a second `work` does, some at a time, for so many seconds at most; and how many it did.

    What it returns is checked while the clock stands.
    """
    spent, done = 0, 0
    while done < len(records) and spent < seconds:
        some = records[done : done + at_once]
        begun = time.perf_counter()
        result = work(some)
        spent += time.perf_counter() - begun
        if check:
            check(some, result)
        done += len(some)
    return done / spent, done


def records_of(count, value_bytes):
    """The same keys and values in each process, as pairs."""
    draw = random.Random(1)
    keys, values = draw.randbytes(KEY_BYTES * count), draw.randbytes(value_bytes * count)
    return [
        (keys[n * KEY_BYTES : (n + 1) * KEY_BYTES], values[n * value_bytes : (n + 1) * value_bytes])
        for n in range(count)
    ]


def measure(kind, pairs, seconds):
    """One round of a store: records a second for each step, milliseconds to open, bytes on the disk per record."""
    folder = tempfile.mkdtemp(prefix="azekura-compare-")
    path = os.path.join(folder, kind.file_name)
    known, keys = dict(pairs), [key for key, _ in pairs]
    random.Random(2).shuffle(keys)

    def check(some, found):
        # Some give pairs.
        if [value[1] if isinstance(value, tuple) else value for value in found] != [known[key] for key in some]:
            raise SystemExit(f"{kind.__name__} has given a wrong value")

    found = dict.fromkeys(STEPS)
    try:
        store = kind(path)
        found["put_many"], done = rate(store.put_many, pairs, 5 * seconds, store.at_once)
        store.fill(pairs[done:])
        found["put"], _ = rate(lambda some: [store.put(key, value) for key, value in some], pairs, seconds)
        store.close()
        begun = time.perf_counter()
        store = kind(path)
        check(keys[:1], [store.get(keys[0])])
        found["open"] = (time.perf_counter() - begun) * 1e3
        get = store.get
        # What is read first may come from the disk.
        rate(lambda some: [get(key) for key in some], keys, seconds / 2)
        found["get"], _ = rate(lambda some: [get(key) for key in some], keys, seconds, check=check)
        if store.snapshot:
            get = store.snapshot()
            found["get, snapshot"], _ = rate(lambda some: [get(key) for key in some], keys, seconds, check=check)
            store.end_snapshot()
        if store.get_many:
            found["get_many"], _ = rate(store.get_many, keys, seconds, store.at_once, check)
        found["iterate"] = walk(store.items(), known, seconds)
        store.close()
        found["file"] = size(folder) / len(pairs)
    finally:
        shutil.rmtree(folder)
    return found


def walk(items, known, seconds):
    """How many records a second come in a walk; all of them come, each once, if there is time."""
    spent, seen, items = 0, 0, iter(items)
    while spent < seconds:
        begun = time.perf_counter()
        some = list(itertools.islice(items, 1000))
        spent += time.perf_counter() - begun
        if any(known.get(key) != value for key, value in some):
            raise SystemExit("a walk has given a wrong record")
        seen += len(some)
        if not some:
            if seen != len(known):
                raise SystemExit(f"a walk has given {seen} records of {len(known)}")
            break
    return seen / spent


def size(folder):
    """The bytes of all files of a folder."""
    files = [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names]
    return sum(os.path.getsize(file) for file in files)


def best(rounds):
    """The best of each step: the least of what is not a rate."""
    return {
        step: None if rounds[0][step] is None else (max if unit == "M/s" else min)(r[step] for r in rounds)
        for step, unit in STEPS.items()
    }


def shown(step, figure):
    if figure is None:
        return ""
    if STEPS[step] == "M/s":
        return f"{figure / 1e6:.2f}" if figure >= 5e4 else f"{figure / 1e6:.4f}"
    return f"{figure:.1f}"


def aligned(rows, markdown, right):
    """A table; its first column, and with `right` no other, stands to the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def line(row):
        cells = [
            cell.rjust(width) if right and i > 0 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths))
        ]
        return f"| {' | '.join(cells)} |" if markdown else "  ".join(cells).rstrip()

    rule = ["-" * (width - 1) + (":" if markdown and right and i > 0 else "-") for i, width in enumerate(widths)]
    return "\n".join([line(rows[0]), line(rule), *(line(row) for row in rows[1:])])


def arguments_of(given):
    """The options once more, for a process that this one starts."""
    named = ("records", "value_bytes", "rounds", "seconds")
    said = [f"--{name.replace('_', '-')}={getattr(given, name)}" for name in named]
    return said + ["--markdown"] * given.markdown + [f"--python={pair}" for pair in given.python]


def in_process(name, python, given):
    """One round of a store, in a process of its own. Returns its figures, or why there are none."""
    command = [python, os.path.join(HERE, "compare.py"), "--one", name, *arguments_of(given)]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"{name} has failed: {done.stdout}{done.stderr}") from None


def compare(names, given):
    pythons = dict(pair.split("=", 1) for pair in given.python)
    results, missing = {name: [] for name in names}, []
    for _ in range(given.rounds):
        for name in list(results):
            found = in_process(name, pythons.get(name, sys.executable), given)
            if "missing" in found:
                missing.append(f"not there: {name} ({found['missing']})")
                del results[name]
            else:
                results[name].append(found)
    sizes = f"{given.records:,} records of {KEY_BYTES} + {given.value_bytes} bytes"
    print(f"Python {sys.version.split()[0]}, {sizes}; the best of {given.rounds} rounds; millions of records a second,")
    print("milliseconds to open and to get a first record, and bytes on the disk for each record\n")
    rows = [["", *(step if unit == "M/s" else f"{step}, {unit}" for step, unit in STEPS.items())]]
    for name, rounds in results.items():
        figures = best(rounds)
        rows.append([name, *(shown(step, figures[step]) for step in STEPS)])
    print(aligned(rows, given.markdown, True))
    rows = [["", *FEATURES], *([name, *STORES[name].features] for name in results)]
    print("", aligned(rows, given.markdown, False), "", *missing, sep="\n")


def one(name, given):
    """What the process of a store does."""
    try:
        importlib.import_module(STORES[name].module)
    except ImportError as error:
        return {"missing": str(error)}
    return measure(STORES[name], records_of(given.records, given.value_bytes), given.seconds)


def set_up(folder, arguments):
    """Makes an environment, and runs this program there."""
    venv.create(folder, with_pip=True)
    python = os.path.join(folder, "bin", "python")
    for package in (os.path.dirname(HERE), *PACKAGES):
        done = subprocess.run([python, "-m", "pip", "install", "--quiet", package], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"cannot be had: {package}: {(done.stderr.strip().splitlines() or ['?'])[-1]}", flush=True)
    sys.exit(subprocess.run([python, os.path.join(HERE, "compare.py"), *arguments]).returncode)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stores", nargs="*", metavar="STORE", help=", ".join(STORES))
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.4, help="for each step")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    parser.add_argument(
        "--python", action="append", default=[], metavar="STORE=PATH", help="another interpreter for a store"
    )
    parser.add_argument("--set-up", metavar="DIR", help="a folder for the virtual environment")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    wrong = set(given.stores) - set(STORES)
    if wrong:
        parser.error(f"no such store: {', '.join(sorted(wrong))}")
    if given.one:
        json.dump(one(given.one, given), sys.stdout)
    elif given.set_up:
        set_up(given.set_up, [*given.stores, *arguments_of(given)])
    else:
        compare(given.stores or list(STORES), given)


if __name__ == "__main__":
    main()
