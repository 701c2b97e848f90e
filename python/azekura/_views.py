"""Live views of a table, as those of a dict: `Table.keys`, `Table.items`, `Table.values`.

A view has no records of its own. Each walk over it, `len` and `in` look at the table as it is then.
"""

from collections.abc import ItemsView, KeysView, ValuesView


class _Live:
    __slots__ = ()

    def __init__(self, table, reverse):
        super().__init__(table)
        self._reverse = reverse

    def __len__(self):
        return self._mapping.count()

    def __iter__(self):
        return self._mapping._walk(type(self).__name__, self._reverse)

    def __reversed__(self):
        return self._mapping._walk(type(self).__name__, not self._reverse)

    def __repr__(self):
        return f"<azekura: {type(self).__name__.lower()} of {self._mapping.name!r}>"


class Keys(_Live, KeysView):
    """A view of a table's keys, with the operations of sets."""

    __slots__ = ("_reverse",)


class Items(_Live, ItemsView):
    """A view of a table's records, as pairs."""

    __slots__ = ("_reverse",)


class Values(_Live, ValuesView):
    """A view of a table's values."""

    __slots__ = ("_reverse",)

    def __contains__(self, value):
        # One walk. To get each key's value would fail where another thread removes the key meanwhile.
        return any(found is value or found == value for found in self)
