//! How long a file must be at least for what it names. A shorter one was cut, and has lost what stood
//! there. It is not opened for writing: that would make it long again, over the damage.
//!
//! Only what is sure counts, since a crash may leave extents beyond the file's end that were taken and not
//! yet written. What a checkpoint names was synced before the superblock was written:
//!
//! - manifest and runs, to the end of their meta blocks;
//! - of a value segment the bytes to which runs and log refer, not the rest of its extent;
//! - the first segment of a chain of the log, which is filled before it is named. The segments behind it, to
//!   which jumps lead, only up to frames that are known to be durable: recovery looks for those.

use crate::base::error::{Error, Result};
use crate::base::limits::{ALIGN_BYTES, SUPERBLOCKS_BYTES, align_up};
use crate::format::manifest::{Manifest, RunInfo, ValueInfo};
use crate::space::Extent;
use std::collections::BTreeSet;
use std::path::Path;

/// How long the file was when it was opened, and whether that may be too short.
pub(crate) struct Length<'a> {
    pub(crate) path: &'a Path,
    pub(crate) file_bytes: u64,
    pub(crate) read_only: bool,
}

impl Length<'_> {
    /// An error if a file that is to be written ends before `least_bytes`.
    pub(crate) fn expect(&self, least_bytes: u64) -> Result<()> {
        if self.read_only || self.file_bytes >= least_bytes {
            return Ok(());
        }
        let path = self.path.display().to_string();
        Err(Error::Truncated { path, file_bytes: self.file_bytes, least_bytes })
    }

    /// An error that tells of damage where the file has ended becomes `Truncated`. Others stay as they are.
    pub(super) fn or_cut(&self, error: Error) -> Error {
        let Error::Corrupt { offset, .. } = &error else { return error };
        self.expect(offset.saturating_add(ALIGN_BYTES)).err().unwrap_or(error)
    }
}

/// What a manifest, which stands in `extent` unless the superblock holds it, says by itself.
pub(crate) fn named_bytes(manifest: &Manifest, extent: Option<Extent>) -> u64 {
    let runs = || manifest.tables.iter().flat_map(|t| t.levels.iter().flat_map(|l| &l.runs));
    let referred: BTreeSet<u32> = runs().flat_map(|r| r.large.iter().map(|l| l.0)).collect();
    let values = manifest.values.iter().filter(|v| referred.contains(&v.id)).map(value_end);
    let ends = extent.iter().map(Extent::end).chain(manifest.logs.iter().map(|l| l.first.end()));
    ends.chain(runs().map(run_end)).chain(values).max().unwrap_or(0).max(SUPERBLOCKS_BYTES)
}

fn run_end(run: &RunInfo) -> u64 {
    end_of(&run.extents, run.meta_at().saturating_add(u64::from(run.meta_bytes)))
}

/// Where the bytes of a value segment end to which something may refer.
pub(super) fn value_end(value: &ValueInfo) -> u64 {
    end_of(&value.extents, value.used)
}

/// Where the first `bytes` of some extents, one after the other, reach in the file: they were written in
/// whole blocks.
fn end_of(extents: &[Extent], bytes: u64) -> u64 {
    let mut rest = bytes;
    let ends = extents.iter().map(|e| {
        let part = e.len.min(rest);
        rest -= part;
        if part > 0 { e.offset.saturating_add(part) } else { 0 }
    });
    align_up(ends.max().unwrap_or(0).min(i64::MAX.unsigned_abs()))
}
