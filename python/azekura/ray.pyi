"""Sets of shards with Ray Data."""

from os import PathLike
from typing import Literal

from ray.data import Dataset

__all__ = ["lookup", "write"]

def write(
    dataset: Dataset,
    path: str | PathLike[str],
    shards: int,
    key: str | list[str] = "id",
    *,
    seed: int = 0,
) -> int: ...
def lookup(
    dataset: Dataset,
    path: str | PathLike[str],
    on: str | list[str] = "id",
    *,
    columns: list[str] | None = None,
    how: Literal["inner", "left"] = "inner",
    version: int | None = None,
) -> Dataset: ...
