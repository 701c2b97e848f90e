//! What a call through the shared library costs beside the same call in Rust, on one database after the
//! other: `cargo bench --package azekura-capi`. Each figure is the best of some rounds, in nanoseconds a
//! call. The lengths of keys and values are hidden from the compiler in Rust too, as no caller in C can have
//! the engine compiled for them.

use azekura::{Db, Durability, Options, TableKind};
use azekura_capi::{azk_bytes, azk_cursor, azk_db, azk_options, azk_read, azk_table, azk_write};
use std::ffi::{CString, c_char, c_int, c_void};
use std::hint::black_box;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::time::Instant;

const RECORDS: u64 = 1_000_000;
const ROUNDS: usize = 7;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// A function of the shared library. `F` is its type.
fn function<F: Copy>(library: *mut c_void, name: &str) -> F {
    let name = CString::new(name).expect("a name");
    // SAFETY: the library is open, and the name ends with a zero byte.
    let found = unsafe { dlsym(library, name.as_ptr()) };
    assert!(!found.is_null() && size_of::<F>() == size_of::<*mut c_void>(), "{name:?}");
    // SAFETY: it is the address of the function, and `F` a pointer to functions of its type, as the source
    // has it.
    unsafe { std::mem::transmute_copy(&found) }
}

/// The nanoseconds of a step, of which `f` takes `RECORDS`.
fn best(mut f: impl FnMut()) -> f64 {
    let once = |_| {
        let began = Instant::now();
        f();
        began.elapsed().as_secs_f64() * 1e9 / RECORDS as f64
    };
    (0..ROUNDS).map(once).fold(f64::MAX, f64::min)
}

/// A key at a place of a sequence that visits all of them in no order.
fn scattered(i: u64) -> [u8; 8] {
    (i.wrapping_mul(700_001) % RECORDS).to_be_bytes()
}

/// Copies a value, whatever its length, if there is room.
fn copy(value: &[u8], buffer: &mut [u8]) -> usize {
    if let Some(room) = buffer.get_mut(..value.len()) {
        room.copy_from_slice(value);
    }
    value.len()
}

fn line(what: &str, rust: f64, c: f64) {
    println!("{what:<34} {rust:>8.1} {c:>8.1} {:>+7.1}", c - rust);
}

fn options() -> Options {
    Options::new().durability(Durability::Eventual)
}

fn fill(path: &Path) {
    let db = Db::open(path, options()).expect("it opens");
    for (name, kind) in [("ordered", TableKind::Ordered), ("hash", TableKind::Hash)] {
        let table = db.table(name, kind).expect("a table");
        table.put_many((0..RECORDS).map(|i| (i.to_be_bytes(), i.to_le_bytes()))).expect("they are put");
    }
    db.compact().expect("it settles");
    db.close().expect("it closes");
}

/// In Rust: gets of each kind, gets in order, walks, puts, empty transactions.
fn in_rust(path: &Path) -> Vec<f64> {
    let db = Db::open(path, options()).expect("it opens");
    let mut figures = Vec::new();
    let mut buffer = [0; 8];
    for name in ["ordered", "hash"] {
        let table = db.open_table(name).expect("the table");
        figures.push(best(|| {
            for i in 0..RECORDS {
                let copied = table.get_with(black_box(&scattered(i)[..]), |value| copy(value, &mut buffer));
                black_box(copied.expect("a get"));
            }
        }));
    }
    let table = db.open_table("ordered").expect("the table");
    let read = db.read();
    figures.push(best(|| {
        for i in 0..RECORDS {
            let copied =
                read.get_with(&table, black_box(&i.to_be_bytes()[..]), |value| copy(value, &mut buffer));
            black_box(copied.expect("a get"));
        }
    }));
    figures.push(best(|| {
        let mut cursor = table.cursor().expect("a cursor");
        while let Some((key, value)) = cursor.next().expect("a step") {
            black_box((key, value.bytes().expect("a value")));
        }
    }));
    figures.push(best(|| {
        let mut write = db.write();
        for i in 0..RECORDS {
            let (key, value) = (i.to_be_bytes(), i.to_le_bytes());
            write.put(&table, black_box(&key[..]), black_box(&value[..])).expect("a put");
        }
    }));
    figures.push(best(|| (0..RECORDS).for_each(|_| drop(black_box(db.read())))));
    figures.push(best(|| (0..RECORDS).for_each(|_| _ = black_box(black_box(&table).kind()))));
    drop((read, table));
    db.close().expect("it closes");
    figures
}

type Get =
    unsafe extern "C" fn(*const azk_table, *const c_void, usize, *mut c_void, usize, *mut usize) -> c_int;
type ReadGet = unsafe extern "C" fn(
    *mut azk_read,
    *const azk_table,
    *const c_void,
    usize,
    *mut c_void,
    usize,
    *mut usize,
) -> c_int;
type Put = unsafe extern "C" fn(
    *mut azk_write,
    *const azk_table,
    *const c_void,
    usize,
    *const c_void,
    usize,
) -> c_int;
type Cursor =
    unsafe extern "C" fn(*const azk_table, *const azk_bytes, *const azk_bytes, *mut *mut azk_cursor) -> c_int;
