"""Types of arguments: for stubs only."""

from collections.abc import Callable
from typing import Literal, Protocol

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
