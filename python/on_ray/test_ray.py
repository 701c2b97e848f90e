"""Sets of shards with Ray Data: `cargo xtask ray` runs it."""

import datetime
import glob
import json
import os
import re
import tempfile
import tomllib
import unittest
from unittest import mock

import azekura
import azekura.ray
import pandas
import pyarrow
import ray

ROWS = 20_000
# A row of the last block: Ray makes the first ones for their schema before anything is written.
LAST = ROWS - 1


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


def shards_by_task(folder):
    """Writes shards, and leaves a file of the task's name with a line for each one."""

    def write_shard(path, draft, packs):
        import azekura.ray

        with open(os.path.join(folder, ray.get_runtime_context().get_task_id()), "a") as file:
            file.write("a shard\n")
        return azekura.ray._write_shard(path, draft, packs)

    return write_shard


def dies_in_the_midst(mark):
    """Writes shards. The first task that has begun its file dies, once, and leaves the file's name at `mark`."""

    class Dying:
        def __init__(self, folder, writer):
            self.folder, self.writer = folder, writer

        def write_packed(self, packs):
            for row in range(packs.num_rows):
                self.writer.write_packed(packs.slice(row, 1))
                begun = [name for name in os.listdir(self.folder) if name.endswith(".azk")]
                if begun:
                    with open(mark, "w") as file:
                        file.write(begun[0])
                    os._exit(1)

        def abandon(self):
            self.writer.abandon()

    def write_shard(path, draft, packs):
        import azekura.ray

        if os.path.exists(mark):
            return azekura.ray._write_shard(path, draft, packs)
        real = azekura.ShardDraft.resume(path, draft)
        with mock.patch.object(azekura.ray, "ShardDraft") as drafts:
            folder = os.path.join(path, f".new-{draft}")
            drafts.resume.return_value.writer = lambda attempt: Dying(folder, real.writer(attempt))
            return azekura.ray._write_shard(path, draft, packs)

    return write_shard


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
        wanted = ["name", "raw", "heat", "on", "day", "at", "big"]
        joined = azekura.ray.lookup(keys, self.set, on=["part", "id"], columns=wanted)
        back = sorted(joined.take_all(), key=lambda row: row["id"])
        self.assertEqual(back, table.select(["id", "part", *wanted]).to_pylist())

    def test_blocks_of_pandas(self):
        day = datetime.date(2026, 3, 1)
        columns = {
            "id": [f"key {n}" for n in range(50)],
            "raw": [bytes([n]) for n in range(50)],
            "day": [day + datetime.timedelta(n) for n in range(50)],
            "name": [None if n % 3 == 0 else f"name {n}" for n in range(50)],
        }
        frame = pandas.DataFrame({name: pandas.Series(column, dtype=object) for name, column in columns.items()})
        azekura.ray.write(ray.data.from_pandas(frame), self.set, 3)
        joined = azekura.ray.lookup(ray.data.from_pandas(frame[["id"]]), self.set).take_all()
        self.assertEqual(joined, pyarrow.table(columns).to_pylist())
        # As pandas takes text today.
        frame = pandas.DataFrame({"id": columns["id"], "v": range(50)})
        self.assertEqual(azekura.ray.write(ray.data.from_pandas(frame), self.set, 3), 2)
        self.assertEqual(azekura.ShardedReader(self.set)["key 7"], 7)
        for wrong in (complex(1, 2), {"a": 1}):
            frame["v"] = pandas.Series([wrong] * 50, dtype=object)
            with self.assertRaisesRegex(TypeError, "column 'v' is of"):
                azekura.ray.write(ray.data.from_pandas(frame), self.set, 3)

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
        azekura.ray.write(numbers().map_batches(fails_for(LAST, self.folder), batch_format="pyarrow"), self.set, 4)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "failed")))
        self.expect_whole(1)

    def test_a_task_that_is_killed_in_the_midst_of_a_shard_is_repeated(self):
        mark = os.path.join(self.folder, "begun")
        with mock.patch.object(azekura.ray, "_write_shard", dies_in_the_midst(mark)):
            azekura.ray.write(numbers(), self.set, 4)
        with open(mark) as file:
            begun = file.read()
        self.expect_whole(1)
        self.assertNotIn(begun, names(os.path.join(self.set, "v0001")))

    def test_each_shard_has_a_task_of_its_own(self):
        folder = os.path.join(self.folder, "tasks")
        os.mkdir(folder)
        with mock.patch.object(azekura.ray, "_write_shard", shards_by_task(folder)):
            azekura.ray.write(numbers(), self.set, 12)
        self.expect_whole(1)
        lines = [open(os.path.join(folder, name)).read() for name in names(folder)]
        self.assertEqual(lines, ["a shard\n"] * 12)

    def test_packs_of_a_shard_may_have_more_than_2_gib(self):
        """So many are not made here: they are of the type that holds them."""
        column = {"name": "id", "type": "i64", "nullable": False}
        spec = json.dumps({"kind": "hash", "shards": 1, "hash_seed": "0" * 16, "key": [column], "value": []})
        (packs,) = azekura.ray._pack(spec, [0], pyarrow.table({"id": range(10)}))
        self.assertEqual(packs.schema.field("pack").type, pyarrow.large_binary())

    def test_shards_may_share_a_partition(self):
        with mock.patch.object(azekura.ray, "_parts", lambda shards: list(range(shards))):
            azekura.ray.write(numbers(), self.set, 12)
        self.expect_whole(1)

    def test_a_job_that_fails_leaves_nothing(self):
        azekura.ray.write(numbers(), self.set, 2)
        failing = numbers(factor=5).map_batches(fails_for(LAST), batch_format="pyarrow")
        with mock.patch.object(azekura.ray, "_remove", wraps=azekura.ray._remove) as removed:
            with self.assertRaisesRegex(Exception, "as was asked"):
                azekura.ray.write(failing, self.set, 4)
        removed.assert_called_once()
        self.expect_whole(1)

    def test_a_key_that_is_there_twice_is_refused(self):
        twice = ray.data.from_items([{"id": n % 10, "v": n} for n in range(20)])
        with self.assertRaisesRegex(Exception, "two records have the key"):
            azekura.ray.write(twice, self.set, 2)
        self.assertEqual([name for name in names(self.set) if not name.startswith("set")], [])

    def test_a_key_that_is_null_is_refused(self):
        rows = pyarrow.table({"id": pyarrow.array([1, None, 3]), "v": pyarrow.array([1, 2, 3])})
        with self.assertRaisesRegex(Exception, "column 'id' has a null"):
            azekura.ray.write(ray.data.from_arrow(rows), self.set, 2)
        self.assertEqual([name for name in names(self.set) if not name.startswith("set")], [])

    def test_rows_that_fail_are_not_left_out(self):
        dataset = numbers(100)
        for allowed in (1, -1):
            dataset.context.max_errored_blocks = allowed
            with self.assertRaisesRegex(ValueError, "max_errored_blocks"):
                azekura.ray.write(dataset, self.set, 2)
        self.assertFalse(os.path.exists(self.set))

    def test_the_error_is_not_hidden_by_another(self):
        draft = mock.Mock(**{"abort.side_effect": OSError("no disk")})
        error = ValueError("the real one")
        azekura.ray._remove(draft, error)
        self.assertRegex(error.__notes__[0], "no disk")

    def test_a_draft_that_is_gone_is_no_error(self):
        drafts = []

        def gone(path, spec):
            drafts.append(azekura.ShardDraft.begin(path, spec))
            drafts[0].abort()
            return drafts[0]

        failing = numbers().map_batches(fails_for(LAST), batch_format="pyarrow")
        with mock.patch.object(azekura.ray, "ShardDraft") as of_module:
            of_module.begin = gone
            with self.assertRaisesRegex(Exception, "as was asked") as raised:
                azekura.ray.write(failing, self.set, 2)
        self.assertEqual(len(drafts), 1)
        self.assertFalse(getattr(raised.exception, "__notes__", None))
        self.assertEqual([name for name in names(self.set) if not name.startswith("set")], [])

    def test_the_versions_of_ray_are_said_once(self):
        root = os.environ.get("AZEKURA_ROOT", os.path.join(os.path.dirname(__file__), "..", ".."))
        with open(os.path.join(root, "python", "pyproject.toml"), "rb") as file:
            packages = tomllib.load(file)["project"]["optional-dependencies"]["ray"]
        with open(os.path.join(root, "crates", "xtask", "src", "adapters.rs"), encoding="utf-8") as file:
            tested = file.read()
        self.assertEqual([package for package in packages if f'"{package}"' not in tested], [])

    def test_wrong_arguments(self):
        with self.assertRaisesRegex(ValueError, "'no'"):
            azekura.ray.write(numbers(10), self.set, 2, "no")
        with self.assertRaisesRegex(ValueError, "no rows"):
            azekura.ray.write(numbers(10).filter(lambda row: False), self.set, 2)
        with self.assertRaisesRegex(TypeError, "list"):
            azekura.ray.write(ray.data.from_items([{"id": 1, "v": [1]}]), self.set, 2)
        azekura.ray.write(numbers(10), self.set, 2)
        with self.assertRaisesRegex(ValueError, "outer"):
            azekura.ray.lookup(ray.data.range(1), self.set, how="outer")
        with self.assertRaisesRegex(ValueError, "no column 'x'"):
            azekura.ray.lookup(ray.data.range(1), self.set, columns=["x"])
        with self.assertRaisesRegex(Exception, "the rows have no column 'key'"):
            azekura.ray.lookup(ray.data.range(1), self.set, on="key").take_all()
        with self.assertRaisesRegex(Exception, "rename it"):
            azekura.ray.lookup(numbers(1), self.set).take_all()


if __name__ == "__main__":
    unittest.main()
