//! The keys that a command is about: one, a range, or those with a prefix.

use std::ffi::OsString;
use std::ops::Bound;

use azekura::{Cursor, ReadTxn, Table, TableKind};

use crate::arguments;
use crate::bytes::{self, Form, FormArg};
use crate::failure::{Failure, Outcome};
use crate::store::{FileArg, TableArg};

/// One key of a table.
#[derive(Debug, clap::Args)]
pub struct KeyArg {
    #[command(flatten)]
    pub file: FileArg,
    /// The key, or - for standard input (a key that is - itself: --hex 2d)
    #[arg(allow_hyphen_values = true)]
    pub key: OsString,
    #[command(flatten)]
    pub table: TableArg,
    #[command(flatten)]
    pub form: FormArg,
}

impl KeyArg {
    /// The key as bytes. Standard input is read if the argument says so.
    pub fn key(&self) -> Outcome<Vec<u8>> {
        arguments::argument(&self.key, self.form.form())
    }

    /// The failure for a key that is absent.
    pub fn not_found(&self, key: &[u8]) -> Failure {
        let (key, table) = (bytes::shown(key, self.form.form()), bytes::quoted(&self.table.table));
        Failure::NotFound(format!("no key {key} in table {table}"))
    }
}

/// The options that limit keys.
#[derive(Debug, clap::Args)]
pub struct KeysArg {
    /// First key, included, or - for standard input (ordered tables)
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    from: Option<OsString>,
    /// Last key, not included, or - for standard input (ordered tables)
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    to: Option<OsString>,
    /// Only keys that begin so, or - for standard input (ordered tables)
    #[arg(long, value_name = "KEY", allow_hyphen_values = true, conflicts_with_all = ["from", "to"])]
    prefix: Option<OsString>,
}

/// The records of a table whose keys are within limits.
#[derive(Debug, clap::Args)]
pub struct RecordsArg {
    #[command(flatten)]
    pub file: FileArg,
    #[command(flatten)]
    pub table: TableArg,
    #[command(flatten)]
    pub keys: KeysArg,
}

/// The limits as bytes.
pub struct Keys {
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    prefix: Option<Vec<u8>>,
}

impl Keys {
    /// Reads the limits, from standard input if an argument says so.
    pub fn of(args: &KeysArg, form: Form) -> Outcome<Keys> {
        if let (Some(from), Some(to)) = (&args.from, &args.to) {
            arguments::one_from_stdin(("--from", from), ("--to", to))?;
        }
        let parse =
            |key: &Option<OsString>| key.as_ref().map(|key| arguments::argument(key, form)).transpose();
        let keys = Keys { from: parse(&args.from)?, to: parse(&args.to)?, prefix: parse(&args.prefix)? };
        if let (Some(from), Some(to)) = (&keys.from, &keys.to)
            && from > to
        {
            return Err(Failure::Usage("--from is after --to".to_owned()));
        }
        Ok(keys)
    }

    /// Whether there is a limit.
    pub fn are_limited(&self) -> bool {
        self.from.is_some() || self.to.is_some() || self.prefix.is_some()
    }

    /// Whether every key is within the limits, also because they are empty.
    pub fn are_all(&self) -> bool {
        let is_empty = |key: &Option<Vec<u8>>| key.as_ref().is_none_or(|key| key.is_empty());
        is_empty(&self.prefix) && is_empty(&self.from) && self.to.is_none()
    }

    /// Refuses limits for a table that has no order.
    pub fn check_table(&self, table: &Table) -> Outcome {
        if self.are_limited() && table.kind() == TableKind::Hash {
            return Err(Failure::Usage(format!(
                "table {} is in hash order: --from, --to and --prefix need an ordered table",
                bytes::quoted(&table.name())
            )));
        }
        Ok(())
    }

    /// A cursor over the keys.
    pub fn cursor(&self, txn: &ReadTxn, table: &Table) -> Outcome<Cursor> {
        self.check_table(table)?;
        if !self.are_limited() {
            return Ok(txn.cursor(table)?);
        }
        Ok(self.with_bounds(|low, high| txn.range(table, (low, high)))?)
    }

    /// Calls `f` with the limits as bounds.
    pub fn with_bounds<T>(&self, f: impl FnOnce(Bound<&[u8]>, Bound<&[u8]>) -> T) -> T {
        let Some(prefix) = &self.prefix else {
            let low = self.from.as_deref().map_or(Bound::Unbounded, Bound::Included);
            let high = self.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            return f(low, high);
        };
        match after_prefix(prefix) {
            Some(end) => f(Bound::Included(prefix), Bound::Excluded(&end)),
            None => f(Bound::Included(prefix), Bound::Unbounded),
        }
    }
}

/// The first key after all keys that begin with `prefix`, if there is one.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_the_next_key_without_it() {
        assert_eq!(after_prefix(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(after_prefix(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(after_prefix(b"\xff\xff"), None);
        assert_eq!(after_prefix(b""), None);
    }
}
