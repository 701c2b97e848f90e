//! What a secondary index is: pure functions on bytes, from a record to the key of its entry.
//!
//! A specification is text that the file keeps. So every program that writes to a table keeps its indexes, in
//! whatever language. It names fields (`field`), each with a source (the key or the value), a piece of that
//! (a slice, a part of a split, a JSON or MessagePack pointer) and a type. `parse` reads the text and
//! `Display` writes its canonical form.
//!
//! For each record `extract` finds the fields, without building a tree of a document (`json`, `msgpack`), and
//! `encode` appends their bytes. Of two lists of values the smaller has the smaller bytes. A field that is
//! missing or of another type is null, and null comes first.

mod encode;
mod extract;
mod field;
mod found;
mod json;
mod lower;
mod msgpack;
mod parse;
mod spec;
mod value;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub use spec::IndexSpec;
pub use value::IndexValue;
