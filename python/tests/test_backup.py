"""Backups, streams, copies and repositories."""

import contextlib
import datetime
import io
import os
import sys
import time

import azekura
from tests.common import TestCase


class Backups(TestCase):
    def setUp(self):
        super().setUp()
        self.db = self.database()
        self.table = self.db.table("t", key=int, value=int)
        self.table.put_many((n, n) for n in range(10_000))
        self.saved = os.path.join(self.folder, "saved")

    def restored(self, name="again.azk"):
        return self.enterContext(azekura.Database(os.path.join(self.folder, name))).table("t", key=int, value=int)

    def test_points_of_a_repository(self):
        told = []
        first = self.db.backup(self.saved, progress=lambda done, total: told.append((done, total)))
        self.assertEqual((first.point, first.new_chunks), (1, first.chunks))
        self.assertTrue(told)
        between = datetime.datetime.now(datetime.timezone.utc)
        self.table.put_many((n, -n) for n in range(5_000, 15_000))
        second = self.db.backup(self.saved)
        self.assertGreater(second.commit, first.commit)
        repository = azekura.Repository(self.saved)
        self.assertEqual(str(repository.path), self.saved)
        points = repository.points()
        self.assertEqual([point.number for point in points], [1, 2])
        self.assertEqual([point.commit for point in points], [first.commit, second.commit])
        self.assertEqual(points[0].tables, 1)
        self.assertLess(abs(points[0].time - between), datetime.timedelta(minutes=1))
        self.assertEqual(repository.damaged(), [])
        again = lambda name: os.path.join(self.folder, name)
        self.assertEqual(repository.restore(again("newest.azk")).point, points[1])
        self.assertEqual(repository.restore(again("one.azk"), point=1).point, points[0])
        self.assertEqual(repository.restore(again("commit.azk"), commit=first.commit).point.number, 1)
        self.assertEqual(repository.restore(again("time.azk"), time=between).point.number, 1)
        self.assertEqual(self.restored("newest.azk").count(), 15_000)
        for name in ("one.azk", "commit.azk", "time.azk"):
            self.assertEqual(self.restored(name).count(), 10_000, name)
        for wrong in ({"point": 1, "commit": 1}, {"point": 7}):
            with self.assertRaises(ValueError):
                repository.restore(again("wrong.azk"), **wrong)
        with self.assertRaises(TypeError):
            repository.restore(again("wrong.azk"), time="yesterday")
        with self.assertRaises(azekura.CannotOpen):
            repository.restore(again("one.azk"))

    def test_a_rate_holds_a_copy_back(self):
        self.db.flush()
        began = time.monotonic()
        done = self.db.backup(self.saved, bytes_per_second=100_000)
        self.assertGreater(time.monotonic() - began, done.new_bytes / 100_000 * 0.5)
        self.db.copy_to(os.path.join(self.folder, "copy.azk"), bytes_per_second=10_000_000)
        self.assertEqual(self.restored("copy.azk").count(), 10_000)
        stream = io.BytesIO()
        self.db.backup_to(stream, bytes_per_second=10_000_000)
        self.assertGreater(len(stream.getvalue()), 1_000)
        for slow in (lambda: self.db.backup(self.saved, bytes_per_second=100),
                     lambda: self.db.copy_to(os.path.join(self.folder, "slow.azk"), bytes_per_second=0)):
            with self.assertRaises(ValueError):
                slow()

    def test_a_point_is_found_by_its_own_time(self):
        self.table.clear()
        for n in range(8):
            self.table[n] = n
            self.db.backup(self.saved)
        repository = azekura.Repository(self.saved)
        for point in repository.points():
            self.assertEqual(point.time.microsecond % 1000, 0, "points have milliseconds")
            self.assertEqual((point.first_commit, point.last_time), (point.commit, point.time))
            path = os.path.join(self.folder, f"{point.number}.azk")
            self.assertEqual(repository.restore(path, time=point.time).point.time, point.time)

        class Late:
            def timestamp(self):
                return 1e19

        with self.assertRaises(ValueError):
            repository.restore(os.path.join(self.folder, "late.azk"), time=Late())

    def test_verify_and_prune(self):
        for _ in range(3):
            self.table.put_many((n, n + 1) for n in range(10_000))
            self.db.backup(self.saved)
        repository = azekura.Repository(self.saved)
        report = repository.verify()
        self.assertEqual((report.points, report.problems), (3, []))
        with self.assertRaises(ValueError):
            repository.prune("7x")
        pruned = repository.prune("1", progress=lambda done, total: None)
        self.assertEqual((pruned.kept, pruned.removed), ([3], [1, 2]))
        self.assertGreater(pruned.bytes, 0)
        chunk = os.path.join(self.saved, "chunks", os.listdir(os.path.join(self.saved, "chunks"))[0])
        with open(chunk, "r+b") as file:
            file.seek(100)
            file.write(b"damage")
        self.assertTrue(repository.verify().problems)
        with self.assertRaises(azekura.Corrupt):
            repository.restore(os.path.join(self.folder, "again.azk"))

    def test_streams(self):
        stream = io.BytesIO()
        point = self.db.backup_to(stream, progress=lambda done, total: None)
        self.assertEqual(point.tables, 1)
        path = os.path.join(self.folder, "again.azk")
        stream.seek(0)
        report = azekura.restore_stream(stream, path, progress=lambda done, total: None)
        self.assertEqual(report.point.commit, point.commit)
        self.assertEqual(self.restored().count(), 10_000)
        with self.assertRaises(azekura.Corrupt):
            azekura.restore_stream(io.BytesIO(stream.getvalue()[:-9]), path + "2")

        class Full(io.RawIOBase):
            def writable(self):
                return True

            def write(self, data):
                raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            self.db.backup_to(Full())
        with self.assertRaises(ZeroDivisionError):
            self.db.backup_to(io.BytesIO(), progress=lambda done, total: 1 // 0)
        with self.assertRaises(AttributeError):
            self.db.backup_to(7)
        self.assertEqual(self.db.check(), [])

    def test_copies(self):
        path = os.path.join(self.folder, "again.azk")
        with contextlib.redirect_stderr(io.StringIO()):
            self.db.copy_to(path, progress=True)
        self.assertEqual(self.restored().count(), 10_000)
        with self.assertRaises(azekura.CannotOpen):
            self.db.copy_to(path)

    def test_what_is_no_repository(self):
        with self.assertRaises(azekura.CannotOpen):
            azekura.Repository(self.folder)
        self.db.backup(self.saved)
        with azekura.Database(self.path + "2") as other:
            other.table("t")["a"] = "b"
            with self.assertRaises(azekura.Invalid):
                other.backup(self.saved)

    def test_bars(self):
        """With tqdm or without, nothing but the terminal shows it."""
        from azekura import _progress

        with contextlib.redirect_stderr(io.StringIO()) as said:
            _progress._line(1, 4)
            _progress._line(4, 4)
        self.assertEqual(said.getvalue(), "\r25%\r100%\n")

        class Bar:
            def __init__(self, **_):
                self.n, self.total, self.closed = 0, None, False
                bars.append(self)

            def update(self, more):
                self.n += more

            def close(self):
                self.closed = True

        bars, tqdm = [], type(sys)("tqdm")
        tqdm.tqdm = Bar
        before = sys.modules.get("tqdm")
        sys.modules["tqdm"] = tqdm
        try:
            self.db.copy_to(self.path + ".copy", progress=True)
        finally:
            sys.modules.pop("tqdm")
            if before is not None:
                sys.modules["tqdm"] = before
        (bar,) = bars
        self.assertTrue(bar.closed)
        self.assertEqual(bar.n, bar.total)
        self.assertGreater(bar.n, 10_000)
