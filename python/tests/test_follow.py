"""Following a file that another handle writes, and a writer's limits for that."""

import errno
import json

import azekura
from tests.common import TestCase


class Follow(TestCase):
    def follower(self, follow, **options):
        return self.enterContext(azekura.Database(self.path, follow=follow, **options))

    def test_checkpoints_and_the_log(self):
        db = self.database(durability="sync")
        table = db.table("t", key=str, value=int)
        db.flush()
        log, checkpoints = self.follower("log"), self.follower("checkpoints")
        seen = [other.table("t", key=str, value=int) for other in (log, checkpoints)]
        table["a"] = 5
        self.assertEqual([t.get("a") for t in seen], [5, None])
        db.flush()
        self.assertEqual([t.get("a") for t in seen], [5, 5])
        with self.assertRaises(azekura.ReadOnly):
            seen[0]["a"] = 6
        # Both follow the newest checkpoint.
        pin, = db.stats()["pins"]
        self.assertEqual(pin, {"checkpoint": log.stats()["checkpoint"], "age": pin["age"], "bytes": pin["bytes"], "revoked": False})
        with self.assertRaises(ValueError):
            self.follower("everything")
        with self.assertRaises(azekura.CannotOpen):
            azekura.Database(self.path + "-none", follow="log")

    def test_a_snapshot_beyond_the_limit_is_too_old(self):
        db = self.database(pinned_bytes_max=0, pinned_age_max=60)
        table = db.table("t", "hash", key=int, value=bytes)
        rounds = [{n: bytes([n % 251, round]) * 200 for n in range(2000)} for round in range(4)]
        table.put_many(rounds[0])
        db.compact()
        follower = self.follower("checkpoints")
        seen = follower.table("t", key=int, value=bytes)
        snapshot = follower.snapshot()
        for records in rounds[1:]:
            table.put_many(records)
            db.compact()
        old = snapshot.table(seen)
        too_old = 0
        for n in range(2000):
            try:
                self.assertEqual(old[n], rounds[0][n])
            except azekura.SnapshotTooOld:
                too_old += 1
        self.assertGreater(too_old, 0)
        self.assertEqual(dict(seen.items()), rounds[3])
        self.assertEqual(db.stats()["pinned_bytes"], 0)
        # The writer does not list what it has revoked; others find it in the file.
        revoked = self.follower("log").stats()["pins"][0]
        self.assertEqual((revoked["age"], revoked["bytes"], revoked["revoked"]), (None, 0, True))
        with self.assertRaises(ValueError):
            self.database(pinned_age_max=-1)

    def test_what_a_snapshot_keeps_is_told(self):
        db = self.database()
        table = db.table("t", "hash", key=int, value=bytes)
        table.put_many({n: bytes([n % 251]) * 200 for n in range(2000)})
        db.compact()
        follower = self.follower("checkpoints")
        snapshot = follower.snapshot()
        for _ in range(2):
            table.put_many({n: bytes([n % 241]) * 200 for n in range(2000)})
            db.compact()
        stats = db.stats()
        pin, = stats["pins"]
        self.assertGreater(pin["bytes"], 200_000)
        self.assertGreaterEqual(stats["pinned_bytes"], pin["bytes"])
        self.assertGreater(pin["age"], 0)
        self.assertEqual(json.loads(json.dumps(stats)), stats)
        seen, = self.follower("log").stats()["pins"]
        self.assertEqual(seen, {"checkpoint": pin["checkpoint"], "age": None, "bytes": None, "revoked": False})
        self.assertEqual(snapshot.table(follower.table("t", key=int, value=bytes))[5], bytes([5]) * 200)

    def test_a_mirror_may_be_required(self):
        with azekura.Database(self.path) as db:
            db.table("t", "hash", key=int, value=int)
        db = self.database(durability="sync", require_mirror=True, mirror_timeout=0.02)
        table = db.table("t", key=int, value=int)
        with self.assertRaises(azekura.MirrorBehind) as raised:
            table[1] = 2
        self.assertEqual((raised.exception.errno, table[1]), (errno.ETIMEDOUT, 2))
        self.assertEqual(db.stats()["unmirrored_commits"], 0)
        with self.assertRaises(ValueError):
            azekura.Database(self.path + "-none", mirror_timeout=-1)
