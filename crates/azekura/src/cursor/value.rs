//! The value of a record that a cursor has come to.

use crate::api::Db;
use crate::base::codec::usize_of;
use crate::base::error::Result;
use crate::values::ahead::Ahead;
use crate::values::{LargeValue, ValueRef};
use std::fmt;

/// The value of a record of a [`Cursor`](super::Cursor), which is read when its bytes are asked for.
///
/// A small value stands beside its key. A large one stands apart: until [`bytes`](LazyValue::bytes) is called nothing
/// of it is read, so that a walk over keys costs the same however large the values are.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-lazy-{}.azk", std::process::id()));
/// use azekura::{Db, Kind, Options};
/// let db = Db::open(&path, Options::new())?;
/// let t = db.table("t", Kind::Ordered)?;
/// t.put_many([(&b"film"[..], vec![7; 1 << 20]), (&b"note"[..], b"short".to_vec())])?;
/// let (mut cursor, mut total) = (t.cursor()?, 0);
/// while let Some((key, value)) = cursor.next()? {
///     total += key.len() + value.len();              // reads no large value
///     if value.len() < 1024 {
///         assert_eq!(value.bytes()?, b"short");      // this would
///     }
/// }
/// assert_eq!(total, 4 + (1 << 20) + 4 + 5);
/// # drop(cursor); drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
pub struct LazyValue<'a>(Inner<'a>);

enum Inner<'a> {
    /// Beside its key.
    Here(&'a [u8]),
    /// In a value segment.
    Apart { reference: &'a [u8], len: usize, reader: &'a mut Reader, db: &'a Db },
}

/// What a cursor reads large values with.
#[derive(Default)]
pub(super) struct Reader {
    ahead: Ahead,
    /// The one that was given out last.
    value: Option<LargeValue>,
}

impl<'a> LazyValue<'a> {
    #[inline(always)]
    pub(super) fn here(bytes: &'a [u8]) -> LazyValue<'a> {
        LazyValue(Inner::Here(bytes))
    }

    pub(super) fn apart(reference: &'a [u8], reader: &'a mut Reader, db: &'a Db) -> Result<LazyValue<'a>> {
        let len = usize_of(ValueRef::decode(reference)?.len);
        Ok(LazyValue(Inner::Apart { reference, len, reader, db }))
    }

    /// The bytes of the value. They stay until the cursor moves.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if it cannot be read (the cursor may go on to the next record), `Closed`, `Forked`.
    #[inline(always)]
    pub fn bytes(self) -> Result<&'a [u8]> {
        match self.0 {
            Inner::Here(bytes) => Ok(bytes),
            Inner::Apart { reference, reader, db, .. } => reader.read(reference, db),
        }
    }

    /// The length of the value, in bytes; known without reading it.
    #[inline(always)]
    pub fn len(&self) -> usize {
        match &self.0 {
            Inner::Here(bytes) => bytes.len(),
            Inner::Apart { len, .. } => *len,
        }
    }

    /// Whether the value has no bytes.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Reader {
    #[cold]
    fn read(&mut self, reference: &[u8], db: &Db) -> Result<&[u8]> {
        db.engine.life.check()?;
        // What was read ahead is filled anew only if nobody holds it.
        self.value = None;
        Ok(self.value.insert(self.ahead.read(&db.engine.values, reference)?))
    }
}

impl fmt::Debug for LazyValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LazyValue({} bytes)", self.len())
    }
}
