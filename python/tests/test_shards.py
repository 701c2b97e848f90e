"""Sets of shards: writing, committing, reading. No other library is needed, but for what is in the class at the end."""

import json
import os
import shutil
import struct

import azekura
from tests.common import TestCase, library

pyarrow = library("pyarrow")


def spec(kind="hash", shards=4, key=("i64",), value=("i64",), nullable=False, seed=0):
    """What a set is, as JSON text."""
    def column(name, of, nullable):
        return {"name": name, "type": of, "nullable": nullable}

    keys = [column("key" if len(key) == 1 else f"k{i}", of, False) for i, of in enumerate(key)]
    values = [column("value" if len(value) == 1 else f"v{i}", of, nullable) for i, of in enumerate(value)]
    return json.dumps({"kind": kind, "shards": shards, "hash_seed": f"{seed:016x}", "key": keys, "value": values})


class Shards(TestCase):
    def setUp(self):
        super().setUp()
        self.set = os.path.join(self.folder, "t.azs")
        self.table = self.database().table("t", key=int, value=int)
        self.table.put_many({n: n * n for n in range(-50, 50)})

    def in_order(self, text):
        """The table's keys in the order of their hashes."""
        hashes = azekura._azekura.shard_hashes(self.table.to_arrow(), text)
        numbers = struct.unpack(f"={len(hashes) // 8}q", hashes)
        return [key for _, key in sorted(zip(numbers, self.table))]

    def write_hash(self, text):
        """Writes the table, a row at a time."""
        draft = azekura.ShardDraft.begin(self.set, text)
        writer = azekura.ShardDraft.resume(self.set, draft.id).writer("a")
        for key in self.in_order(text):
            self.assertEqual(writer.write(self.table.to_arrow(key, key + 1)), 1)
        return draft, writer.finish()

    def test_a_hash_set_is_written_and_read(self):
        draft, files = self.write_hash(spec())
        self.assertEqual(json.loads(draft.spec), json.loads(spec()))
        self.assertEqual(len(files), 4)
        with self.assertRaises(azekura.CannotOpen):
            azekura.ShardedReader(self.set)
        self.assertEqual(draft.commit(files), 1)
        reader = azekura.ShardedReader(self.set)
        self.assertEqual((reader.version, len(reader)), (1, 100))
        self.assertEqual(json.loads(reader.manifest)["records"], 100)
        self.assertEqual([reader[n] for n in (-50, 0, 49)], [2500, 0, 2401])
        self.assertEqual((reader.get(50), reader.get(50, "none"), 49 in reader, 50 in reader), (None, "none", True, False))
        with self.assertRaises(KeyError):
            reader[50]
        self.assertEqual(reader.get_many([3, 77, -4]), [9, None, 16])
        self.assertEqual(sorted(sum((reader.places(key=n) for n in range(100)), [])), sorted(
            place for place in (reader.places(key=n)[0] for n in range(100))))
        with self.assertRaises(ValueError):
            reader.batches(lo=3)

    def test_versions_are_switched_when_told(self):
        draft, files = self.write_hash(spec())
        draft.commit(files)
        reader, first = azekura.ShardedReader(self.set), azekura.ShardedReader(self.set, version=1)
        self.assertFalse(reader.refresh())
        self.table[7] = -7
        draft, files = self.write_hash(spec(shards=2))
        self.assertEqual(draft.commit(files), 2)
        self.assertEqual(reader[7], 49)
        self.assertTrue(reader.refresh())
        self.assertFalse(first.refresh())
        self.assertEqual((reader[7], first[7]), (-7, 49))

    def test_an_ordered_set_is_written_and_read(self):
        draft = azekura.ShardDraft.begin(self.set, spec("ordered", 3))
        files = []
        for shard, (lo, hi) in enumerate([(10, 50), (-50, -20), (-20, 10)]):
            writer = draft.writer(f"attempt-{shard}", shard)
            writer.write(self.table.to_arrow(lo, hi))
            files += writer.finish()
        draft.commit(files)
        reader = azekura.ShardedReader(self.set)
        self.assertEqual(reader.get_many(range(-51, 51)), [None, *(n * n for n in range(-50, 50)), None])
        self.assertEqual(reader.places(lo=-19, last=9), [1])
        self.assertEqual(reader.places(lo=-21, last=10), [0, 1, 2])
        self.assertEqual(reader.places(lo=-21, hi=10), [0, 1])
        copy = self.database_2().table("copy", key=int, value=int)
        copy.from_arrow(reader.batches(lo=-30, hi=20, batch_size=7))
        self.assertEqual(dict(copy.items()), {n: n * n for n in range(-30, 20)})

    def database_2(self):
        return self.enterContext(azekura.Database(os.path.join(self.folder, "2.azk"), durability="eventual"))

    def test_rows_that_are_not_divided_or_sorted_are_refused(self):
        draft = azekura.ShardDraft.begin(self.set, spec())
        writer = draft.writer("a")
        with self.assertRaisesRegex(azekura.Invalid, "divided and sorted first"):
            writer.write(self.table.to_arrow())
        with self.assertRaises(azekura.Invalid):
            writer.finish()
        writer.abandon()
        with self.assertRaises(azekura.TransactionOver):
            writer.finish()
        one = azekura.ShardDraft.begin(self.set, spec(shards=1)).writer("a")
        keys = self.in_order(spec(shards=1))
        one.write(self.table.to_arrow(keys[5], keys[5] + 1))
        with self.assertRaisesRegex(azekura.Invalid, "sorted by their hashes"):
            one.write(self.table.to_arrow(keys[4], keys[4] + 1))
        draft.abort()
        with self.assertRaises(azekura.CannotOpen):
            azekura.ShardDraft.resume(self.set, draft.id)

    def test_attempts_that_are_not_named_leave_nothing(self):
        text = spec()
        draft, files = self.write_hash(text)
        other = draft.writer("loser")
        first = self.in_order(text)[0]
        other.write(self.table.to_arrow(first, first + 1))
        other.finish()
        draft.commit(files)
        names = os.listdir(os.path.join(self.set, "v0001"))
        self.assertEqual(len([name for name in names if name.endswith("-a.azk")]), 4)
        self.assertFalse([name for name in names if "loser" in name])

    def test_what_cannot_be_is_refused(self):
        for wrong in ("", "{}", spec(shards=0), spec(key=()), spec(kind="heap"), spec(key=("i65",))):
            with self.assertRaises((ValueError, azekura.Invalid)):
                azekura.ShardDraft.begin(self.set, wrong)
        draft = azekura.ShardDraft.begin(self.set, spec())
        with self.assertRaises(ValueError):
            draft.writer("a", 1)
        with self.assertRaises(ValueError):
            draft.commit(["{}"])
        with self.assertRaises(TypeError):
            draft.writer("a").write([1, 2])
        with self.assertRaisesRegex(ValueError, "no column \"v0\""):
            azekura.ShardDraft.begin(self.set, spec(value=("i64", "i64"))).writer("a").write(self.table.to_arrow())
        with self.assertRaisesRegex(ValueError, "u64"):
            azekura.ShardDraft.begin(self.set, spec(value=("u64",))).writer("a").write(self.table.to_arrow())

    def test_a_damaged_shard_raises(self):
        draft, files = self.write_hash(spec(shards=1))
        draft.commit(files)
        name = os.path.join(self.set, "v0001", json.loads(files[0])["file"])
        with open(name, "r+b") as file:
            file.truncate(100)
        with self.assertRaisesRegex(azekura.Corrupt, "shard-00000-a.azk"):
            azekura.ShardedReader(self.set)[7]


