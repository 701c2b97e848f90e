//! The log: frames, and the commit records in them.
//!
//! ```text
//! frame, at a multiple of 4 KiB in a log segment:
//!  0  4  CRC32C of bytes 4.. to the payload's end     4  4  magic "AZLF"
//!  8  8  file id      16  8  chain      24  8  frame number
//! 32  4  payload length     36  4  where a record begins in the payload, 2^32-1 = nowhere known
//! 40  4  kind: 0 = records, 1 = jump: the payload names the next segment (u64 offset, u64 length)
//! 44  4  seconds since 1970, rounded up, by the file's clock; 0 = no records expire      48  8  number of the newest checkpoint when it was written
//! 56  8  frames below this number were durable when it was written
//! 64     payload, padded with zeroes to a multiple of 4 KiB
//!
//! record: u64 length of what follows | u64 sequence number | u32 parts, each:
//!         u32 table | u32 n, value segments it refers to: u32 id, u64 offset, u64 length
//!         range deletes: u32 count, each blob start, u8 bounded, blob end
//!         u8 form:  0 rows:  u32 n, each u8 tag, u32 key length, u32 value length, key, value
//!                   1 fixed: u32 n, u32 value length, u8 tag, n keys as u64, n values
//!                   2 table: the commit makes it: u8 kind, blob name
//!                   3 renamed: the commit gives it this name: blob name
//!                   4 dropped: the commit drops it
//!                   5 cache: as 2, then u64 how long its records live
//!                   6 lives: what is put from then on lives so long: u64, 0 = until it is removed
//! ```
//!
//! Recovery that starts at a frame starts at its `first_record`. Records that begin before that place belong
//! to commits that are all in runs.
//!
//! Keys are sort keys, in ascending order. A record may go on in the next frame. Two frames never share a
//! block, so a block that holds an acknowledged commit is never written again.

use super::block::{Block, Fixed, Tag};
use super::expiry::{Content, WORD_BYTES};
use super::operand::check_logged;
use crate::base::checksum::crc;
use crate::base::codec::{Reader, Writer, u32_at, u32_of, u64_at, usize_of};
use crate::base::error::{Result, shown};
use crate::base::fault::fault;
use crate::base::key::{SortKey, TableKind};
use crate::base::limits::{KEY_BYTES_MAX, NAME_BYTES_MAX, SHORT_COUNT_END};
use crate::format::hidden::is_hidden;
use crate::format::ranges::Ranges;
use crate::space::Extent;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes before a frame's payload.
pub(crate) const HEADER_BYTES: usize = 64;
/// `first_record` of a frame in which no record is known to begin.
pub(crate) const NO_RECORD: u32 = u32::MAX;
const MAGIC: u32 = u32::from_le_bytes(*b"AZLF");

/// The forms of a part.
const FORM_ROWS: u8 = 0;
const FORM_FIXED: u8 = 1;
const FORM_TABLE: u8 = 2;
const FORM_RENAMED: u8 = 3;
const FORM_DROPPED: u8 = 4;
const FORM_CACHE: u8 = 5;
const FORM_LIVES: u8 = 6;

/// Bytes of a row before its key and value: the tag and both lengths.
pub(crate) const ROW_BYTES: usize = 1 + 4 + 4;

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) file_id: u64,
    pub(crate) chain: u64,
    pub(crate) number: u64,
    pub(crate) len: u32,
    pub(crate) first_record: u32,
    pub(crate) jump: bool,
    pub(crate) checkpoint: u64,
    /// Frames below this number were durable when this one was written.
    pub(crate) durable_below: u64,
    /// The time of the file's clock when it was written, in seconds, rounded up. 0: no records expire.
    pub(crate) clock: u32,
}

