"""What the adapters of engines for big data share: sets of shards as these describe and read them."""

import functools
import json
import os

from ._azekura import ShardedReader

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