type Next = unsafe extern "C" fn(*mut azk_cursor, *mut azk_bytes, *mut azk_bytes) -> c_int;
type Open = unsafe extern "C" fn(*const c_char, *const azk_options, *mut *mut azk_db) -> c_int;
type Table = unsafe extern "C" fn(*const azk_db, *const c_char, *mut *mut azk_table) -> c_int;
type Read = unsafe extern "C" fn(*const azk_db, *mut *mut azk_read) -> c_int;
type Write = unsafe extern "C" fn(*const azk_db, i32, i32, *mut *mut azk_write) -> c_int;
type Kinds = unsafe extern "C" fn(*const azk_table, *mut i32) -> c_int;
type End<H> = unsafe extern "C" fn(*mut H) -> c_int;

/// The same through the shared library.
fn in_c(path: &Path, library: *mut c_void) -> Vec<f64> {
    let (get, read_get): (Get, ReadGet) =
        (function(library, "azk_table_get"), function(library, "azk_read_get"));
    let (put, next): (Put, Next) = (function(library, "azk_write_put"), function(library, "azk_cursor_next"));
    let (open, open_table): (Open, Table) =
        (function(library, "azk_db_open"), function(library, "azk_db_open_table"));
    let (begin, write_begin): (Read, Write) =
        (function(library, "azk_read_begin"), function(library, "azk_write_begin"));
    let (end, rollback): (End<azk_read>, End<azk_write>) =
        (function(library, "azk_read_end"), function(library, "azk_write_rollback"));
    let cursor: Cursor = function(library, "azk_table_cursor");
    let (cursor_free, close): (End<azk_cursor>, End<azk_db>) =
        (function(library, "azk_cursor_free"), function(library, "azk_db_close"));
    let name = CString::new(path.as_os_str().as_bytes()).expect("a path");
    let (mut db, mut figures) = (null_mut(), Vec::new());
    let (mut buffer, mut len) = ([0u8; 8], 0);
    // SAFETY: all pointers are to what stands on the stack here, with its length, and to handles of the
    // library.
    unsafe {
        assert_eq!(open(name.as_ptr(), null(), &mut db), 0);
        let mut tables = [null_mut(); 2];
        for (table, name) in tables.iter_mut().zip([c"ordered", c"hash"]) {
            assert_eq!(open_table(db, name.as_ptr(), table), 0);
            figures.push(best(|| {
                for i in 0..RECORDS {
                    let key = scattered(i);
                    let status = get(*table, key.as_ptr().cast(), 8, buffer.as_mut_ptr().cast(), 8, &mut len);
                    assert_eq!(black_box(status), 0);
                }
            }));
        }
        let mut read = null_mut();
        assert_eq!(begin(db, &mut read), 0);
        figures.push(best(|| {
            for i in 0..RECORDS {
                let key = i.to_be_bytes();
                let status = read_get(
                    read,
                    tables[0],
                    key.as_ptr().cast(),
                    8,
                    buffer.as_mut_ptr().cast(),
                    8,
                    &mut len,
                );
                assert_eq!(black_box(status), 0);
            }
        }));
        figures.push(best(|| {
            let (mut walk, mut key, mut value) = (null_mut(), NONE, NONE);
            assert_eq!(cursor(tables[0], null(), null(), &mut walk), 0);
            while next(walk, &mut key, &mut value) == 0 {
                black_box((&key, &value));
            }
            assert_eq!(cursor_free(walk), 0);
        }));
        figures.push(best(|| {
            let mut write = null_mut();
            assert_eq!(write_begin(db, 0, 0, &mut write), 0);
            for i in 0..RECORDS {
                let (key, value) = (i.to_be_bytes(), i.to_le_bytes());
                assert_eq!(put(write, tables[0], key.as_ptr().cast(), 8, value.as_ptr().cast(), 8), 0);
            }
            assert_eq!(rollback(write), 0);
        }));
        figures.push(best(|| {
            for _ in 0..RECORDS {
                let mut read = null_mut();
                assert_eq!(begin(db, &mut read) + end(black_box(read)), 0);
            }
        }));
        let kind: Kinds = function(library, "azk_table_kind");
        figures.push(best(|| {
            for _ in 0..RECORDS {
                let mut found = 0;
                assert_eq!(kind(black_box(tables[0]), &mut found), 0);
                black_box(found);
            }
        }));
        assert_eq!(end(read), 0);
        assert_eq!(close(db), 0);
    }
    figures
}

const NONE: azk_bytes = azk_bytes { data: null(), len: 0 };

fn main() {
    let dir = tempfile::TempDir::new().expect("a directory");
    let path = dir.path().join("calls.azk");
    fill(&path);
    let beside =
        std::env::current_exe().expect("the bench knows where it is").with_file_name("libazekura_capi.so");
    let library = std::env::var_os("AZEKURA_LIBRARY").unwrap_or_else(|| beside.into_os_string());
    let name = CString::new(library.as_bytes()).expect("a path");
    // SAFETY: the path ends with a zero byte; 2 asks for all symbols at once.
    let opened = unsafe { dlopen(name.as_ptr(), 2) };
    assert!(!opened.is_null(), "{library:?} cannot be loaded");
    let (rust, c) = (in_rust(&path), in_c(&path, opened));
    println!("{:<34} {:>8} {:>8} {:>7}   ns a call", "", "Rust", "C", "more");
    let names = [
        "get, ordered, in no order",
        "get, hash, in no order",
        "get of a snapshot, in order",
        "step of a cursor, with value",
        "put in a transaction",
        "read transaction, begun and ended",
        "kind of a table: the frame alone",
    ];
    names.iter().zip(rust.iter().zip(&c)).for_each(|(name, (rust, c))| line(name, *rust, *c));
}