impl Frame {
    /// Writes header and checksum of a frame whose payload is in place.
    pub(crate) fn seal(&self, b: &mut [u8]) {
        b[4..8].copy_from_slice(&MAGIC.to_le_bytes());
        b[8..16].copy_from_slice(&self.file_id.to_le_bytes());
        b[16..24].copy_from_slice(&self.chain.to_le_bytes());
        b[24..32].copy_from_slice(&self.number.to_le_bytes());
        b[32..36].copy_from_slice(&self.len.to_le_bytes());
        b[36..40].copy_from_slice(&self.first_record.to_le_bytes());
        b[40..44].copy_from_slice(&u32::from(self.jump).to_le_bytes());
        b[44..48].copy_from_slice(&self.clock.to_le_bytes());
        b[48..56].copy_from_slice(&self.checkpoint.to_le_bytes());
        b[56..64].copy_from_slice(&self.durable_below.to_le_bytes());
        let sum = crc(0, &b[4..HEADER_BYTES + usize_of(self.len)]);
        b[..4].copy_from_slice(&sum.to_le_bytes());
    }

    /// The header at the start of `b`, if it is one. The checksum is not checked.
    pub(crate) fn parse(b: &[u8]) -> Option<Frame> {
        if b.len() < HEADER_BYTES || u32_at(b, 4) != MAGIC || u32_at(b, 40) > 1 {
            return None;
        }
        Some(Frame {
            file_id: u64_at(b, 8),
            chain: u64_at(b, 16),
            number: u64_at(b, 24),
            len: u32_at(b, 32),
            first_record: u32_at(b, 36),
            jump: u32_at(b, 40) == 1,
            checkpoint: u64_at(b, 48),
            durable_below: u64_at(b, 56),
            clock: u32_at(b, 44),
        })
    }

    /// Whether the checksum of the whole frame holds. REQUIRES: `b` holds header and payload.
    pub(crate) fn verify(&self, b: &[u8]) -> bool {
        if fault!("skip_frame_checksum") {
            return true;
        }
        crate::base::checksum::is_ignored()
            || crc(0, &b[4..HEADER_BYTES + usize_of(self.len)]) == u32_at(b, 0)
    }
}

/// A table that a commit makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewTable {
    pub(crate) id: u32,
    pub(crate) kind: TableKind,
    pub(crate) name: Arc<str>,
    /// How long its records live if nothing else is said, in milliseconds. 0: until they are removed.
    pub(crate) ttl_ms: u64,
}

/// What a commit changes among the tables. All that one commit changes happens at once: so it may give a
/// table the name that another had before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TableChange {
    Dropped(u32),
    Renamed(u32, Arc<str>),
    /// Its records live so many milliseconds from then on if nothing else is said. 0: until they are removed.
    Lives(u32, u64),
    Made(NewTable),
}

impl TableChange {
    /// The table.
    pub(crate) fn id(&self) -> u32 {
        match self {
            TableChange::Dropped(id) | TableChange::Renamed(id, _) | TableChange::Lives(id, _) => *id,
            TableChange::Made(table) => table.id,
        }
    }

    /// How long the table's records live, if it says so. 0: until they are removed.
    pub(crate) fn ttl_ms(&self) -> u64 {
        match self {
            TableChange::Made(table) => table.ttl_ms,
            TableChange::Lives(_, ttl_ms) => *ttl_ms,
            TableChange::Dropped(_) | TableChange::Renamed(..) => 0,
        }
    }

    /// Whether the table comes, goes, or gets another name: who looks for tables sees that.
    pub(crate) fn is_seen(&self) -> bool {
        !matches!(self, TableChange::Lives(..))
    }

    /// Whether it would show if the commit's `others`, the parts of other kinds, were not there. (Nobody sees
    /// the table of an index without its records.)
    pub(crate) fn is_joint(&self, others: usize) -> bool {
        match self {
            TableChange::Made(table) => others > 0 && !is_hidden(&table.name),
            TableChange::Lives(..) => others > 0,
            TableChange::Dropped(_) | TableChange::Renamed(..) => true,
        }
    }

    /// What the table is called from then on; none if it is gone, or keeps its name.
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        match self {
            TableChange::Dropped(_) | TableChange::Lives(..) => None,
            TableChange::Renamed(_, name) => Some(name),
            TableChange::Made(table) => Some(&table.name),
        }
    }
}

/// One table's part of a commit.
#[derive(Debug)]
pub(crate) struct RecordPart {
    pub(crate) table: u32,
    /// What the commit does with the table itself. Such a part has no records.
    pub(crate) change: Option<TableChange>,
    pub(crate) segments: Vec<(u32, Extent)>,
    pub(crate) ranges: Ranges,
    pub(crate) block: Block,
}

