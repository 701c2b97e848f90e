//! The types of handles, and the errors for wrong ones.

use crate::cursor::Walk;
use crate::lookup::Lookup;
use crate::read::Reading;
use crate::slots::{Handle, Slots};
use crate::status::{Failure, azk_status, failure};
use crate::write::Writing;
use azekura::{Db, Index, Options, Table};

/// Options for opening a database.
pub struct azk_options {
    _opaque: (),
}

/// An open database.
pub struct azk_db {
    _opaque: (),
}

/// A table of an open database.
pub struct azk_table {
    _opaque: (),
}

/// A read transaction: a snapshot of all tables.
pub struct azk_read {
    _opaque: (),
}

/// A write transaction.
pub struct azk_write {
    _opaque: (),
}

/// A moving place in a table, as one snapshot has it.
pub struct azk_cursor {
    _opaque: (),
}

/// An index of a table.
pub struct azk_index {
    _opaque: (),
}

/// Records that were found by an index, and how far one has come.
pub struct azk_lookup {
    _opaque: (),
}

/// The names of the types, by tag.
const NAMES: [&str; 9] = [
    "handle",
    "azk_options",
    "azk_db",
    "azk_table",
    "azk_read",
    "azk_write",
    "azk_cursor",
    "azk_index",
    "azk_lookup",
];

impl Handle for azk_options {
    type Held = Options;
    const TAG: u8 = 1;
    fn slots() -> &'static Slots<Options> {
        static SLOTS: Slots<Options> = Slots::new();
        &SLOTS
    }
}

impl Handle for azk_db {
    type Held = Db;
    const TAG: u8 = 2;
    fn slots() -> &'static Slots<Db> {
        static SLOTS: Slots<Db> = Slots::new();
        &SLOTS
    }
}

impl Handle for azk_table {
    type Held = Table;
    const TAG: u8 = 3;
    fn slots() -> &'static Slots<Table> {
        static SLOTS: Slots<Table> = Slots::new();
        &SLOTS
    }
}

impl Handle for azk_read {
    type Held = Reading;
    const TAG: u8 = 4;
    fn slots() -> &'static Slots<Reading> {
        static SLOTS: Slots<Reading> = Slots::new();
        &SLOTS
    }
}

impl Handle for azk_write {
    type Held = Writing;
    const TAG: u8 = 5;
    fn slots() -> &'static Slots<Writing> {
        static SLOTS: Slots<Writing> = Slots::new();
        &SLOTS
    }
}

impl Handle for azk_cursor {
    type Held = Walk;
    const TAG: u8 = 6;
    fn slots() -> &'static Slots<Walk> {
        static SLOTS: Slots<Walk> = Slots::new();
        &SLOTS
    }
}

impl Handle for azk_index {
    type Held = Index;
    const TAG: u8 = 7;
    fn slots() -> &'static Slots<Index> {
        static SLOTS: Slots<Index> = Slots::new();
        &SLOTS
    }
}

impl Handle for azk_lookup {
    type Held = Lookup;
    const TAG: u8 = 8;
    fn slots() -> &'static Slots<Lookup> {
        static SLOTS: Slots<Lookup> = Slots::new();
        &SLOTS
    }
}

/// The name of a type of handle.
pub(crate) fn name(tag: u8) -> &'static str {
    NAMES.get(usize::from(tag)).copied().unwrap_or(NAMES[0])
}

/// The error for a pointer that is no handle of this type.
#[cold]
pub(crate) fn refuse<H: Handle>(number: u64) -> Failure {
    let expected = name(H::TAG);
    let found = match u8::try_from(number >> 52 & 0xf) {
        _ if number == 0 => "NULL".to_owned(),
        Ok(tag) if number >> 56 == 0xA7 && (1..).zip(&NAMES[1..]).any(|(known, _)| known == tag) => {
            format!("an {}", name(tag))
        }
        _ => format!("{number:#x}, which is no handle of this library"),
    };
    failure(azk_status::AZK_BAD_HANDLE, format!("bad handle: an {expected} is expected, found {found}"))
}

/// The error for a handle that was good once.
#[cold]
pub(crate) fn stale<H: Handle>() -> Failure {
    failure(
        azk_status::AZK_BAD_HANDLE,
        format!("bad handle: the {} was freed, closed or ended before", name(H::TAG)),
    )
}
