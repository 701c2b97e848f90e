//! What stands where a field says, before its type is looked at.

use std::borrow::Cow;

/// What stands there.
#[derive(Debug, PartialEq)]
pub(super) enum Found<'a> {
    /// Nothing, or nothing that can be in an index.
    Null,
    /// A piece of bytes that are no document, or a document's.
    Bytes(&'a [u8]),
    /// A document's text.
    Text(Cow<'a, str>),
    /// A number as it is written in a document.
    Digits(&'a str),
    U64(u64),
    I64(i64),
    F64(f64),
    Bool(bool),
}
