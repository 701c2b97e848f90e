"""Sets of shards with Ray Data: `cargo xtask ray` runs it."""

import datetime
import glob
import json
import os
import re
import tempfile
import unittest

import azekura
import azekura.ray
import pyarrow
import ray

ROWS = 20_000


def names(path):
    """The names in a folder, without the file that is locked, which stays."""
    found = {os.path.basename(name) for name in glob.glob(os.path.join(path, "*"), include_hidden=True)}
    return sorted(found - {"set.lock"})


def numbers(count=ROWS, factor=3):
    return ray.data.range(count, override_num_blocks=7).map_batches(lambda b: {"id": b["id"], "v": b["id"] * factor})


def fails_for(number, folder=None):
    """Rows as they are, until one comes. In a folder only the first time fails."""

    def rows(table):
        if number in table.column("id").to_pylist():
            mark = os.path.join(folder, "failed") if folder else None
            if mark is None or not os.path.exists(mark):
                if mark:
                    open(mark, "w").close()
                    # As if the system had killed it: Ray tries the task again.
                    os._exit(1)
                raise RuntimeError("as was asked")
        return table

    return rows


class WithRay(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=200 << 20)
        ray.data.DataContext.get_current().enable_progress_bars = False

    @classmethod
    def tearDownClass(cls):
        ray.shutdown()

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.set = os.path.join(self.folder, "t.azs")

    def expect_whole(self, version, factor=3, count=ROWS):
        """Every row is found in the newest version, and nothing else is there."""
        reader = azekura.ShardedReader(self.set)
        self.assertEqual((reader.version, len(reader)), (version, count))
        due = [None, *(factor * n for n in range(count)), None]
        self.assertEqual(reader.get_many(range(-1, count + 1)), due)
        there = [name for name in names(os.path.join(self.set, f"v{version:04}")) if name != "set.json"]
        self.assertEqual(there, sorted(file["file"] for file in json.loads(reader.manifest)["files"]))
        self.assertFalse([name for name in names(self.set) if name.startswith(".new")])

    def test_versions_follow_each_other(self):
        self.assertEqual(azekura.ray.write(numbers(), self.set, 5), 1)
        self.expect_whole(1)
        self.assertEqual(azekura.ray.write(numbers(factor=4), self.set, 3), 2)
        self.expect_whole(2, factor=4)

    def test_all_types_go_there_and_back(self):
        utc = datetime.timezone.utc
        when = datetime.datetime(2026, 3, 1, 12, 30, 1, 5, tzinfo=utc)
        columns = {
            "id": pyarrow.array(range(500), pyarrow.int32()),
            "part": pyarrow.array([f"part {n % 9}" for n in range(500)]),
            "name": pyarrow.array([None if n % 5 == 0 else f"name {n}" for n in range(500)]),
            "raw": pyarrow.array([bytes([n % 256]) * (n % 4) for n in range(500)]),
            "heat": pyarrow.array([n / 7 for n in range(500)], pyarrow.float32()),
            "on": pyarrow.array([n % 2 == 0 for n in range(500)]),
            "day": pyarrow.array([datetime.date(2000, 1, 1) + datetime.timedelta(n) for n in range(500)]),
            "at": pyarrow.array([when] * 500, pyarrow.timestamp("us", "UTC")),
            "big": pyarrow.array([2**63 + n for n in range(500)], pyarrow.uint64()),
        }
        table = pyarrow.table(columns)
        azekura.ray.write(ray.data.from_arrow(table), self.set, 3, ["part", "id"])
        keys = ray.data.from_arrow(table.select(["id", "part"]))
        wanted = ["name", "raw", "heat", "on", "big"]
        joined = azekura.ray.lookup(keys, self.set, on=["part", "id"], columns=wanted)
        back = sorted(joined.take_all(), key=lambda row: row["id"])
        self.assertEqual(back, table.select(["id", "part", *wanted]).to_pylist())

    def test_the_program_of_the_document(self):
        root = os.environ.get("AZEKURA_ROOT", os.path.join(os.path.dirname(__file__), "..", ".."))
        with open(os.path.join(root, "docs", "shards.md"), encoding="utf-8") as file:
            (program,) = re.findall(r"^```py ray\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
        exec(compile(program.replace('"t.azs"', repr(self.set)), "docs/shards.md", "exec"), {})

    def test_what_is_absent(self):
        azekura.ray.write(numbers(100), self.set, 4)
        keys = ray.data.range(200)
        self.assertEqual(azekura.ray.lookup(keys, self.set).count(), 100)
        rows = {row["id"]: row["v"] for row in azekura.ray.lookup(keys, self.set, how="left").take_all()}
        self.assertEqual(rows, {n: 3 * n if n < 100 else None for n in range(200)})

    def test_a_task_that_is_killed_is_repeated(self):
        azekura.ray.write(numbers().map_batches(fails_for(7777, self.folder), batch_format="pyarrow"), self.set, 4)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "failed")))
        self.expect_whole(1)

    def test_a_job_that_fails_leaves_nothing(self):
        azekura.ray.write(numbers(), self.set, 2)
        with self.assertRaises(Exception):
            azekura.ray.write(numbers(factor=5).map_batches(fails_for(123), batch_format="pyarrow"), self.set, 4)
        self.expect_whole(1)

    def test_a_key_that_is_there_twice_is_refused(self):
        twice = ray.data.from_items([{"id": n % 10, "v": n} for n in range(20)])
        with self.assertRaisesRegex(Exception, "two records have the key"):
            azekura.ray.write(twice, self.set, 2)
        self.assertEqual([name for name in names(self.set) if not name.startswith("set")], [])

    def test_wrong_arguments(self):
        with self.assertRaisesRegex(ValueError, "'no'"):
            azekura.ray.write(numbers(10), self.set, 2, "no")
        with self.assertRaisesRegex(TypeError, "list"):
            azekura.ray.write(ray.data.from_items([{"id": 1, "v": [1]}]), self.set, 2)
        azekura.ray.write(numbers(10), self.set, 2)
        with self.assertRaisesRegex(ValueError, "outer"):
            azekura.ray.lookup(ray.data.range(1), self.set, how="outer")
        with self.assertRaisesRegex(ValueError, "no column 'x'"):
            azekura.ray.lookup(ray.data.range(1), self.set, columns=["x"])
        with self.assertRaisesRegex(Exception, "rename it"):
            azekura.ray.lookup(numbers(1), self.set).take_all()


if __name__ == "__main__":
    unittest.main()
