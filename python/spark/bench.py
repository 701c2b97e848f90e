"""The figures of sets of shards: `cargo xtask spark bench`. Everything on the right of a figure was measured in the same
run, on the same machine.

- `build`: rows a second from Arrow batches into files, by one engine and by the shard writers, without Spark.
- `spark`: the same rows through Spark: prepared and written; handed to Python and dropped there; and Parquet, as the
  rows come, and divided and sorted as the shards are. Spark is warm: each way was gone before with few rows, which starts its processes and compiles.
- `--parts`: what a row goes through on its way, a part more in each line: made in the JVM; handed to Python; packed
  there and handed back; shuffled, sorted and handed to Python again; written.
- `lookup`: keys looked up with `azekura.spark.lookup`, with and without a shuffle, beside Spark's join with Parquet.

A figure is the median of some rounds, in which the ways of a part take turns.
"""

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time

import azekura
import azekura.spark
import numpy
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


def in_turns(rows, rounds, ways, cores=1):
    """Runs each way in each round. A way returns what is to be said beside its figure."""
    seconds, extra = [[] for _ in ways], [""] * len(ways)
    for _ in range(rounds):
        for place, (_, way) in enumerate(ways):
            started = time.perf_counter()
            said_of_it = way()
            seconds[place].append(time.perf_counter() - started)
            extra[place] = said_of_it() if said_of_it else ""
    for (what, _), own, more in zip(ways, seconds, extra):
        said(what, rows, statistics.median(own), more, cores)


def all_rows(rows):
    ids = pyarrow.array(numpy.arange(rows, dtype=numpy.int64))
    return pyarrow.table({"id": ids, "value": mixed(ids)})


def sorted_rows(rows, shards):
    """All rows in the order of their hashes: what the shuffle of Spark makes."""
    table = all_rows(rows)
    hashes = azekura._azekura.shard_hashes(table, spec(shards))
    hashes = pyarrow.Array.from_buffers(pyarrow.int64(), rows, [None, pyarrow.py_buffer(hashes)])
    return table.take(pyarrow.compute.sort_indices(hashes)).combine_chunks()


def build(folder, rows, shards, rounds):
    batches, ordered = sorted_rows(rows, shards).to_batches(BATCH), all_rows(rows).to_batches(BATCH)

    def engine(kind, batches):
        path = os.path.join(folder, "one.azk")

        def load():
            with azekura.Database(path, durability="eventual") as db:
                t = db.table("t", kind, key=int, value=int)
                for batch in batches:
                    t.from_arrow(batch, key="id", value="value")
            return lambda: removed(path)

        return load

    def removed(path):
        extra = f"{size(path) / rows:.2f} bytes a row"
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
        return extra

    def written_shards():
        path = os.path.join(folder, "t.azs")
        draft = azekura.ShardDraft.begin(path, spec(shards))
        writer = draft.writer("a")
        for batch in batches:
            writer.write(batch)
        draft.commit(writer.finish())
        return lambda: removed(path)

    def packed():
        path = os.path.join(folder, "packed.azs")
        packer, packs = azekura.ShardPacker(spec(shards)), []
        for batch in ordered:
            packs += map(pyarrow.record_batch, packer.add(batch))
        packs = pyarrow.Table.from_batches(packs + [*map(pyarrow.record_batch, packer.finish())])
        draft = azekura.ShardDraft.begin(path, spec(shards))
        writer = draft.writer("a")
        writer.write_packed(packs.take(pyarrow.compute.sort_indices(packs["slice"])))
        draft.commit(writer.finish())
        return lambda: removed(path)

    # The order of the batches is that of another seed than the engine's, so it is none.
    in_turns(rows, rounds, [
        ("one engine, random keys, one thread", engine("hash", batches)),
        ("one engine, ascending keys, one thread", engine("ordered", ordered)),
        (f"shard writer, {shards} shards, one thread", written_shards),
        (f"packed and written, {shards} shards, one thread", packed),
    ])


def rows_of(spark, rows):
    return spark.range(rows).select("id", (functions.col("id").bitwiseXOR(functions.shiftleft("id", 17))).alias("value"))


def written(frame, shards, path):
    ready = azekura.spark.prepare(frame, shards)
    ready.write.format("azekura").mode("overwrite").option("shards", shards).option("key", "id").save(path)


def parquet_sorted(frame, shards, path):
    divided = frame.withColumn("h", functions.xxhash64("id")).repartition(shards, "h")
    divided.sortWithinPartitions("h").drop("h").write.mode("overwrite").parquet(path)


def row_counts(batches):
    for batch in batches:
        yield pyarrow.record_batch([[batch.num_rows]], ["n"])


