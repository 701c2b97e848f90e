"""Indexes: lookups against a model, in transactions too; what is wrong."""

import asyncio
import random
import struct

import azekura
from azekura import aio
from tests.common import TestCase

CITIES = ["Oslo", "Turku", "Visby"]


class Indexes(TestCase):
    def people(self, number=300):
        """A table of people, and an index of their cities and years; every seventh has no city."""
        people = self.database().table("people", key=int, value="json")
        for n in range(number):
            people[n] = {"born": 1800 + n % 40} | ({"city": CITIES[n % 3]} if n % 7 else {})
        return people, people.create_index("by_city", "v./city:lower, v./born:i64")

    def expected(self, people, city=None, years=range(3000)):
        """Keys in the order of an index by city and year."""
        found = [(p.get("city", "").lower(), p["born"], key) for key, p in people.items() if p["born"] in years]
        return [key for c, _, key in sorted(found) if city is None or c == city]

    def test_lookups(self):
        people, by_city = self.people()
        self.assertEqual((by_city.name, by_city.spec), ("by_city", "v./city:lower, v./born:i64"))
        turku = self.expected(people, "turku")
        self.assertEqual(list(by_city.get("TURKU", keys_only=True)), turku)
        self.assertEqual(list(by_city.get("Turku")), [(key, people[key]) for key in turku])
        self.assertEqual(list(by_city.get("turku", reverse=True, keys_only=True)), turku[::-1])
        self.assertEqual(list(by_city.get("turku", reverse=True))[0], (turku[-1], people[turku[-1]]))
        self.assertEqual(list(by_city.prefix("T", keys_only=True)), turku)
        self.assertEqual(list(by_city.get(b"turku", 1801, keys_only=True)), self.expected(people, "turku", [1801]))
        years = by_city.range(("turku", 1810), ("turku", 1820), keys_only=True)
        self.assertEqual(list(years), self.expected(people, "turku", range(1810, 1820)))
        cities = by_city.range("oslo", "visby", keys_only=True, reverse=True)
        self.assertEqual(list(cities), (self.expected(people, "oslo") + turku)[::-1])
        self.assertEqual(list(by_city.get(keys_only=True)), self.expected(people))
        self.assertEqual(list(by_city.get(None, keys_only=True)), self.expected(people, ""))
        self.assertEqual((by_city.count(), by_city.count("turku")), (300, len(turku)))
        self.assertEqual(by_city.first("turku"), (turku[0], people[turku[0]]))
        self.assertEqual(by_city.last("turku"), (turku[-1], people[turku[-1]]))
        self.assertIsNone(by_city.first("nowhere"))

    def test_random_writes_keep_it(self):
        people, by_city = self.people(100)
        seed = random.randrange(1 << 32)
        chance = random.Random(seed)
        for step in range(300):
            key = chance.randrange(100)
            if chance.random() < 0.3:
                people.remove(key)
            else:
                people[key] = {"city": chance.choice(CITIES), "born": chance.randrange(1800, 1820)}
            if step % 50 == 0:
                self.assertEqual(list(by_city.get(keys_only=True)), self.expected(people), f"seed {seed}")
        self.assertEqual(list(by_city.get()), [(key, people[key]) for key in self.expected(people)], f"seed {seed}")

    def test_many_records_do_not_mind_one_that_comes_or_goes_meanwhile(self):
        table = self.database().table("t", key=int, value=str)

        def records(first, change):
            for n in range(first, first + 10_000):
                if n == first + 5000:
                    change()
                yield n, str(n % 4)

        table.put_many(records(0, lambda: table.create_index("i", "v")))
        self.assertEqual(table.index("i").count("3"), 2500)
        table.put_many(records(5000, lambda: table.drop_index("i")))
        self.assertEqual((table.indexes(), table.stats()["indexes"]), ([], 0))
        table.create_index("i", "v")
        self.assertEqual(table.index("i").count("3"), 3750)
        (listed,) = table.indexes()
        self.assertEqual((listed["name"], listed["ready"], table.stats()["indexes"]), ("i", True, 1))
        self.assertTrue(listed["entries"] >= 15_000 and listed["bytes"] > 100_000, listed)

    def test_transactions_and_snapshots(self):
        db = self.database()
        born = db.table("born", key=str, value=int)
        born.put_many({"ada": 1815, "alan": 1912})
        born.create_index("by_year", "v:i64le")
        with db.snapshot() as snapshot, db.begin() as tx:
            view = tx.table(born)
            view["grace"] = 1906
            by_year = view.index("by_year")
            self.assertEqual(list(by_year.range(1900, keys_only=True)), ["grace", "alan"])
            self.assertEqual((by_year.first(), by_year.last(1906), by_year.count()), (("ada", 1815), ("grace", 1906), 3))
            before = snapshot.table(born).index("by_year")
            self.assertEqual(list(before.get(reverse=True)), [("alan", 1912), ("ada", 1815)])
            self.assertEqual((before.count(), born.index("by_year").count()), (2, 2))
            walk = by_year.get()
            view["ada"] = 1816
            self.assertEqual(next(walk), ("ada", 1815))
            for call in (lambda: view.create_index("x", "v"), lambda: view.drop_index("by_year")):
                with self.assertRaisesRegex(azekura.Invalid, "outside of transactions"):
                    call()
        self.assertEqual(list(born.index("by_year").get(1816)), [("ada", 1816)])

    def test_every_type_of_value(self):
        table = self.database().table("t")
        table["a"] = struct.pack("<Qdi?", (1 << 64) - 1, 1.5, -7, True) + b"\xffx"
        for spec, value in [
            ("v[0..8]:u64le", (1 << 64) - 1), ("v[8..16]:f64le", 1.5), ("v[16..20]:i32le", -7), ("v[20..21]:u8", True),
            ("v[21..]", b"\xffx"), ("v[21..]", bytearray(b"\xffx")), ("k:text", "a"), ("v[90..]", None),
        ]:
            index = table.create_index("i", spec)
            self.assertEqual(list(index.get(value, keys_only=True)), [b"a"], spec)
            table.drop_index("i")
        index = table.create_index("i", "v[0..8]:u64le")
        for value in (1 << 64, -(1 << 63) - 1):
            with self.assertRaises(OverflowError):
                index.get(value)
        with self.assertRaises(TypeError):
            index.get([1])
        for value in (-1, 1.0, "1"):
            with self.assertRaises(azekura.Invalid):
                index.get(value)

    def test_lists_and_errors(self):
        people, by_city = self.people(10)
        people.create_index("by_city", "v.json./city:lower, v./born:i64")
        (listed,) = people.indexes()
        self.assertTrue(listed.pop("entries") >= 10 and listed.pop("bytes") > 100)
        self.assertEqual(listed, {"name": "by_city", "spec": by_city.spec, "ready": True})
        with self.assertRaises(azekura.Invalid):
            people.create_index("by_city", "v")
        with self.assertRaisesRegex(azekura.Invalid, "column 3"):
            people.create_index("x", "v:no")
        with self.assertRaises(azekura.NoSuchIndex):
            people.index("x")
        with self.assertRaises(azekura.NotUnique):
            people.create_index("unique", "v./city unique")
        people.create_index("unique", "v./name unique where present")
        people[0] = {"name": "ada"}
        with self.assertRaises(azekura.NotUnique):
            people[1] = {"name": "ada"}
        self.assertEqual(people[1]["born"], 1801)
        people.drop_index("unique")
        people[1] = {"name": "ada"}
        self.assertEqual([info["name"] for info in people.indexes()], ["by_city"])

    def test_progress_is_told(self):
        told = []
        table = self.database().table("t")
        table.put_many({str(n): str(n % 10) for n in range(20_000)})
        table.create_index("i", "v", progress=lambda done, total: told.append((done, total)))
        self.assertEqual(told[-1], (20_000, 20_000))

    def test_asyncio(self):
        async def program():
            async with await aio.open(self.path) as db:
                table = await db.table("t", key=str, value="json")
                await table.put("a", {"n": 1})
                by_n = await table.create_index("by_n", "v./n:i64")
                await table.put("b", {"n": 2})
                self.assertEqual([key async for key, _ in by_n.range(1, 2)], ["a"])
                self.assertEqual([key async for key in by_n.get(keys_only=True, reverse=True)], ["b", "a"])
                again = await table.index("by_n")
                self.assertEqual((again.name, again.spec, await again.count(2)), ("by_n", "v./n:i64", 1))
                self.assertEqual(await again.last(), ("b", {"n": 2}))
                self.assertEqual(len(await table.indexes()), 1)
                await table.drop_index("by_n")

        asyncio.run(program())
