//! Records of a table as batches of two columns, `key` and `value`.

use super::abi::{Array, Released, Schema, Stream};
use crate::codec::{Codec, unescaped};
use crate::numbers::Number;
use azekura::{Cursor, Error};
use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// A batch ends early if it has so many bytes.
const BATCH_BYTES: usize = 16 << 20;
/// What the calls return if they fail: the system's EIO and EINVAL.
const FAILED: c_int = 5;
const WRONG_FORM: c_int = 22;

/// A column under construction.
enum Builder {
    Number(Number, Vec<u8>),
    Bool(Vec<u8>, usize),
    Bytes { is_text: bool, offsets: Vec<i64>, bytes: Vec<u8> },
    Struct(Vec<Builder>, usize),
}

impl Builder {
    fn of(codec: &Codec) -> Builder {
        match codec {
            Codec::Number(number) => Builder::Number(*number, Vec::new()),
            Codec::Bool => Builder::Bool(Vec::new(), 0),
            Codec::Str | Codec::Json => Builder::Bytes { is_text: true, offsets: vec![0], bytes: Vec::new() },
            Codec::Bytes | Codec::Pickle => {
                Builder::Bytes { is_text: false, offsets: vec![0], bytes: Vec::new() }
            }
            Codec::Tuple(parts) => Builder::Struct(parts.iter().map(Builder::of).collect(), 0),
        }
    }

    /// Adds a key. None if it is not of the type.
    fn push_key(&mut self, key: &[u8]) -> Option<()> {
        if let Builder::Bytes { .. } = self {
            return self.push_bytes(key);
        }
        let mut rest = key;
        self.push_part(&mut rest)?;
        rest.is_empty().then_some(())
    }

    /// Adds a value. None if it is not of the type.
    fn push_value(&mut self, value: &[u8]) -> Option<()> {
        match self {
            Builder::Number(number, column) => {
                number.push_native(number.value_bits(value)?, column);
                Some(())
            }
            _ => self.push_key(value),
        }
    }

    /// Adds the part of a tuple that stands first; `rest` becomes what follows it.
    fn push_part(&mut self, rest: &mut &[u8]) -> Option<()> {
        match self {
            Builder::Number(number, column) => {
                let (bits, after) = number.take_key(rest)?;
                number.push_native(bits, column);
                *rest = after;
            }
            Builder::Bool(bits, rows) => {
                let (&byte, after) = rest.split_first().filter(|(byte, _)| **byte <= 1)?;
                if *rows % 8 == 0 {
                    bits.push(0);
                }
                *bits.last_mut()? |= byte << (*rows % 8);
                *rows += 1;
                *rest = after;
            }
            Builder::Bytes { .. } => {
                let (part, after) = unescaped(rest)?;
                self.push_bytes(&part)?;
                *rest = after;
            }
            Builder::Struct(parts, rows) => {
                parts.iter_mut().try_for_each(|part| part.push_part(rest))?;
                *rows += 1;
            }
        }
        Some(())
    }

    fn push_bytes(&mut self, added: &[u8]) -> Option<()> {
        let Builder::Bytes { is_text, offsets, bytes } = self else { return None };
        if *is_text && std::str::from_utf8(added).is_err() {
            return None;
        }
        bytes.extend_from_slice(added);
        offsets.push(i64::try_from(bytes.len()).ok()?);
        Some(())
    }

    fn len(&self) -> usize {
        match self {
            Builder::Number(number, column) => column.len() / number.width(),
            Builder::Bool(_, rows) | Builder::Struct(_, rows) => *rows,
            Builder::Bytes { offsets, .. } => offsets.len() - 1,
        }
    }

    fn schema(&self, name: String) -> Schema {
        let (format, children) = match self {
            Builder::Number(number, _) => (number.arrow_format(), Vec::new()),
            Builder::Bool(..) => ("b", Vec::new()),
            Builder::Bytes { is_text: true, .. } => ("U", Vec::new()),
            Builder::Bytes { .. } => ("Z", Vec::new()),
            Builder::Struct(parts, _) => {
                ("+s", parts.iter().zip(0..).map(|(part, i)| part.schema(i.to_string())).collect())
            }
        };
        schema(format, name, children)
    }

