//! The types of handles.

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

/// A reader of the feed of changes.
pub struct azk_feed {
    _opaque: (),
}

/// A set of shards that is read.
pub struct azk_shards {
    _opaque: (),
}
