"""Sets of shards with PySpark: `cargo xtask spark` runs it. Faults are made as they come: processes are killed, tasks
fail, the disk is full, bytes are flipped. After each a version is there whole or not at all."""

import collections
import contextlib
import datetime
import glob
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import azekura
import azekura.spark
import pyspark
from pyspark import TaskContext
from pyspark.sql import Row, SparkSession, functions

KILLS = int(os.environ.get("AZEKURA_KILLS", "50"))
# On the cluster: `cargo xtask spark --kills 50`.
CLUSTER_KILLS = int(os.environ.get("AZEKURA_CLUSTER_KILLS", "4"))
ROWS = 20_000


def session(master="local[2,4]", **conf):
    """A session of its own. `local[2,4]` tries a task four times."""
    builder = SparkSession.builder.master(master).appName("azekura")
    plain = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20",
        "spark.python.worker.reuse": "true",
    }
    for name, value in (plain | conf).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    azekura.spark.register(spark, pushdown=True)
    return spark


def names(path):
    """The names in a folder, without the file that is locked, which stays."""
    found = {os.path.basename(name) for name in glob.glob(os.path.join(path, "*"), include_hidden=True)}
    return sorted(found - {"set.lock"})


def written_now(path):
    """The files of shards of versions that are being written."""
    return glob.glob(os.path.join(path, ".new-*", "shard-*"), include_hidden=True)


def slowly(batches):
    """So that there is a moment for a fault."""
    for batch in batches:
        time.sleep(0.02)
        yield batch


class SparkCase(unittest.TestCase):
    master, conf = "local[2,4]", {}

    @classmethod
    def setUpClass(cls):
        cls.spark = session(cls.master, **cls.conf)

    @classmethod
    def tearDownClass(cls):
        cls.spark.stop()

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.set = os.path.join(self.folder, "t.azs")

    def rows(self, count=ROWS):
        return self.spark.range(count).select("id", (functions.col("id") * 3).alias("three"))

    def write(self, frame, shards=4, key="id", prepared=True, mode="overwrite", path=None, **options):
        ready = azekura.spark.prepare(frame, shards, key, **options) if prepared else frame
        writer = ready.write.format("azekura").mode(mode).option("shards", shards).option("key", key)
        writer.options(**options).save(path or self.set)

    def expect_whole(self, versions, count=ROWS):
        """All versions are whole, every row is found, and nothing else is there."""
        reader = azekura.ShardedReader(self.set)
        self.assertEqual(len(reader), count)
        self.assertEqual(reader.get_many(range(-1, count + 1)), [None, *(3 * n for n in range(count)), None])
        folders = [f"v{version:04}" for version in versions]
        self.assertEqual(names(self.set), sorted([f"manifest-{version:04}.json" for version in versions] + folders))
        for version, folder in zip(versions, folders):
            manifest = json.loads(azekura.ShardedReader(self.set, version=version).manifest)
            there = [name for name in names(os.path.join(self.set, folder)) if name != "set.json"]
            self.assertEqual(there, sorted(file["file"] for file in manifest["files"]))

    def load(self, **options):
        return self.spark.read.format("azekura").options(**options).load(self.set)


