"""Numbers of other widths than Python's int and float have in a table, which are `i64` and `f64`.

They make records smaller, and read tables that a program in Rust has made: `key=azekura.types.u32`. Keys and
values are plain ints and floats all the same. One that does not fit is an `OverflowError`. An `f32` keeps
seven digits.

>>> import azekura, os, tempfile
>>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
>>> small = db.table("small", key=azekura.types.u32, value=azekura.types.f32)
>>> small[7] = 0.5
>>> list(small.items())
[(7, 0.5)]
>>> small[-1] = 0.5
Traceback (most recent call last):
OverflowError: ...
>>> db.close()
"""


class u8(int):
    """0 to 255."""


class u16(int):
    """0 to 65,535."""


class u32(int):
    """0 to 2^32 - 1."""


class u64(int):
    """0 to 2^64 - 1."""


class i8(int):
    """-128 to 127."""


class i16(int):
    """-32,768 to 32,767."""


class i32(int):
    """-2^31 to 2^31 - 1."""


class i64(int):
    """-2^63 to 2^63 - 1, as `int`."""


class f32(float):
    """A float of 32 bits."""


class f64(float):
    """A float of 64 bits, as `float`."""