    fn finish(self) -> Array {
        let rows = self.len();
        match self {
            Builder::Number(_, column) => array(rows, vec![Buffer::Bytes(column)], Vec::new()),
            Builder::Bool(bits, _) => array(rows, vec![Buffer::Bytes(bits)], Vec::new()),
            Builder::Bytes { offsets, bytes, .. } => {
                array(rows, vec![Buffer::Offsets(offsets), Buffer::Bytes(bytes)], Vec::new())
            }
            Builder::Struct(parts, _) => {
                array(rows, Vec::new(), parts.into_iter().map(Builder::finish).collect())
            }
        }
    }
}

/// What a schema points to.
struct SchemaOwner {
    format: CString,
    name: CString,
    children: Vec<*mut Schema>,
}

/// A type of these parts.
pub fn schema(format: &str, name: String, children: Vec<Schema>) -> Schema {
    let mut owner = Box::new(SchemaOwner {
        // Neither has a byte 0.
        format: CString::new(format).unwrap_or_default(),
        name: CString::new(name).unwrap_or_default(),
        children: children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect(),
    });
    let mut schema = Schema::empty();
    schema.format = owner.format.as_ptr();
    schema.name = owner.name.as_ptr();
    schema.n_children = i64::try_from(owner.children.len()).unwrap_or(0);
    schema.children = owner.children.as_mut_ptr();
    schema.release = Some(release_schema);
    schema.private_data = Box::into_raw(owner).cast();
    schema
}

unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: whoever calls it has a schema that was made above and not released, so its data are there.
    let owner = unsafe { Box::from_raw((*schema).private_data.cast::<SchemaOwner>()) };
    for child in owner.children {
        // SAFETY: it is a box of its own; dropping it releases it, unless it was moved elsewhere.
        drop(unsafe { Box::from_raw(child) });
    }
    // SAFETY: as above.
    unsafe { (*schema).release = None };
}

/// A buffer that somebody else reads.
pub enum Buffer {
    /// Values, or bits.
    Bytes(Vec<u8>),
    /// Where values begin, and the last one ends.
    Offsets(Vec<i64>),
    /// The same in 32 bits.
    ShortOffsets(Vec<i32>),
}

/// What an array points to.
struct ArrayOwner {
    /// Those to which `pointers` points.
    _buffers: Vec<Buffer>,
    pointers: Vec<*const c_void>,
    children: Vec<*mut Array>,
}

/// An array without nulls.
pub fn array(rows: usize, buffers: Vec<Buffer>, children: Vec<Array>) -> Array {
    array_with_nulls(rows, None, buffers, children)
}

/// An array. `validity` has the bits of rows that are not null, and how many are.
pub fn array_with_nulls(
    rows: usize,
    validity: Option<(Vec<u8>, i64)>,
    mut buffers: Vec<Buffer>,
    children: Vec<Array>,
) -> Array {
    let pointer = |buffer: &Buffer| match buffer {
        Buffer::Bytes(bytes) => bytes.as_ptr().cast::<c_void>(),
        Buffer::Offsets(offsets) => offsets.as_ptr().cast(),
        Buffer::ShortOffsets(offsets) => offsets.as_ptr().cast(),
    };
    let mut pointers: Vec<_> = std::iter::once(ptr::null()).chain(buffers.iter().map(pointer)).collect();
    let mut nulls = 0;
    if let Some((bits, count)) = validity {
        pointers[0] = bits.as_ptr().cast();
        nulls = count;
        buffers.push(Buffer::Bytes(bits));
    }
    let children = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
    let mut owner = Box::new(ArrayOwner { pointers, _buffers: buffers, children });
    let mut array = Array::empty();
    array.length = i64::try_from(rows).unwrap_or(0);
    array.null_count = nulls;
    array.n_buffers = i64::try_from(owner.pointers.len()).unwrap_or(0);
    array.n_children = i64::try_from(owner.children.len()).unwrap_or(0);
    array.buffers = owner.pointers.as_ptr();
    array.children = owner.children.as_mut_ptr();
    array.release = Some(release_array);
    array.private_data = Box::into_raw(owner).cast();
    array
}

unsafe extern "C" fn release_array(array: *mut Array) {
    // SAFETY: whoever calls it has an array that was made above and not released, so its data are there.
    let owner = unsafe { Box::from_raw((*array).private_data.cast::<ArrayOwner>()) };
    for child in owner.children {
        // SAFETY: it is a box of its own; dropping it releases it, unless it was moved elsewhere.
        drop(unsafe { Box::from_raw(child) });
    }
    // SAFETY: as above.
    unsafe { (*array).release = None };
}