class Reading(SparkCase):
    def test_what_is_written_is_read(self):
        when = datetime.datetime(2026, 3, 1, 12, 30, 1, 5, tzinfo=datetime.timezone.utc)
        rows = [
            Row(id=n, name=None if n % 5 == 0 else f"name {n}" * (n % 7), day=datetime.date(2000, 1, 1) + datetime.timedelta(n),
                at=when + datetime.timedelta(microseconds=n), on=None if n % 3 == 0 else n % 2 == 0, heat=n / 7,
                raw=bytearray(str(n).encode()), small=n % 100)
            for n in range(3000)
        ]
        frame = self.spark.createDataFrame(
            rows, "id long, name string, day date, at timestamp, on boolean, heat float, raw binary, small tinyint")
        ways = [("hash", "id"), ("hash", "name"), ("hash", "small,name,id"), ("hash", "at"), ("ordered", "day,id"), ("ordered", "raw")]
        for kind, key in ways:
            with self.subTest(kind=kind, key=key):
                order = key.split(",")
                whole = frame.na.drop(subset=order)
                whole = whole.dropDuplicates(["name"]) if key == "name" else whole
                due = whole.orderBy(order).collect()
                shutil.rmtree(self.set, ignore_errors=True)
                self.write(self.spark.createDataFrame(due, frame.schema), 3, key, kind=kind)
                back = self.load()
                self.assertEqual(dict(back.dtypes), dict(frame.dtypes))
                self.assertEqual(back.select(frame.columns).orderBy(order).collect(), due)

    def test_a_set_that_was_written_anew_is_read_anew(self):
        for factor in (1, 2, 3):
            self.write(self.spark.range(50).selectExpr("id", f"id * {factor} as v"), 2)
            self.assertEqual(self.load().agg(functions.sum("v")).first()[0], 1225 * factor)
            found = azekura.spark.lookup(self.spark.range(50), self.set)
            self.assertEqual(found.agg(functions.sum("v")).first()[0], 1225 * factor)
            shutil.rmtree(self.set)

    def test_each_shard_is_written_by_one_task(self):
        self.write(self.rows(), 7)
        self.expect_whole([1])
        files = json.loads(azekura.ShardedReader(self.set).manifest)["files"]
        self.assertEqual([file["file"].split("-")[2] for file in files], [str(n) for n in range(7)])

    def test_only_wanted_columns_are_read(self):
        frame = self.spark.createDataFrame([(n, n + 1, f"{n}") for n in range(100)], "id long, a int, b string")
        self.write(frame, 2)
        few = self.spark.read.format("azekura").schema("b string, id long").load(self.set)
        self.assertEqual(few.where("id = 7").collect(), [Row(b="7", id=7)])
        self.assertEqual(few.agg(functions.sum("id")).first()[0], 4950)

    def test_filters_of_the_key_read_few_shards(self):
        self.write(self.rows(1000), 8)
        plain = self.load()
        self.assertEqual(plain.where("id = 77").collect(), [Row(id=77, three=231)])
        self.assertEqual((plain.count(), plain.rdd.getNumPartitions()), (1000, 8))
        frame = self.load(filters="push")
        one = frame.where("id = 77")
        self.assertEqual((one.rdd.getNumPartitions(), one.collect()), (1, [Row(id=77, three=231)]))
        self.assertEqual(frame.where("id = 5000").collect(), [])
        some = frame.where("id in (1, 2, 3, 5000) and three > 3")
        self.assertLessEqual(some.rdd.getNumPartitions(), 4)
        self.assertEqual(sorted(row.id for row in some.collect()), [2, 3])
        self.assertEqual(frame.where("id = 1 and id = 2").collect(), [])
        self.assertEqual(frame.where("id > 990").count(), 9)

    def test_ranges_of_an_ordered_set_read_few_shards(self):
        self.write(self.rows(10_000), 8, kind="ordered")
        frame = self.load(filters="push")
        some = frame.where("id >= 100 and id < 200")
        self.assertLessEqual(some.rdd.getNumPartitions(), 2)
        self.assertEqual(sorted(row.id for row in some.collect()), list(range(100, 200)))
        self.assertEqual(frame.where("id > 9990 and id <= 9992").count(), 2)
        self.assertEqual(frame.where("id > 20000").collect(), [])
        text = self.spark.range(500).select(functions.format_string("k%05d", "id").alias("id"), functions.lit(1).alias("v"))
        self.write(text, 4, kind="ordered")
        self.assertEqual(self.load(filters="push").where("id >= 'k00100' and id <= 'k00109'").count(), 10)

    def test_dates_and_times_are_filtered(self):
        when = datetime.datetime(2026, 3, 1, tzinfo=datetime.timezone.utc)
        rows = [(when + datetime.timedelta(minutes=n), n) for n in range(100)]
        for kind in ("hash", "ordered"):
            self.write(self.spark.createDataFrame(rows, "at timestamp, n int"), 3, "at", kind=kind)
            frame = self.load(filters="push").where("at = timestamp'2026-03-01 00:50:00'")
            self.assertEqual((frame.rdd.getNumPartitions(), [row.n for row in frame.collect()]), (1, [50]))
        rows = [(datetime.date(2026, 3, 1) + datetime.timedelta(n), n) for n in range(100)]
        self.write(self.spark.createDataFrame(rows, "day date, n int"), 4, "day", kind="ordered")
        frame = self.load(filters="push").where("day > date'2026-03-31' and day <= date'2026-04-02'")
        self.assertEqual(sorted(row.n for row in frame.collect()), [31, 32])

    def test_a_query_stays_with_its_version(self):
        self.write(self.rows(100), 2)
        planned = self.load().rdd
        self.assertEqual(planned.getNumPartitions(), 2)
        self.write(self.rows(50), 3)
        self.assertEqual((self.load().count(), self.load(version=1).count()), (50, 100))
        self.assertEqual(planned.count(), 100)

    def test_lookups(self):
        values = self.spark.createDataFrame([(n, f"v{n}", None if n % 2 else n) for n in range(2000)], "id long, name string, half int")
        self.write(values, 5)
        keys = self.spark.range(0, 4000, 3).select(functions.col("id").alias("key"), (functions.col("id") % 7).alias("week"))
        keys = keys.union(self.spark.createDataFrame([(None, 0)], "key long, week long"))
        for how in ("inner", "left"):
            due = keys.join(values, keys.key == values.id, how).select("key", "week", "name", "half")
            due = sorted(due.collect(), key=str)
            for shuffle in (False, True, None):
                with self.subTest(how=how, shuffle=shuffle):
                    found = azekura.spark.lookup(keys, self.set, "key", how=how, shuffle=shuffle)
                    self.assertEqual(sorted(found.collect(), key=str), due)
        few = azekura.spark.lookup(keys, self.set, "key", columns=["half"])
        self.assertEqual(few.columns, ["key", "week", "half"])
        for wrong, why in (({"on": "no"}, "no column 'no'"), ({"on": "key", "columns": ["no"]}, "no column 'no'")):
            with self.assertRaisesRegex(ValueError, why):
                azekura.spark.lookup(keys, self.set, **wrong)
        with self.assertRaisesRegex(ValueError, "'name' too"):
            azekura.spark.lookup(keys.withColumn("name", functions.lit(1)), self.set, "key")

    def test_frames_with_any_other_columns_are_looked_up_and_prepared(self):
        self.write(self.rows(100), 3)
        odd = self.spark.sql("select id as `a.b`, array(id) as list, id as _azekura_hash, id as `_Azekura_Hash_` from range(90, 110)")
        for shuffle in (False, True):
            found = azekura.spark.lookup(odd, self.set, "a.b", shuffle=shuffle)
            self.assertEqual(found.columns, [*odd.columns, "three"])
            self.assertEqual(sorted(found.collect())[-1], Row(99, [99], 99, 99, 297))
        ready = azekura.spark.prepare(odd.drop("list"), 3, "a.b")
        self.write(odd.drop("list"), 3, "a.b", path=self.set + "2")
        self.assertEqual(azekura.ShardedReader(self.set + "2")[105], (105, 105))

    def test_nan_is_no_key(self):
        rows = self.spark.sql("select double(id) as id, id as v from range(10)")
        self.write(rows, 2)
        keys = self.spark.sql("select explode(array(double('nan'), 3D, -0D, null)) as id")
        for shuffle in (False, True):
            found = azekura.spark.lookup(keys, self.set, how="left", shuffle=shuffle).collect()
            self.assertEqual(sorted(str(row.v) for row in found), ["0", "3", "None", "None"])
        with self.assertRaisesRegex(Exception, 'column "id" is NaN'):
            self.write(rows.union(self.spark.sql("select double('nan'), 1L")), 2)
        self.assertEqual(len(azekura.ShardedReader(self.set)), 10)

    def test_paths_are_those_of_folders(self):
        for url in (f"file://{self.set}", f"file:{self.set}", f"file://localhost{self.set}"):
            self.write(self.rows(10), 2, path=url)
            self.assertEqual(azekura.ShardedReader(self.set)[9], 27)
            self.assertEqual(self.spark.read.format("azekura").load(url).count(), 10)
            self.assertEqual(azekura.spark.lookup(self.rows(5).select("id"), url).count(), 5)
            shutil.rmtree(self.set)
        for url in ("s3a://bucket/t.azs", "hdfs:/t.azs", "file://host/t.azs"):
            for use in (lambda: self.write(self.rows(10), 2, path=url), lambda: azekura.spark.lookup(self.rows(5), url),
                        lambda: self.spark.read.format("azekura").load(url)):
                with self.assertRaisesRegex(Exception, "mounted file system"):
                    use()

    def test_other_data_sources_are_left_alone(self):
        conf = "spark.sql.python.filterPushdown.enabled"
        self.write(self.rows(10), 2)
        before = self.spark.conf.get(conf)
        self.spark.conf.unset(conf)
        try:
            azekura.spark.register(self.spark)
            self.assertEqual(self.spark.conf.get(conf), "false")
            self.assertEqual(self.load().where("id = 7").count(), 1)
            with self.assertRaisesRegex(Exception, conf):
                self.load(filters="push").where("id = 7").count()
        finally:
            self.spark.conf.set(conf, before)

    def test_a_damaged_shard_is_an_error(self):
        self.write(self.rows(), 4)
        name = glob.glob(os.path.join(self.set, "v0001", "shard-00002-*"))[0]
        size = os.path.getsize(name)
        with open(name, "r+b") as file:
            for at in range(size // 4, size // 2, 1000):
                file.seek(at)
                file.write(b"damage")
        with self.assertRaisesRegex(Exception, "shard-00002"):
            self.load().agg(functions.sum("three")).collect()
        with self.assertRaisesRegex(Exception, "shard-00002"):
            azekura.spark.lookup(self.spark.range(ROWS), self.set).agg(functions.sum("three")).collect()


class Documents(SparkCase):
    def test_the_program_of_the_document(self):
        root = os.environ.get("AZEKURA_ROOT", os.path.join(os.path.dirname(__file__), "..", ".."))
        with open(os.path.join(root, "docs", "shards.md"), encoding="utf-8") as file:
            (program,) = re.findall(r"^```py spark\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
        # Relative paths are those of Spark's own working directory.
        program = program.replace('"t.azs"', repr(self.set))
        exec(compile(program, "docs/shards.md", "exec"), {"spark": self.spark})


class Writing(SparkCase):
    def test_rows_that_are_not_prepared_are_refused_and_leave_nothing(self):
        with self.assertRaisesRegex(Exception, "azekura.spark.prepare|sorted by their hashes"):
            self.write(self.rows(), 4, prepared=False)
        self.assertEqual(names(self.set), [])

    def test_a_key_that_is_there_twice_is_refused(self):
        with self.assertRaisesRegex(Exception, "two records have the key"):
            self.write(self.rows(100).union(self.rows(1)), 4)
        self.assertEqual(names(self.set), [])

    def test_what_has_no_meaning_is_refused(self):
        for options, why in (({"key": "no"}, "'no'"), ({"kind": "heap"}, "hash or ordered")):
            with self.assertRaisesRegex(Exception, why):
                self.rows(10).write.format("azekura").mode("overwrite").options(shards=2, **options).save(self.set)
        with self.assertRaisesRegex(Exception, "how many shards"):
            self.rows(10).write.format("azekura").mode("overwrite").save(self.set)
        with self.assertRaisesRegex(Exception, "cast it"):
            self.write(self.spark.sql("select 1L id, array(1) a"), 2, prepared=False)
        with self.assertRaisesRegex(Exception, "no version"):
            self.load()

    def test_what_was_prepared_for_another_set_is_refused(self):
        ready = azekura.spark.prepare(self.rows(100), 4)
        self.assertEqual(ready.columns, ["pack"])
        for options in ({"shards": 3}, {"key": "three"}, {"kind": "ordered"}, {"seed": 7}):
            with self.assertRaisesRegex(Exception, "prepared for another set"):
                writer = ready.write.format("azekura").mode("overwrite").options(**{"shards": 4, "key": "id"} | options)
                writer.save(self.set)
        with self.assertRaisesRegex(Exception, "packs have to be sorted"):
            self.write(ready.coalesce(1).sortWithinPartitions(functions.desc("pack")), 4, prepared=False)
        self.assertEqual(names(self.set), [])
        self.write(ready.coalesce(1), 4, prepared=False)
        self.expect_whole([1], 100)

    def test_rows_that_are_in_their_order_need_no_preparing(self):
        self.write(self.rows(1).coalesce(1), 4, prepared=False)
        self.expect_whole([1], 1)
        shutil.rmtree(self.set)
        self.write(self.rows(1000).coalesce(1), 1, prepared=False, kind="ordered")
        self.expect_whole([1], 1000)

    def test_a_version_is_not_appended_to(self):
        self.write(self.rows(), mode="append")
        with self.assertRaisesRegex(Exception, "has a version already"):
            self.write(self.rows(), mode="append")
        self.expect_whole([1])

    def test_empty_frames_are_versions(self):
        self.write(self.rows(0))
        self.assertEqual((len(azekura.ShardedReader(self.set)), self.load().count()), (0, 0))

    def test_a_task_that_fails_twice(self):
        def fail(batches):
            context = TaskContext.get()
            for i, batch in enumerate(batches):
                if context.partitionId() == 1 and context.attemptNumber() < 2 and i == 3:
                    raise RuntimeError("as the test wants it")
                yield batch

        ready = azekura.spark.prepare(self.rows(), 4)
        self.write(ready.mapInArrow(fail, ready.schema), 4, prepared=False)
        self.expect_whole([1])

    def test_a_job_that_fails_leaves_nothing(self):
        self.write(self.rows())

        def fail(batches):
            for i, batch in enumerate(batches):
                if TaskContext.get().partitionId() == 3 and i == 5:
                    raise RuntimeError("as the test wants it")
                yield batch

        ready = azekura.spark.prepare(self.rows(), 4)
        with self.assertRaisesRegex(Exception, "as the test wants it"):
            self.write(ready.mapInArrow(fail, ready.schema), 4, prepared=False)
        self.expect_whole([1])

    @unittest.skipUnless(shutil.which("unshare"), "no unshare: the test with a full disk is left out")
    def test_a_full_disk(self):
        script = (
            f"mount -t tmpfs -o size=3000000 none {self.folder} || exit 77; "
            f"exec {sys.executable} -m unittest -q spark.test_spark.FullDisk"
        )
        command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script]
        ran = subprocess.run(command, env=os.environ | {"AZEKURA_SMALL_DISK": self.folder}, capture_output=True, text=True)
        if ran.returncode == 77 or "unshare" in ran.stderr:
            self.skipTest(f"no file system of its own for this test here: {ran.stderr}")
        self.assertEqual(ran.returncode, 0, ran.stderr[-3000:])


@unittest.skipUnless(os.environ.get("AZEKURA_SMALL_DISK"), "this is a part of another test")
class FullDisk(SparkCase):
    def test_it(self):
        self.set = os.path.join(os.environ["AZEKURA_SMALL_DISK"], "t.azs")
        self.write(self.rows(), 4)
        wide = self.spark.range(ROWS).select("id", functions.sha2(functions.col("id").cast("string"), 512).alias("three"))
        with self.assertRaisesRegex(Exception, "(?i)no ?space"):
            self.write(wide, 4)
        self.expect_whole([1])
        self.write(self.rows(), 2)
        self.expect_whole([1, 2])


def processes():
    """The processes of this machine: number, parent, command."""
    found = {}
    for path in glob.glob("/proc/[0-9]*"):
        with contextlib.suppress(OSError):
            with open(path + "/stat") as file:
                parent = int(file.read().rsplit(") ", 1)[1].split()[1])
            with open(path + "/cmdline", "rb") as file:
                found[int(os.path.basename(path))] = (parent, file.read().replace(b"\0", b" ").decode(errors="replace"))
    return found


def below(root):
    """Those that this process has started, and those that they have."""
    all_of_them, own = processes(), {root}
    while True:
        more = {number for number, (parent, _) in all_of_them.items() if parent in own} - own
        if not more:
            return {number: all_of_them[number] for number in own if number in all_of_them}
        own |= more


def workers(root=None):
    """Spark's Python workers: what the daemon has forked."""
    own = below(root or os.getpid())
    daemons = {number for number, (_, command) in own.items() if "pyspark.daemon" in command}
    return [number for number in daemons if own[number][0] in daemons]


def executors():
    """The executors' processes, where these are others than the driver's."""
    return [n for n, (_, command) in below(os.getpid()).items() if "CoarseGrainedExecutorBackend" in command and "java" in command.split(" ")[0]]


class Killer(threading.Thread):
    """Kills processes while shards are being written, until it is told to stop. `victims` gives a list for each kind
    of process, and `killed` is called with each that was killed."""

    def __init__(self, path, victims, pause, limit, killed=lambda number: None):
        super().__init__(daemon=True)
        self.path, self.victims, self.pause, self.limit, self.killed = path, victims, pause, limit, killed
        self.over, self.kills = threading.Event(), collections.Counter()

    def run(self):
        while self.kills.total() < self.limit and not self.over.wait(self.pause * random.expovariate(1)):
            while not (kinds := self.found()):
                if self.over.wait(0.02):
                    return
            kind = random.choice(list(kinds))
            with contextlib.suppress(ProcessLookupError):
                number = random.choice(kinds[kind])
                os.kill(number, signal.SIGKILL)
                self.kills[kind] += 1
                self.killed(number)

    def found(self):
        """The kinds of which there are processes, while something is being written."""
        return {kind: found for kind, found in self.victims().items() if found} if written_now(self.path) else {}

    def stop(self):
        self.over.set()
        self.join()


class KillCase(SparkCase):
    """Processes are killed while they write, until enough are. A task is tried very often."""

    # A batch for each pack, so that there are many moments.
    conf = {"spark.sql.execution.arrow.maxRecordsPerBatch": "1"}

    def kill(self, victims, kills, pause, each, may_fail=(), killed=lambda number: None):
        """Writes versions, `each` kills for one at most, until so many processes were killed. After each one all
        versions are whole. A job fails only with one of these texts."""
        seed = int(os.environ.get("AZEKURA_SEED", random.randrange(1 << 32)))
        print(f"seed {seed}")
        random.seed(seed)
        done, failed, versions = collections.Counter(), 0, []
        while done.total() < kills or not versions:
            ready = azekura.spark.prepare(self.rows(), 4)
            killer = Killer(self.set, victims, pause, min(each, kills - done.total()), killed)
            killer.start()
            outcome = None
            try:
                self.write(ready.mapInArrow(slowly, ready.schema), 4, prepared=False)
            except Exception as error:
                outcome = error
            finally:
                killer.stop()
            done += killer.kills
            before, versions = versions, self.versions()
            if outcome is None:
                self.assertEqual(len(versions), len(before) + 1)
            else:
                self.assertTrue(any(text in str(outcome) for text in may_fail), outcome)
                self.assertIn(len(versions), (len(before), len(before) + 1))
                self.compact(versions)
                failed += 1
            if versions:
                self.expect_whole(versions)
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(done.items()))
            print(f"{done.total()} killed ({kinds}), {len(versions)} versions whole, {failed} jobs failed", flush=True)

    def versions(self):
        return [int(name[9:-5]) for name in names(self.set) if name.startswith("manifest-")]

    def compact(self, versions, hours=0):
        """Has the command remove what is of no version. Returns its report, if there is anything at all."""
        if not names(self.set):
            return None
        arguments = ["--keep", str(max(1, len(versions))), "--unfinished-hours", str(hours), "--json"]
        command = [os.environ["AZEKURA_COMMAND"], "shards", "compact", self.set, *arguments]
        ran = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        report = json.loads(ran.stdout)
        self.assertEqual((report["kept"], report["removed"]), (versions, []))
        return report


