//! Tables whose keys and values have types.
//!
//! A [`TypedTable`] is a [`Table`](crate::Table) and two types. [`Key`] says how a key becomes bytes that
//! have the order of the keys. [`Value`] says how a value becomes bytes; these need no order. The types are
//! known when the program is compiled. So a number is put as eight bytes from a register, and text as its own
//! bytes. Nothing is copied or allocated that a table of plain bytes would not copy or allocate. (Only tuples
//! are put together in a buffer.)
//!
//! ```text
//! keys    u8 … u128            big-endian
//!         i8 … i128            big-endian, the sign flipped
//!         f32, f64             big-endian, the sign flipped, of negative ones all bits; -0.0 is 0.0
//!         bool                 00 or 01
//!         str, [u8], [u8; N]   as they are
//!         (A, B, …)            one after the other; in text and bytes 00 is 00 FF, and 00 01 ends them
//! values  numbers              little-endian, as `increment` has them
//!         bool, str, [u8], …   as in keys
//!         Json<T>              JSON text (with the feature `serde`)
//! ```
//!
//! The Python package writes the same for `int` (`i64`), `float` (`f64`), `str`, `bytes`, `tuple` and JSON,
//! so one can read what the other has put. The file does not record the types. A record that is not of the
//! table's types is [`Error::WrongType`](crate::Error::WrongType) when it is read, and stays as it is.

mod codec;
mod expiry;
#[cfg(feature = "serde")]
mod json;
mod merges;
mod methods;
mod numbers;
mod records;
mod table;
mod text;
mod tuples;
mod views;

pub use codec::{Key, KeyBytes, KeyPart, Prefix, Value};
#[cfg(feature = "serde")]
pub use json::Json;
pub use records::{TypedCursor, TypedRecords};
pub use table::{TableDefinition, TypedTable};
pub use views::{TypedRead, TypedWrite};

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
