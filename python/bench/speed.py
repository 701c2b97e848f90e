"""How many records of 8 + 8 bytes go in and come out per second: `python3 speed.py [RECORDS]`.

With NumPy installed also those of its arrays, with PyArrow those of Arrow data.
"""

import os
import random
import sys
import tempfile
import time
from array import array

import azekura

try:
    import numpy
except ImportError:
    numpy = None
try:
    import pyarrow
except ImportError:
    pyarrow = None


def measured(name, records, work):
    """Runs it three times and prints the best."""
    best = min(timed(work) for _ in range(3))
    print(f"{name:36} {records / best / 1e6:8.2f} M/s")


def timed(work):
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def main():
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    draw = random.Random(1)
    numbers = array("q", (draw.randrange(-(2**63), 2**63) for _ in range(records)))
    keys = [number.to_bytes(8, "big", signed=True) for number in numbers]
    some = keys[: records // 10]
    with tempfile.TemporaryDirectory() as folder:
        with azekura.Database(os.path.join(folder, "speed.azk"), durability="eventual") as db:
            raw, typed = db.table("raw"), db.table("typed", key=int, value=int)
            measured("put_many, list of pairs of bytes", records, lambda: raw.put_many(zip(keys, keys)))
            measured("put_many, two buffers of int", records, lambda: typed.put_many(numbers, numbers))
            if numpy:
                rows, array_of_int = numpy.frombuffer(b"".join(keys), dtype="V8"), numpy.array(numbers)
                measured("put_many, NumPy rows of 8 bytes", records, lambda: raw.put_many(rows, rows))
                measured("put_many, NumPy int64", records, lambda: typed.put_many(array_of_int, array_of_int))
            if pyarrow:
                given = pyarrow.table({"key": numbers, "value": numbers})
                measured("put_many, Arrow table of int", records, lambda: typed.put_many(given))
            measured("put, one by one", len(some), lambda: [raw.put(key, key) for key in some])
            db.compact()
            measured("get, one by one", len(some), lambda: [raw.get(key) for key in some])
            with db.snapshot() as snapshot:
                view = snapshot.table(raw)
                measured("get, in a snapshot", len(some), lambda: [view.get(key) for key in some])
            measured("get_many, list of bytes", records, lambda: raw.get_many(keys))
            measured("get_many, buffer of int", records, lambda: typed.get_many(numbers))
            if numpy:
                measured("get_many, NumPy rows of 8 bytes", records, lambda: raw.get_many(rows))
                measured("get_many, NumPy int64", records, lambda: typed.get_many(array_of_int))
            if pyarrow:
                column = given.column("key")
                measured("get_many, Arrow column of int", records, lambda: typed.get_many(column))
                measured("to_arrow of int, into PyArrow", records, lambda: pyarrow.table(typed.to_arrow()))
                measured("to_arrow of bytes, into PyArrow", records, lambda: pyarrow.table(raw.to_arrow()))
            measured("items of bytes", records, lambda: [None for _ in raw.items()])
            measured("items of int", records, lambda: [None for _ in typed.items()])
            measured("keys of bytes", records, lambda: [None for _ in raw.keys()])


if __name__ == "__main__":
    main()
