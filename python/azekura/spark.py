"""Sets of shards as a data source of Apache Spark, for PySpark 4.1 or later.

- `register(spark)`: makes `format("azekura")` known to a session.
- `prepare(frame, shards, key)`: divides and sorts rows as the writer takes them.
- `lookup(frame, path, on)`: joins the values of keys.

    azekura.spark.register(spark)
    ready = azekura.spark.prepare(frame, 512, "id")
    ready.write.format("azekura").mode("overwrite").option("shards", 512).option("key", "id").save("t.azs")
    spark.read.format("azekura").load("t.azs")
    azekura.spark.lookup(keys, "t.azs", on="id")

The executors need the package too.
"""

import datetime
import functools
import json
import math
import os
import re

import pyarrow
from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql import functions
from pyspark.sql import types as spark_types
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_schema

from ._azekura import ShardDraft, ShardedReader, shard_hashes
from ._errors import CannotOpen
from ._sets import attempt_name, batch_of, described, find_rows, kept_reader, names_of, pack_rows

__all__ = ["DataSource", "lookup", "prepare", "register"]

_TYPES = {
    "bool": spark_types.BooleanType(),
    "i8": spark_types.ByteType(),
    "i16": spark_types.ShortType(),
    "i32": spark_types.IntegerType(),
    "i64": spark_types.LongType(),
    "f32": spark_types.FloatType(),
    "f64": spark_types.DoubleType(),
    "str": spark_types.StringType(),
    "bytes": spark_types.BinaryType(),
    "date": spark_types.DateType(),
    "timestamp": spark_types.TimestampType(),
    "timestamp_ntz": spark_types.TimestampNTZType(),
}
_NAMES = {type(of): name for name, of in _TYPES.items()}
# Under that name a column of packs says what set they are for.
_SPEC = "azekura"
_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def register(spark, *, pushdown=False):
    """Makes `format("azekura")` known to a session. `pushdown` lets all data sources that are written in Python see
    filters in this session, which `option("filters", "push")` needs."""
    spark.dataSource.register(DataSource)
    if pushdown:
        spark.conf.set(_PUSHDOWN, "true")


def prepare(frame, shards, key="id", *, kind="hash", seed=0):
    """Divides and sorts the rows of a frame as the writer takes them: each shard in one partition, in the order of
    its keys' hashes (or of its keys, for `kind="ordered"`). `key` is a column, or a list of several. The writer gets
    the same `shards`, `key`, `kind` and `seed` as options.

    For `kind="hash"` the frame that is returned has packs of many rows, in one column `pack`, since Spark moves and
    sorts a few packs far faster than many rows. Only the writer can read them."""
    names = names_of(key)
    if kind == "ordered":
        columns = [_named(name) for name in names]
        return frame.repartitionByRange(shards, *columns).sortWithinPartitions(*columns)
    spec = described(kind, shards, seed, _key(frame.schema, names), _values(frame.schema, names))
    # Where a shard is, and where a pack is in it, are for Spark alone.
    packs = _packed(frame, spec)
    return packs.repartitionById(int(shards), "shard").sortWithinPartitions("slice").select("pack")


def lookup(frame, path, on="id", *, columns=None, how="inner", shuffle=None, version=None):
    """Joins the values of a set of shards to the rows of a frame: its columns, then those of the values.

    on: the column that has the key, or a list of the key's parts. columns: which of the values' columns. how: `inner`,
    or `left` for rows without a value too. shuffle: whether rows go to the task of their shard first, so that each
    task reads one shard. Without that each task reads all of them, which is faster where all executors run on one
    machine; that is the default with a local master. version: the newest, unless it is given.
    """
    if how not in ("inner", "left"):
        raise ValueError(f"how is 'inner' or 'left', not {how!r}")
    names = names_of(on)
    # Spark's workers may have another working directory.
    path = os.path.abspath(_local(path))
    reader = ShardedReader(path, version=version)
    manifest = json.loads(reader.manifest)
    version = reader.version
    of_values = {column["name"]: column for column in manifest["value"]}
    columns = list(of_values) if columns is None else list(columns)
    if len(names) != len(manifest["key"]):
        raise ValueError(f"the key has {len(manifest['key'])} columns, not {len(names)}")
    for name in names:
        if name not in frame.columns:
            raise ValueError(f"the frame has no column {name!r}")
    for name in columns:
        if name not in of_values:
            raise ValueError(f"the values have no column {name!r}")
        if name in frame.columns:
            raise ValueError(f"the frame has a column {name!r} too: rename it, or leave it out of `columns`")
    added = [spark_types.StructField(name, _TYPES[of_values[name]["type"]]) for name in columns]
    schema = spark_types.StructType(frame.schema.fields + added)
    if shuffle is None:
        shuffle = not frame.sparkSession.conf.get("spark.master", "").startswith("local[")
    if shuffle and manifest["kind"] == "hash":
        seed = int(manifest["hash_seed"], 16)
        spec = described("hash", manifest["shards"], seed, manifest["key"], [])
        frame, hashes = _divided(frame, names, manifest["key"], spec)
        frame = frame.drop(hashes)
    key_names = [column["name"] for column in manifest["key"]]
    places = [frame.columns.index(name) for name in names]
    find = functools.partial(find_rows, path, version, places, key_names, columns, how, schema.fieldNames())
    return _with_plain_names(frame).mapInArrow(find, schema)


