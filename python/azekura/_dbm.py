"""Azekura behind the module `dbm`, and so behind `shelve.open`."""

import builtins

from ._errors import Error

_MAGIC = b"AZEKURA\0"
_NAME = "azekura"
# What `dbm.whichdb` was before.
_others = None


def whichdb(filename):
    """What `dbm.whichdb` says of a file, and 'azekura' of a database of Azekura.

    >>> import azekura, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "fruit.azk")
    >>> azekura.open(path, "n").close()
    >>> azekura.whichdb(path), azekura.whichdb(f"{path}.none")
    ('azekura', None)
    """
    import dbm

    try:
        with builtins.open(filename, "rb") as file:
            if file.read(len(_MAGIC)) == _MAGIC:
                return _NAME
    except OSError:
        # No file of that name: it may be the stem of others' names.
        pass
    return (_others or dbm.whichdb)(filename)


def register_dbm(default=True):
    """Makes `dbm.open` and `shelve.open` open databases of Azekura, and with `default` make them.

    `dbm.whichdb` then says 'azekura' of them, and `dbm.error` catches their errors. Files of other kinds are opened as
    before. `dbm` has no interface for that, so its names are changed: they are the same in all versions of Python.

    >>> import azekura, dbm, os, shelve, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "shelf.azk")
    >>> azekura.register_dbm()
    >>> with shelve.open(path) as shelf:
    ...     shelf["point"] = {"x": 1}
    >>> dbm.whichdb(path)
    'azekura'
    >>> with dbm.open(path) as mapping:
    ...     mapping.keys()
    [b'point']
    """
    global _others
    import dbm

    import azekura

    if dbm.whichdb is not whichdb:
        _others, dbm.whichdb = dbm.whichdb, whichdb
    if Error not in dbm.error:
        dbm.error += (Error,)
    dbm._modules[_NAME] = azekura
    # The first of the names that can be imported is the default, as long as `dbm` has not chosen one.
    if default and _NAME in dbm._names:
        # It was registered without being the default.
        dbm._names.remove(_NAME)
    if _NAME not in dbm._names:
        dbm._names.insert(0 if default else len(dbm._names), _NAME)
    if default and dbm._defaultmod is not None:
        dbm._defaultmod = azekura