/// Begins a record, which `end_record` completes. Returns where it begins.
pub(crate) fn begin_record(w: &mut Writer, seq: u64, parts: usize) -> usize {
    let start = w.bytes.len();
    w.u64(0);
    w.u64(seq);
    w.u32(u32_of(parts));
    start
}

/// Completes the record that begins at `start`.
pub(crate) fn end_record(w: &mut Writer, start: usize) {
    let len = (w.bytes.len() - start - 8) as u64;
    w.bytes[start..start + 8].copy_from_slice(&len.to_le_bytes());
}

/// Writes one table's part.
pub(crate) fn write_part(
    w: &mut Writer,
    table: u32,
    segments: &[(u32, Extent)],
    ranges: &Ranges,
    block: &Block,
) {
    w.u32(table);
    w.u32(u32_of(segments.len()));
    for (id, extent) in segments {
        w.u32(*id);
        w.u64(extent.offset);
        w.u64(extent.len);
    }
    ranges.encode(w);
    if let Some(f) = block.fixed {
        w.u8(FORM_FIXED);
        w.u32(u32_of(block.len()));
        w.u32(f.stride);
        w.u8(f.tag as u8);
        w.bytes.reserve(block.heads.len() * 8 + block.heap.len());
        for head in &block.heads {
            w.bytes.extend_from_slice(&head.to_le_bytes());
        }
        w.bytes.extend_from_slice(&block.heap);
        return;
    }
    w.u8(FORM_ROWS);
    write_rows(w, block);
}

/// Writes the records of a block, of either form, as rows.
pub(crate) fn write_rows(w: &mut Writer, block: &Block) {
    w.u32(u32_of(block.len()));
    w.bytes.reserve(block.len() * ROW_BYTES + block.bytes());
    let mut tmp = [0; 8];
    for i in 0..block.len() {
        let (key, value) = (block.key(i, &mut tmp), block.value(i));
        w.u8(block.tag(i) as u8);
        w.u32(u32_of(key.len()));
        w.u32(u32_of(value.len()));
        w.bytes.extend_from_slice(key);
        w.bytes.extend_from_slice(value);
    }
}

/// Writes what a commit does with a table itself.
pub(crate) fn write_table_change(w: &mut Writer, change: &TableChange) {
    w.u32(change.id());
    w.u32(0);
    Ranges::none().encode(w);
    match change {
        TableChange::Made(table) => {
            w.u8(if table.ttl_ms == 0 { FORM_TABLE } else { FORM_CACHE });
            w.u8(table.kind.code());
            w.blob(table.name.as_bytes());
            if table.ttl_ms != 0 {
                w.u64(table.ttl_ms);
            }
        }
        TableChange::Renamed(_, name) => {
            w.u8(FORM_RENAMED);
            w.blob(name.as_bytes());
        }
        TableChange::Lives(_, ttl_ms) => {
            w.u8(FORM_LIVES);
            w.u64(*ttl_ms);
        }
        TableChange::Dropped(_) => w.u8(FORM_DROPPED),
    }
}

/// Reads a record after its length: the sequence number and the parts.
pub(crate) fn read_record(bytes: &[u8], at: u64) -> Result<(u64, Vec<RecordPart>)> {
    let mut r = Reader::new(bytes, "log record", at);
    let seq = r.counted()?;
    let mut parts = Vec::new();
    for _ in 0..r.count(13)? {
        parts.push(read_part(&mut r)?);
    }
    if parts.iter().any(|part| part.change.is_some()) && !is_in_order(&parts) {
        return Err(r.bad("what becomes of tables is out of order"));
    }
    r.finish()?;
    Ok((seq, parts))
}

/// Whether dropped tables come first, then renamed ones, those whose records live otherwise, and new ones,
/// and then records: each table once, but that one may be renamed and its records live otherwise.
fn is_in_order(parts: &[RecordPart]) -> bool {
    let rank = |part: &RecordPart| match &part.change {
        Some(TableChange::Dropped(_)) => 0,
        Some(TableChange::Renamed(..)) => 1,
        Some(TableChange::Lives(..)) => 2,
        Some(TableChange::Made(_)) => 3,
        None => 4,
    };
    let mut seen = HashMap::new();
    let changed = parts.iter().filter(|part| part.change.is_some());
    let mut is_first = |part: &RecordPart| match (seen.insert(part.table, rank(part)), rank(part)) {
        (before, 2) => before.is_none_or(|before| before == 1),
        (before, _) => before.is_none(),
    };
    parts.is_sorted_by_key(rank) && changed.into_iter().all(&mut is_first)
}

