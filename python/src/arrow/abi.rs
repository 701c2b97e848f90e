//! The structures of Arrow's C data interface. The specification says who owns what. A structure belongs to
//! whoever holds it until its `release` is called. That happens once, in any thread.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

/// The names of capsules.
pub const SCHEMA: &CStr = c"arrow_schema";
/// See `SCHEMA`.
pub const ARRAY: &CStr = c"arrow_array";
/// See `SCHEMA`.
pub const STREAM: &CStr = c"arrow_array_stream";

/// The type of a column, and its name.
#[repr(C)]
pub struct Schema {
    /// The type, in the specification's letters.
    pub format: *const c_char,
    /// The name; may be null.
    pub name: *const c_char,
    /// Not used here.
    pub metadata: *const c_char,
    /// 2 if values may be null.
    pub flags: i64,
    /// How many parts a structure has.
    pub n_children: i64,
    /// Its parts.
    pub children: *mut *mut Schema,
    /// Not null where values are numbers of entries of a dictionary.
    pub dictionary: *mut Schema,
    /// Null if it was released.
    pub release: Option<unsafe extern "C" fn(*mut Schema)>,
    /// The producer's.
    pub private_data: *mut c_void,
}

/// The values of a column.
#[repr(C)]
pub struct Array {
    /// How many values there are.
    pub length: i64,
    /// How many of them are null; -1 if nobody has counted.
    pub null_count: i64,
    /// Where the values begin in the buffers.
    pub offset: i64,
    /// How many buffers there are.
    pub n_buffers: i64,
    /// How many parts a structure has.
    pub n_children: i64,
    /// The buffers.
    pub buffers: *const *const c_void,
    /// The parts.
    pub children: *mut *mut Array,
    /// The entries of a dictionary.
    pub dictionary: *mut Array,
    /// Null if it was released.
    pub release: Option<unsafe extern "C" fn(*mut Array)>,
    /// The producer's.
    pub private_data: *mut c_void,
}

/// Batches, one after the other.
#[repr(C)]
pub struct Stream {
    /// Gives the schema of all batches.
    pub get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int>,
    /// Gives the next batch; a released one at the end.
    pub get_next: Option<unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int>,
    /// Says what went wrong in the last call.
    pub get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    /// Null if it was released.
    pub release: Option<unsafe extern "C" fn(*mut Stream)>,
    /// The producer's.
    pub private_data: *mut c_void,
}

/// What the three structures have in common.
pub trait Released: Sized {
    /// A released one.
    fn empty() -> Self;
    /// Whether it was released, or moved elsewhere.
    fn is_released(&self) -> bool;
}

macro_rules! released {
    ($type:ident { $($field:ident: $value:expr),* }) => {
        impl Released for $type {
            fn empty() -> $type {
                $type { $($field: $value,)* release: None, private_data: ptr::null_mut() }
            }

            fn is_released(&self) -> bool {
                self.release.is_none()
            }
        }

        impl Drop for $type {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: it is not released yet, as was looked at, and belongs to the caller alone.
                    unsafe { release(self) }
                }
            }
        }

        // SAFETY: the specification lets any thread use and release it, one at a time.
        unsafe impl Send for $type {}
    };
}

released!(Schema {
    format: ptr::null(),
    name: ptr::null(),
    metadata: ptr::null(),
    flags: 0,
    n_children: 0,
    children: ptr::null_mut(),
    dictionary: ptr::null_mut()
});
released!(Array {
    length: 0,
    null_count: 0,
    offset: 0,
    n_buffers: 0,
    n_children: 0,
    buffers: ptr::null(),
    children: ptr::null_mut(),
    dictionary: ptr::null_mut()
});
released!(Stream { get_schema: None, get_next: None, get_last_error: None });

// SAFETY: through a shared reference it is only read, and nobody else changes it.
unsafe impl Sync for Schema {}
// SAFETY: as for `Schema`.
unsafe impl Sync for Array {}

/// Moves a structure out of its capsule.
pub fn taken<T: Released>(capsule: &Bound<'_, PyAny>, name: &'static CStr) -> PyResult<T> {
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(name))?.cast::<T>();
    // SAFETY: a capsule of this name has such a structure. The thread is attached, so no other takes it now.
    let value = unsafe { ptr::replace(pointer.as_ptr(), T::empty()) };
    if value.is_released() {
        return Err(PyValueError::new_err("the Arrow data were consumed before"));
    }
    Ok(value)
}

impl Stream {
    /// The schema of its batches.
    pub fn schema(&mut self) -> Result<Schema, String> {
        let mut schema = Schema::empty();
        let get = self.get_schema.ok_or("an Arrow stream without a schema")?;
        // SAFETY: the stream is not released, and `schema` has room for what it gives.
        let status = unsafe { get(self, &raw mut schema) };
        self.done(status)?;
        if schema.is_released() { Err("an Arrow stream without a schema".to_owned()) } else { Ok(schema) }
    }

    /// The next batch. None at the end.
    pub fn next(&mut self) -> Result<Option<Array>, String> {
        let mut array = Array::empty();
        let get = self.get_next.ok_or("an Arrow stream without batches")?;
        // SAFETY: as for the schema.
        let status = unsafe { get(self, &raw mut array) };
        self.done(status)?;
        Ok(if array.is_released() { None } else { Some(array) })
    }

    fn done(&mut self, status: c_int) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the stream is not released, and a call has just failed.
        let message = self.get_last_error.map(|last| unsafe { last(self) });
        match message.filter(|text| !text.is_null()) {
            // SAFETY: it is a C string that stays until the next call.
            Some(text) => Err(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()),
            None => Err(format!("the Arrow stream has failed with error {status}")),
        }
    }
}
