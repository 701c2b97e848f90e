//! The tables and indexes of a script, by the numbers that its writes use.

use azekura::TableKind;

/// The tables, in the order of the numbers that writes use.
pub const TABLES: [(&str, TableKind); 3] =
    [("ordered", TableKind::Ordered), ("hash", TableKind::Hash), ("extra", TableKind::Ordered)];

/// Indexes: of which table, and what they are of. `check` compares them with their tables.
pub const INDEXES: [(&str, &str); 3] =
    [("ordered", "v[0..1]:u8, k[0..2]"), ("hash", "v[0..3] where present"), ("ordered", "k unique")];

/// The number of the first small table.
pub(super) const SMALL: usize = TABLES.len();

/// The numbers of the tables into which values are merged. (No record expires in them and they have no index,
/// so that what is merged there reads nothing.)
pub(super) const SUMS: usize = 1 << 16;
pub(super) const LISTS: usize = SUMS + 1;
pub(super) const SETS: usize = SUMS + 2;

/// These, with what they are called.
pub(super) const MERGED: [(usize, &str, TableKind); 3] = [
    (SUMS, "sums", TableKind::Ordered),
    (LISTS, "lists", TableKind::Ordered),
    (SETS, "sets", TableKind::Hash),
];

fn merged(table: usize) -> Option<(usize, &'static str, TableKind)> {
    MERGED.into_iter().find(|&(number, ..)| number == table)
}

/// The name and kind of a small table, by its number in writes.
pub(super) fn small(table: usize) -> (String, TableKind) {
    (format!("small {table}"), if table.is_multiple_of(2) { TableKind::Ordered } else { TableKind::Hash })
}

/// The kind of a table, by its number in writes.
pub(super) fn kind_of(table: usize) -> TableKind {
    if let Some((_, _, kind)) = merged(table) {
        return kind;
    }
    TABLES.get(table).map_or_else(|| small(table).1, |t| t.1)
}

/// The name of a table, by its number in writes.
pub(super) fn name_of(table: usize) -> String {
    if let Some((_, name, _)) = merged(table) {
        return name.into();
    }
    TABLES.get(table).map_or_else(|| small(table).0, |t| t.0.into())
}
