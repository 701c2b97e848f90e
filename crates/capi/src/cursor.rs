//! Moving a cursor, and the value of its current record, which is read when the caller asks for it.

use crate::arguments::{ResultPlace, azk_bytes};
use crate::call::{Caller, call};
use crate::handles::azk_cursor;
use crate::slots::{end, owned};
use crate::status::azk_status::{AZK_NOT_FOUND, AZK_OK};
use crate::status::{Outcome, azk_status};
use azekura::{Cursor, Error, LazyValue};
use std::ffi::c_void;
use std::ptr::NonNull;

/// What a cursor's handle holds.
pub(crate) struct Walk {
    /// From a box. `value` borrows from it, so nobody may move or use it meanwhile.
    cursor: NonNull<Cursor>,
    value: Value,
}

/// The value of the record that was returned last.
enum Value {
    /// There is no such record.
    Absent,
    /// Nobody has asked for the value yet. It borrows from `cursor`.
    Lazy(LazyValue<'static>),
    /// The value was read, and stays until the cursor moves.
    Read(azk_bytes),
    /// The value cannot be read.
    Failed(Box<Error>),
}

impl Value {
    #[inline(always)]
    fn of(value: LazyValue<'_>) -> Value {
        match value.bytes() {
            Ok(bytes) => Value::Read(azk_bytes::of(bytes)),
            Err(error) => Value::Failed(Box::new(error)),
        }
    }
}

const fn is_send<T: Send>() {}
const _: () = is_send::<Cursor>();
const _: () = is_send::<LazyValue<'static>>();

// SAFETY: only this walk has the cursor. Cursor and value may both go to other threads (see the lines above),
// and the bytes that were read belong to the cursor.
unsafe impl Send for Walk {}

impl Walk {
    pub(crate) fn new(cursor: Cursor) -> Walk {
        Walk { cursor: NonNull::from(Box::leak(Box::new(cursor))), value: Value::Absent }
    }

    /// The cursor. Drops the value, so that nothing borrows from the cursor.
    fn cursor(&mut self) -> &mut Cursor {
        self.value = Value::Absent;
        // SAFETY: the cursor is in a box that `drop` takes back. The only borrow of it that outlives a call
        // was in `value`.
        unsafe { self.cursor.as_mut() }
    }

    /// Goes to the next or the previous record. Reads its value if `reads`. Sets `key`, and `value` to what
    /// was read. Both come as they were found: reading back what was just stored would wait for the store.
    #[inline(always)]
    fn step(
        &mut self,
        forward: bool,
        key_place: &mut ResultPlace<azk_bytes>,
        value_place: Option<ResultPlace<azk_bytes>>,
    ) -> Outcome<azk_status> {
        let cursor = self.cursor();
        let Some((key, value)) = (if forward { cursor.next()? } else { cursor.prev()? }) else {
            return Ok(AZK_NOT_FOUND);
        };
        key_place.set(azk_bytes::of(key));
        if let Some(mut place) = value_place {
            return match value.bytes() {
                Ok(bytes) => {
                    let bytes = azk_bytes::of(bytes);
                    place.set(bytes);
                    self.value = Value::Read(bytes);
                    Ok(AZK_OK)
                }
                Err(error) => {
                    self.value = Value::Failed(Box::new(error.clone()));
                    Err(error.into())
                }
            };
        }
        // SAFETY: only the lifetime changes. The value borrows from the box, which does not move until
        // `drop`. Both `cursor` and `drop` drop the value before anything else is done with the box.
        let value = unsafe { std::mem::transmute::<LazyValue<'_>, LazyValue<'static>>(value) };
        self.value = Value::Lazy(value);
        Ok(AZK_OK)
    }

    /// The next record, whose bytes stay until the cursor moves or is freed.
    #[inline(always)]
    pub(crate) fn record(&mut self) -> Outcome<Option<(azk_bytes, azk_bytes)>> {
        let Some((key, value)) = self.cursor().next()? else { return Ok(None) };
        let (key, value) = (azk_bytes::of(key), azk_bytes::of(value.bytes()?));
        self.value = Value::Read(value);
        Ok(Some((key, value)))
    }

