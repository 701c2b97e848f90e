//! What a run says of itself, at the start of its meta block. It is for readers without a manifest.
//!
//! ```text
//! u32 magic "AZRM" | u32 length of the meta block | u32 CRC32C of what follows | u64 file id | u64 hash seed | u64 run
//! u32 table, and 2^31 if that is a hash table | blob the table's name when the run was written
//! u64 newest | covers: u32 0 or 1 ranges, of blob start, u8 bounded, blob end
//! ```
//!
//! The label has its own checksum, since the block's checksum begins with ids that only the label gives.
//!
//! # Which record is newer
//!
//! `newest` is a commit's sequence number. The run has what the commits up to this one said of its keys, and
//! nothing of later commits. So of two runs of a table the one with the larger `newest` has the newer version
//! of a key. Runs with the same number are of one merge or its inputs; the larger id wins. A merge takes the
//! number of its newest input.
//!
//! A run that a flush lets join the oldest level has no key in common with any other and deletes nothing. The
//! level keeps its number (in the manifest), so that a later merge does not pass for newer than runs that it
//! has not read. So a run that has joined may look newer than the merge that took it in. Both say the same,
//! unless a newer run says otherwise.
//!
//! Where runs of the second oldest level join, or a merge is installed in part, inputs of these runs may
//! still be in free space. A later merge of the oldest level is to pass for newer than they are. So the level
//! takes the number of the newer ones of which nothing is left, or the number below the least of those that
//! are left. (Of these a merge may have used up one and left an older one. Then the number is too low for
//! what it has used up.)
//!
//! A run that was written as a table's oldest leaves deleted records out. It `covers` a stretch of keys: for
//! these keys older runs do not count. Such runs may still be in free space.

use crate::base::checksum::crc;
use crate::base::codec::{Reader, Writer, u32_of};
use crate::base::error::Result;
use crate::base::key::TableKind;
use crate::format::page::table_of;
use crate::format::ranges::{Range, Ranges};
use std::sync::Arc;

/// The bytes of a meta block behind its checksum.
pub(crate) const MAGIC: u32 = u32::from_le_bytes(*b"AZRM");
/// Offset of the block's length in the block.
pub(crate) const BYTES_AT: usize = 8;

/// A run whose bounds are longer than this together covers nothing: its label would take a page of its own.
const COVERS_BYTES_MAX: usize = 16 << 10;

/// Which table a run belongs to, and how new its records are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) table: u32,
    pub(crate) kind: TableKind,
    pub(crate) name: Arc<str>,
    pub(crate) newest: u64,
    /// The table has nothing older.
    pub(crate) oldest: bool,
}

/// What a run says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) file_id: u64,
    pub(crate) hash_seed: u64,
    pub(crate) run: u64,
    pub(crate) origin: Origin,
    /// Keys for which older runs do not count: one range, or none.
    pub(crate) covers: Ranges,
}

/// What a run of the oldest records covers.
pub(super) fn covered(start: Vec<u8>, end: Option<Vec<u8>>) -> Ranges {
    let mut covers = Ranges::default();
    if start.len() + end.as_ref().map_or(0, Vec::len) <= COVERS_BYTES_MAX {
        covers.add(Range { start, end });
    }
    covers
}

impl Label {
    /// Appends the label. `close` completes it when the whole block is written.
    pub(super) fn encode(&self, w: &mut Writer) {
        w.u32(MAGIC);
        w.u32(0);
        w.u32(0);
        let start = w.bytes.len();
        w.u64(self.file_id);
        w.u64(self.hash_seed);
        w.u64(self.run);
        w.u32(table_of(self.origin.table, self.origin.kind));
        w.blob(self.origin.name.as_bytes());
        w.u64(self.origin.newest);
        self.covers.encode(w);
        let sum = crc(0, &w.bytes[start..]);
        w.bytes[start - 4..start].copy_from_slice(&sum.to_le_bytes());
    }

    /// Writes the length of the whole block. `block` begins with its checksum.
    pub(super) fn close(block: &mut [u8]) {
        let len = u32_of(block.len());
        block[BYTES_AT..BYTES_AT + 4].copy_from_slice(&len.to_le_bytes());
    }

    /// Takes the label from a meta block. REQUIRES: the block's checksum was taken.
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Label> {
        if r.u32()? != MAGIC {
            return Err(r.bad("no label"));
        }
        let (_bytes, expected) = (r.u32()?, r.u32()?);
        let start = r.rest();
        let label = Label::decode_fields(r)?;
        let found = crc(0, &start[..start.len() - r.remaining()]);
        if found != expected && !crate::base::checksum::is_ignored() {
            return Err(r.bad(format!("checksum of the label {found:08x}, expected {expected:08x}")));
        }
        Ok(label)
    }

    fn decode_fields(r: &mut Reader<'_>) -> Result<Label> {
        let (file_id, hash_seed, run) = (r.u64()?, r.u64()?, r.counted()?);
        let (table, kind) = crate::format::page::split_table(r.u32()?);
        let name = std::str::from_utf8(r.blob()?).map_err(|_| r.bad("the table's name is not UTF-8"))?.into();
        let (newest, covers) = (r.counted()?, Ranges::decode(r)?);
        let oldest = !covers.is_empty();
        Ok(Label { file_id, hash_seed, run, origin: Origin { table, kind, name, newest, oldest }, covers })
    }

    /// The label of a meta block, from the block's first bytes.
    pub(crate) fn read(block: &[u8]) -> Result<Label> {
        let mut r = Reader::new(block, "run meta block", 0);
        let _checksum = r.u32()?;
        Label::decode(&mut r)
    }
}