fn read_part(r: &mut Reader<'_>) -> Result<RecordPart> {
    let table = r.u32()?;
    let mut segments = Vec::new();
    for _ in 0..r.count(20)? {
        segments.push((r.counted_short()?, Extent { offset: r.u64()?, len: r.u64()? }));
    }
    let ranges = Ranges::decode(r)?;
    let change = |change| (Some(change), Block::new(None));
    let (change, block) = match r.u8()? {
        FORM_ROWS => (None, read_rows(r)?),
        FORM_FIXED => (None, read_fixed(r)?),
        FORM_TABLE => change(TableChange::Made(read_new_table(r, table)?)),
        FORM_RENAMED => change(TableChange::Renamed(table, read_new_name(r, table)?)),
        FORM_DROPPED => change(TableChange::Dropped(table)),
        FORM_CACHE => {
            let made = read_new_table(r, table)?;
            change(TableChange::Made(NewTable { ttl_ms: r.u64()?, ..made }))
        }
        FORM_LIVES => change(TableChange::Lives(table, r.u64()?)),
        form => return Err(r.bad(format!("unknown form {form}"))),
    };
    Ok(RecordPart { table, change, segments, ranges, block })
}

/// The name that a table gets. Hidden tables keep theirs.
fn read_new_name(r: &mut Reader<'_>, id: u32) -> Result<Arc<str>> {
    let name = std::str::from_utf8(r.blob()?).map_err(|_| r.bad(format!("table {id}: name is not UTF-8")))?;
    if name.is_empty() || name.len() > NAME_BYTES_MAX || is_hidden(name) {
        return Err(r.bad(format!("table {id} cannot be renamed so")));
    }
    Ok(name.into())
}

fn read_new_table(r: &mut Reader<'_>, id: u32) -> Result<NewTable> {
    let code = r.u8()?;
    let kind =
        TableKind::from_code(code).ok_or_else(|| r.bad(format!("table {id} is of unknown kind {code}")))?;
    let name = std::str::from_utf8(r.blob()?).map_err(|_| r.bad(format!("table {id}: name is not UTF-8")))?;
    if id >= SHORT_COUNT_END - 1 || name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(r.bad(format!("table {id} is impossible")));
    }
    Ok(NewTable { id, kind, name: name.into(), ttl_ms: 0 })
}

/// Reads what `write_rows` writes.
pub(crate) fn read_rows(r: &mut Reader<'_>) -> Result<Block> {
    let n = r.count(9)?;
    let mut block = Block::with_capacity(None, n, r.remaining().min(n * 64));
    for i in 0..n {
        let code = r.u8()?;
        let tag = Tag::from_code(code).ok_or_else(|| r.bad(format!("unknown tag {code}")))?;
        let (key_len, value_len) = (usize_of(r.u32()?), usize_of(r.u32()?));
        if key_len > KEY_BYTES_MAX + 8 {
            return Err(r.bad(format!("a key of {key_len} bytes")));
        }
        let (key, value) = (r.take(key_len)?, r.take(value_len)?);
        if i > 0 && block.compare(i - 1, SortKey::new(key)) != Ordering::Less {
            return Err(r.bad("keys out of order"));
        }
        check_word(r, tag, value.len())?;
        check_operand(r, tag, value)?;
        block.push(key, tag, value);
    }
    Ok(block)
}

/// Refuses a record that expires and has no word.
fn check_word(r: &Reader<'_>, tag: Tag, value_len: usize) -> Result<()> {
    if tag == Tag::Expiring && value_len < WORD_BYTES {
        return Err(r.bad(format!("{value_len} bytes for a record that expires")));
    }
    Ok(())
}