    /// The value, which is read now if it was not before.
    fn value(&mut self) -> Outcome<Option<azk_bytes>> {
        self.value = match std::mem::replace(&mut self.value, Value::Absent) {
            Value::Lazy(value) => Value::of(value),
            other => other,
        };
        match &self.value {
            Value::Read(bytes) => Ok(Some(*bytes)),
            Value::Failed(error) => Err(Error::clone(error).into()),
            Value::Absent | Value::Lazy(_) => Ok(None),
        }
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        self.value = Value::Absent;
        // SAFETY: it is from the box that `new` has made, and nothing borrows from it any more.
        drop(unsafe { Box::from_raw(self.cursor.as_ptr()) });
    }
}

/// A step in either direction.
#[inline(always)]
fn step(
    c: Caller,
    cursor: *mut azk_cursor,
    forward: bool,
    key: *mut azk_bytes,
    value: *mut azk_bytes,
) -> azk_status {
    c.call(move |c| {
        let mut key = c.place(key, "key")?;
        let value = c.optional_place(value, "value")?;
        owned(cursor)?.step(forward, &mut key, value)
    })
}

/// Goes to the next record and gives its key and value, which stay until the cursor moves or is freed. If
/// `value` is NULL the value is not read; azk_cursor_value_len and azk_cursor_value give it later. After the
/// last record every call gives AZK_NOT_FOUND. If the value cannot be read, *key is set, and the cursor can
/// go on. Errors: AZK_NOT_FOUND, AZK_CORRUPT, AZK_IO, AZK_CLOSED, AZK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_cursor_next(
    cursor: *mut azk_cursor,
    key: *mut azk_bytes,
    value: *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    step(unsafe { Caller::trusted() }, cursor, true, key, value)
}

/// Goes to the previous record and gives its key and value, as azk_cursor_next. A cursor stands between
/// records: after azk_cursor_next this gives the same record again, and the other way round. Errors: as
/// azk_cursor_next.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_cursor_prev(
    cursor: *mut azk_cursor,
    key: *mut azk_bytes,
    value: *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    step(unsafe { Caller::trusted() }, cursor, false, key, value)
}

/// The value of the record that was given last. It is read now if it was not before. It stays until the
/// cursor moves or is freed. Errors: AZK_NOT_FOUND if there is no such record, AZK_CORRUPT, AZK_IO,
/// AZK_CLOSED, AZK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_cursor_value(cursor: *mut azk_cursor, value: *mut azk_bytes) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let mut value = c.place(value, "value")?;
        let Some(bytes) = owned(cursor)?.value()? else { return Ok(AZK_NOT_FOUND) };
        value.set(bytes);
        Ok(AZK_OK)
    })
}

/// The length of the value of the record that was given last, without reading it. Errors: AZK_NOT_FOUND if
/// there is no such record; as azk_cursor_value if the value was read before and that failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_cursor_value_len(cursor: *mut azk_cursor, len: *mut usize) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let mut len = c.place(len, "len")?;
        let walk = owned(cursor)?;
        len.set(match &walk.value {
            Value::Absent => return Ok(AZK_NOT_FOUND),
            Value::Lazy(value) => value.len(),
            Value::Read(bytes) => bytes.len,
            Value::Failed(error) => return Err(Error::clone(error).into()),
        });
        Ok(AZK_OK)
    })
}

/// Goes to a key: azk_cursor_next then gives the first record at or above it, azk_cursor_prev the last record
/// below. Ordered tables only. Errors: AZK_WRONG_TYPE for a hash table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_cursor_seek(
    cursor: *mut azk_cursor,
    key: *const c_void,
    key_len: usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        Ok(owned(cursor)?.cursor().seek(key)?)
    })
}

/// Goes before the first record. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_cursor_seek_first(cursor: *mut azk_cursor) -> azk_status {
    call(move || {
        owned(cursor)?.cursor().seek_first();
        Ok(AZK_OK)
    })
}

/// Goes after the last record. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_cursor_seek_last(cursor: *mut azk_cursor) -> azk_status {
    call(move || {
        owned(cursor)?.cursor().seek_last();
        Ok(AZK_OK)
    })
}

/// Frees a cursor. NULL is allowed. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_cursor_free(cursor: *mut azk_cursor) -> azk_status {
    call(move || {
        if !cursor.is_null() {
            end(cursor)?;
        }
        Ok(AZK_OK)
    })
}
