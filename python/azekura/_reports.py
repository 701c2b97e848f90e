"""What backups and feeds return: named tuples."""

from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple


class BackupReport(NamedTuple):
    """What `Database.backup` has done. Sizes are in bytes.

    >>> import azekura, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with azekura.Database(os.path.join(folder, "t.azk")) as db:
    ...     first, second = db.backup(os.path.join(folder, "saved")), db.backup(os.path.join(folder, "saved"))
    >>> second.point, second.new_bytes <= first.new_bytes
    (2, True)
    """

    point: int
    commit: int
    chunks: int
    bytes: int
    new_chunks: int
    new_bytes: int


class Point(NamedTuple):
    """One point of a repository: the database after one commit. `time` is when its backup began, in UTC.

    It can be restored as it was after any commit from `first_commit` on: the same one, unless it has a log.
    Of a log that was kept, `last_time` is when it was last read on; of other points it is `time`.
    """

    number: int
    commit: int
    time: datetime
    tables: int
    bytes: int
    first_commit: int
    last_time: datetime


class RestoreReport(NamedTuple):
    """The point that was restored, and how many bytes were read and verified."""

    point: Point
    bytes: int


class VerifyReport(NamedTuple):
    """What `Repository.verify` has found: nothing in `problems` if the repository is sound.

    >>> import azekura, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with azekura.Database(os.path.join(folder, "t.azk")) as db:
    ...     point = db.backup(os.path.join(folder, "saved")).point
    >>> report = azekura.Repository(os.path.join(folder, "saved")).verify()
    >>> report.points, report.problems
    (1, [])
    """

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


class Change(NamedTuple):
    """What a commit has done in one place.

    kind: 'put', 'remove', 'remove_range' (from `key` on and below `end`), 'clear', 'rename' (to `word`), 'drop',
    'begin' (the table is fed from now on, with `word`: read it anew), or 'stop' (it is fed no longer). `value` is
    the new value and `old` the one before, where the feed has them. The ends of a range are bytes. `time` is when
    the commit was made, and `expires` when a record that is put does, in UTC.
    """

    commit: int
    time: datetime
    table: str
    kind: str
    key: Any
    value: Any
    old: Any
    end: bytes | None
    word: str | None
    expires: datetime | None


class FeedInfo(NamedTuple):
    """What is fed, and how much of it is kept: the changes after commit `oldest`, up to the durable one `newest`.

    `tables` says what is told of each table, `cursors` where each cursor stands. Sizes are in bytes, and
    `age_max` in seconds; None: changes are kept however old they are.
    """

    oldest: int
    newest: int
    tables: dict[str, str]
    cursors: dict[str, int]
    bytes: int
    bytes_max: int
    age_max: float | None


def utc(microseconds: int) -> datetime:
    """The time so many microseconds after the beginning of 1970, or the last one that there is."""
    microseconds = min(microseconds, 253_402_300_799_999_999)
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=microseconds)
