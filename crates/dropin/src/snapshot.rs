//! Files with all records, as Kyoto Cabinet writes and reads them too. So they are the way from one to the
//! other.
//!
//! ```text
//! "KCSS\n\0"
//! for each record: a zero byte, the lengths of key and value, the key, the value
//! 0xff
//! ```
//!
//! A length is in groups of seven bits, the highest first; all bytes but the last have their top bit set.

use crate::call::Caller;
use crate::codes::*;
use crate::db::path_of;
use crate::errors::{Failure, Outcome, failure, told};
use crate::files::refuse_open;
use azekura::Cursor;
use std::ffi::c_char;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const MAGIC: &[u8; 6] = b"KCSS\n\0";
const RECORD: u8 = 0;
const END: u8 = 0xff;
const BUFFER_BYTES: usize = 1 << 18;
const CUT: Failure = failure(KCEBROKEN, c"the snapshot ends before its records do");

/// Writes all records to a file, over one that is there, which stays until this has succeeded. It must be no
/// database that is open. Kyoto Cabinet can load it. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbdumpsnap(db: *mut KCDB, dest: *const c_char) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.done(db, |store| {
        let dest = path_of(c.text(dest, "destination")?);
        let cursor = store.look(|access| access.cursor())?;
        refuse_open(dest)?;
        match fs::metadata(dest) {
            // A pipe or a device is written to, and not replaced.
            Ok(there) if !there.is_file() => dump(cursor, File::options().write(true).open(dest), dest),
            there => dump_aside(cursor, dest, there.ok().map(|there| there.permissions())),
        }
    })
}

/// The file gets its name when it is whole, so that a failure leaves what is there.
fn dump_aside(cursor: Cursor, dest: &Path, rights: Option<fs::Permissions>) -> Outcome<()> {
    static DUMPS: AtomicU64 = AtomicU64::new(1);
    // What a link leads to is replaced, and not the link.
    let dest = fs::canonicalize(dest).unwrap_or_else(|_| dest.to_owned());
    let mut aside = dest.clone().into_os_string();
    aside.push(format!(".{}-{}.snapshot", std::process::id(), DUMPS.fetch_add(1, Ordering::Relaxed)));
    let aside = PathBuf::from(aside);
    let created = File::create(&aside).and_then(|file| {
        rights.map_or(Ok(()), |rights| file.set_permissions(rights))?;
        Ok(file)
    });
    // Durable first, for the name may be so before what it leads to.
    let name = || File::open(&aside)?.sync_all().and_then(|()| fs::rename(&aside, &dest));
    let named = |()| name().map_err(|error| system(&dest, &error));
    dump(cursor, created, &dest).and_then(named).inspect_err(|_| {
        let _not_there = fs::remove_file(&aside);
    })
}

/// Writes what a cursor gives to a file.
fn dump(mut cursor: Cursor, file: io::Result<File>, dest: &Path) -> Outcome<()> {
    let system = |error: io::Error| system(dest, &error);
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, file.map_err(system)?);
    out.write_all(MAGIC).map_err(system)?;
    while let Some((key, value)) = cursor.next()? {
        let value = value.bytes()?;
        let mut head = vec![RECORD];
        write_length(&mut head, key.len());
        write_length(&mut head, value.len());
        out.write_all(&head)
            .and_then(|()| out.write_all(key))
            .and_then(|()| out.write_all(value))
            .map_err(system)?;
    }
    out.write_all(&[END]).and_then(|()| out.flush()).map_err(system)
}

/// Sets all records of a file, which kcdbdumpsnap has written, here or in Kyoto Cabinet. Returns 0 on
/// failure; the records before the one that is damaged or cannot be set are set then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbloadsnap(db: *mut KCDB, src: *const c_char) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.done(db, |store| {
        let src = path_of(c.text(src, "source")?);
        let file = File::open(src).map_err(|error| system(src, &error))?;
        let mut records = Records { from: BufReader::with_capacity(BUFFER_BYTES, file) };
        let mut magic = [0; MAGIC.len()];
        if records.from.read_exact(&mut magic).is_err() || magic != *MAGIC {
            return Err(told(KCEINVALID, format!("{} is no snapshot of Kyoto Cabinet", src.display())));
        }
        // What was set until then is committed, so the inner failure is none of the batch.
        store.many(false, |access| {
            let mut set_all = || {
                while let Some((key, value)) = records.next()? {
                    access.put(&key, &value)?;
                }
                Ok(())
            };
            Ok(set_all())
        })?
    })
}

fn system(path: &Path, error: &io::Error) -> Failure {
    let code = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => KCENOREPOS,
        io::ErrorKind::PermissionDenied => KCENOPERM,
        _ => KCESYSTEM,
    };
    told(code, format!("{}: {error}", path.display()))
}

fn write_length(out: &mut Vec<u8>, length: usize) {
    let groups = (usize::BITS - length.leading_zeros()).div_ceil(7).max(1);
    for group in (0..groups).rev() {
        let bits = u8::try_from(length >> (7 * group) & 0x7f).unwrap_or(0);
        out.push(if group > 0 { bits | 0x80 } else { bits });
    }
}

/// The records of a file.
struct Records<R> {
    from: R,
}

impl<R: Read> Records<R> {
    /// The next record; none at the end.
    fn next(&mut self) -> Outcome<Option<(Vec<u8>, Vec<u8>)>> {
        match self.byte()? {
            END => return Ok(None),
            RECORD => {}
            other => return Err(told(KCEBROKEN, format!("a record of a snapshot begins with {other:#x}"))),
        }
        let (key, value) = (self.length()?, self.length()?);
        Ok(Some((self.bytes(key)?, self.bytes(value)?)))
    }

    fn byte(&mut self) -> Outcome<u8> {
        let mut byte = [0];
        self.from.read_exact(&mut byte).map_err(|_| CUT)?;
        Ok(byte[0])
    }

    fn length(&mut self) -> Outcome<u64> {
        let mut length = 0_u64;
        loop {
            let byte = self.byte()?;
            if length >> 57 != 0 {
                return Err(failure(KCEBROKEN, c"a length of a snapshot is out of range"));
            }
            length = length << 7 | u64::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Ok(length);
            }
        }
    }

    /// So many bytes. Memory is taken as they come, for the length may be wrong.
    fn bytes(&mut self, length: u64) -> Outcome<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.from.by_ref().take(length).read_to_end(&mut bytes).map_err(|_| CUT)?;
        if u64::try_from(read) == Ok(length) { Ok(bytes) } else { Err(CUT) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_back() {
        for length in [0, 1, 127, 128, 300, 16_383, 16_384, 1 << 40] {
            let mut bytes = Vec::new();
            write_length(&mut bytes, length);
            let read = Records { from: bytes.as_slice() }.length().expect("it is whole");
            assert_eq!(usize::try_from(read), Ok(length));
        }
        let mut bytes = Vec::new();
        write_length(&mut bytes, 300);
        assert_eq!(bytes, [0x82, 0x2c]);
    }

    #[test]
    fn damage_is_noticed() {
        let next = |bytes: &[u8]| Records { from: bytes }.next().map_err(|failure| failure.code);
        assert_eq!(next(&[0, 1, 2, b'k', b'v', b'w']), Ok(Some((b"k".to_vec(), b"vw".to_vec()))));
        assert_eq!(next(&[0xff]), Ok(None));
        for bad in [
            &[][..],
            &[7],
            &[0, 1],
            &[0, 1, 2, b'k', b'v'],
            &[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        ] {
            assert_eq!(next(bad), Err(KCEBROKEN), "{bad:?}");
        }
    }
}