def _column(field):
    of = _NAMES.get(type(field.dataType))
    if of is None:
        raise TypeError(f"column {field.name!r} is of type {field.dataType.simpleString()}: cast it to another one")
    return {"name": field.name, "type": of, "nullable": field.nullable}


def _key(schema, names):
    """The columns of the key."""
    fields = {field.name: field for field in schema.fields}
    missing = [name for name in names if name not in fields]
    if missing:
        raise ValueError(f"the key has the column {missing[0]!r}, which is not there")
    return [_column(fields[name]) | {"nullable": False} for name in names]


def _values(schema, names):
    """The columns of the values: all that are not of the key."""
    return [_column(field) for field in schema.fields if field.name not in names]


def _packed(frame, spec):
    """The rows of a frame as packs, which are where the rows were."""
    pack = functools.partial(pack_rows, spec, frame.columns)
    return _with_plain_names(frame).mapInArrow(pack, _packed_schema(spec))


def _with_plain_names(frame):
    """The frame with other names: Spark takes a dot in the name of a column for a path into it."""
    return frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))


def _named(name):
    """A column of a frame, whatever is in its name."""
    return functions.col("`" + name.replace("`", "``") + "`")


def _local(path):
    """The folder of a path, or of a URL of the local file system."""
    path = os.fspath(path)
    # One letter and a colon begin a path of Windows.
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", path)
    if scheme is None:
        return path
    local = re.fullmatch(r"file:(?://(?:localhost)?)?(/(?!/).*)", path, re.IGNORECASE | re.DOTALL)
    if local is None:
        raise ValueError(
            f"{path}: a set of shards is in a folder of a local or mounted file system, and {scheme[1]}: is none; "
            "for an object store copy the folder that was written"
        )
    return local[1]


def _divided(frame, names, key, spec):
    """The rows, each in the partition of its shard, with a column of their hashes, and that column's name."""
    key_names, shards = [column["name"] for column in key], json.loads(spec)["shards"]
    name, taken = "_azekura_hash", {name.lower() for name in frame.columns}
    while name in taken:
        name += "_"

    @arrow_udf(returnType="long")
    def hashes(*columns: pyarrow.Array) -> pyarrow.Array:
        found = shard_hashes(batch_of(columns, key_names), spec)
        return pyarrow.Array.from_buffers(pyarrow.int64(), len(columns[0]), [None, pyarrow.py_buffer(found)])

    hashed = frame.withColumn(name, hashes(*map(_named, names)))
    # The shard is the hash, as a fraction of 2^64, times the number of shards. The sign of hashes is flipped, so
    # that signed numbers are in their order.
    high = functions.shiftrightunsigned(name, 32).bitwiseXOR(functions.lit(1 << 31))
    low = functions.col(name).bitwiseAND(functions.lit((1 << 32) - 1))
    count = functions.lit(shards).cast("long")
    shard = functions.shiftright(high * count + functions.shiftright(low * count, 32), 32)
    return hashed.repartitionById(shards, shard.cast("int")), name


def _packed_schema(spec):
    """The columns of packs, which say what set they are for."""
    fields = [spark_types.StructField(name, spark_types.IntegerType(), False) for name in ("shard", "slice")]
    fields.append(spark_types.StructField("pack", spark_types.BinaryType(), False, {_SPEC: spec}))
    return spark_types.StructType(fields)


