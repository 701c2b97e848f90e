//! The errors for wrong handles.

use crate::status::{Failure, azk_status, failure};

/// The names of the types, by tag.
const NAMES: [&str; 11] = [
    "handle",
    "azk_options",
    "azk_db",
    "azk_table",
    "azk_read",
    "azk_write",
    "azk_cursor",
    "azk_index",
    "azk_lookup",
    "azk_shards",
    "azk_feed",
];

/// The name of a type of handle.
pub(crate) fn name(tag: u8) -> &'static str {
    NAMES.get(usize::from(tag)).copied().unwrap_or(NAMES[0])
}

/// The error for a pointer that is no handle of this type.
#[cold]
pub(crate) fn refuse(tag: u8, number: u64) -> Failure {
    let expected = name(tag);
    let found = match u8::try_from(number >> 52 & 0xf) {
        _ if number == 0 => "NULL".to_owned(),
        Ok(other) if number >> 56 == 0xA7 && (1..).zip(&NAMES[1..]).any(|(known, _)| known == other) => {
            format!("an {}", name(other))
        }
        _ => format!("{number:#x}, which is no handle of this library"),
    };
    failure(azk_status::AZK_BAD_HANDLE, format!("bad handle: an {expected} is expected, found {found}"))
}

/// The error for a handle that was good once.
#[cold]
pub(crate) fn stale(tag: u8) -> Failure {
    failure(
        azk_status::AZK_BAD_HANDLE,
        format!("bad handle: the {} was freed, closed or ended before", name(tag)),
    )
}
