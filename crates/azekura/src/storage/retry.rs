//! Loops around calls that may be interrupted or do only a part of the work. [`OsStorage`] puts the system's
//! calls into these loops. A simulator puts its own calls there, which are short or interrupted at will.
//!
//! [`OsStorage`]: super::OsStorage

use std::io;

use super::range::len_of;

/// Repeats `call` while it is interrupted.
///
/// # Errors
/// Any other error of `call`.
pub fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Fills `buf` from `offset`, by calls that return how many bytes they have read.
///
/// # Errors
/// `UnexpectedEof` if a call reads nothing; else the error of `call`.
pub fn read_fully(
    buf: &mut [u8],
    offset: u64,
    mut call: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    let mut done = 0;
    while done < buf.len() {
        let at = offset + len_of(&buf[..done]);
        match uninterrupted(|| call(&mut buf[done..], at))? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => done += n,
        }
    }
    Ok(())
}

/// Writes all of `buf` at `offset`, by calls that return how many bytes they have written.
///
/// # Errors
/// `WriteZero` if a call writes nothing; else the error of `call`.
pub fn write_fully(
    mut buf: &[u8],
    mut offset: u64,
    mut call: impl FnMut(&[u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    while !buf.is_empty() {
        match uninterrupted(|| call(buf, offset))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            n => {
                offset += len_of(&buf[..n]);
                buf = &buf[n..];
            }
        }
    }
    Ok(())
}
