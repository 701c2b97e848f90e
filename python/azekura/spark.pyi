"""Sets of shards as a data source of Apache Spark."""

from os import PathLike
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession, datasource
from pyspark.sql.types import StructType

__all__ = ["DataSource", "lookup", "prepare", "register"]

def register(spark: SparkSession, *, pushdown: bool = False) -> None: ...
def prepare(
    frame: DataFrame,
    shards: int,
    key: str | list[str] = "id",
    *,
    kind: Literal["hash", "ordered"] = "hash",
    seed: int = 0,
) -> DataFrame: ...
def lookup(
    frame: DataFrame,
    path: str | PathLike[str],
    on: str | list[str] = "id",
    *,
    columns: list[str] | None = None,
    how: Literal["inner", "left"] = "inner",
    shuffle: bool | None = None,
    version: int | None = None,
) -> DataFrame: ...

class DataSource(datasource.DataSource):
    @classmethod
    def name(cls) -> str: ...
    def schema(self) -> StructType: ...
    def reader(self, schema: StructType) -> datasource.DataSourceReader: ...
    def writer(self, schema: StructType, overwrite: bool) -> Any: ...
