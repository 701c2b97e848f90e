"""What the adapters of engines for big data share: sets of shards as these describe and read them."""

import functools
import json
import os
import uuid

import pyarrow

from ._azekura import ShardedReader, ShardPacker

# A manifest begins with its digest.
_DIGEST_BYTES = len('{"digest":"') + 32


def names_of(key):
    """The columns of a key: one, several with commas between, or a list."""
    names = [name.strip() for name in key.split(",")] if isinstance(key, str) else list(key)
    if not names or not all(names):
        raise ValueError("the key has no column: 'id', or several names with commas between")
    return names


def described(kind, shards, seed, key, value):
    """What a set is, as JSON text."""
    seed = format(int(seed) & (2**64 - 1), "016x")
    return json.dumps({"kind": kind, "shards": int(shards), "hash_seed": seed, "key": key, "value": value})


def kept_reader(path, version):
    """A reader that stays open in this process, as long as the manifest is the one that it has read. A set that was
    deleted and written anew begins with the same numbers."""
    with open(os.path.join(path, f"manifest-{version:04}.json"), "rb") as manifest:
        return _opened(path, version, manifest.read(_DIGEST_BYTES))


@functools.lru_cache(maxsize=4)
def _opened(path, version, digest):
    return ShardedReader(path, version=version)


def _physical(array):
    """A column as it is stored: dates and times are numbers."""
    if pyarrow.types.is_date32(array.type):
        return array.view(pyarrow.int32())
    if pyarrow.types.is_timestamp(array.type):
        return array.cast(pyarrow.timestamp("us", array.type.tz)).view(pyarrow.int64())
    return array


def batch_of(arrays, names):
    """Columns as rows of a set."""
    return pyarrow.RecordBatch.from_arrays([_physical(array) for array in arrays], names=names)


def pack_rows(spec, names, batches):
    """Packs of the rows of some batches, whose columns have these names."""
    packer = ShardPacker(spec)
    for batch in batches:
        yield from map(pyarrow.record_batch, packer.add(batch_of(batch.columns, names)))
    yield from map(pyarrow.record_batch, packer.finish())


def find_rows(path, version, places, key_names, columns, how, names, batches):
    """The rows of some batches, with the values of their keys. The key's columns are at `places`, `columns` of the
    values are added, and `names` are those of all columns then."""
    reader = kept_reader(path, version)
    for batch in batches:
        keys = batch_of([batch.column(place) for place in places], key_names)
        (found,) = map(pyarrow.record_batch, reader.lookup(keys, columns))
        joined = pyarrow.RecordBatch.from_arrays(batch.columns + found.columns[:-1], names=names)
        yield joined.filter(found.column(len(columns))) if how == "inner" else joined


def attempt_name(*parts):
    """A name for the files of one attempt of a task."""
    return "-".join(map(str, (*parts, uuid.uuid4().hex[:12])))
