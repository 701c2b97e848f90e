//! What callers pass: bytes, names, choices, and places for results. Each is checked before it is used.

use crate::call::Caller;
use crate::status::azk_status::{AZK_BUFFER_TOO_SMALL, AZK_OK};
use crate::status::{Outcome, azk_status, invalid};
use std::ffi::{CStr, c_char, c_void};
use std::ops::Bound;
use std::ptr::{NonNull, null};

/// Bytes that are somewhere else. `data` may be NULL if `len` is 0.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct azk_bytes {
    /// The first byte.
    pub data: *const c_void,
    /// How many bytes there are.
    pub len: usize,
}

impl azk_bytes {
    /// No bytes, and no pointer.
    pub(crate) const NONE: azk_bytes = azk_bytes { data: null(), len: 0 };

    pub(crate) fn of(bytes: &[u8]) -> azk_bytes {
        azk_bytes { data: bytes.as_ptr().cast(), len: bytes.len() }
    }
}

/// A place for a result.
pub(crate) struct ResultPlace<T>(NonNull<T>);

impl<T> ResultPlace<T> {
    #[inline(always)]
    pub(crate) fn set(&mut self, value: T) {
        // SAFETY: `Caller::place` has checked the pointer, and the caller answers for the room behind it.
        unsafe { self.0.write(value) }
    }
}

/// A buffer for a copy of a value.
pub(crate) struct Buffer {
    at: *mut u8,
    capacity: usize,
    len: ResultPlace<usize>,
}

impl Buffer {
    /// Sets the value's length, and copies the value if there is room.
    #[inline(always)]
    pub(crate) fn fill(&mut self, value: &[u8]) -> azk_status {
        self.len.set(value.len());
        if value.len() > self.capacity {
            return AZK_BUFFER_TOO_SMALL;
        }
        // SAFETY: `Caller::buffer` has checked that the buffer is not NULL if it has room, and the caller
        // answers for that room. The buffer is the caller's memory, so it does not overlap a value of the
        // engine.
        unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), self.at, value.len()) };
        AZK_OK
    }
}

/// The keys from `from` on and below `to`.
pub(crate) struct Span<'a> {
    pub(crate) from: Option<&'a [u8]>,
    pub(crate) to: Option<&'a [u8]>,
}

impl<'a> Span<'a> {
    pub(crate) fn is_whole(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    pub(crate) fn start(&self) -> Bound<&'a [u8]> {
        self.from.map_or(Bound::Unbounded, Bound::Included)
    }

    pub(crate) fn end(&self) -> Bound<&'a [u8]> {
        self.to.map_or(Bound::Unbounded, Bound::Excluded)
    }
}

impl Caller {
    /// Bytes of the caller.
    #[inline(always)]
    pub(crate) fn bytes<'a>(self, data: *const c_void, len: usize, what: &str) -> Outcome<&'a [u8]> {
        if len == 0 {
            return Ok(&[]);
        }
        if data.is_null() || isize::try_from(len).is_err() {
            return Err(refuse_bytes(data, len, what));
        }
        // SAFETY: the pointer is not NULL, and memory can have that length. The caller answers for the bytes.
        Ok(unsafe { std::slice::from_raw_parts(data.cast(), len) })
    }

    /// Bytes that may be left out by a NULL pointer.
    pub(crate) fn optional<'a>(self, bytes: *const azk_bytes, what: &str) -> Outcome<Option<&'a [u8]>> {
        if bytes.is_null() {
            return Ok(None);
        }
        let &[azk_bytes { data, len }] = self.array(bytes, 1, what)? else { return Ok(None) };
        self.bytes(data, len, what).map(Some)
    }

    /// The two ends of a range.
    pub(crate) fn span<'a>(self, from: *const azk_bytes, to: *const azk_bytes) -> Outcome<Span<'a>> {
        Ok(Span { from: self.optional(from, "from")?, to: self.optional(to, "to")? })
    }