class Killed(KillCase):
    """Python workers are killed."""

    master = "local[2,1000]"

    def test_killed_workers(self):
        # That one is killed that plans or commits, which Spark does not try again. The version is there or not.
        self.kill(lambda: {"Python workers": workers()}, KILLS, 0.7, KILLS, may_fail=["worker"])

    def test_what_a_killed_driver_leaves(self):
        self.write(self.rows())
        script = [sys.executable, "-m", "unittest", "-q", "spark.test_spark.Driver"]
        driver = subprocess.Popen(script, env=os.environ | {"AZEKURA_DRIVEN": self.set}, stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 120
            while not written_now(self.set):
                self.assertIsNone(driver.poll(), "the driver has ended")
                self.assertLess(time.monotonic(), until, "nothing is written")
                time.sleep(0.02)
        finally:
            # Parents first, so that nobody starts others.
            for number in sorted(below(driver.pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            driver.wait()
        self.assertTrue(written_now(self.set))
        self.assertEqual(self.compact([1], hours=1)["unfinished"], 0, "it may go on, as far as is known")
        report = self.compact([1])
        self.assertEqual(report["unfinished"], 1)
        self.assertGreater(report["bytes"], 0)
        self.expect_whole([1])


@unittest.skipUnless(os.environ.get("AZEKURA_DRIVEN"), "this is a part of another test")
class Driver(KillCase):
    def test_it(self):
        def stop(batches):
            for i, batch in enumerate(batches):
                if i == 60:
                    time.sleep(300)
                yield batch

        # A kilobyte in each row, so that what comes before the stop is more than pipes hold.
        text = functions.repeat(functions.sha2(functions.col("id").cast("string"), 512), 8)
        ready = azekura.spark.prepare(self.spark.range(ROWS).select("id", text.alias("three")), 4)
        self.write(ready.mapInArrow(stop, ready.schema), 4, prepared=False, path=os.environ["AZEKURA_DRIVEN"])


class Cluster(KillCase):
    """A master and two workers in processes of their own, with speculation. Spark puts no second attempt on the host
    of the first, so each worker has another address of this machine."""

    conf = KillCase.conf | {
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        "spark.speculation.quantile": "0.25",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.minTaskRuntime": "50ms",
        "spark.task.maxFailures": "100",
        "spark.stage.maxConsecutiveAttempts": "100",
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }

    @classmethod
    def setUpClass(cls):
        cls.work = cls.enterClassContext(tempfile.TemporaryDirectory())
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        cls.master = f"spark://127.0.0.1:{port}"
        cls.start("master.Master", "--host", "127.0.0.1", "--port", str(port))
        cls.daemons = {}
        for number in (2, 3):
            cls.start_worker(f"127.0.0.{number}")
        super().setUpClass()

    @classmethod
    def start_worker(cls, host):
        number = cls.start("worker.Worker", "--host", host, "-c", "1", "-m", "600m", "-d", cls.work, cls.master)
        cls.daemons[number] = host

    @classmethod
    def start(cls, name, *arguments):
        home = os.path.dirname(pyspark.__file__)
        script = os.path.join(home, "bin", "spark-class")
        log = cls.enterClassContext(open(os.path.join(cls.work, name), "ab"))
        command = [script, "org.apache.spark.deploy." + name, "--webui-port", "0", *arguments]
        environment = os.environ | {"SPARK_HOME": home, "SPARK_DAEMON_JAVA_OPTS": "-Dspark.deploy.maxExecutorRetries=-1"}
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.kill)
        return process.pid

    def test_speculation(self):
        folder = self.folder

        def wait(batches):
            context = TaskContext.get()
            with open(os.path.join(folder, f"{context.partitionId()}-{context.attemptNumber()}.attempt"), "w"):
                pass
            for i, batch in enumerate(batches):
                if i == 2 and context.partitionId() == 0 and context.attemptNumber() == 0:
                    time.sleep(300)
                yield batch

        ready = azekura.spark.prepare(self.rows(), 4)
        started = time.monotonic()
        self.write(ready.mapInArrow(wait, ready.schema), 4, prepared=False)
        self.assertLess(time.monotonic() - started, 300, "nobody has overtaken the first attempt")
        self.assertTrue(os.path.exists(os.path.join(folder, "0-1.attempt")))
        self.expect_whole([1])
        files = json.loads(azekura.ShardedReader(self.set).manifest)["files"]
        self.assertEqual(len(files), 4)

    def test_killed_processes(self):
        """Executors, the Python workers that write in them, and Spark's workers, which start executors. None of these
        makes a job fail."""

        def victims():
            found = {number: workers(number) for number in executors()}
            python = [number for those in found.values() for number in those]
            kinds = {"executors": list(found), "Python workers": python, "Spark's workers": list(self.daemons)}
            # Somebody writes at that moment.
            return kinds if python else {}

        def killed(number):
            if number in self.daemons:
                self.start_worker(self.daemons.pop(number))

        self.kill(victims, CLUSTER_KILLS, 2, 3, killed=killed)


if __name__ == "__main__":
    unittest.main()
