"""Types of arguments: for stubs only."""

from collections.abc import Callable
from typing import Literal, Protocol, TypedDict

from typing_extensions import Buffer

Kind = Literal["ordered", "hash"]
Durability = Literal["sync", "eventual"]
Follow = Literal["checkpoints", "log"]
BytesLike = str | Buffer
# True shows a bar.
Progress = Callable[[int, int], object] | bool
# A value of an index's field.
IndexValue = str | Buffer | int | float | None
ObjectForm = Literal["json", "pickle"]

class Writable(Protocol):
    def write(self, data: bytes, /) -> object: ...

class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...

class ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

ArrowData = ArrowStream | ArrowArray
Column = Buffer | ArrowData

class Pin(TypedDict):
    """A checkpoint that followers read. None: only the writer knows. `age` is in seconds. A pin that the writer has
    stopped honouring is `revoked`; None: the file does not tell."""
    checkpoint: int
    age: float | None
    bytes: int | None
    revoked: bool | None

class Stats(TypedDict):
    """A database in figures."""
    file_bytes: int
    live_bytes: int
    free_bytes: int
    memtable_bytes: int
    table_bytes: int
    log_bytes: int
    log_commits: int
    log_records: int
    value_bytes: int
    runs: int
    cache_bytes: int
    cache_misses: int
    cache_evictions: int
    written_bytes: int
    write_calls: int
    read_bytes: int
    syncs: int
    user_bytes: int
    commits: int
    flushes: int
    merges: int
    merged_records: int
    merge_ns: int
    stalls: int
    stall_ns: int
    checkpoint: int
    pinned_bytes: int
    unmirrored_commits: int
    pins: list[Pin]