    /// An array of the caller.
    pub(crate) fn array<'a, T: Copy>(self, first: *const T, count: usize, what: &str) -> Outcome<&'a [T]> {
        if count == 0 {
            return Ok(&[]);
        }
        let bytes = count.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok());
        if first.is_null() || !first.is_aligned() || bytes.is_none() {
            return Err(refuse_array(first.cast(), count, what));
        }
        // SAFETY: the pointer is not NULL and is aligned, and memory can have that length. The caller answers
        // for the rest.
        Ok(unsafe { std::slice::from_raw_parts(first, count) })
    }

    /// Several keys or values.
    pub(crate) fn many<'a>(self, all: *const azk_bytes, count: usize, what: &str) -> Outcome<Vec<&'a [u8]>> {
        self.array(all, count, what)?.iter().map(|one| self.bytes(one.data, one.len, what)).collect()
    }

    /// Text that ends with a zero byte.
    pub(crate) fn c_str<'a>(self, text: *const c_char, what: &str) -> Outcome<&'a CStr> {
        if text.is_null() {
            return Err(invalid(format!("{what} is NULL")));
        }
        // SAFETY: the pointer is not NULL. The caller answers for the zero byte at the end.
        Ok(unsafe { CStr::from_ptr(text) })
    }

    /// Text in UTF-8.
    pub(crate) fn text<'a>(self, text: *const c_char, what: &str) -> Outcome<&'a str> {
        let text = self.c_str(text, what)?;
        text.to_str().map_err(|error| invalid(format!("{what} is not UTF-8: {error}")))
    }

    /// A place for a result. NULL is refused.
    #[inline(always)]
    pub(crate) fn place<T>(self, out: *mut T, what: &str) -> Outcome<ResultPlace<T>> {
        match NonNull::new(out) {
            Some(place) if out.is_aligned() => Ok(ResultPlace(place)),
            _ => Err(refuse_place(out.is_null(), what)),
        }
    }

    /// A place for a result that the caller may leave out.
    pub(crate) fn optional_place<T>(self, out: *mut T, what: &str) -> Outcome<Option<ResultPlace<T>>> {
        if out.is_null() { Ok(None) } else { self.place(out, what).map(Some) }
    }

    /// A place for a new handle. It is set to NULL until there is one.
    pub(crate) fn handle_place<H>(self, out: *mut *mut H) -> Outcome<ResultPlace<*mut H>> {
        let mut place = self.place(out, "the place for the new handle")?;
        place.set(std::ptr::null_mut());
        Ok(place)
    }

    /// A buffer for a copy of a value, and a place for its length.
    #[inline(always)]
    pub(crate) fn buffer(self, at: *mut c_void, capacity: usize, len: *mut usize) -> Outcome<Buffer> {
        if at.is_null() && capacity > 0 {
            return Err(refuse_bytes(at, capacity, "buffer"));
        }
        // Copying zero bytes needs a valid pointer too.
        let at = if at.is_null() { NonNull::dangling().as_ptr() } else { at.cast() };
        let mut len = self.place(len, "len")?;
        len.set(0);
        Ok(Buffer { at, capacity, len })
    }
}

#[cold]
fn refuse_bytes(data: *const c_void, len: usize, what: &str) -> crate::status::Failure {
    if data.is_null() {
        invalid(format!("{what} is NULL, and its length is {len}"))
    } else {
        invalid(format!("the length of {what} is {len}, which is more than memory can have"))
    }
}

#[cold]
fn refuse_array(first: *const c_void, count: usize, what: &str) -> crate::status::Failure {
    if first.is_null() {
        invalid(format!("{what} is NULL, and there are to be {count}"))
    } else {
        invalid(format!(
            "{what} at {first:p}, {count} of them: that is not aligned, or more than memory can have"
        ))
    }
}

#[cold]
fn refuse_place(is_null: bool, what: &str) -> crate::status::Failure {
    invalid(format!("{what} is {}", if is_null { "NULL" } else { "not aligned" }))
}
