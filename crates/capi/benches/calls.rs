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

/// The functions of the shared library that are called here.
struct Functions {
    open: Open,
    open_table: Table,
    close: End<azk_db>,
    get: Get,
    kind: Kinds,
    begin: Read,
    read_get: ReadGet,
    end: End<azk_read>,
    write_begin: Write,
    put: Put,
    rollback: End<azk_write>,
    cursor: Cursor,
    next: Next,
    cursor_free: End<azk_cursor>,
}

impl Functions {
    fn of(library: *mut c_void) -> Functions {
        Functions {
            open: function(library, "azk_db_open"),
            open_table: function(library, "azk_db_open_table"),
            close: function(library, "azk_db_close"),
            get: function(library, "azk_table_get"),
            kind: function(library, "azk_table_kind"),
            begin: function(library, "azk_read_begin"),
            read_get: function(library, "azk_read_get"),
            end: function(library, "azk_read_end"),
            write_begin: function(library, "azk_write_begin"),
            put: function(library, "azk_write_put"),
            rollback: function(library, "azk_write_rollback"),
            cursor: function(library, "azk_table_cursor"),
            next: function(library, "azk_cursor_next"),
            cursor_free: function(library, "azk_cursor_free"),
        }
    }
}

/// The database as the shared library has opened it. Handles are the library's, and open as long as this is.
/// All other pointers that it is given are to what stands on the stack, with its length.
struct InC {
    c: Functions,
    db: *mut azk_db,
    ordered: *mut azk_table,
    hash: *mut azk_table,
}

impl InC {
    fn open(path: &Path, library: *mut c_void) -> InC {
        let c = Functions::of(library);
        let name = CString::new(path.as_os_str().as_bytes()).expect("a path");
        let (mut db, mut ordered, mut hash) = (null_mut(), null_mut(), null_mut());
        // SAFETY: see `InC`.
        unsafe {
            assert_eq!((c.open)(name.as_ptr(), null(), &mut db), 0);
            assert_eq!((c.open_table)(db, c"ordered".as_ptr(), &mut ordered), 0);
            assert_eq!((c.open_table)(db, c"hash".as_ptr(), &mut hash), 0);
        }
        InC { c, db, ordered, hash }
    }

    /// Gets in no order.
    fn gets(&self, table: *mut azk_table) -> f64 {
        let (get, mut buffer, mut len) = (self.c.get, [0u8; 8], 0);
        best(|| {
            for i in 0..RECORDS {
                let key = scattered(i);
                // SAFETY: see `InC`.
                let status =
                    unsafe { get(table, key.as_ptr().cast(), 8, buffer.as_mut_ptr().cast(), 8, &mut len) };
                assert_eq!(black_box(status), 0);
            }
        })
    }

    /// Gets of a snapshot, in order.
    fn gets_of_snapshot(&self) -> f64 {
        let (get, mut buffer, mut len) = (self.c.read_get, [0u8; 8], 0);
        let mut read = null_mut();
        // SAFETY: see `InC`.
        assert_eq!(unsafe { (self.c.begin)(self.db, &mut read) }, 0);
        let figure = best(|| {
            for i in 0..RECORDS {
                let (key, to) = (i.to_be_bytes(), buffer.as_mut_ptr().cast());
                // SAFETY: see `InC`.
                let status = unsafe { get(read, self.ordered, key.as_ptr().cast(), 8, to, 8, &mut len) };
                assert_eq!(black_box(status), 0);
            }
        });
        // SAFETY: see `InC`.
        assert_eq!(unsafe { (self.c.end)(read) }, 0);
        figure
    }

    /// Steps of a cursor, with values.
    fn steps(&self) -> f64 {
        let Functions { cursor, next, cursor_free, .. } = self.c;
        best(|| {
            let (mut walk, mut key, mut value) = (null_mut(), NONE, NONE);
            // SAFETY: see `InC`.
            unsafe {
                assert_eq!(cursor(self.ordered, null(), null(), &mut walk), 0);
                while next(walk, &mut key, &mut value) == 0 {
                    black_box((&key, &value));
                }
                assert_eq!(cursor_free(walk), 0);
            }
        })
    }

    /// Puts in a transaction.
    fn puts(&self) -> f64 {
        let Functions { write_begin, put, rollback, .. } = self.c;
        best(|| {
            let mut write = null_mut();
            // SAFETY: see `InC`.
            unsafe {
                assert_eq!(write_begin(self.db, 0, 0, &mut write), 0);
                for i in 0..RECORDS {
                    let (key, value) = (i.to_be_bytes(), i.to_le_bytes());
                    let status = put(write, self.ordered, key.as_ptr().cast(), 8, value.as_ptr().cast(), 8);
                    assert_eq!(status, 0);
                }
                assert_eq!(rollback(write), 0);
            }
        })
    }

    /// Empty read transactions.
    fn reads(&self) -> f64 {
        let Functions { begin, end, .. } = self.c;
        best(|| {
            for _ in 0..RECORDS {
                let mut read = null_mut();
                // SAFETY: see `InC`.
                assert_eq!(unsafe { begin(self.db, &mut read) + end(black_box(read)) }, 0);
            }
        })
    }

    /// Calls that only look up a handle.
    fn kinds(&self) -> f64 {
        let kind = self.c.kind;
        best(|| {
            for _ in 0..RECORDS {
                let mut found = 0;
                // SAFETY: see `InC`.
                assert_eq!(unsafe { kind(black_box(self.ordered), &mut found) }, 0);
                black_box(found);
            }
        })
    }
}

/// The same through the shared library.
fn in_c(path: &Path, library: *mut c_void) -> Vec<f64> {
    let db = InC::open(path, library);
    let gets = [db.gets(db.ordered), db.gets(db.hash), db.gets_of_snapshot()];
    let figures = gets.into_iter().chain([db.steps(), db.puts(), db.reads(), db.kinds()]).collect();
    // SAFETY: see `InC`.
    assert_eq!(unsafe { (db.c.close)(db.db) }, 0);
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
