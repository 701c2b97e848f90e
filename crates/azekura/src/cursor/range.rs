//! The ways to write a range of keys.

use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A range of keys: any of Rust's ranges over anything that has bytes, or a pair of [`Bound`]s.
///
/// This is a trait of its own beside [`RangeBounds`], so that `..` needs no annotation. It is a range of
/// every type, and the compiler would ask which. Of another range type a pair is made: `(range.start_bound(),
/// range.end_bound())`. A range whose end comes before its start has no keys.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-range-{}.azk", std::process::id()));
/// use azekura::{Db, Options, TableKind};
/// use std::ops::Bound;
/// let db = Db::open(&path, Options::new())?;
/// let born = db.table("born", TableKind::Ordered)?;
/// born.put_many([("ada", "1815"), ("alan", "1912"), ("grace", "1906")])?;
/// let count = |range: azekura::Cursor| range.owned().count();
/// assert_eq!(count(born.range(..)?), 3);
/// assert_eq!(count(born.range("ada".."alan")?), 1);
/// assert_eq!(count(born.range(..="alan")?), 2);
/// assert_eq!(count(born.range(b"b".to_vec()..)?), 1);
/// assert_eq!(count(born.range((Bound::Excluded("ada"), Bound::Unbounded))?), 2);
/// # drop(born); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
pub trait KeyRange {
    /// Where it begins.
    fn start(&self) -> Bound<&[u8]>;

    /// Where it ends.
    fn end(&self) -> Bound<&[u8]>;
}

macro_rules! ranges {
    ($($range:ty),*) => {
        $(impl<K: AsRef<[u8]>> KeyRange for $range {
            fn start(&self) -> Bound<&[u8]> {
                RangeBounds::<K>::start_bound(self).map(K::as_ref)
            }

            fn end(&self) -> Bound<&[u8]> {
                RangeBounds::<K>::end_bound(self).map(K::as_ref)
            }
        })*
    };
}

ranges!(Range<K>, RangeInclusive<K>, RangeFrom<K>, RangeTo<K>, RangeToInclusive<K>, (Bound<K>, Bound<K>));

impl KeyRange for RangeFull {
    fn start(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }

    fn end(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }
}
