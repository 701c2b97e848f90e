"""What all tests use: a folder of their own, and a database in it."""

import os
import tempfile
import unittest

import azekura


class TestCase(unittest.TestCase):
    """A test with a folder that goes when it ends."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.path = os.path.join(self.folder, "t.azk")

    def database(self, **options):
        """A database that is closed when the test ends."""
        options.setdefault("durability", "eventual")
        return self.enterContext(azekura.Database(self.path, **options))
