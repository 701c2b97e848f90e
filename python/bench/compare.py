"""Azekura beside what else a Python program can keep records in: records of 8 + 8 bytes at random keys.

    python3 compare.py --set-up DIR     makes a virtual environment with all that can be had, and runs there
    python3 compare.py [STORE…]         compares what the interpreter has

Nothing waits for the disk at each record: a store is told to write behind where it can be told. So a crash of the
system may lose the last second everywhere; what is left of the file then differs, which is in the last column.
The best of some rounds counts, in which the stores take turns.
"""

import argparse
import importlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import venv

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = ("open", "put", "put_many", "get", "get, snapshot", "get_many", "iterate", "bytes")


class Store:
    """What a store does at each step. None stands for a step that it has not."""

    kind = "?"
    module = None
    file_name = "store"

    def __init__(self, path):
        self.path = path
        self.open()

    snapshot = get_many = None

    def close(self):
        self.db.close()


class Azekura(Store):
    kind, module = "log and runs, transactions", "azekura"

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
    kind, module = "the same, as dbm", "azekura"

    def open(self):
        self.db = sys.modules["azekura"].open(self.path, "c")
        self.put, self.get, self.put_many, self.items = (
            self.db.__setitem__, self.db.__getitem__, self.db.update, self.db.items,
        )


class Lmdb(Store):
    kind, module = "B+ tree, transactions", "lmdb"

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
    kind, module = "hash table", "dbm.gnu"

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
    kind, module = "B tree", "dbm.sqlite3"

    def open(self):
        self.db = sys.modules["dbm.sqlite3"].open(self.path, "c")
        self.put, self.get, self.put_many = self.db.__setitem__, self.db.__getitem__, self.db.update
        self.items = self.db.items


class Sqlite(Store):
    kind, module = "B tree, transactions", "sqlite3"

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
    kind, module = "log and runs, batches", "plyvel"

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
    kind, module = "log and runs, batches", "rocksdict"

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
    kind, module = "SQLite and files", "diskcache"

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


def rate(work, records, seconds):
    """How many records a second `work` does, one after the other, for so many seconds at most."""
    begun, done = time.perf_counter(), 0
    while done < len(records) and time.perf_counter() - begun < seconds:
        some = records[done : done + 200]
        work(some)
        done += len(some)
    return done / (time.perf_counter() - begun)


def timed(work, records):
    begun = time.perf_counter()
    work()
    return records / (time.perf_counter() - begun)


def size(path):
    """The bytes of a file, or of all files of a folder, and of those beside it."""
    folder = os.path.dirname(path)
    files = [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names]
    return sum(os.path.getsize(file) for file in files)


def measure(kind, pairs, seconds):
    """One round of a store: records a second for each step, milliseconds to open, bytes of file for each record."""
    folder = tempfile.mkdtemp(prefix="azekura-compare-")
    path = os.path.join(folder, kind.file_name)
    few, keys = pairs[: len(pairs) // 10], [key for key, _ in pairs]
    random.Random(2).shuffle(keys)
    found = dict.fromkeys(STEPS)
    try:
        store = kind(path)
        found["put_many"] = timed(lambda: store.put_many(pairs), len(pairs))
        found["put"] = rate(lambda some: [store.put(key, value) for key, value in some], few, seconds)
        store.close()
        begun = time.perf_counter()
        store = kind(path)
        store.get(keys[0])
        found["open"] = (time.perf_counter() - begun) * 1e3
        # What is read first may come from the disk.
        rate(lambda some: [store.get(key) for key in some], keys, seconds / 2)
        get = store.get
        found["get"] = rate(lambda some: [get(key) for key in some], keys, seconds)
        if store.snapshot:
            get = store.snapshot()
            found["get, snapshot"] = rate(lambda some: [get(key) for key in some], keys, seconds)
            store.end_snapshot()
        if store.get_many:
            some = keys[: len(keys) // 4]
            found["get_many"] = timed(lambda: store.get_many(some), len(some))
        found["iterate"] = rate_of_walk(store.items(), seconds)
        store.close()
        found["bytes"] = size(path) / len(pairs)
    finally:
        shutil.rmtree(folder)
    return found


def rate_of_walk(items, seconds):
    begun, done = time.perf_counter(), 0
    for done, _ in enumerate(items, 1):
        if done % 10_000 == 0 and time.perf_counter() - begun > seconds:
            break
    return done / (time.perf_counter() - begun)


def best(rounds):
    """The best of each step: the least of what is not a rate."""
    least = ("open", "bytes")
    return {
        step: None if rounds[0][step] is None else (min if step in least else max)(r[step] for r in rounds)
        for step in STEPS
    }


def shown(step, figure):
    if figure is None:
        return ""
    if step == "open":
        return f"{figure:.1f} ms"
    if step == "bytes":
        return f"{figure:.1f}"
    return f"{figure / 1e6:.2f}" if figure >= 1e4 else f"{figure / 1e6:.4f}"


def compare(names, records, rounds, seconds):
    there, missing = {}, []
    for name in names:
        try:
            importlib.import_module(STORES[name].module)
            there[name] = STORES[name]
        except ImportError as error:
            missing.append(f"not there: {name} ({error})")
    draw = random.Random(1)
    pairs = [(draw.randbytes(8), draw.randbytes(8)) for _ in range(records)]
    results = {name: [] for name in there}
    for _ in range(rounds):
        for name, kind in there.items():
            results[name].append(measure(kind, pairs, seconds))
    print(f"Python {sys.version.split()[0]}, {records:,} records, millions a second; the best of {rounds}\n")
    print("| | " + " | ".join(STEPS) + " | what it is |")
    print("|---" * (len(STEPS) + 2) + "|")
    for name, found in results.items():
        figures = best(found)
        print(f"| {name} | " + " | ".join(shown(step, figures[step]) for step in STEPS) + f" | {there[name].kind} |")
    print("\n".join(["", *missing]))


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
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.4, help="for each step of single records")
    parser.add_argument("--set-up", metavar="DIR", help="a folder for the virtual environment")
    given = parser.parse_args()
    wrong = set(given.stores) - set(STORES)
    if wrong:
        parser.error(f"no such store: {', '.join(sorted(wrong))}")
    if given.set_up:
        rest = ["--records", str(given.records), "--rounds", str(given.rounds), "--seconds", str(given.seconds)]
        set_up(given.set_up, [*given.stores, *rest])
    compare(given.stores or list(STORES), given.records, given.rounds, given.seconds)


if __name__ == "__main__":
    main()