/// Refuses an operand that makes no sense. REQUIRES: what expires has a word.
fn check_operand(r: &Reader<'_>, tag: Tag, stored: &[u8]) -> Result<()> {
    match Content::of(tag, stored) {
        Content { tag: Tag::Operand, value, .. } if check_logged(value).is_err() => {
            Err(r.bad(format!("an operand that makes no sense: {}", shown(value))))
        }
        _ => Ok(()),
    }
}

fn read_fixed(r: &mut Reader<'_>) -> Result<Block> {
    let n = r.count(8)?;
    let stride = r.u32()?;
    let code = r.u8()?;
    let tag = Tag::from_code(code).ok_or_else(|| r.bad(format!("unknown tag {code}")))?;
    check_word(r, tag, usize_of(stride))?;
    let heads = r.take(n * 8)?;
    let values = r.take(n.saturating_mul(usize_of(stride)))?;
    if tag == Tag::Expiring {
        values.chunks_exact(usize_of(stride)).try_for_each(|stored| check_operand(r, tag, stored))?;
    }
    let mut block = Block::new(Some(Fixed { stride, tag }));
    block.heads.extend(heads.as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b)));
    if block.heads.windows(2).any(|w| w[0] >= w[1]) {
        return Err(r.bad("keys out of order"));
    }
    block.heap.extend_from_slice(values);
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(changes: &[TableChange]) -> Vec<u8> {
        let mut w = Writer::default();
        let start = begin_record(&mut w, 7, changes.len());
        changes.iter().for_each(|change| write_table_change(&mut w, change));
        end_record(&mut w, start);
        w.bytes.split_off(8)
    }

    #[test]
    fn what_becomes_of_tables_is_read_as_it_was_written_and_nothing_else_is() {
        let made = NewTable { id: 3, kind: TableKind::Hash, name: "new".into(), ttl_ms: 0 };
        let cache = NewTable { id: 4, kind: TableKind::Ordered, name: "cache".into(), ttl_ms: 60_000 };
        let changes = [
            TableChange::Dropped(9),
            TableChange::Renamed(8, "n".repeat(NAME_BYTES_MAX).into()),
            TableChange::Lives(7, 60_000),
            TableChange::Lives(8, 0),
            TableChange::Made(made),
            TableChange::Made(cache),
        ];
        let bytes = record(&changes);
        let (seq, parts) = read_record(&bytes, 0).unwrap();
        assert!(parts.iter().all(|p| p.block.is_empty() && p.ranges.is_empty() && p.segments.is_empty()));
        assert!(parts.iter().map(|p| p.table).eq(changes.iter().map(TableChange::id)));
        assert_eq!((seq, parts.into_iter().filter_map(|p| p.change).collect()), (7, changes.to_vec()));
        assert!((0..bytes.len()).all(|n| read_record(&bytes[..n], 0).is_err()));
        for name in ["", "\0index\x001\0i", &"n".repeat(NAME_BYTES_MAX + 1)] {
            let renamed = record(&[TableChange::Renamed(8, name.into())]);
            assert!(read_record(&renamed, 0).is_err(), "{name:?}");
        }
        for (i, other) in [(0, 1), (0, 2), (1, 2), (2, 4), (3, 5)] {
            let mut swapped = changes.clone();
            swapped.swap(i, other);
            assert!(read_record(&record(&swapped), 0).is_err(), "{i} after {other}");
        }
        let cases = [
            (0, TableChange::Dropped(9)),
            (1, TableChange::Renamed(8, "again".into())),
            (2, TableChange::Lives(9, 1)),
            (2, TableChange::Lives(7, 1)),
            (2, TableChange::Lives(8, 1)),
            (2, TableChange::Lives(3, 1)),
        ];
        for (at, twice) in cases {
            let mut more = changes.to_vec();
            more.insert(at, twice);
            assert!(read_record(&record(&more), 0).is_err(), "{more:?}");
        }
        let both = [TableChange::Dropped(9), TableChange::Renamed(9, "n".into())];
        assert!(read_record(&record(&both), 0).is_err(), "a table is dropped and renamed");
        let mut other = record(&[TableChange::Dropped(9)]);
        for form in FORM_LIVES + 1..=u8::MAX {
            *other.last_mut().unwrap() = form;
            assert!(read_record(&other, 0).is_err(), "form {form}");
        }
    }
}
