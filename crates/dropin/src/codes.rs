//! The constants, and the types that are only data.

use std::ffi::{CStr, c_char, c_void};

/// No error.
pub const KCESUCCESS: i32 = 0;
/// The kind of database cannot do this.
pub const KCENOIMPL: i32 = 1;
/// The call has no meaning: the database is not open, or an argument is wrong.
pub const KCEINVALID: i32 = 2;
/// There is no such file.
pub const KCENOREPOS: i32 = 3;
/// The database was opened for reading, or others have it open.
pub const KCENOPERM: i32 = 4;
/// The file is damaged, or no database of Azekura.
pub const KCEBROKEN: i32 = 5;
/// There is such a record already.
pub const KCEDUPREC: i32 = 6;
/// There is no such record.
pub const KCENOREC: i32 = 7;
/// What is there is not what the call needs.
pub const KCELOGIC: i32 = 8;
/// The system refused.
pub const KCESYSTEM: i32 = 9;
/// Anything else.
pub const KCEMISC: i32 = 15;

/// Open for reading.
pub const KCOREADER: u32 = 1;
/// Open for reading and writing.
pub const KCOWRITER: u32 = 1 << 1;
/// Make the file if there is none.
pub const KCOCREATE: u32 = 1 << 2;
/// Remove what is in the file.
pub const KCOTRUNCATE: u32 = 1 << 3;
/// Every update is a transaction. Azekura's always are.
pub const KCOAUTOTRAN: u32 = 1 << 4;
/// Every update is durable when its call returns.
pub const KCOAUTOSYNC: u32 = 1 << 5;
/// Do not wait for the file's lock. The lock is taken all the same.
pub const KCONOLOCK: u32 = 1 << 6;
/// Do not wait for the file's lock.
pub const KCOTRYLOCK: u32 = 1 << 7;
/// Do not repair. Azekura never needs to.
pub const KCONOREPAIR: u32 = 1 << 8;

/// Merge: what comes replaces what is there.
pub const KCMSET: u32 = 0;
/// Merge: what is there stays.
pub const KCMADD: u32 = 1;
/// Merge: what comes replaces what is there, and nothing new is made.
pub const KCMREPLACE: u32 = 2;
/// Merge: what comes is appended to what is there.
pub const KCMAPPEND: u32 = 3;

/// A database object.
#[repr(C)]
pub struct KCDB {
    /// Of the library.
    pub(crate) db: *mut c_void,
}

/// A cursor.
#[repr(C)]
pub struct KCCUR {
    /// Of the library.
    pub(crate) cur: *mut c_void,
}

/// A database of an index.
#[repr(C)]
pub struct KCIDX {
    /// Of the library.
    pub(crate) db: *mut c_void,
}

/// Bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct KCSTR {
    /// The first.
    pub buf: *mut c_char,
    /// How many there are.
    pub size: usize,
}

/// A record.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct KCREC {
    /// Its key.
    pub key: KCSTR,
    /// Its value.
    pub value: KCSTR,
}

/// Called with a record that is there. It returns the new value and sets *new_len to its length, or returns
/// KCVISNOP to leave the record, or KCVISREMOVE to remove it.
pub type KCVISITFULL = Option<
    unsafe extern "C" fn(
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
        new_len: *mut usize,
        opaque: *mut c_void,
    ) -> *const c_char,
>;

/// Called with the key of a record that is not there. It returns the value of a new record and sets *new_len
/// to its length, or returns KCVISNOP or KCVISREMOVE to make none.
pub type KCVISITEMPTY = Option<
    unsafe extern "C" fn(
        key: *const c_char,
        key_len: usize,
        new_len: *mut usize,
        opaque: *mut c_void,
    ) -> *const c_char,
>;

/// Called with the path of a database, its records, and the bytes of its file. Returns 0 if it fails.
pub type KCFILEPROC =
    Option<unsafe extern "C" fn(path: *const c_char, count: i64, size: i64, opaque: *mut c_void) -> i32>;

/// A pointer to constant text.
#[repr(transparent)]
pub struct Constant(*const c_char);

// SAFETY: what it points to never changes.
unsafe impl Sync for Constant {}

impl Constant {
    const fn of(text: &'static CStr) -> Constant {
        Constant(text.as_ptr())
    }

    /// Whether a visitor has returned this.
    pub(crate) fn is(&self, answer: *const c_char) -> bool {
        std::ptr::eq(self.0, answer)
    }
}

/// The version of Kyoto Cabinet whose functions these are.
#[unsafe(no_mangle)]
pub static KCVERSION: Constant = Constant::of(c"1.2.79");

/// What a visitor returns to leave a record as it is.
#[unsafe(no_mangle)]
pub static KCVISNOP: Constant = Constant::of(c"(leave)");

/// What a visitor returns to remove a record.
#[unsafe(no_mangle)]
pub static KCVISREMOVE: Constant = Constant::of(c"(remove)");
