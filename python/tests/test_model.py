"""Random operations beside a dict, with reopening."""

import random

import azekura
from tests.common import TestCase

SEEDS = range(6)
STEPS = 1500


class Model(TestCase):
    def test_beside_a_dict(self):
        for seed in SEEDS:
            for kind in ("ordered", "hash"):
                with self.subTest(seed=seed, kind=kind):
                    Run(self, random.Random(seed), f"{self.path}{seed}{kind}", kind).run()


class Run:
    """One run: a table and the dict that it should equal."""

    def __init__(self, test, draw, path, kind):
        self.test, self.draw, self.path, self.kind = test, draw, path, kind
        self.model = {}
        self.open()

    def open(self):
        self.db = azekura.Database(self.path, memory_bytes=8 << 20, durability="eventual")
        self.table = self.db.table("t", self.kind, key=int, value=int)

    def run(self):
        steps = [
            self.put, self.put, self.put, self.remove, self.get, self.get, self.add, self.increment, self.merge,
            self.merge_many, self.swap, self.put_many, self.get_many, self.transaction, self.walk, self.cursor,
            self.rare,
        ]
        for _ in range(STEPS):
            self.draw.choice(steps)()
        self.compare()
        self.test.assertEqual(self.db.check(), [])
        self.db.close()

    def key(self):
        return self.draw.randrange(-300, 300)

    def value(self):
        return self.draw.randrange(-(2**63), 2**63)

    def same(self, seen, due):
        self.test.assertEqual(seen, due)

    def put(self):
        key, value = self.key(), self.value()
        self.table[key] = self.model[key] = value

    def remove(self):
        key = self.key()
        if self.draw.random() < 0.5:
            self.table.remove(key)
            self.model.pop(key, None)
        else:
            self.same(self.table.take(key), self.model.pop(key, None))

    def get(self):
        key = self.key()
        self.same(self.table.get(key), self.model.get(key))
        self.same(key in self.table, key in self.model)

    def add(self):
        key, value = self.key(), self.value()
        self.same(self.table.add(key, value), key not in self.model)
        self.model.setdefault(key, value)
        key, value = self.key(), self.value()
        self.same(self.table.replace(key, value), key in self.model)
        if key in self.model:
            self.model[key] = value

    def increment(self):
        key, delta = self.key(), self.draw.randrange(-(10**9), 10**9)
        due = (self.model.get(key, 0) + delta + 2**63) % 2**64 - 2**63
        self.same(self.table.increment(key, delta), due)
        self.model[key] = due

    def merge(self):
        key, number = self.key(), self.draw.randrange(-(10**9), 10**9)
        operator = self.draw.choice(["add", "add", "add", "min", "max", "or"])
        old = self.model.get(key)
        due = {
            "add": lambda: (old + number + 2**63) % 2**64 - 2**63,
            "min": lambda: min(old, number),
            "max": lambda: max(old, number),
            "or": lambda: old | number,
        }
        self.table.merge(key, number, operator)
        self.model[key] = number if old is None else due[operator]()

    def merge_many(self):
        records = [(self.key(), self.draw.randrange(-(10**9), 10**9)) for _ in range(self.draw.randrange(20))]
        self.table.merge_many(records)
        for key, number in records:
            self.model[key] = (self.model.get(key, 0) + number + 2**63) % 2**64 - 2**63

    def swap(self):
        key = self.key()
        expected = self.draw.choice([self.model.get(key), 7, None])
        new = self.draw.choice([None, self.value()])
        fits = self.model.get(key) == expected
        self.same(self.table.compare_and_swap(key, expected, new), fits)
        if fits:
            self.model.pop(key, None)
            if new is not None:
                self.model[key] = new

    def put_many(self):
        records = [(self.key(), self.value()) for _ in range(self.draw.randrange(50))]
        self.table.put_many(records)
        self.model.update(records)

    def get_many(self):
        keys = [self.key() for _ in range(self.draw.randrange(50))]
        self.same(self.table.get_many(keys), [self.model.get(key) for key in keys])

    def transaction(self):
        model, tx = dict(self.model), self.db.begin()
        view = tx.table(self.table)
        for _ in range(self.draw.randrange(20)):
            key, value = self.key(), self.value()
            if self.draw.random() < 0.7:
                view[key] = model[key] = value
            else:
                view.remove(key)
                model.pop(key, None)
        self.same(dict(view.items()), model)
        if self.draw.random() < 0.5:
            tx.commit()
            self.model = model
        else:
            tx.rollback()

    def walk(self):
        if self.kind == "hash":
            return self.compare()
        lo, hi, reverse = self.key(), self.key(), self.draw.random() < 0.5
        lo, hi = min(lo, hi), max(lo, hi)
        due = [(key, self.model[key]) for key in sorted(self.model, reverse=reverse) if lo <= key < hi]
        self.same(list(self.table.range(lo, hi, reverse=reverse)), due)
        if self.draw.random() < 0.1:
            self.table.remove_range(lo, hi)
            self.model = {key: value for key, value in self.model.items() if not lo <= key < hi}

    def cursor(self):
        """Random moves beside a place in a list."""
        due = sorted(self.model.items()) if self.kind == "ordered" else list(self.table.items())
        cursor, at = self.table.cursor(), -1
        moves = ["next", "prev"] * 3 + ["first", "last"] + ["seek"] * (self.kind == "ordered")
        for _ in range(self.draw.randrange(30)):
            move, key = self.draw.choice(moves), self.key()
            found = cursor.seek(key) if move == "seek" else getattr(cursor, move)()
            at = {
                "next": min(at + 1, len(due)),
                "prev": max(at - 1, -1),
                "first": 0,
                "last": len(due) - 1,
                "seek": sum(other < key for other, _ in due),
            }[move]
            record = due[at] if 0 <= at < len(due) else None
            self.same(found, record is not None)
            self.same(cursor.item(), record)
            self.same((cursor.key(), cursor.value()), record or (None, None))

    def rare(self):
        step = self.draw.randrange(12)
        if step == 0:
            self.db.close()
            self.open()
        elif step == 1:
            self.draw.choice([self.db.flush, self.db.compact, self.db.shrink, self.db.sync])()
        elif step == 2:
            self.table.clear()
            self.model.clear()

    def compare(self):
        self.same(self.table.count(), len(self.model))
        records = list(self.table.items())
        self.same(dict(records), self.model)
        self.same(self.table.keys(), self.model.keys())
        self.same(list(reversed(self.table.items())), records[::-1])
        self.same(len(records), len(self.model))
        if self.kind == "ordered":
            self.same(records, sorted(self.model.items()))
