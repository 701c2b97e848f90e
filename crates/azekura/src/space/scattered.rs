//! Something that stands in several extents, one after the other: a run, a value segment. Offsets count from
//! its own start.

use super::Extent;
use crate::base::codec::usize_of64;
use crate::base::error::Result;
use crate::storage::{File, read_error};

/// Where byte `at` is in the file, and how many bytes follow it there. None behind the end.
#[inline(always)]
pub(crate) fn stretch(extents: &[Extent], at: u64) -> Option<(u64, u64)> {
    let mut before = 0;
    for e in extents {
        if at < before + e.len {
            return Some((e.offset + (at - before), before + e.len - at));
        }
        before += e.len;
    }
    None
}

/// Fails if a file of `file_len` bytes lacks some of the bytes from `start` to `end`.
pub(crate) fn check_inside(extents: &[Extent], start: u64, end: u64, file_len: u64) -> Result<()> {
    let mut before = 0;
    for e in extents {
        let (from, until) = (start.max(before), end.min(before + e.len));
        if from < until && e.offset + (until - before) > file_len {
            return Err(read_error(std::io::ErrorKind::UnexpectedEof.into(), e.offset + (from - before)));
        }
        before += e.len;
    }
    Ok(())
}

/// Fills `out` from byte `at` on. False if that passes the end.
pub(crate) fn read(extents: &[Extent], file: &dyn File, at: u64, out: &mut [u8]) -> Result<bool> {
    let (mut at, mut rest) = (at, out);
    while !rest.is_empty() {
        let Some((offset, len)) = stretch(extents, at) else { return Ok(false) };
        let n = rest.len().min(usize_of64(len));
        let (now, later) = rest.split_at_mut(n);
        file.read_at(now, offset).map_err(|e| read_error(e, offset))?;
        at += n as u64;
        rest = later;
    }
    Ok(true)
}
