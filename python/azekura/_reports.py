"""What backups return: named tuples."""

from datetime import datetime, timedelta, timezone
from typing import NamedTuple


class BackupReport(NamedTuple):
    """What `Database.backup` has done. Sizes are in bytes."""

    point: int
    commit: int
    chunks: int
    bytes: int
    new_chunks: int
    new_bytes: int


class Point(NamedTuple):
    """One point of a repository: the database after one commit. `time` is when its backup began, in UTC."""

    number: int
    commit: int
    time: datetime
    tables: int
    bytes: int


class RestoreReport(NamedTuple):
    """The point that was restored, and how many bytes were read and verified."""

    point: Point
    bytes: int


class VerifyReport(NamedTuple):
    """What `Repository.verify` has found: nothing in `problems` if the repository is sound."""

    points: int
    chunks: int
    bytes: int
    unused: int
    problems: list[str]


class PruneReport(NamedTuple):
    """The numbers of the points that were kept and removed; how many files are gone, and their bytes."""

    kept: list[int]
    removed: list[int]
    files: int
    bytes: int


def utc(microseconds: int) -> datetime:
    """The time so many microseconds after the beginning of 1970."""
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=microseconds)
