//! The value of a record that a cursor has come to.

use super::Direction;
use super::source::CursorSource;
use crate::base::codec::usize_of;
use crate::base::error::{Error, Result};
use crate::base::prefetch::{LINE_BYTES, prefetch_line};
use crate::engine::Engine;
use crate::format::expiry::Expiry;
use crate::format::operand::FoldedBytes;
use crate::values::ahead::ReadAhead;
use crate::values::{LargeValue, ValuePointer};
use std::fmt;
use std::time::{Duration, Instant};

/// A read of a value that takes longer has waited for the disk.
const WAITED: Duration = Duration::from_micros(20);

/// From this size on, reading a value asks the processor for the next one. Smaller ones come without.
const AHEAD_BYTES_MIN: usize = 256;
/// For so much of it, at most.
const AHEAD_BYTES_MAX: usize = 1 << 10;

/// The value of a record of a [`Cursor`](super::Cursor), which is read when its bytes are asked for.
///
/// A small value stands beside its key. A large one stands apart: until [`bytes`](LazyValue::bytes) is called
/// nothing of it is read, so that a walk over keys costs the same however large the values are.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-lazy-{}.azk", std::process::id()));
/// use azekura::{Db, Options, TableKind};
/// let db = Db::open(&path, Options::new())?;
/// let t = db.table("t", TableKind::Ordered)?;
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
    /// Beside its key. Who reads it likely goes on this way.
    Here(&'a [u8], Direction),
    /// Operands have made it.
    Made(&'a [u8]),
    /// It cannot be had.
    Failed(&'a Error),
    /// In a value segment; the first source has the reference.
    Apart { sources: Sources<'a>, len: usize, reader: &'a mut Reader, engine: &'a Engine },
}

/// The sources of a cursor, and which of them is first.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) all: &'a [CursorSource],
    pub(super) front: usize,
}

/// What a cursor reads large values with.
#[derive(Default)]
pub(super) struct Reader {
    ahead: ReadAhead,
    /// How many of the values to come the system was asked to read.
    asked: usize,
    /// The one that was given out last.
    value: Option<LargeValue>,
}

/// What was folded for the record given out last.
pub(super) struct FoldedValue(std::result::Result<(FoldedBytes, Expiry), Error>);

impl Default for FoldedValue {
    fn default() -> FoldedValue {
        FoldedValue(Ok((FoldedBytes::Number([0; 8]), Expiry::NEVER)))
    }
}

impl FoldedValue {
    pub(super) fn new(folded: std::result::Result<(FoldedBytes, Expiry), Error>) -> FoldedValue {
        FoldedValue(folded)
    }

    fn get(&self) -> std::result::Result<&[u8], &Error> {
        self.0.as_ref().map(|(value, _)| &**value)
    }

    pub(super) fn expiry(&self) -> Expiry {
        self.0.as_ref().map_or(Expiry::NEVER, |(_, expiry)| *expiry)
    }
}

impl<'a> LazyValue<'a> {
    #[inline(always)]
    pub(super) fn here(bytes: &'a [u8], to: Direction) -> LazyValue<'a> {
        LazyValue(Inner::Here(bytes, to))
    }

    /// What operands have made.
    pub(super) fn folded(value: &'a FoldedValue) -> LazyValue<'a> {
        match value.get() {
            Ok(bytes) => LazyValue(Inner::Made(bytes)),
            Err(e) => LazyValue(Inner::Failed(e)),
        }
    }

    /// `engine` is the one behind the cursor's state.
    pub(super) fn apart(
        sources: Sources<'a>,
        reader: &'a mut Reader,
        engine: &'a Engine,
    ) -> Result<LazyValue<'a>> {
        let len = usize_of(ValuePointer::decode(sources.reference())?.len);
        Ok(LazyValue(Inner::Apart { sources, len, reader, engine }))
    }

    /// The bytes of the value. They stay until the cursor moves.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if it cannot be read (the cursor may go on to the next record), `Closed`, `Forked`;
    /// `WrongType` if what was [merged](crate::Table::merge) into a value does not suit it.
    #[inline(always)]
    pub fn bytes(self) -> Result<&'a [u8]> {
        match self.0 {
            Inner::Here(bytes, to) => {
                if bytes.len() >= AHEAD_BYTES_MIN {
                    prefetch_next(bytes, to);
                }
                Ok(bytes)
            }
            Inner::Made(bytes) => Ok(bytes),
            Inner::Failed(e) => Err(e.clone()),
            Inner::Apart { sources, reader, engine, .. } => reader.read(sources, engine),
        }
    }

    /// The length of the value, in bytes; known without reading it.
    #[inline(always)]
    pub fn len(&self) -> usize {
        match &self.0 {
            Inner::Here(bytes, _) | Inner::Made(bytes) => bytes.len(),
            Inner::Failed(_) => 0,
            Inner::Apart { len, .. } => *len,
        }
    }

    /// Whether the value has no bytes.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Asks the processor for what stands beside a value, as much as that has: likely the next one. Else it would
/// be waited for at the start of each value and of each 4 KiB. (It may be anything. A prefetch may have any
/// address.)
#[inline(never)]
fn prefetch_next(value: &[u8], to: Direction) {
    let len = value.len().min(AHEAD_BYTES_MAX);
    let from = match to {
        Direction::Forward => value.as_ptr().wrapping_add(value.len()),
        Direction::Backward => value.as_ptr().wrapping_sub(len),
    };
    for at in (0..len).step_by(LINE_BYTES) {
        prefetch_line(from.wrapping_add(at));
    }
}

impl Reader {
    /// The cursor goes elsewhere.
    pub(super) fn turn_away(&mut self) {
        self.asked = 0;
    }

    #[cold]
    fn read(&mut self, sources: Sources<'_>, engine: &Engine) -> Result<&[u8]> {
        engine.life.check()?;
        // What was read ahead is filled anew only if nobody holds it.
        self.value = None;
        let began = Instant::now();
        let value = self.ahead.read(&engine.values, sources.reference())?;
        if self.asked > 0 {
            self.asked -= 1;
        } else if began.elapsed() > WAITED {
            // If one value comes from the disk, those after it do too.
            let next = sources.all.iter().flat_map(CursorSource::next_references);
            self.asked = engine.values.will_read(next);
        }
        Ok(self.value.insert(value))
    }
}

impl Sources<'_> {
    /// The value of the record at which the first source stands.
    fn reference(&self) -> &[u8] {
        self.all[self.front].value()
    }
}

impl fmt::Debug for LazyValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LazyValue({} bytes)", self.len())
    }
}
