//! Opening and closing files.

use crate::call::Caller;
use crate::claim::Claim;
use crate::codes::*;
use crate::errors::{Outcome, failure, told};
use crate::name::{self, Kind};
use crate::open::Open;
use azekura::storage::MemStorage;
use azekura::{Db, Durability, Error, Options, Table};
use std::ffi::{CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// The table that holds the records. It is the one that the `azekura` command uses if none is named.
const TABLE: &str = "main";
/// How long to wait before looking at a file's lock again.
const LOCK_POLL: Duration = Duration::from_millis(10);

/// Refuses to write over a file that this process has open as a database.
pub(crate) fn refuse_open(path: &Path) -> Outcome<()> {
    if Claim::exists(path) {
        let said = format!("{}: this process has it open as a database", path.display());
        return Err(told(KCEINVALID, said));
    }
    Ok(())
}

/// Opens a database by its name.
pub(crate) fn open(name: &[u8], mode: u32) -> Outcome<Open> {
    let name = name::parse(name)?;
    if mode & (KCOREADER | KCOWRITER) == 0 {
        return Err(failure(KCEINVALID, c"neither KCOREADER nor KCOWRITER is in the mode"));
    }
    open_path(name.path, name.kind, mode)
}

/// Opens a database of a kind.
pub(crate) fn open_path(path: &[u8], kind: Kind, mode: u32) -> Outcome<Open> {
    let writer = mode & KCOWRITER != 0;
    let durability = if mode & KCOAUTOSYNC != 0 { Durability::Sync } else { Durability::Eventual };
    let creates = kind.in_memory || writer && mode & KCOCREATE != 0;
    let options = Options::new().durability(durability).create(creates).read_only(!writer && !kind.in_memory);
    let file = Path::new(OsStr::from_bytes(path));
    let db = if kind.in_memory {
        Db::open_on(&MemStorage::default(), file, options)?
    } else {
        open_file(file, &options, mode, writer && mode & KCOTRUNCATE != 0)?
    };
    let table = table_of(&db, kind, writer || kind.in_memory)?;
    let path = CString::new(path).map_err(|_| failure(KCEINVALID, c"a path has no zero byte"))?;
    let mut open = Open::new(db, table, path, kind, writer);
    open.durability = durability;
    open._claim = if kind.in_memory { None } else { Claim::of(file) };
    Ok(open)
}

/// The table with the records. For a reader, a database without it is an error.
fn table_of(db: &Db, kind: Kind, writer: bool) -> Outcome<Table> {
    if writer {
        return Ok(db.table(TABLE, kind.table)?);
    }
    let table = db.open_table(TABLE)?;
    if table.kind() != kind.table {
        return Err(told(KCEINVALID, format!("the table {TABLE:?} is of kind {:?}", table.kind())));
    }
    Ok(table)
}

/// Opens a file, and waits until its lock is free if the mode says so.
fn open_file(path: &Path, options: &Options, mode: u32, truncates: bool) -> Outcome<Db> {
    let waits = mode & (KCOTRYLOCK | KCONOLOCK) == 0;
    let mut options = options.clone();
    let mut replaced = false;
    loop {
        match options.clone().open(path) {
            Ok(db) => {
                if truncates {
                    for table in db.tables() {
                        db.drop_table(&table.name)?;
                    }
                }
                return Ok(db);
            }
            Err(Error::Locked { .. }) if Claim::exists(path) => {
                return Err(told(KCELOGIC, format!("{}: this process has it open already", path.display())));
            }
            Err(Error::Locked { .. }) if waits => std::thread::sleep(LOCK_POLL),
            // The caller has said that it wants nothing of what is there.
            Err(Error::NotADatabase { .. } | Error::Corrupt { .. } | Error::Truncated { .. })
                if truncates && !replaced && path.is_file() =>
            {
                std::fs::remove_file(path)
                    .map_err(|error| told(KCESYSTEM, format!("{}: {error}", path.display())))?;
                options = options.create(true);
                replaced = true;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Opens a database. The name is a file with the ending .kch, .kcd (a hash table), .kct or .kcf (an ordered
/// table), or one of "-", "*", ":" (a hash table in memory), "+" and "%" (an ordered table in memory). It may
/// go on with parameters, as in "a.kct#type=kct#psiz=4096". Parameters that only tune have no effect; those
/// that would change what a program sees are KCENOIMPL. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbopen(db: *mut KCDB, path: *const c_char, mode: u32) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.done(db, |store| {
        let name = c.text(path, "path")?;
        store.open(|| open(name.to_bytes(), mode))
    })
}

/// Closes a database. A transaction under way is rolled back. Returns 0 on failure. If the disk is full and
/// what is not durable would be lost, that is KCESYSTEM, and the database stays open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbclose(db: *mut KCDB) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.done(db, |store| store.close())
}
