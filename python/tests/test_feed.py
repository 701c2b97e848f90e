"""The feed of changes."""

import asyncio
import threading
import time
from datetime import datetime, timezone

import azekura
import azekura.aio
from tests.common import TestCase


def told(feed):
    return [(change.kind, change.key, change.value, change.old) for change in feed]


class Feeds(TestCase):
    def test_what_commits_have_done_is_told(self):
        with azekura.Database(self.path) as db:
            users = db.table("users", key=str, value=int)
            self.assertIsNone(db.feed_info())
            with self.assertRaises(azekura.Invalid):
                db.feed(0)
            with self.assertRaises(ValueError):
                users.set_feed("all")
            users.set_feed("both")
            db.set_feed_limits(1 << 20, 3600)
            info = db.feed_info()
            self.assertEqual((info.tables, info.cursors), ({"users": "both"}, {}))
            self.assertEqual((info.bytes_max, info.age_max), (1 << 20, 3600))
            users["ada"] = 1
            users["ada"] = 2
            users.remove("ada")
            with db.begin() as tx:
                tx.table(users)["bob"] = 3
                tx.set_feed_cursor("search", info.newest)
            feed = db.feed(info.oldest, tables=[users])
            first = next(feed)
            self.assertEqual((first.kind, first.word, first.table), ("begin", "both", "users"))
            self.assertLess(abs((datetime.now(timezone.utc) - first.time).total_seconds()), 600)
            self.assertEqual(
                told(feed),
                [("put", "ada", 1, None), ("put", "ada", 2, 1), ("remove", "ada", None, 2), ("put", "bob", 3, None)],
            )
            self.assertEqual(feed.lag, 0)
            self.assertEqual(db.feed_cursor("search"), info.newest)
            db.set_feed_cursor("search", feed.position)
            self.assertEqual(list(db.feed(db.feed_cursor("search"))), [])
            db.set_feed_cursor("search", None)
            self.assertIsNone(db.feed_cursor("search"))
            plain = told(db.feed(info.newest))
            self.assertEqual(plain[0][1], b"ada")
            db.rename_table("users", "people")
            users.set_feed(None)
            self.assertEqual([(c.kind, c.word) for c in feed], [("rename", "people"), ("stop", None)])
            with self.assertRaises(azekura.FeedGap):
                db.feed(0)

    def test_a_reader_waits_and_other_threads_go_on(self):
        with azekura.Database(self.path) as db:
            table = db.table("t", key=int, value=int)
            table.set_feed("values")
            after = db.feed_info().newest

            def write():
                for i in range(50):
                    table[i] = i
                    time.sleep(0.001)

            writer = threading.Thread(target=write)
            writer.start()
            feed, seen = db.feed(after, tables=[table], wait=60), []
            while len(seen) < 50:
                seen.append(next(feed).key)
            writer.join()
            self.assertEqual(seen, list(range(50)))
            self.assertEqual(list(db.feed(feed.position, wait=0.01)), [])

    def test_feeds_are_awaited(self):
        async def run():
            async with await azekura.aio.open(self.path) as db:
                table = await db.table("t", key=int, value=int)
                await table.set_feed("values")
                feed = db.feed((await db.feed_info()).newest, tables=[table])
                step = asyncio.ensure_future(anext(feed))
                await asyncio.sleep(0.02)
                step.cancel()
                for i in range(5):
                    await table.put(i, -i)
                seen = [(await anext(feed)).value for _ in range(5)]
                self.assertEqual(seen, [0, -1, -2, -3, -4])
                await db.set_feed_cursor("r", feed.position)
                self.assertEqual([c async for c in db.feed(await db.feed_cursor("r"), wait=0)], [])

        asyncio.run(run())
