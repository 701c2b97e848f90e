//! Cursors as iterators, from both ends.

use super::{Cursor, CursorPosition, Direction, LazyValue};
use crate::base::error::Result;
use std::iter::{FusedIterator, Rev};

/// A way through a table, as other rooms name it.
pub(crate) use super::Direction as Way;

/// An iterator over copies of a table's records, from both ends: what [`Table::iter`](crate::Table::iter) and
/// [`Cursor::owned`] give. It shows one snapshot, however long it takes. After an error it has ended.
///
/// The two ends meet without giving a record twice. The far end costs a second cursor, made when it is first
/// asked for.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-records-{}.azk", std::process::id()));
/// use azekura::{Db, Options, TableKind};
/// let db = Db::open(&path, Options::new())?;
/// let t = db.table("t", TableKind::Ordered)?;
/// t.put_many([("a", "1"), ("b", "2"), ("c", "3")])?;
/// let mut records = t.iter()?;
/// assert_eq!(records.next().transpose()?, Some((b"a".to_vec(), b"1".to_vec())));
/// assert_eq!(records.next_back().transpose()?, Some((b"c".to_vec(), b"3".to_vec())));
/// assert_eq!(records.count(), 1);
/// for record in t.range(.."c")?.rev() {
///     let (key, value) = record?;
///     println!("{} {}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value));
/// }
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
pub struct Records {
    front: Cursor,
    back: Option<Box<Cursor>>,
    done: bool,
}

impl Cursor {
    /// An iterator over copies of the records from here on. Its other end goes down to here.
    pub fn owned(self) -> Records {
        Records { front: self, back: None, done: false }
    }

    /// An iterator over copies of the records from the end of the table, or range, down to here.
    pub fn rev(self) -> Rev<Records> {
        self.owned().rev()
    }

    /// What `f` makes of the next record in a direction. Of a new cursor that is the first or the last one.
    pub(crate) fn edge<T>(
        &mut self,
        way: Direction,
        f: impl FnOnce(&[u8], &[u8]) -> Result<T>,
    ) -> Result<Option<T>> {
        if way == Direction::Backward && self.place == CursorPosition::Start {
            self.seek_last();
        }
        match self.go(way)? {
            Some((key, value)) => f(key, value.bytes()?).map(Some),
            None => Ok(None),
        }
    }

    /// How many records it has passed over: tombstones, and what is hidden.
    pub(crate) fn passed(&self) -> usize {
        self.passed
    }

    /// The sort key of the record at which the cursor stands.
    pub(crate) fn sort_key(&self) -> Option<&[u8]> {
        (self.place == CursorPosition::Given).then(|| self.sources[self.front].key())
    }

    /// Whether a record lies on the side of this cursor to which it has not come yet, if it goes `to`.
    fn is_ahead(&self, to: Direction, key: &[u8]) -> bool {
        let forward = to == Direction::Forward;
        match (self.place, self.sort_key()) {
            (CursorPosition::Start, _) => forward,
            (CursorPosition::End, _) => !forward,
            (CursorPosition::Before, _) => (key >= self.at.as_slice()) == forward,
            (CursorPosition::After, _) => (key > self.at.as_slice()) == forward,
            (CursorPosition::Given, Some(given)) if self.direction == to => {
                key.cmp(given) == to.reverse().order()
            }
            // It was given on the way back, and is the next again.
            (CursorPosition::Given, Some(given)) => key == given || key.cmp(given) == to.reverse().order(),
            (CursorPosition::Given, None) => false,
        }
    }
}

impl Records {
    /// What `f` makes of the next record from one end.
    pub(crate) fn step<T>(
        &mut self,
        to: Direction,
        f: impl FnOnce(&[u8], LazyValue<'_>) -> Result<T>,
    ) -> Option<Result<T>> {
        if self.done {
            return None;
        }
        let stepped = self.try_step(to, f);
        self.done = !matches!(stepped, Ok(Some(_)));
        stepped.transpose()
    }

    fn try_step<T>(
        &mut self,
        to: Direction,
        f: impl FnOnce(&[u8], LazyValue<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        if to == Direction::Backward && self.back.is_none() {
            let mut back = self.front.twin()?;
            back.seek_last();
            self.back = Some(Box::new(back));
        }
        let (cursor, other) = match (to, &mut self.back) {
            (Direction::Backward, Some(back)) => (&mut **back, Some(&self.front)),
            (_, back) => (&mut self.front, back.as_deref()),
        };
        let Some(other) = other else {
            return cursor.go(to)?.map(|(key, value)| f(key, value)).transpose();
        };
        if cursor.go(to)?.is_none() {
            return Ok(None);
        }
        // What the other end has given is not given again.
        if !cursor.sort_key().is_some_and(|key| other.is_ahead(to.reverse(), key)) {
            return Ok(None);
        }
        let (key, value) = cursor.given()?;
        f(key, value).map(Some)
    }
}

/// A copy of a record.
fn copy(key: &[u8], value: LazyValue<'_>) -> Result<(Vec<u8>, Vec<u8>)> {
    Ok((key.to_vec(), value.bytes()?.to_vec()))
}

impl Iterator for Records {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(Direction::Forward, copy)
    }
}

impl DoubleEndedIterator for Records {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(Direction::Backward, copy)
    }
}

impl FusedIterator for Records {}

impl IntoIterator for Cursor {
    type Item = Result<(Vec<u8>, Vec<u8>)>;
    type IntoIter = Records;

    /// As [`owned`](Cursor::owned).
    fn into_iter(self) -> Records {
        self.owned()
    }
}
