"""Sets of shards with Ray Data.

- `write(dataset, path, shards, key)`: the rows of a dataset become the next version of a set of hash tables.
- `lookup(dataset, path, on)`: joins the values of keys.

    azekura.ray.write(dataset, "t.azs", 512, "id")
    azekura.ray.lookup(keys, "t.azs", on="id")

The workers need the package too, and see the set under the same path.
"""

import functools
import json
import os

import pyarrow
import pyarrow.compute
from ray.data import Datasink

from ._azekura import ShardDraft, ShardedReader
from ._sets import attempt_name, described, find_rows, names_of, pack_rows

__all__ = ["lookup", "write"]

_TYPES = {
    pyarrow.bool_(): "bool",
    pyarrow.int8(): "i8",
    pyarrow.int16(): "i16",
    pyarrow.int32(): "i32",
    pyarrow.int64(): "i64",
    pyarrow.uint8(): "u8",
    pyarrow.uint16(): "u16",
    pyarrow.uint32(): "u32",
    pyarrow.uint64(): "u64",
    pyarrow.float32(): "f32",
    pyarrow.float64(): "f64",
    pyarrow.string(): "str",
    pyarrow.large_string(): "str",
    pyarrow.binary(): "bytes",
    pyarrow.large_binary(): "bytes",
    pyarrow.date32(): "date",
}
# Packs that are written in one call: some 16 MiB, as a pack has 256 KiB at most.
_PACKS = 64
# So many numbers for each partition: all miss one with a probability of e^-32.
_TRIALS = 32


def write(dataset, path, shards, key="id", *, seed=0):
    """Writes the rows of a dataset as the next version of the set in the folder `path`, and returns its number.

    `key` is a column, or a list of several; the other columns are the value. A task packs the rows of a block, and
    a task writes each shard: its memory has to hold the shard's packs some three times. Ray repeats a task whose
    worker has died; what that one has written goes when the version is committed. If a task raises, the job fails,
    and nothing stays.
    """
    path, names = os.path.abspath(path), names_of(key)
    if dataset.context.max_errored_blocks != 0:
        raise ValueError("max_errored_blocks of the DataContext has to be 0: rows that fail would be left out")
    # Blocks of pandas do not say what is in a column of objects: Arrow's do.
    dataset = dataset.map_batches(_as_it_is, batch_format="pyarrow", batch_size=None)
    schema = dataset.schema()
    if schema is None:
        raise ValueError("the dataset has no rows, or no columns")
    columns = [_column(name, of) for name, of in zip(schema.names, schema.types)]
    by_name = {column["name"]: column for column in columns}
    for name in names:
        if name not in by_name:
            raise ValueError(f"the key has the column {name!r}, which is not there")
    keys = [by_name[name] | {"nullable": False} for name in names]
    spec = described("hash", shards, seed, keys, [column for column in columns if column["name"] not in names])
    draft = ShardDraft.begin(path, spec)
    sink = _Version(path, draft.id)
    try:
        pack = functools.partial(_pack, spec, _parts(int(shards)))
        packs = dataset.map_batches(pack, batch_format="pyarrow", batch_size=None)
        shard = functools.partial(_write_shard, path, draft.id)
        files = packs.groupby("part", num_partitions=int(shards)).map_groups(shard, batch_format="pyarrow")
        files.write_datasink(sink)
    except BaseException as error:
        _remove(draft, error)
        raise
    return sink.version


def lookup(dataset, path, on="id", *, columns=None, how="inner", version=None):
    """Joins the values of a set of shards to the rows of a dataset: its columns, then those of the values.

    on: the column that has the key, or a list of the key's parts. columns: which of the values' columns. how: `inner`,
    or `left` for rows without a value too. version: the newest, unless it is given. Each task reads all shards that
    its keys are in.
    """
    if how not in ("inner", "left"):
        raise ValueError(f"how is 'inner' or 'left', not {how!r}")
    names, path = names_of(on), os.path.abspath(path)
    reader = ShardedReader(path, version=version)
    manifest = json.loads(reader.manifest)
    key, of_values = [[column["name"] for column in manifest[part]] for part in ("key", "value")]
    columns = of_values if columns is None else list(columns)
    if len(names) != len(key):
        raise ValueError(f"the key has {len(key)} columns, not {len(names)}")
    for name in columns:
        if name not in of_values:
            raise ValueError(f"the values have no column {name!r}")
    find = functools.partial(_find, path, reader.version, names, key, columns, how)
    return dataset.map_batches(find, batch_format="pyarrow", batch_size=None)


