"""What `azekura.open` gives: a mapping, as `dbm` has it."""

import os
import shelve
import stat
import subprocess
import sys
import unittest.mock

import azekura
from tests.common import TestCase


class Mapping(TestCase):
    def test_flags(self):
        for flag in ("r", "w"):
            with self.assertRaises(OSError):
                azekura.open(self.path, flag)
        self.assertFalse(os.path.exists(self.path))
        with azekura.open(self.path, "c") as db:
            db["a"] = "1"
        with azekura.open(self.path) as db, azekura.open(self.path, "r") as again:
            self.assertEqual((db["a"], again["a"]), (b"1", b"1"))
            with self.assertRaises(azekura.ReadOnly):
                db["a"] = "2"
        with azekura.open(self.path, "w") as db:
            db["b"] = "2"
        with azekura.open(self.path, "n") as db:
            self.assertEqual(len(db), 0)
        for wrong in ("x", "", "rw", None):
            with self.assertRaises(ValueError):
                azekura.open(self.path, wrong)
        other = os.path.join(self.folder, "other")
        with open(other, "w") as file:
            file.write("precious" * 1000)
        for flag in "rwcn":
            with self.assertRaises(azekura.error):
                azekura.open(other, flag)
        with open(other) as file:
            self.assertEqual(file.read(), "precious" * 1000)

    def test_permissions(self):
        before = os.umask(0o026)
        self.addCleanup(os.umask, before)

        def permissions(name, *mode):
            path = os.path.join(self.folder, name)
            for _ in range(2):
                # Of a file that is there nothing changes.
                with azekura.open(path, "c", *mode) as db:
                    db["a"] = "1"
                mode = (0o666,)
            return stat.S_IMODE(os.stat(path).st_mode)

        self.assertEqual(permissions("usual"), 0o640)
        self.assertEqual(permissions("own", 0o600), 0o600)
        self.assertEqual(permissions("all", 0o777), 0o640)
        with azekura.open(os.path.join(self.folder, "read"), "c", 0o440) as db:
            db["a"] = "1"
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.folder, "read")).st_mode), 0o440)
        target, link = os.path.join(self.folder, "target"), os.path.join(self.folder, "link")
        os.symlink(target, link)
        self.assertEqual(permissions("link", 0o600), 0o600)
        self.assertTrue(os.path.islink(link))
        self.assertEqual(stat.S_IMODE(os.stat(target).st_mode), 0o600)
        with self.assertRaises(TypeError):
            azekura.open(self.path, "c", "0600")
        self.assertFalse(os.path.exists(self.path))
        with self.assertRaises(OSError):
            azekura.open(os.path.join(self.folder, "none", "t.azk"), "c", 0o600)

    def test_permissions_are_never_more(self):
        """A file has its permissions before there is anything in it."""
        seen = []

        def opened(path, **options):
            seen.append((os.path.getsize(path), stat.S_IMODE(os.stat(path).st_mode)))
            return azekura.Database(path, **options)

        with unittest.mock.patch("azekura._mapping.Database", opened):
            azekura.open(self.path, "c", 0o600).close()
        self.assertEqual(seen, [(0, 0o600)])

    def test_update_is_one_step(self):
        class Keys:
            """What has keys, and no items."""

            def keys(self):
                return ["k", "l"]

            def __getitem__(self, key):
                return key.upper()

        with azekura.open(self.path, "n") as db:
            db.update({"a": "1"}, b="2")
            db.update([("c", "3"), ("a", "4")])
            db.update(Keys(), k="m")
            db.update(z="0")
            db.update()
            db.update(db)
            due = {b"a": b"4", b"b": b"2", b"c": b"3", b"k": b"m", b"l": b"L", b"z": b"0"}
            self.assertEqual(dict(db.items()), due)
            for wrong in ({"x": "1", "y": 2}, [("x", "1"), ("y",)], 7):
                with self.assertRaises((TypeError, ValueError)):
                    db.update(wrong)
            self.assertEqual(dict(db.items()), due)

    def test_as_a_mapping(self):
        for kind in ("ordered", "hash"):
            with azekura.open(self.path, "n", kind=kind) as db:
                self.assertFalse(db)
                db.update({"b": "2", b"a": b"1", "c": "3"})
                self.assertTrue(db)
                self.assertEqual(len(db), 3)
                self.assertIsInstance(db.keys(), list)
                self.assertEqual(sorted(db.keys()), [b"a", b"b", b"c"])
                self.assertEqual(sorted(db), [b"a", b"b", b"c"])
                self.assertEqual(sorted(db.items()), [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")])
                self.assertEqual(sorted(db.values()), [b"1", b"2", b"3"])
                self.assertEqual(len(db.items()), 3)
                self.assertIn((b"a", b"1"), db.items())
                self.assertEqual(db.setdefault("a", "9"), b"1")
                self.assertEqual(db.setdefault("d", "4"), b"4")
                self.assertEqual(db.pop("d"), b"4")
                self.assertEqual(db.pop("d", None), None)
                for missing in (lambda: db["x"], lambda: db.pop("x"), lambda: db.__delitem__("x")):
                    with self.assertRaises(KeyError):
                        missing()
                self.assertEqual(db.get("x", 7), 7)
                for key in db:
                    del db[key]
                self.assertEqual(db.keys(), [])
                with self.assertRaises(KeyError):
                    db.popitem()
                with self.assertRaises(TypeError):
                    db[1] = "x"
                db["z"] = "1"
                db.clear()
                self.assertNotIn("z", db)

    def test_key_by_key(self):
        for kind in ("ordered", "hash"):
            with azekura.open(self.path, "n", kind=kind) as db:
                self.assertIsNone(db.firstkey())
                for n in range(100):
                    db[f"{n:02}"] = str(n)
                seen, key = [], db.firstkey()
                while key is not None:
                    seen.append(key)
                    del db[key]
                    key = db.nextkey(key)
                self.assertEqual(sorted(seen), [b"%02d" % n for n in range(100)])
                db.update((key, "") for key in "abcde")
                order = db.keys()
                self.assertEqual(db.nextkey(order[1]), order[2])
                self.assertEqual(db.nextkey(order[3].decode()), order[4])
                self.assertIsNone(db.nextkey(order[4]))

    def test_sync_and_reorganize(self):
        with azekura.open(self.path, "c") as db:
            db.update((f"{n}", b"x" * 200) for n in range(5000))
            db.sync()
            db.clear()
            before = os.path.getsize(self.path)
            db.reorganize()
            self.assertLess(os.path.getsize(self.path), before)
        db.close()
        with self.assertRaises(azekura.Closed):
            db["a"]

    def run_program(self, program):
        """Runs a program, for it changes `dbm`; its argument is a path. Returns what it has said."""
        words = [sys.executable, "-B", "-W", "error", "-c", program, self.path]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    def test_behind_dbm(self):
        said = self.run_program("""
import azekura, dbm, dbm.dumb, os, shelve, sys
path = sys.argv[1]
dbm.dumb.open(path + ".other", "n").close()
azekura.register_dbm()
azekura.register_dbm()
with shelve.open(path) as shelf:
    shelf["point"] = {"x": 1}
print(dbm.whichdb(path), dbm.whichdb(path + ".other"), dbm.whichdb(path + ".none"))
for flag in ("r", "w", "c"):
    with dbm.open(path, flag) as db:
        print(type(db).__name__, db.keys())
with shelve.open(path, "r") as shelf:
    print(shelf["point"])
    try:
        shelf["point"] = 2
    except dbm.error as error:
        print(type(error).__name__)
with dbm.open(path, "n") as db, dbm.open(path + ".own", "n", 0o600) as own:
    print(len(db), oct(os.stat(path + ".own").st_mode & 0o777))
try:
    dbm.open(path + ".none")
except dbm.error as error:
    print(type(error).__name__)
with open(path, "r+b") as file:
    file.seek(8)
    file.write(bytes(100_000))
try:
    dbm.open(path)
except dbm.error as error:
    print(isinstance(error, azekura.Error))
with dbm.open(path + ".other") as db:
    print(type(db).__module__)
""")
        self.assertEqual(said.splitlines(), [
            "azekura dbm.dumb None", "Mapping [b'point']", "Mapping [b'point']", "Mapping [b'point']", "{'x': 1}",
            "ReadOnly", "0 0o600", "error", "True", "dbm.dumb",
        ])

    def test_behind_dbm_beside_others(self):
        """With `default=False` new files are of the kind that they were before."""
        said = self.run_program("""
import azekura, dbm, sys
path = sys.argv[1]
dbm.open(path + ".before", "n").close()
azekura.register_dbm(default=False)
dbm.open(path + ".after", "n").close()
azekura.open(path, "n").close()
print(dbm.whichdb(path + ".before") == dbm.whichdb(path + ".after") != "azekura", type(dbm.open(path)).__name__)
azekura.register_dbm()
with dbm.open(path + ".last", "n") as db:
    print(type(db).__name__)
""")
        self.assertEqual(said.splitlines(), ["True Mapping", "Mapping"])
        said = self.run_program("""
import azekura, dbm, sys
azekura.register_dbm(default=False)
azekura.register_dbm()
azekura.register_dbm(default=False)
with dbm.open(sys.argv[1] + ".first", "n") as db:
    print(type(db).__name__, dbm._names.count("azekura"))
""")
        self.assertEqual(said.splitlines(), ["Mapping 1"], "before `dbm` has chosen")

    def test_behind_dbm_by_its_names_alone(self):
        """So far it comes without `register_dbm`: what is made is Azekura's, but `whichdb` does not know it."""
        said = self.run_program("""
import dbm, sys
dbm._names.insert(0, "azekura")
with dbm.open(sys.argv[1], "c", 0o640) as db:
    db["a"] = "1"
    print(type(db).__module__, db["a"])
with dbm.open(sys.argv[1], "n") as db:
    print(len(db))
print(repr(dbm.whichdb(sys.argv[1])))
""")
        self.assertEqual(said.splitlines(), ["azekura._mapping b'1'", "0", "''"])

    def test_shelve(self):
        with shelve.Shelf(azekura.open(self.path, "c"), writeback=True) as shelf:
            shelf["list"] = [1, 2]
            shelf["list"].append(3)
            shelf["set"] = {4}
            self.assertEqual(sorted(shelf), ["list", "set"])
        with shelve.Shelf(azekura.open(self.path, "w")) as shelf:
            self.assertEqual(dict(shelf), {"list": [1, 2, 3], "set": {4}})
            del shelf["set"]
            self.assertNotIn("set", shelf)
            self.assertEqual(len(shelf), 1)
