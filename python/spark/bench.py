"""The figures of sets of shards: `cargo xtask spark bench`. Everything on the right of a figure was measured in the same
run, on the same machine.

- `build`: rows a second from Arrow batches into files, by one engine and by the shard writers, without Spark.
- `spark`: the same rows through Spark: prepared and written; and Parquet, as the rows come, and divided and sorted as
  the shards are. Spark is warm: each way was gone before with few rows, which starts its processes and compiles.
- `lookup`: keys looked up with `azekura.spark.lookup`, with and without a shuffle, beside Spark's join with Parquet.
"""

import argparse
import json
import os
import shutil
import tempfile
import time

import azekura
import azekura.spark
import pyarrow
import pyarrow.compute
from pyspark.sql import SparkSession, functions

BATCH = 1 << 16
CORES = 2


def said(what, rows, seconds, extra="", cores=1):
    rate = rows / seconds / 1e6
    print(f"{what:46} {rate:8.2f} M/s {rate / cores:8.2f} M/s/core {seconds:8.2f} s  {extra}", flush=True)


def size(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)


def mixed(ids):
    """Values that cannot be guessed from their keys."""
    return pyarrow.compute.bit_wise_xor(ids, pyarrow.compute.shift_left(ids, 17))


def spec(shards):
    def column(name):
        return [{"name": name, "type": "i64", "nullable": False}]

    return json.dumps({"kind": "hash", "shards": shards, "hash_seed": "0" * 16, "key": column("id"), "value": column("value")})


def sorted_rows(rows, shards):
    """All rows in the order of their hashes: what the shuffle of Spark makes."""
    ids = pyarrow.array(range(rows), pyarrow.int64())
    table = pyarrow.table({"id": ids, "value": mixed(ids)})
    hashes = azekura._azekura.shard_hashes(table, spec(shards))
    hashes = pyarrow.Array.from_buffers(pyarrow.int64(), rows, [None, pyarrow.py_buffer(hashes)])
    return table.take(pyarrow.compute.sort_indices(hashes)).combine_chunks()


def build(folder, rows, shards):
    table = sorted_rows(rows, shards)
    batches = table.to_batches(BATCH)
    path = os.path.join(folder, "one.azk")
    started = time.perf_counter()
    with azekura.Database(path, durability="eventual") as db:
        t = db.table("t", "hash", key=int, value=int)
        for batch in batches:
            t.from_arrow(batch, key="id", value="value")
    seconds = time.perf_counter() - started
    said("one engine, random keys, one thread", rows, seconds, f"{size(path) / rows:.2f} bytes a row")
    os.remove(path)
    path = os.path.join(folder, "ordered.azk")
    ordered = pyarrow.table({"id": pyarrow.array(range(rows), pyarrow.int64()), "value": table.column("value")}).to_batches(BATCH)
    started = time.perf_counter()
    with azekura.Database(path, durability="eventual") as db:
        t = db.table("t", key=int, value=int)
        for batch in ordered:
            t.from_arrow(batch, key="id", value="value")
    seconds = time.perf_counter() - started
    said("one engine, ascending keys, one thread", rows, seconds, f"{size(path) / rows:.2f} bytes a row")
    os.remove(path)
    path = os.path.join(folder, "t.azs")
    started = time.perf_counter()
    draft = azekura.ShardDraft.begin(path, spec(shards))
    writer = draft.writer("a")
    for batch in batches:
        writer.write(batch)
    draft.commit(writer.finish())
    seconds = time.perf_counter() - started
    said(f"shard writer, {shards} shards, one thread", rows, seconds, f"{size(path) / rows:.2f} bytes a row")
    shutil.rmtree(path)


def rows_of(spark, rows):
    return spark.range(rows).select("id", (functions.col("id").bitwiseXOR(functions.shiftleft("id", 17))).alias("value"))


def written(frame, shards, path):
    ready = azekura.spark.prepare(frame, shards)
    ready.write.format("azekura").mode("overwrite").option("shards", shards).option("key", "id").save(path)


def parquet_sorted(frame, shards, path):
    divided = frame.withColumn("h", functions.xxhash64("id")).repartition(shards, "h")
    divided.sortWithinPartitions("h").drop("h").write.mode("overwrite").parquet(path)


def through_spark(spark, folder, rows, shards):
    path, parquet = os.path.join(folder, "t.azs"), os.path.join(folder, "t.parquet")
    ways = [
        (f"Spark: prepared and written, {shards} shards", lambda frame, to: written(frame, shards, to), path),
        ("Spark: Parquet, divided and sorted", lambda frame, to: parquet_sorted(frame, shards, to), parquet + "-sorted"),
        ("Spark: Parquet, as it comes", lambda frame, to: frame.write.mode("overwrite").parquet(to), parquet),
    ]
    for _, way, to in ways:
        way(rows_of(spark, 200_000), to + "-warm")
    for what, way, to in ways:
        started = time.perf_counter()
        way(rows_of(spark, rows), to)
        said(what, rows, time.perf_counter() - started, f"{size(to) / rows:.2f} bytes a row", CORES)
    return path, parquet


def look_up(spark, path, parquet, rows, keys):
    # Half of the keys are absent.
    wanted = spark.range(keys).select((functions.abs(functions.xxhash64("id")) % (2 * rows)).alias("id"))
    wanted.write.mode("overwrite").parquet(parquet + "-keys")
    wanted = spark.read.parquet(parquet + "-keys")
    table = spark.read.parquet(parquet)
    ways = [
        ("azekura.spark.lookup", lambda: azekura.spark.lookup(wanted, path)),
        ("azekura.spark.lookup, shuffled", lambda: azekura.spark.lookup(wanted, path, shuffle=True)),
        ("Spark's join with Parquet", lambda: wanted.join(table, "id")),
    ]
    found = set()
    # The first round starts processes, compiles, and brings the files into memory.
    for _ in range(3):
        for what, frame in ways:
            started = time.perf_counter()
            row = frame().agg(functions.count("*"), functions.expr("bit_xor(value)")).first()
            said(what, keys, time.perf_counter() - started, cores=CORES)
            found.add(tuple(row))
    if len(found) != 1:
        raise SystemExit(f"the ways have found different rows: {found}")
    print(f"each found {next(iter(found))[0]} of {keys} keys")


def main():
    parser = argparse.ArgumentParser(prog="cargo xtask spark bench", description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the table [1,000,000]")
    parser.add_argument("--keys", type=int, default=100_000, help="that are looked up [100,000]")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--memory", default="4g", help="of Spark's driver, which does the work [4g]")
    parser.add_argument("--folder", help="on the disk that is to be measured [the system's for temporary files]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        build(folder, given.rows, given.shards)
        builder = SparkSession.builder.master(f"local[{CORES}]").config("spark.driver.memory", given.memory)
        builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").config("spark.local.dir", folder)
        builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", BATCH)
        spark = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        azekura.spark.register(spark)
        path, parquet = through_spark(spark, folder, given.rows, given.shards)
        look_up(spark, path, parquet, given.rows, given.keys)
        spark.stop()


if __name__ == "__main__":
    main()
