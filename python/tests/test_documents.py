"""The examples in docstrings and documents."""

import contextlib
import doctest
import inspect
import io
import os
import re
import tempfile
import unittest
from unittest import mock

import azekura
from azekura import aio
from tests import typed
from tests.common import TestCase, library

ROOT = os.environ.get("AZEKURA_ROOT", os.path.join(os.path.dirname(__file__), "..", ".."))
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What needs PyArrow.
ARROW_BLOCK = re.compile(r"^```python pyarrow\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pyarrow = library("pyarrow", "pyarrow.parquet")


class Documents(TestCase):
    def setUp(self):
        super().setUp()
        # Examples make folders that nobody removes.
        self.enterContext(mock.patch.object(tempfile, "tempdir", self.folder))

    def run_blocks(self, name):
        """Runs a document's blocks one after the other, in a folder of their own; gives how many."""
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            blocks = BLOCK.findall(file.read())
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        names = {}
        for block in blocks:
            if ">>>" not in block:
                exec(compile(block, name, "exec"), names)
                continue
            test = doctest.DocTestParser().get_doctest(block, names, name, name, 0)
            runner = doctest.DocTestRunner()
            said = []
            runner.run(test, out=said.append, clear_globs=False)
            self.assertEqual(runner.failures, 0, "".join(said))
            names.update(test.globs)
        return len(blocks)

    def test_docstrings(self):
        """Each public class and function has an example, and all examples are true."""
        things = {name: getattr(azekura, name) for name in azekura.__all__}
        things |= {
            f"aio.{name}": thing for name, thing in vars(aio).items()
            if getattr(thing, "__module__", "") == "azekura.aio" and not name.startswith("_")
        }
        examples = 0
        for name, thing in things.items():
            # Errors and reports are described where they come from.
            is_plain = isinstance(thing, type) and issubclass(thing, (BaseException, tuple))
            with self.subTest(name):
                self.assertTrue(is_plain or ">>>" in thing.__doc__, name)
            members = vars(thing) if isinstance(thing, type) else {}
            for member, of in [("", thing), *members.items()]:
                examples += self.run_docstring(f"{name}.{member}", getattr(of, "__doc__", None) or "")
        self.assertGreater(examples, 300)

    def run_docstring(self, name, text):
        """Runs the examples of a docstring; gives how many steps they have."""
        if ">>>" not in text:
            return 0
        test = doctest.DocTestParser().get_doctest(inspect.cleandoc(text), {}, name, name, 0)
        said = []
        ran = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
        self.assertEqual(ran.failed, 0, "".join(said))
        return ran.attempted

    def test_readme_and_tutorial(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertGreaterEqual(self.run_blocks("README.md"), 1)
        self.assertEqual(said.getvalue(), "ada 1815\nalan 1912\n")
        os.remove("people.azk")
        os.remove("fruit.azk")
        self.assertGreater(self.run_blocks(os.path.join("docs", "python.md")), 5)
        self.assertEqual(self.run_blocks(os.path.join("docs", "shards.md")), 1)

    @unittest.skipIf(pyarrow is None, "no PyArrow")
    def test_a_lookup_table_out_of_parquet(self):
        with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as file:
            (block,) = ARROW_BLOCK.findall(file.read())
        # "in ten lines"
        self.assertLessEqual(len(block.splitlines()), 10)
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        rows = range(5_000)
        columns = {"name": [f"user {n}" for n in rows], "id": list(rows), "more": [0.5] * len(rows)}
        pyarrow.parquet.write_table(pyarrow.table(columns), "users.parquet")
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile(block, "python.md", "exec"), {})
        self.assertEqual(said.getvalue(), "user 7 5000\n")

    def test_stubs_name_what_there_is(self):
        folder = os.path.dirname(azekura.__file__)
        for name, thing in vars(azekura._azekura).items():
            if not isinstance(thing, type):
                continue
            with open(os.path.join(folder, "_azekura.pyi"), encoding="utf-8") as file:
                stub = re.search(rf"^class {name}\b.*?(?=^class |\Z)", file.read(), re.MULTILINE | re.DOTALL)
            named = set(re.findall(r"^    def (\w+)", stub[0], re.MULTILINE))
            here = {member for member in vars(thing) if not member.startswith("_")}
            self.assertEqual({member for member in named if not member.startswith("_")}, here, name)
            self.assertTrue(all(hasattr(thing, member) for member in named), name)

    def test_the_typed_program(self):
        typed.program(self.path)

    def test_everything_public_says_what_it_is(self):
        for name in azekura.__all__:
            thing = getattr(azekura, name)
            self.assertTrue(thing.__doc__, name)
            for member in dir(thing):
                if not member.startswith("_") and not hasattr(BaseException, member) and not hasattr(OSError, member):
                    self.assertTrue(getattr(thing, member).__doc__, f"{name}.{member}")
