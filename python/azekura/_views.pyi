"""Live views of a table: `Table.keys`, `Table.items`, `Table.values`."""

from collections.abc import ItemsView, KeysView, ValuesView
from typing import TypeVar

from ._azekura import Records

_K = TypeVar("_K")
_V = TypeVar("_V")

class Keys(KeysView[_K]):
    """A view of a table's keys, with the operations of sets."""
    def __iter__(self) -> Records[_K]: ...
    def __reversed__(self) -> Records[_K]: ...

class Items(ItemsView[_K, _V]):
    """A view of a table's records, as pairs."""
    def __iter__(self) -> Records[tuple[_K, _V]]: ...
    def __reversed__(self) -> Records[tuple[_K, _V]]: ...

class Values(ValuesView[_V]):
    """A view of a table's values."""
    def __iter__(self) -> Records[_V]: ...
    def __reversed__(self) -> Records[_V]: ...
