//! The declarations of shim/peer.h, which says what they mean.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

const ERROR_BYTES: usize = 240;
pub const CREATE: u32 = 1;
pub const DURABLE: u32 = 2;
pub const ASCENDING: u32 = 4;
pub const INDEXED: u32 = 8;
pub const FED: u32 = 16;

/// `bench_error`.
#[repr(C)]
pub struct RawError {
    /// Ends in a zero byte.
    pub text: [c_char; ERROR_BYTES],
}

/// `bench_open`.
#[repr(C)]
pub struct RawOpen {
    pub path: *const c_char,
    pub budget_bytes: u64,
    pub records: u64,
    pub raw_bytes: u64,
    pub flags: u32,
    pub lives_ms: u64,
}

/// `bench_bytes`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawBytes {
    pub at: *const u8,
    pub count: usize,
}

impl RawBytes {
    pub const NONE: Self = Self { at: ptr::null(), count: 0 };
}

/// `bench_seen`.
#[repr(C)]
#[derive(Default)]
pub struct RawSeen {
    pub records: u64,
    pub sum: u64,
}

/// `bench_range`.
#[repr(C)]
pub struct RawRange {
    pub from: *const u8,
    pub from_bytes: usize,
    pub limit: u64,
    pub down: c_int,
}

pub type GetsMany =
    unsafe extern "C" fn(*mut c_void, *const RawBytes, usize, *mut RawBytes, *mut RawError) -> c_int;
pub type OnHandle = unsafe extern "C" fn(*mut c_void, *mut RawError) -> c_int;
pub type Opens = unsafe extern "C" fn(*mut c_void, *mut RawError) -> *mut c_void;
pub type Frees = unsafe extern "C" fn(*mut c_void);

/// `bench_peer` of shim/peer.h.
#[repr(C)]
pub struct RawPeer {
    pub version: unsafe extern "C" fn() -> *const c_char,
    pub configuration: *const c_char,
    pub store_open: unsafe extern "C" fn(*const RawOpen, *mut RawError) -> *mut c_void,
    pub store_sync: OnHandle,
    pub store_settle: Option<OnHandle>,
    pub store_close: OnHandle,
    pub writer_open: Opens,
    pub begin: OnHandle,
    pub put: unsafe extern "C" fn(*mut c_void, *const u8, usize, *const u8, usize, *mut RawError) -> c_int,
    pub remove: unsafe extern "C" fn(*mut c_void, *const u8, usize, *mut RawError) -> c_int,
    pub commit: OnHandle,
    pub writer_close: Frees,
    pub reader_open: Opens,
    pub refresh: OnHandle,
    pub get: unsafe extern "C" fn(
        *mut c_void,
        *const u8,
        usize,
        *mut *const u8,
        *mut usize,
        *mut RawError,
    ) -> c_int,
    pub get_many: Option<GetsMany>,
    pub scan: unsafe extern "C" fn(*mut c_void, *mut RawSeen, *mut RawError) -> c_int,
    pub range:
        Option<unsafe extern "C" fn(*mut c_void, *const RawRange, *mut RawSeen, *mut RawError) -> c_int>,
    pub reader_close: Frees,
    pub find:
        Option<unsafe extern "C" fn(*mut c_void, *const u8, usize, *mut RawSeen, *mut RawError) -> c_int>,
    pub add: Option<unsafe extern "C" fn(*mut c_void, *const u8, usize, u64, *mut RawError) -> c_int>,
    pub changes_open: Option<Opens>,
    pub changes_take: Option<unsafe extern "C" fn(*mut c_void, u64, *mut RawSeen, *mut RawError) -> c_int>,
    pub changes_close: Option<Frees>,
    pub back_up: Option<unsafe extern "C" fn(*mut c_void, *const c_char, *mut RawError) -> c_int>,
    pub restore: Option<unsafe extern "C" fn(*const c_char, *const c_char, *mut RawError) -> c_int>,
}

// SAFETY: this is a constant of functions and of text that lives as long as the process.
unsafe impl Sync for RawPeer {}
