"""What all tests use: a folder of their own, and a database in it."""

import importlib
import os
import tempfile
import unittest

import azekura


def library(name, *also):
    """A library of others, or None if it is not installed, or another one that it needs: a line says so."""
    try:
        return [importlib.import_module(needed) for needed in (name, *also)][0]
    except ImportError as missing:
        print(f"the tests with {name} are left out: {missing}")
        return None


class TestCase(unittest.TestCase):
    """A test with a folder that goes when it ends."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.path = os.path.join(self.folder, "t.azk")

    def database(self, **options):
        """A database that is closed when the test ends."""
        options.setdefault("durability", "eventual")
        return self.enterContext(azekura.Database(self.path, **options))