def _spec_of_packs(schema):
    """For what set the packs of a frame are. None if it has rows."""
    is_one = schema.fieldNames() == ["pack"]
    return schema["pack"].metadata.get(_SPEC) if is_one else None


def _of_packs(spec):
    """The columns of the key and of the values."""
    spec = json.loads(spec)
    return spec["key"], spec["value"]


class DataSource(datasource.DataSource):
    """`format("azekura")`: `spark.dataSource.register(azekura.spark.DataSource)`.

    Options for writing: `key` (a column, or several with commas between), `shards`, `kind` (`hash` or `ordered`),
    `seed`. For reading: `version`, and `filters`: with `push`, filters of the key choose what is read, if the
    session has `register(spark, pushdown=True)`. Spark 4 keeps what was pushed last for every other scan of the
    same frame. So a frame with that option is for one query that reads it once: a later query, a union or a join
    with itself would miss rows.
    """

    @classmethod
    def name(cls):
        """What the format is called."""
        return "azekura"

    def _path(self):
        path = self.options.get("path")
        if not path:
            raise ValueError("a path is due: load(path), or save(path)")
        return _local(path)

    def _version(self):
        version = self.options.get("version")
        return None if version is None else int(version)

    def schema(self):
        """The columns of the key, then those of the values."""
        manifest = json.loads(ShardedReader(self._path(), version=self._version()).manifest)
        columns = manifest["key"] + manifest["value"]
        for column in columns:
            if column["type"] not in _TYPES:
                raise TypeError(f"column {column['name']!r} is of type {column['type']}, which Spark has not")
        fields = [spark_types.StructField(c["name"], _TYPES[c["type"]], c["nullable"]) for c in columns]
        return spark_types.StructType(fields)

    def reader(self, schema):
        """Reads the columns of a schema. One with fewer columns reads no others."""
        filters = self.options.get("filters", "none")
        if filters not in ("none", "push"):
            raise ValueError(f"option('filters') is 'none' or 'push', not {filters!r}")
        of = _FilteringReader if filters == "push" else _Reader
        return of(self._path(), self._version(), schema)

    def writer(self, schema, overwrite):
        """Writes the next version."""
        return _Writer(self._path(), schema, overwrite, self.options)


class _Part(datasource.InputPartition):
    def __init__(self, place, keys=None):
        self.place = place
        self.keys = keys


class _Reader(datasource.DataSourceReader):
    def __init__(self, path, version, schema):
        reader = ShardedReader(path, version=version)
        self.path = path
        # All tasks read the version that was the newest when the query was planned.
        self.version = reader.version
        self.schema = schema
        manifest = json.loads(reader.manifest)
        self.key = [column["name"] for column in manifest["key"]]
        self.of = manifest["key"][0]["type"]
        self.is_ordered = manifest["kind"] == "ordered"
        self.keys = None
        self.limits = {}

    def partitions(self):
        """One for each shard that may have rows."""
        reader = ShardedReader(self.path, version=self.version)
        if self.keys is None:
            return [_Part(place) for place in reader.places(**self.limits)] or [_Part(None)]
        by_place = {}
        for key in self.keys:
            for place in reader.places(key=key):
                by_place.setdefault(place, []).append(key)
        return [_Part(place, keys) for place, keys in by_place.items()] or [_Part(None)]

    def read(self, partition):
        """The rows of a shard, or those of some keys."""
        if partition.place is None:
            return
        reader = kept_reader(self.path, self.version)
        names = self.schema.fieldNames()
        schema = to_arrow_schema(self.schema, timezone="UTC")
        if partition.keys is None:
            batches = map(pyarrow.record_batch, reader.batches([partition.place], names, **self.limits))
        else:
            batches = [_of_keys(reader, self.key[0], self.of, partition.keys, names)]
        for batch in batches:
            columns = [batch.column(name).cast(schema.field(name).type) for name in names]
            yield pyarrow.RecordBatch.from_arrays(columns, schema=schema)


