//! The Rust mirror of shim/peer.h, and the function tables of the libraries that build.rs found.

use super::engines::Engine;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

pub(super) const ERROR_BYTES: usize = 240;
pub(super) const CREATE: u32 = 1;
pub(super) const DURABLE: u32 = 2;
pub(super) const ASCENDING: u32 = 4;
pub(super) const INDEXED: u32 = 8;

#[repr(C)]
pub(super) struct RawError {
    pub(super) text: [c_char; ERROR_BYTES],
}

#[repr(C)]
pub(super) struct RawOpen {
    pub(super) path: *const c_char,
    pub(super) budget_bytes: u64,
    pub(super) records: u64,
    pub(super) raw_bytes: u64,
    pub(super) flags: u32,
}

/// `bench_bytes`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawBytes {
    pub(super) at: *const u8,
    pub(super) count: usize,
}

impl RawBytes {
    pub(super) const NONE: Self = Self { at: ptr::null(), count: 0 };
}

/// `bench_seen`.
#[repr(C)]
#[derive(Default)]
pub(super) struct RawSeen {
    pub(super) records: u64,
    pub(super) sum: u64,
}

#[repr(C)]
pub(super) struct RawRange {
    pub(super) from: *const u8,
    pub(super) from_bytes: usize,
    pub(super) limit: u64,
    pub(super) down: c_int,
}

pub(super) type GetsMany =
    unsafe extern "C" fn(*mut c_void, *const RawBytes, usize, *mut RawBytes, *mut RawError) -> c_int;
pub(super) type OnHandle = unsafe extern "C" fn(*mut c_void, *mut RawError) -> c_int;
pub(super) type Opens = unsafe extern "C" fn(*mut c_void, *mut RawError) -> *mut c_void;
pub(super) type Frees = unsafe extern "C" fn(*mut c_void);

/// `bench_peer` of shim/peer.h.
#[repr(C)]
pub struct RawPeer {
    pub(super) version: unsafe extern "C" fn() -> *const c_char,
    pub(super) configuration: *const c_char,
    pub(super) store_open: unsafe extern "C" fn(*const RawOpen, *mut RawError) -> *mut c_void,
    pub(super) store_sync: OnHandle,
    pub(super) store_settle: Option<OnHandle>,
    pub(super) store_close: OnHandle,
    pub(super) writer_open: Opens,
    pub(super) begin: OnHandle,
    pub(super) put:
        unsafe extern "C" fn(*mut c_void, *const u8, usize, *const u8, usize, *mut RawError) -> c_int,
    pub(super) remove: unsafe extern "C" fn(*mut c_void, *const u8, usize, *mut RawError) -> c_int,
    pub(super) commit: OnHandle,
    pub(super) writer_close: Frees,
    pub(super) reader_open: Opens,
    pub(super) refresh: OnHandle,
    pub(super) get: unsafe extern "C" fn(
        *mut c_void,
        *const u8,
        usize,
        *mut *const u8,
        *mut usize,
        *mut RawError,
    ) -> c_int,
    pub(super) get_many: Option<GetsMany>,
    pub(super) scan: unsafe extern "C" fn(*mut c_void, *mut RawSeen, *mut RawError) -> c_int,
    pub(super) range:
        Option<unsafe extern "C" fn(*mut c_void, *const RawRange, *mut RawSeen, *mut RawError) -> c_int>,
    pub(super) reader_close: Frees,
    pub(super) find:
        Option<unsafe extern "C" fn(*mut c_void, *const u8, usize, *mut RawSeen, *mut RawError) -> c_int>,
    pub(super) backup: Option<unsafe extern "C" fn(*mut c_void, *const c_char, *mut RawError) -> c_int>,
    pub(super) restore: Option<unsafe extern "C" fn(*const c_char, *const c_char, *mut RawError) -> c_int>,
}

// SAFETY: this is a constant of functions and of text that lives as long as the process.
unsafe impl Sync for RawPeer {}

/// Declares the function table of each peer whose library build.rs found.
macro_rules! raw_peer {
    ($function:ident, $library:ident, $symbol:ident) => {
        pub(super) fn $function() -> Option<&'static RawPeer> {
            #[cfg($library)]
            {
                unsafe extern "C" {
                    static $symbol: RawPeer;
                }
                // SAFETY: the shim defines the symbol as a constant of this layout.
                Some(unsafe { &$symbol })
            }
            #[cfg(not($library))]
            None
        }
    };
}

raw_peer!(kyoto_hash, has_kyoto, bench_kyoto_hash);
raw_peer!(kyoto_tree, has_kyoto, bench_kyoto_tree);
raw_peer!(tkrzw_hash, has_tkrzw, bench_tkrzw_hash);
raw_peer!(tkrzw_tree, has_tkrzw, bench_tkrzw_tree);
raw_peer!(lmdb, has_lmdb, bench_lmdb);
raw_peer!(leveldb, has_leveldb, bench_leveldb);
raw_peer!(tokyo_hash, has_tokyo, bench_tokyo_hash);
raw_peer!(tokyo_tree, has_tokyo, bench_tokyo_tree);
raw_peer!(berkeley_hash, has_berkeley, bench_berkeley_hash);
raw_peer!(berkeley_tree, has_berkeley, bench_berkeley_tree);
raw_peer!(rocksdb, has_rocksdb, bench_rocksdb);
raw_peer!(sqlite, has_sqlite, bench_sqlite);
raw_peer!(mariadb_myisam, has_mariadb, bench_mariadb_myisam);
raw_peer!(mariadb_myisam_bulk, has_mariadb, bench_mariadb_myisam_bulk);
raw_peer!(mariadb_aria, has_mariadb, bench_mariadb_aria);
raw_peer!(mariadb_aria_bulk, has_mariadb, bench_mariadb_aria_bulk);
raw_peer!(mariadb_innodb, has_mariadb, bench_mariadb_innodb);
raw_peer!(mariadb_innodb_bulk, has_mariadb, bench_mariadb_innodb_bulk);

/// The client of a MariaDB server. Its tables use this engine, filled with the index in place or in bulk.
pub fn mariadb(engine: Engine, bulk: bool) -> Option<&'static RawPeer> {
    match (engine, bulk) {
        (Engine::MyIsam, false) => mariadb_myisam(),
        (Engine::MyIsam, true) => mariadb_myisam_bulk(),
        (Engine::Aria, false) => mariadb_aria(),
        (Engine::Aria, true) => mariadb_aria_bulk(),
        (Engine::InnoDb, false) => mariadb_innodb(),
        (Engine::InnoDb, true) => mariadb_innodb_bulk(),
    }
}