/// A stream of a table's records.
pub struct Producer {
    /// None after the end.
    pub cursor: Option<Cursor>,
    /// The encoding of keys.
    pub keys: Codec,
    /// The encoding of values.
    pub values: Codec,
    /// How many records a batch has, but for the last.
    pub batch_size: usize,
    /// What went wrong in the last call.
    pub failed: Option<CString>,
}

/// The schema of a table's batches.
pub fn schema_of(keys: &Codec, values: &Codec) -> Schema {
    let parts = [(keys, "key"), (values, "value")];
    let children = parts.map(|(codec, name)| Builder::of(codec).schema(name.to_owned()));
    schema("+s", String::new(), children.into())
}

impl Producer {
    /// As a stream for others.
    pub fn stream(self) -> Stream {
        let mut stream = Stream::empty();
        stream.get_schema = Some(get_schema);
        stream.get_next = Some(get_next);
        stream.get_last_error = Some(get_last_error);
        stream.release = Some(release_stream);
        stream.private_data = Box::into_raw(Box::new(self)).cast();
        stream
    }

    /// The next batch. A released one at the end.
    fn next(&mut self) -> azekura::Result<Array> {
        let (mut keys, mut values) = (Builder::of(&self.keys), Builder::of(&self.values));
        let (mut rows, mut bytes) = (0, 0);
        while rows < self.batch_size && bytes < BATCH_BYTES {
            let Some(cursor) = &mut self.cursor else { break };
            let Some((key, value)) = cursor.next()? else {
                // Frees what it holds of the file.
                self.cursor = None;
                break;
            };
            let value = value.bytes()?;
            let wrong =
                |codec: &Codec| Error::WrongType { detail: format!("a record is no {}", codec.name()) };
            keys.push_key(key).ok_or_else(|| wrong(&self.keys))?;
            values.push_value(value).ok_or_else(|| wrong(&self.values))?;
            rows += 1;
            bytes += key.len() + value.len();
        }
        match rows {
            0 => Ok(Array::empty()),
            _ => Ok(array(rows, Vec::new(), vec![keys.finish(), values.finish()])),
        }
    }

    /// Calls `f`. What it returns is written to `out`; an error, or a panic, is kept for whoever asks.
    ///
    /// # Safety
    /// `stream` must be one that was made here and not released, and `out` have room.
    unsafe fn answer<T>(
        stream: *mut Stream,
        out: *mut T,
        f: impl FnOnce(&mut Producer) -> azekura::Result<T>,
    ) -> c_int {
        // SAFETY: the caller has such a stream, alone, so its producer is there.
        let producer = unsafe { &mut *(*stream).private_data.cast::<Producer>() };
        let done = catch_unwind(AssertUnwindSafe(|| f(producer)));
        let (message, status) = match done {
            Ok(Ok(value)) => {
                // SAFETY: the caller has room for it, with nothing that must be dropped.
                unsafe { out.write(value) };
                return 0;
            }
            Ok(Err(error)) => {
                let status = if matches!(error, Error::WrongType { .. }) { WRONG_FORM } else { FAILED };
                (error.to_string(), status)
            }
            Err(_) => ("azekura has panicked".to_owned(), FAILED),
        };
        // An error ends the stream.
        producer.cursor = None;
        producer.failed = CString::new(message).ok();
        status
    }
}

unsafe extern "C" fn get_schema(stream: *mut Stream, out: *mut Schema) -> c_int {
    // SAFETY: whoever calls a stream's function passes the stream, and room.
    unsafe { Producer::answer(stream, out, |producer| Ok(schema_of(&producer.keys, &producer.values))) }
}

unsafe extern "C" fn get_next(stream: *mut Stream, out: *mut Array) -> c_int {
    // SAFETY: whoever calls a stream's function passes the stream, and room.
    unsafe { Producer::answer(stream, out, Producer::next) }
}

unsafe extern "C" fn get_last_error(stream: *mut Stream) -> *const c_char {
    // SAFETY: whoever calls a stream's function passes the stream.
    let producer = unsafe { &*(*stream).private_data.cast::<Producer>() };
    producer.failed.as_ref().map_or(ptr::null(), |text| text.as_ptr())
}

unsafe extern "C" fn release_stream(stream: *mut Stream) {
    // SAFETY: whoever calls it has a stream that was made here and not released, so its producer is there.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<Producer>()));
        (*stream).release = None;
    }
}