def through_spark(spark, folder, rows, shards, rounds):
    path, parquet = os.path.join(folder, "t.azs"), os.path.join(folder, "t.parquet")

    def way(write, to):
        def run():
            write(rows_of(spark, rows), to)
            return lambda: f"{size(to) / rows:.2f} bytes a row" if os.path.exists(to) else ""

        write(rows_of(spark, 200_000), to + "-warm")
        return run

    def azekura_anew(frame, to):
        shutil.rmtree(to, ignore_errors=True)
        written(frame, shards, to)

    def sorted_anew(frame, to):
        parquet_sorted(frame, shards, to)

    def handed(frame, to):
        count = frame.mapInArrow(row_counts, "n long").agg(functions.sum("n")).first()[0]
        assert count in (rows, 200_000)

    def plain(frame, to):
        frame.write.mode("overwrite").parquet(to)

    in_turns(rows, rounds, [
        (f"Spark: prepared and written, {shards} shards", way(azekura_anew, path)),
        ("Spark: handed to Python, which drops them", way(handed, path + "-none")),
        ("Spark: Parquet, divided and sorted", way(sorted_anew, parquet + "-sorted")),
        ("Spark: Parquet, as it comes", way(plain, parquet)),
    ], CORES)
    return path, parquet


def in_parts(spark, folder, rows, shards, rounds):
    """What each part takes is what its line takes more than the one before."""
    path = os.path.join(folder, "parts.azs")

    def packs(frame):
        return azekura.spark._packed(frame, spec(shards))

    def counted(frame):
        return frame.mapInArrow(row_counts, "n long").agg(functions.sum("n")).first()

    def anew(frame):
        shutil.rmtree(path, ignore_errors=True)
        written(frame, shards, path)

    def way(run):
        run(rows_of(spark, 200_000))
        return lambda: run(rows_of(spark, rows)) and None

    in_turns(rows, rounds, [
        ("made in the JVM", way(lambda frame: frame.agg(functions.expr("bit_xor(value)")).first())),
        ("+ handed to Python, which drops them", way(counted)),
        ("+ packed there, and handed back", way(lambda frame: packs(frame).agg(functions.expr("sum(length(pack))")).first())),
        ("+ shuffled, sorted, handed to Python again", way(lambda frame: counted(azekura.spark.prepare(frame, shards)))),
        ("+ written", way(anew)),
    ], CORES)


def look_up(spark, path, parquet, rows, keys, rounds):
    # Half of the keys are absent.
    wanted = spark.range(keys).select((functions.abs(functions.xxhash64("id")) % (2 * rows)).alias("id"))
    wanted.write.mode("overwrite").parquet(parquet + "-keys")
    wanted = spark.read.parquet(parquet + "-keys")
    table = spark.read.parquet(parquet)
    found = set()

    def way(frame):
        def run():
            row = frame().agg(functions.count("*"), functions.expr("bit_xor(value)")).first()
            found.add(tuple(row))

        # The first time starts processes, compiles, and brings the files into memory.
        run()
        return run

    in_turns(keys, rounds, [
        ("azekura.spark.lookup", way(lambda: azekura.spark.lookup(wanted, path))),
        ("azekura.spark.lookup, shuffled", way(lambda: azekura.spark.lookup(wanted, path, shuffle=True))),
        ("Spark's join with Parquet", way(lambda: wanted.join(table, "id"))),
    ], CORES)
    if len(found) != 1:
        raise SystemExit(f"the ways have found different rows: {found}")
    print(f"each found {next(iter(found))[0]} of {keys} keys")


def main():
    parser = argparse.ArgumentParser(prog="cargo xtask spark bench", description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the table [1,000,000]")
    parser.add_argument("--keys", type=int, default=100_000, help="that are looked up [100,000]")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3, help="of which a figure is the median [3]")
    parser.add_argument("--memory", default="4g", help="of Spark's driver, which does the work [4g]")
    parser.add_argument("--parts", action="store_true", help="only what a row goes through, part by part")
    parser.add_argument("--folder", help="on the disk that is to be measured [the system's for temporary files]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        if not given.parts:
            build(folder, given.rows, given.shards, given.rounds)
        builder = SparkSession.builder.master(f"local[{CORES}]").config("spark.driver.memory", given.memory)
        builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").config("spark.local.dir", folder)
        builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", BATCH)
        spark = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        azekura.spark.register(spark)
        if given.parts:
            in_parts(spark, folder, given.rows, given.shards, given.rounds)
        else:
            path, parquet = through_spark(spark, folder, given.rows, given.shards, given.rounds)
            look_up(spark, path, parquet, given.rows, given.keys, given.rounds)
        spark.stop()


if __name__ == "__main__":
    main()