if pyarrow:
    class ShardsOfColumns(TestCase):
        """With PyArrow: several columns, nulls, all types."""

        def write(self, table, key, kind="ordered", shards=1):
            """Writes a table whose rows are in order."""
            names = {pyarrow.string(): "str", pyarrow.binary(): "bytes", pyarrow.bool_(): "bool", pyarrow.float64(): "f64",
                     pyarrow.float32(): "f32", pyarrow.int8(): "i8", pyarrow.int16(): "i16", pyarrow.int32(): "i32",
                     pyarrow.int64(): "i64", pyarrow.uint64(): "u64"}

            def column(name):
                of = table.schema.field(name)
                return {"name": name, "type": names[of.type], "nullable": of.nullable and name not in key}

            values = [column(name) for name in table.column_names if name not in key]
            text = json.dumps({"kind": kind.replace("packed", "hash"), "shards": shards, "hash_seed": "00000000000000ff",
                               "key": [column(name) for name in key], "value": values})
            if kind == "hash":
                hashes = azekura._azekura.shard_hashes(table, text)
                table = table.take(pyarrow.compute.sort_indices(pyarrow.Array.from_buffers(
                    pyarrow.int64(), len(table), [None, pyarrow.py_buffer(hashes)])))
            path = os.path.join(self.folder, "t.azs")
            draft = azekura.ShardDraft.begin(path, text)
            writer = draft.writer("a", 0 if kind == "ordered" else None)
            if kind == "packed":
                for pack in self.packs(table, text).to_batches(3):
                    writer.write_packed(pack)
            else:
                self.assertEqual(writer.write(table), len(table))
            draft.commit(writer.finish())
            return azekura.ShardedReader(path)

        def packs(self, table, text):
            """Packs of the rows by two packers, in the order of their slices."""
            packed = []
            for half in (table.slice(0, len(table) // 2), table.slice(len(table) // 2)):
                packer = azekura.ShardPacker(text)
                packed += packer.add(half)
                packed += packer.finish()
            packs = pyarrow.Table.from_batches(map(pyarrow.record_batch, packed))
            self.assertEqual(packs.column_names, ["shard", "slice", "pack"])
            return packs.sort_by("slice")

        def table(self, rows, with_nulls):
            def some(values):
                return [None if with_nulls and i % 3 == j % 3 else value for i, (j, value) in enumerate(zip(range(0, 9999, 2), values))]

            return pyarrow.table({
                "id": pyarrow.array(range(rows), pyarrow.int64()),
                "name": some([f"name {i}" * (i % 4) for i in range(rows)]),
                "on": some([i % 2 == 0 for i in range(rows)]),
                "part": pyarrow.array(some(range(rows)), pyarrow.int16()),
                "heat": pyarrow.array(some([i / 7 for i in range(rows)]), pyarrow.float64()),
                "raw": some([bytes([i % 256]) * (i % 9) for i in range(rows)]),
                "count": pyarrow.array(some(range(rows)), pyarrow.uint64()),
            })

        def back(self, reader, columns=None):
            return pyarrow.Table.from_batches(map(pyarrow.record_batch, reader.batches(columns=columns, batch_size=37)))

        def test_all_types_come_back(self):
            for kind in ("ordered", "hash", "packed"):
                for with_nulls in (False, True):
                    table = self.table(500, with_nulls)
                    reader = self.write(table, ["id"], kind, shards=3)
                    self.assertEqual(self.back(reader).sort_by("id").to_pylist(), table.to_pylist())
                    few = self.back(reader, ["heat", "id"])
                    self.assertEqual(few.column_names, ["heat", "id"])
                    self.assertEqual(few.sort_by("id").to_pylist(), table.select(["heat", "id"]).to_pylist())
                    row = table.slice(123, 1).to_pylist()[0]
                    self.assertEqual(reader[123], tuple(row.values())[1:])

        def test_numbers_side_by_side(self):
            table = pyarrow.table({"id": [1, 2, 3], "a": pyarrow.array([4, 5, 6], pyarrow.int32()), "b": [7.0, 8.0, None]})
            reader = self.write(table, ["id"])
            self.assertEqual(reader.get_many([1, 2, 3, 4]), [(4, 7.0), (5, 8.0), (6, None), None])

        def test_a_key_of_several_columns(self):
            table = pyarrow.table({"a": ["x", "x", "y"], "v": [1, None, 3], "b": [1, 2, -5]})
            for kind in ("ordered", "hash", "packed"):
                reader = self.write(table, ["a", "b"], kind, 2)
                self.assertEqual(reader.get_many([("x", 1), ("x", 2), ("y", -5), ("y", 5)]), [1, None, 3, None])
                self.assertIn(("x", 2), reader)
                self.assertEqual(
                    self.back(reader).sort_by([("a", "ascending"), ("b", "ascending")]).to_pylist(),
                    table.select(["a", "b", "v"]).to_pylist())
                self.assertEqual(self.back(reader, ["b"]).sort_by("b").column("b").to_pylist(), [-5, 1, 2])

        def test_keys_alone(self):
            reader = self.write(pyarrow.table({"id": ["a", "b"]}), ["id"])
            self.assertEqual((reader["a"], "b" in reader, "c" in reader), ((), True, False))
            self.assertEqual(self.back(reader).to_pylist(), [{"id": "a"}, {"id": "b"}])

        def test_lookups(self):
            table = self.table(300, True)
            reader = self.write(table, ["id"], "hash", 5)
            keys = pyarrow.table({"x": [0, 1, 2, 3], "id": pyarrow.array([299, 1000, None, 4], pyarrow.int64())})
            (found,) = map(pyarrow.record_batch, reader.lookup(keys))
            self.assertEqual(found.column("found").to_pylist(), [True, False, False, True])
            rows = table.to_pylist()
            for name in table.column_names[1:]:
                self.assertEqual(found.column(name).to_pylist(), [rows[299][name], None, None, rows[4][name]])
            (found,) = map(pyarrow.record_batch, reader.lookup(keys.select(["id"]), ["part"]))
            self.assertEqual(found.schema.names, ["part", "found"])
            with self.assertRaises(ValueError):
                reader.lookup(keys, ["id"])

        def test_nan_is_no_key_and_is_not_found(self):
            nan = float("nan")
            for of in (pyarrow.float64(), pyarrow.float32()):
                for kind in ("ordered", "hash"):
                    table = pyarrow.table({"id": pyarrow.array([-1.5, 0.0, 2.0], of), "v": [1, 2, 3]})
                    reader = self.write(table, ["id"], kind, 2)
                    keys = pyarrow.table({"id": pyarrow.array([nan, 2.0, None, -0.0, nan, 7.0], of)})
                    (found,) = map(pyarrow.record_batch, reader.lookup(keys))
                    self.assertEqual(found.column("v").to_pylist(), [None, 3, None, 2, None, None])
                    self.assertEqual(found.column("found").to_pylist(), [False, True, False, True, False, False])
                    shutil.rmtree(reader_folder := os.path.join(self.folder, "t.azs"))
                    self.assertFalse(os.path.exists(reader_folder))
                    draft = azekura.ShardDraft.begin(reader_folder, reader.manifest)
                    writer = draft.writer("a", 0 if kind == "ordered" else None)
                    bad = pyarrow.table({"id": pyarrow.array([nan], of), "v": [1]})
                    with self.assertRaisesRegex(ValueError, 'column "id" is NaN in row 0'):
                        writer.write(bad)
                    draft.abort()
            table = pyarrow.table({"a": ["x", "y"], "b": [1.0, 2.0], "v": [1, 2]})
            reader = self.write(table, ["a", "b"], "hash", 2)
            keys = pyarrow.table({"a": ["x", "x", "y"], "b": [1.0, nan, 2.0]})
            (found,) = map(pyarrow.record_batch, reader.lookup(keys, []))
            self.assertEqual(found.column("found").to_pylist(), [True, False, True])
            self.assertEqual(len(azekura._azekura.shard_hashes(keys, reader.manifest)), 24)

        def test_packs_that_are_none_or_late_are_refused(self):
            table, text = pyarrow.table({"key": [*range(1000)], "value": [*range(1000)]}), spec(shards=2)
            draft, packs = azekura.ShardDraft.begin(os.path.join(self.folder, "t.azs"), text), self.packs(table, text)
            for wrong, why in (
                (pyarrow.table({"pack": [b"no pack"]}), "no pack of this set"),
                (packs.take([*range(len(packs))][::-1]), "packs have to be sorted"),
                (pyarrow.concat_tables([packs, packs]).sort_by("slice"), "two records have the key"),
            ):
                writer = draft.writer("a" + str(len(why)))
                with self.assertRaisesRegex(azekura.Invalid, why):
                    writer.write_packed(wrong)
                with self.assertRaisesRegex(azekura.Invalid, "an earlier write has failed"):
                    writer.finish()
            for wrong in (pyarrow.table({"pack": [1]}), pyarrow.array([b""]), 7):
                with self.assertRaises(TypeError):
                    draft.writer("b").write_packed(wrong)
            with self.assertRaisesRegex(ValueError, "null"):
                draft.writer("c").write_packed(pyarrow.table({"pack": pyarrow.array([None], pyarrow.binary())}))
            packer = azekura.ShardPacker(text)
            with self.assertRaisesRegex(ValueError, 'no column "value"'):
                packer.add(table.select(["key"]))
            self.assertEqual(packer.finish(), [])
            with self.assertRaises(azekura.TransactionOver):
                packer.finish()
            with self.assertRaises(azekura.Invalid):
                azekura.ShardPacker(spec("ordered"))
            draft.abort()

        def test_nulls_in_keys_are_refused(self):
            with self.assertRaisesRegex(ValueError, "null"):
                self.write(pyarrow.table({"id": pyarrow.array([1, None], pyarrow.int64())}), ["id"])