class _FilteringReader(_Reader):
    def pushFilters(self, filters):
        """Keeps what limits the key. Spark filters the rows again."""
        for given in filters:
            if len(self.key) == 1 and getattr(given, "attribute", None) == (self.key[0],):
                self._limit(given)
            yield given

    def _limit(self, given):
        if isinstance(given, datasource.In):
            wanted = [_stored(value, self.of) for value in given.value if value is not None]
            self._limit_keys(wanted)
            return
        value = _stored(getattr(given, "value", None), self.of)
        if value is None:
            return
        if isinstance(given, (datasource.EqualTo, datasource.EqualNullSafe)):
            self._limit_keys([value])
        elif self.is_ordered and isinstance(given, (datasource.GreaterThan, datasource.GreaterThanOrEqual)):
            self.limits["lo"] = max(value, self.limits.get("lo", value))
        elif self.is_ordered and isinstance(given, (datasource.LessThan, datasource.LessThanOrEqual)):
            self.limits["last"] = min(value, self.limits.get("last", value))

    def _limit_keys(self, wanted):
        if any(value is None for value in wanted):
            return
        wanted = dict.fromkeys(wanted)
        self.keys = [value for value in wanted if self.keys is None or value in self.keys]


def _of_keys(reader, name, of, keys, names):
    """The rows of some keys."""
    stored = {"date": pyarrow.int32(), "timestamp": pyarrow.int64(), "timestamp_ntz": pyarrow.int64()}
    logical = to_arrow_schema(spark_types.StructType([spark_types.StructField("k", _TYPES[of])]), timezone="UTC")
    keys = pyarrow.array(keys, stored.get(of, logical.field(0).type))
    batch, wanted = pyarrow.record_batch([keys], [name]), [other for other in names if other != name]
    (found,) = map(pyarrow.record_batch, reader.lookup(batch, wanted))
    whole = found.append_column(name, keys.view(logical.field(0).type) if of in stored else keys)
    return whole.filter(found.column("found"))


def _stored(value, of):
    """A value of a filter as the key that is stored. None where it is no key."""
    if of == "date" and isinstance(value, datetime.date):
        return (value - _EPOCH.date()).days
    if of in ("timestamp", "timestamp_ntz"):
        if not isinstance(value, datetime.datetime):
            return None
        if value.tzinfo is not None:
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        elif of == "timestamp":
            return None
        return (value - _EPOCH) // _MICROSECOND
    if isinstance(value, float) and math.isnan(value):
        return None
    return bytes(value) if isinstance(value, bytearray) else value


class _Files(datasource.WriterCommitMessage):
    def __init__(self, files):
        self.files = files


class _Writer(datasource.DataSourceArrowWriter):
    def __init__(self, path, schema, overwrite, options):
        names = names_of(options.get("key", "id"))
        kind, shards = options.get("kind", "hash"), int(options.get("shards", 0))
        if shards < 1:
            raise ValueError("option('shards', N) says how many shards there are")
        if not overwrite and _exists(path):
            raise ValueError(
                f"{path} has a version already, and a version is a whole: mode('overwrite') writes the next one, "
                "`azekura shards merge` adds to one"
            )
        self.path = path
        self.names = schema.fieldNames()
        self.is_ordered = kind == "ordered"
        packed = _spec_of_packs(schema)
        self.is_packed = packed is not None
        key, value = _of_packs(packed) if packed else (_key(schema, names), _values(schema, names))
        spec = described(kind, shards, options.get("seed", 0), key, value)
        if packed and (spec != packed or names != [column["name"] for column in key]):
            raise ValueError(f"the frame was prepared for another set than the options say: for {packed}")
        self.id = ShardDraft.begin(path, spec).id

    def _draft(self):
        return ShardDraft.resume(self.path, self.id)

    def write(self, iterator):
        """Writes the rows of a partition. Each attempt has files of its own."""
        context = TaskContext.get()
        attempt = attempt_name(context.partitionId(), context.taskAttemptId())
        shard = context.partitionId() if self.is_ordered else None
        writer = self._draft().writer(attempt, shard)
        try:
            for batch in iterator:
                if self.is_packed:
                    writer.write_packed(batch)
                else:
                    writer.write(batch_of(batch.columns, self.names))
            return _Files(writer.finish())
        except BaseException:
            # What it has written goes at once if it can; with the draft if not.
            writer.abandon()
            raise

    def commit(self, messages):
        """Makes the attempts that Spark has chosen a version."""
        self._draft().commit([file for message in messages if message is not None for file in message.files])

    def abort(self, messages):
        """Removes all that was written."""
        try:
            self._draft().abort()
        except CannotOpen:
            # It never came to be, or is gone.
            pass


def _exists(path):
    try:
        ShardedReader(path)
    except CannotOpen:
        return False
    return True