def _column(name, of):
    if not isinstance(of, pyarrow.DataType):
        raise TypeError(f"column {name!r} is of no type of Arrow, but {of!r}: cast it to one")
    if pyarrow.types.is_timestamp(of):
        return {"name": name, "type": "timestamp_ntz" if of.tz is None else "timestamp", "nullable": True}
    if of not in _TYPES:
        raise TypeError(f"column {name!r} is of type {of}: cast it to another one")
    return {"name": name, "type": _TYPES[of], "nullable": True}


def _as_it_is(table):
    return table


def _parts(shards):
    """A number for each shard, by which Ray gives each one a partition of its own.

    Ray puts a row where the hash of its column leads, so the numbers are found by Ray's own function. That is not
    public. Without it, and where Ray divides rows in another way, a partition may get several shards, which costs
    memory only.
    """
    try:
        from ray.data._internal.arrow_ops.transform_pyarrow import hash_partition

        numbers = pyarrow.table({"part": pyarrow.array(range(_TRIALS * shards), pyarrow.int64())})
        found = hash_partition(numbers, hash_cols=["part"], num_partitions=shards)
        return [found[partition].column("part")[0].as_py() for partition in range(shards)]
    except Exception:
        return list(range(shards))


def _pack(spec, parts, table):
    """The packs of a block."""
    for column in json.loads(spec)["key"]:
        if table.column(column["name"]).null_count:
            raise ValueError(f"column {column['name']!r} has a null, which no key can be")
    parts = pyarrow.array(parts, pyarrow.int64())
    for packs in pack_rows(spec, table.column_names, table.to_batches()):
        # All packs of a shard may have more than the 2 GiB that a column of `binary` holds.
        columns = [
            parts.take(packs.column("shard")),
            packs.column("slice"),
            packs.column("pack").cast(pyarrow.large_binary()),
        ]
        yield pyarrow.table(columns, names=["part", "slice", "pack"])


def _write_shard(path, draft, packs):
    """Writes a shard, whose packs these are. What became of it is one row."""
    writer = ShardDraft.resume(path, draft).writer(attempt_name("ray"))
    try:
        order = pyarrow.compute.sort_indices(packs.column("slice"))
        for first in range(0, len(order), _PACKS):
            some = packs.select(["pack"]).take(order[first : first + _PACKS])
            for batch in some.to_batches():
                writer.write_packed(batch)
        return pyarrow.table({"file": writer.finish()})
    except BaseException:
        # What it has written goes at once if it can; with the draft if not.
        writer.abandon()
        raise


def _find(path, version, names, key, columns, how, table):
    for name in columns:
        if name in table.column_names:
            raise ValueError(f"the rows have a column {name!r} too: rename it, or leave it out of `columns`")
    for name in names:
        if name not in table.column_names:
            raise ValueError(f"the rows have no column {name!r}")
    places = [table.column_names.index(name) for name in names]
    joined = find_rows(path, version, places, key, columns, how, table.column_names + columns, table.to_batches())
    yield from map(pyarrow.Table.from_batches, ([batch] for batch in joined))


def _remove(draft, error):
    """Removes all that was written, after this error, which stays the one that is raised. A draft that was
    committed, or is gone, is none any more."""
    try:
        draft.abort()
    except Exception as other:
        error.add_note(f"what was written stays, until `azekura shards compact` removes it: {other}")


class _Version(Datasink):
    """Commits what was written: the names of its files are the rows."""

    def __init__(self, path, draft):
        self.path, self.draft, self.version = path, draft, None

    def get_name(self):
        return "Azekura"

    def write(self, blocks, ctx):
        return [name for block in blocks if block.num_rows for name in block.column("file").to_pylist()]

    def on_write_complete(self, write_result):
        files = [name for names in write_result.write_returns for name in names]
        self.version = ShardDraft.resume(self.path, self.draft).commit(files)
