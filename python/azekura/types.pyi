"""Numbers of other widths than Python's int and float have in a table, which are `i64` and `f64`."""

# For a table these are ints and floats.
u8: type[int]
u16: type[int]
u32: type[int]
u64: type[int]
i8: type[int]
i16: type[int]
i32: type[int]
i64: type[int]
f32: type[float]
f64: type[float]
