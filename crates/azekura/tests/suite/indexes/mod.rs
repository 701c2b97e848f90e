//! Indexes: they agree with their tables whatever is done, by every lookup, and in every transaction.

mod blind;
mod building;
mod edges;
mod model;
mod rules;

use azekura::storage::MemStorage;
use azekura::{Db, Index, IndexSpec, IndexValue, Options, Result};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Record = (Vec<u8>, Vec<u8>);

fn options() -> Options {
    // A short value is a large one already.
    Options::new().memory_bytes(8 << 20).large_value_bytes(64)
}

fn open_on(storage: &MemStorage) -> Db {
    crate::common::watch(Duration::from_secs(120));
    Db::open_on(storage, "/i.azk", options()).unwrap()
}

/// The records of a table with their encoded fields, in the order of an index.
fn expected(spec: &IndexSpec, table: &Map) -> Vec<(Vec<u8>, Record)> {
    let mut all: Vec<(Vec<u8>, Record)> = table
        .iter()
        .filter_map(|(key, value)| {
            let mut fields = Vec::new();
            spec.fields(key, value, &mut fields).unwrap().then(|| (fields, (key.clone(), value.clone())))
        })
        .collect();
    all.sort_by(|a, b| (&a.0, &a.1.0).cmp(&(&b.0, &b.1.0)));
    all
}

/// Two records with the same fields that a unique index forbids.
fn has_duplicate(spec: &IndexSpec, table: &Map) -> bool {
    let all = expected(spec, table);
    spec.is_unique() && all.windows(2).any(|w| w[0].0 == w[1].0 && spec.is_checked(&w[0].0))
}

fn records<E>(all: impl IntoIterator<Item = std::result::Result<Record, E>>) -> Vec<Record>
where
    E: std::fmt::Debug,
{
    all.into_iter().map(|record| record.unwrap()).collect()
}

/// The ways to look at an index that are compared: its own, and within transactions.
trait Look {
    fn get(&self, values: &[IndexValue<'_>]) -> Result<Vec<Record>>;
    fn reversed(&self, values: &[IndexValue<'_>]) -> Result<Vec<Record>>;
    fn keys(&self, values: &[IndexValue<'_>]) -> Result<Vec<Vec<u8>>>;
    fn count(&self, values: &[IndexValue<'_>]) -> Result<u64>;
    fn first(&self, values: &[IndexValue<'_>]) -> Result<Option<Record>>;
    fn last(&self, values: &[IndexValue<'_>]) -> Result<Option<Record>>;
    fn between(&self, from: Bound<&[IndexValue<'_>]>, to: Bound<&[IndexValue<'_>]>) -> Result<Vec<Record>>;
}

macro_rules! look {
    ($($of:ty),*) => {$(
        impl Look for $of {
            fn get(&self, values: &[IndexValue<'_>]) -> Result<Vec<Record>> {
                <$of>::get(self, values)?.collect()
            }
            fn reversed(&self, values: &[IndexValue<'_>]) -> Result<Vec<Record>> {
                <$of>::get(self, values)?.rev().collect()
            }
            fn keys(&self, values: &[IndexValue<'_>]) -> Result<Vec<Vec<u8>>> {
                <$of>::get(self, values)?.keys().collect()
            }
            fn count(&self, values: &[IndexValue<'_>]) -> Result<u64> {
                <$of>::count(self, values)
            }
            fn first(&self, values: &[IndexValue<'_>]) -> Result<Option<Record>> {
                <$of>::first(self, values)
            }
            fn last(&self, values: &[IndexValue<'_>]) -> Result<Option<Record>> {
                <$of>::last(self, values)
            }
            fn between(
                &self,
                from: Bound<&[IndexValue<'_>]>,
                to: Bound<&[IndexValue<'_>]>,
            ) -> Result<Vec<Record>> {
                <$of>::range::<&[IndexValue<'_>]>(self, (from, to))?.collect()
            }
        }
    )*};
}

look!(Index, azekura::IndexRead<'_>);

/// Compares all that an index says with its table.
fn compare(look: &impl Look, spec: &IndexSpec, table: &Map, values: &[Vec<IndexValue<'_>>]) {
    let all = expected(spec, table);
    let of = |is_in: &dyn Fn(&[u8]) -> bool| -> Vec<Record> {
        all.iter().filter(|(fields, _)| is_in(fields)).map(|(_, record)| record.clone()).collect()
    };
    for some in values.iter().chain([&Vec::new()]) {
        let prefix = spec.encode(some).unwrap();
        let mut wanted = of(&|fields| fields.starts_with(&prefix));
        assert_eq!(look.get(some).unwrap(), wanted, "{spec}: {some:?}");
        assert_eq!(look.count(some).unwrap(), wanted.len() as u64);
        assert_eq!(look.first(some).unwrap(), wanted.first().cloned());
        assert_eq!(look.last(some).unwrap(), wanted.last().cloned());
        let keys: Vec<Vec<u8>> = wanted.iter().map(|(key, _)| key.clone()).collect();
        assert_eq!(look.keys(some).unwrap(), keys);
        wanted.reverse();
        assert_eq!(look.reversed(some).unwrap(), wanted);
    }
    for pair in values.windows(2) {
        let (low, high) = (pair[0].as_slice(), pair[1].as_slice());
        let (a, b) = (spec.encode(low).unwrap(), spec.encode(high).unwrap());
        let above = |fields: &[u8]| fields > &a[..] && !fields.starts_with(&a);
        let up_to = |fields: &[u8]| fields < &b[..] || fields.starts_with(&b);
        use Bound::{Excluded, Included, Unbounded};
        let found = |from, to| look.between(from, to).unwrap();
        assert_eq!(
            found(Included(low), Excluded(high)),
            of(&|f| f >= &a[..] && f < &b[..]),
            "{spec} {pair:?}"
        );
        assert_eq!(found(Included(low), Included(high)), of(&|f| f >= &a[..] && up_to(f)), "{spec} {pair:?}");
        assert_eq!(found(Excluded(low), Included(high)), of(&|f| above(f) && up_to(f)), "{spec} {pair:?}");
        assert_eq!(found(Excluded(low), Unbounded), of(&above), "{spec} {pair:?}");
        assert_eq!(found(Unbounded, Included(high)), of(&up_to), "{spec} {pair:?}");
        assert_eq!(found(Unbounded, Excluded(high)), of(&|f| f < &b[..]), "{spec} {pair:?}");
    }
}
