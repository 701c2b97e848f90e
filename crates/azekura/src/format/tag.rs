//! What a record says.

/// What a record says about its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Tag {
    /// The record holds the value.
    Put = 0,
    /// The value is in a value segment. The record holds a reference of `VALUE_POINTER_BYTES`.
    Large = 1,
    /// The key is absent, whatever older levels say.
    Tombstone = 2,
    /// The record is one of the first two until it expires. A word that says when stands before it: see
    /// `expiry`.
    Expiring = 3,
    /// The record changes what is older: see `operand`. No record is stored with this tag: a word says it of
    /// an `Expiring` one.
    Operand = 4,
}

impl Tag {
    pub(crate) fn from_code(code: u8) -> Option<Tag> {
        match code {
            0 => Some(Tag::Put),
            1 => Some(Tag::Large),
            2 => Some(Tag::Tombstone),
            3 => Some(Tag::Expiring),
            _ => None,
        }
    }
}
