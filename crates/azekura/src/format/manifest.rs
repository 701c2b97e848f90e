//! The manifest: everything that the file holds, written whole at each checkpoint.
//!
//! A run takes about 100 bytes here, more with long keys. While a table grows, a run holds a memtable or a
//! partition of data. So rewriting the manifest costs little beside a flush. A log of edits would save that,
//! and cost a second code path. Free space is what the manifest does not name.
//!
//! ```text
//! u64 next id | u32 next table id | u64 flushed sequence number
//! u32 n, then n logs:    u64 chain | u64 offset | u64 length | u64 first frame | u64 end frame
//! u32 n, then n tables:  u32 id | u8 kind | blob name | u32 levels, newest first, each:
//!                        u64 newest | u32 partitions in key order, each a run
//! u32 n, then n parts of value segments, those of one together: u32 id | u64 offset | u64 length | u64 used
//! u32 n, then n small tables, which have no runs: u32 id | u32 n, then n rows as in the log
//! u32 n, then n logs: u64 chain | u64 number below which all frames are durable
//! u64 what commits up to this one have made, renamed and dropped is in the tables
//! if records expire, or tables say how long theirs live: u64 the time of the file's clock
//!                        | u32 n, then n runs: u64 id | u64 records that expire | u64 the first | u64 the last
//!                        | u32 n, then n tables: u32 id | u64 how long their records live
//! run: u64 id | u32 extents, each u64 offset, u64 length | u32 units | u64 data bytes
//!      | u64 filter blocks | u32 meta bytes | u64 records | u64 deletes | u32 range deletes
//!      | u8 form (0 mixed, 1 fixed, 2 small pages) | u32 stride | u8 tag | blob smallest key | blob largest key
//!      | u32 n, then n value segments it refers to: u32 id | u64 bytes
//! blob: u32 length | bytes
//! ```

mod expiry;
mod operands;

use super::block::{Fixed, Tag};
use super::expiry::Expiring;
use super::few::Few;
use super::operand::Operands;
use crate::base::codec::{Reader, Writer, u32_of};
use crate::base::error::Result;
use crate::base::key::TableKind;
use crate::base::limits::{ALIGN_BYTES, NAME_BYTES_MAX, PAGE_BYTES, SMALL_PAGE_BYTES, SUPERBLOCKS_BYTES};
use crate::format::page::FILTER_PAGE_BASE;
use crate::space::Extent;
use std::sync::Arc;

/// What a table without runs takes, without its name.
const TABLE_BYTES: usize = 4 + 1 + 4 + 4;

/// A chain of log segments. The first segment leads to the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogChain {
    /// Unique in the file; every frame carries it.
    pub(crate) chain: u64,
    /// The first segment that is still needed.
    pub(crate) first: Extent,
    /// The number of the first frame in that segment.
    pub(crate) first_frame: u64,
    /// The number after the last frame, once recovery has seen the end of the chain. Before that, `u64::MAX`.
    pub(crate) end_frame: u64,
    /// Frames below this number were durable when the manifest was written: if one is missing, the file is
    /// damaged.
    pub(crate) durable_below: u64,
}

/// One run: a sorted, immutable set of records of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunInfo {
    pub(crate) id: u64,
    pub(crate) extents: Vec<Extent>,
    /// The size of a unit: `PAGE_BYTES`, or `SMALL_PAGE_BYTES` in a run of small general records.
    pub(crate) page_bytes: usize,
    /// Units of data pages. The last one may be cut short in the file.
    pub(crate) units: u32,
    /// Where the filter begins, in bytes from the start of the run.
    pub(crate) data_bytes: u64,
    /// Blocks of the filter. 0: there is none.
    pub(crate) filter_blocks: u64,
    /// Length of the meta block, with which the run ends.
    pub(crate) meta_bytes: u32,
    pub(crate) records: u64,
    /// How many of the records are tombstones.
    pub(crate) deletes: u64,
    /// How many range deletes the meta block has.
    pub(crate) ranges: u32,
    /// The widths of all pages, if they share them.
    pub(crate) fixed: Option<Fixed>,
    pub(crate) min: Vec<u8>,
    pub(crate) max: Vec<u8>,
    /// For each value segment, in ascending order, how many of its bytes the records refer to.
    pub(crate) large: Vec<(u32, u64)>,
    /// Of the records that expire.
    pub(crate) expiring: Expiring,
    /// Of those that are operands.
    pub(crate) operands: Operands,
}

/// One level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LevelInfo {
    /// Commits with a larger number are newer than this level; see `run::label`.
    pub(crate) newest: u64,
    /// Its partitions, in key order.
    pub(crate) runs: Vec<RunInfo>,
}

/// One table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableInfo {
    pub(crate) id: u32,
    pub(crate) kind: TableKind,
    pub(crate) name: Arc<str>,
    /// Levels, newest first.
    pub(crate) levels: Vec<LevelInfo>,
    /// How long its records live if nothing else is said, in milliseconds. 0: until they are removed.
    pub(crate) ttl_ms: u64,
}

/// One value segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueInfo {
    pub(crate) id: u32,
    /// Where its bytes are, in order. Never empty.
    pub(crate) extents: Vec<Extent>,
    /// How many of its bytes runs may refer to: all but a part of the last extent.
    pub(crate) used: u64,
}

impl ValueInfo {
    /// Bytes that the segment takes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.extents.iter().map(|e| e.len).sum()
    }

    /// Shortens the segment to its first `bytes`, a multiple of [`ALIGN_BYTES`] and not zero.
    pub(crate) fn cut(&mut self, bytes: u64) {
        let mut rest = bytes;
        self.extents.retain_mut(|e| {
            e.len = e.len.min(rest);
            rest -= e.len;
            e.len > 0
        });
    }
}

/// The state of the file at one checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) next_id: u64,
    /// The next table's id. No two tables ever get the same id, so an old log record cannot meet a new table.
    pub(crate) next_table: u32,
    pub(crate) flushed_seq: u64,
    pub(crate) logs: Vec<LogChain>,
    pub(crate) tables: Vec<TableInfo>,
    pub(crate) values: Vec<ValueInfo>,
    /// The records of small tables, which have no runs.
    pub(crate) few: Vec<(u32, Few)>,
    /// What commits up to this one have made, renamed and dropped is in `tables`. None in older files: there
    /// `next_table` says which tables of the log are known.
    pub(crate) tables_seq: Option<u64>,
    /// The time of the file's clock. None if nothing has ever expired in the file.
    pub(crate) clock_ms: Option<u64>,
}

impl Manifest {
    pub(crate) fn encode(&self) -> Vec<u8> {
        // Reserved at once: a vector that grows has both its old and its new memory while it is copied.
        let tables: usize = self.tables.iter().map(|t| TABLE_BYTES + t.name.len()).sum();
        let few: usize = self.few.iter().map(|f| 4 + f.1.bytes().len()).sum();
        let mut w = Writer { bytes: Vec::with_capacity(tables + few + ALIGN_BYTES as usize) };
        w.u64(self.next_id);
        w.u32(self.next_table);
        w.u64(self.flushed_seq);
        w.u32(u32_of(self.logs.len()));
        for log in &self.logs {
            w.u64(log.chain);
            w.u64(log.first.offset);
            w.u64(log.first.len);
            w.u64(log.first_frame);
            w.u64(log.end_frame);
        }
        w.u32(u32_of(self.tables.len()));
        for table in &self.tables {
            encode_table(&mut w, table);
        }
        w.u32(u32_of(self.values.iter().map(|v| v.extents.len()).sum()));
        for value in &self.values {
            let mut rest = value.used;
            for extent in &value.extents {
                let used = rest.min(extent.len);
                rest -= used;
                w.u32(value.id);
                w.u64(extent.offset);
                w.u64(extent.len);
                w.u64(used);
            }
        }
        w.u32(u32_of(self.few.len()));
        for (table, few) in &self.few {
            w.u32(*table);
            w.bytes.extend_from_slice(few.bytes());
        }
        w.u32(u32_of(self.logs.len()));
        for log in &self.logs {
            w.u64(log.chain);
            w.u64(log.durable_below);
        }
        if let Some(seq) = self.tables_seq {
            w.u64(seq);
            self.encode_expiry(&mut w);
        }
        w.bytes
    }

    /// Reads a manifest that stands at offset `at` of the file.
    pub(crate) fn decode(bytes: &[u8], at: u64) -> Result<Manifest> {
        let mut r = Reader::new(bytes, "manifest", at);
        let (next_id, next_table, flushed_seq) = (r.counted()?, r.counted_short()?, r.counted()?);
        let mut m = Manifest { next_id, next_table, flushed_seq, ..Manifest::default() };
        for _ in 0..r.count(40)? {
            let chain = r.counted()?;
            let first = decode_extent(&mut r)?;
            let (first_frame, end_frame) = (r.counted()?, r.u64()?);
            m.logs.push(LogChain { chain, first, first_frame, end_frame, durable_below: 0 });
        }
        for _ in 0..r.count(13)? {
            m.tables.push(decode_table(&mut r)?);
        }
        m.decode_values(&mut r)?;
        // (A manifest may end here, without small tables.)
        let few = if r.remaining() > 0 { r.count(8)? } else { 0 };
        for _ in 0..few {
            m.few.push((r.counted_short()?, Few::decode(&mut r)?));
        }
        // (A manifest may end here, without what is durable of the logs.)
        let durable = if r.remaining() > 0 { r.count(16)? } else { 0 };
        m.decode_durable(&mut r, durable)?;
        // (Or here, without what the log need not say of tables.)
        m.tables_seq = if r.remaining() > 0 { Some(r.counted()?) } else { None };
        if r.remaining() > 0 {
            m.decode_expiry(&mut r)?;
        }
        r.finish()?;
        Ok(m)
    }

    /// Reads the extents of the value segments.
    fn decode_values(&mut self, r: &mut Reader<'_>) -> Result<()> {
        // Bytes of the last segment so far. Adding them up anew for each part would take quadratic time.
        let mut bytes = 0;
        for _ in 0..r.count(28)? {
            let (id, extent, used) = (r.counted_short()?, decode_extent(r)?, r.u64()?);
            if used > extent.len {
                return Err(r.bad(format!("value segment {id} uses {used} of {} bytes", extent.len)));
            }
            match self.values.last_mut().filter(|v| v.id == id) {
                Some(v) if v.used < bytes => {
                    return Err(r.bad(format!("a part of value segment {id} is not full, and not its last")));
                }
                Some(_) if bytes + extent.len > i64::MAX as u64 => {
                    return Err(r.bad(format!("value segment {id} is longer than a file can be")));
                }
                Some(v) => {
                    v.extents.push(extent);
                    v.used += used;
                    bytes += extent.len;
                }
                None => {
                    self.values.push(ValueInfo { id, extents: vec![extent], used });
                    bytes = extent.len;
                }
            }
        }
        Ok(())
    }

    /// Reads what is durable of `count` logs.
    fn decode_durable(&mut self, r: &mut Reader<'_>, count: usize) -> Result<()> {
        let mut logs = self.logs.iter_mut();
        for _ in 0..count {
            let (chain, below) = (r.u64()?, r.u64()?);
            match logs.find(|log| log.chain == chain) {
                Some(log) => log.durable_below = below,
                None => {
                    return Err(
                        r.bad(format!("frames of chain {chain}, which it does not have, are durable"))
                    );
                }
            }
        }
        Ok(())
    }
}

fn decode_extent(r: &mut Reader<'_>) -> Result<Extent> {
    let (offset, len) = (r.u64()?, r.u64()?);
    let aligned = offset % ALIGN_BYTES == 0 && len % ALIGN_BYTES == 0;
    if !aligned
        || len == 0
        || offset < SUPERBLOCKS_BYTES
        || offset.checked_add(len).is_none_or(|e| e > i64::MAX as u64)
    {
        return Err(r.bad(format!("extent {offset}+{len} is impossible")));
    }
    Ok(Extent { offset, len })
}

fn encode_table(w: &mut Writer, table: &TableInfo) {
    w.u32(table.id);
    w.u8(table.kind.code());
    w.blob(table.name.as_bytes());
    w.u32(u32_of(table.levels.len()));
    for level in &table.levels {
        w.u64(level.newest);
        w.u32(u32_of(level.runs.len()));
        for run in &level.runs {
            encode_run(w, run);
        }
    }
}

fn decode_table(r: &mut Reader<'_>) -> Result<TableInfo> {
    let id = r.counted_short()?;
    let code = r.u8()?;
    let kind =
        TableKind::from_code(code).ok_or_else(|| r.bad(format!("table {id} is of unknown kind {code}")))?;
    let name = std::str::from_utf8(r.blob()?).map_err(|_| r.bad(format!("table {id}: name is not UTF-8")))?;
    if name.len() > NAME_BYTES_MAX {
        return Err(r.bad(format!("table {id}: a name of {} bytes", name.len())));
    }
    let name = name.into();
    let mut levels = Vec::new();
    for _ in 0..r.count(12)? {
        let newest = r.counted()?;
        let mut runs = Vec::new();
        for _ in 0..r.count(70)? {
            runs.push(decode_run(r)?);
        }
        levels.push(LevelInfo { newest, runs });
    }
    Ok(TableInfo { id, kind, name, levels, ttl_ms: 0 })
}

/// The forms of a run: pages of any shape, fixed pages only, and pages of any shape in units of 4 KiB.
const FORM_MIXED: u8 = 0;
const FORM_FIXED: u8 = 1;
const FORM_SMALL: u8 = 2;

fn form_of(run: &RunInfo) -> u8 {
    debug_assert!(run.page_bytes == PAGE_BYTES || run.fixed.is_none(), "fixed-width runs have large pages");
    match (run.page_bytes, run.fixed) {
        (SMALL_PAGE_BYTES, _) => FORM_SMALL,
        (_, Some(_)) => FORM_FIXED,
        (_, None) => FORM_MIXED,
    }
}

fn encode_run(w: &mut Writer, run: &RunInfo) {
    w.u64(run.id);
    w.u32(u32_of(run.extents.len()));
    for e in &run.extents {
        w.u64(e.offset);
        w.u64(e.len);
    }
    w.u32(run.units);
    w.u64(run.data_bytes);
    w.u64(run.filter_blocks);
    w.u32(run.meta_bytes);
    w.u64(run.records);
    w.u64(run.deletes);
    w.u32(run.ranges);
    w.u8(form_of(run));
    w.u32(run.fixed.map_or(0, |f| f.stride));
    w.u8(run.fixed.map_or(0, |f| f.tag as u8));
    w.blob(&run.min);
    w.blob(&run.max);
    w.u32(u32_of(run.large.len()));
    for &(id, bytes) in &run.large {
        w.u32(id);
        w.u64(bytes);
    }
}

fn decode_run(r: &mut Reader<'_>) -> Result<RunInfo> {
    let id = r.counted()?;
    let mut extents = Vec::new();
    for _ in 0..r.count(16)? {
        extents.push(decode_extent(r)?);
    }
    let (units, data_bytes, filter_blocks, meta_bytes) = (r.u32()?, r.u64()?, r.u64()?, r.u32()?);
    let (records, deletes, ranges) = (r.u64()?, r.u64()?, r.u32()?);
    let (form, stride, tag) = (r.u8()?, r.u32()?, r.u8()?);
    let tag = Tag::from_code(tag).ok_or_else(|| r.bad(format!("run {id}: unknown tag {tag}")))?;
    let (min, max) = (r.blob()?.to_vec(), r.blob()?.to_vec());
    let mut large = Vec::new();
    for _ in 0..r.count(12)? {
        large.push((r.u32()?, r.u64()?));
    }
    let fixed = (form == FORM_FIXED).then_some(Fixed { stride, tag });
    let page_bytes = match form {
        FORM_MIXED | FORM_FIXED => PAGE_BYTES,
        FORM_SMALL => SMALL_PAGE_BYTES,
        _ => return Err(r.bad(format!("run {id}: unknown form {form}"))),
    };
    let run = RunInfo {
        id,
        extents,
        page_bytes,
        units,
        data_bytes,
        filter_blocks,
        meta_bytes,
        records,
        deletes,
        ranges,
        fixed,
        min,
        max,
        large,
        expiring: Expiring::default(),
        operands: Operands::default(),
    };
    if !run.sizes_agree() {
        return Err(r.bad(format!("run {id}: its parts do not fit its extents")));
    }
    Ok(run)
}

impl RunInfo {
    /// Bytes that the run takes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.extents.iter().map(|e| e.len).sum()
    }

    /// Where the meta block begins, in bytes from the start of the run.
    pub(crate) fn meta_at(&self) -> u64 {
        self.data_bytes + self.filter_pages() * PAGE_BYTES as u64
    }

    /// How many pages the filter takes.
    pub(crate) fn filter_pages(&self) -> u64 {
        self.filter_blocks.div_ceil(crate::format::page::BLOCKS_PER_PAGE)
    }

    fn sizes_agree(&self) -> bool {
        let cut = self.page_bytes as u64;
        let whole = u64::from(self.units) * cut;
        let data = self.data_bytes <= whole
            && self.data_bytes + cut > whole
            && self.data_bytes.is_multiple_of(ALIGN_BYTES);
        let sum: u128 = self.extents.iter().map(|e| u128::from(e.len)).sum();
        let filter = u128::from(self.filter_blocks).div_ceil(255) * PAGE_BYTES as u128;
        // A page counts its records in 16 bits. The check matters, since merges reserve memory by these
        // numbers.
        let counts =
            self.records <= u64::from(self.units) * u64::from(u16::MAX) && self.deletes <= self.records;
        // Data pages and filter pages are numbered separately, in 31 bits each.
        let numbers = self.units < FILTER_PAGE_BASE && self.filter_pages() < u64::from(FILTER_PAGE_BASE);
        data && counts && numbers && u128::from(self.data_bytes) + filter + u128::from(self.meta_bytes) <= sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::Error;
    use crate::base::limits::{COUNT_END, SHORT_COUNT_END};

    /// Bytes of the list of durable frames in the encoded sample.
    const SAMPLE_DURABLE_BYTES: usize = 4 + 8 + 8;

    /// Bytes of what says which commits the tables show.
    const SAMPLE_TABLES_BYTES: usize = 8;

    /// Bytes of the small tables of `sample`: one table with one row.
    const SAMPLE_FEW_BYTES: usize = 4 + 4 + 4 + 9 + 3 + 5;

    fn sample() -> Manifest {
        let mut block = crate::format::block::Block::new(None);
        block.push(b"key", Tag::Put, b"value");
        let few = Few::of(&block).unwrap();
        let run = RunInfo {
            id: 3,
            extents: vec![Extent { offset: 8192, len: 40_960 }],
            page_bytes: PAGE_BYTES,
            units: 2,
            data_bytes: 20_480,
            filter_blocks: 7,
            meta_bytes: 100,
            records: 9,
            deletes: 1,
            ranges: 0,
            fixed: Some(Fixed { stride: 8, tag: Tag::Put }),
            min: b"a".to_vec(),
            max: b"zz".to_vec(),
            large: vec![(1, 500)],
            expiring: Expiring::default(),
            operands: Operands::default(),
        };
        Manifest {
            next_id: 10,
            next_table: 2,
            flushed_seq: 77,
            logs: vec![LogChain {
                chain: 4,
                first: Extent { offset: 65_536, len: 4096 },
                first_frame: 1,
                end_frame: u64::MAX,
                durable_below: 9,
            }],
            tables: vec![TableInfo {
                id: 1,
                kind: TableKind::Hash,
                name: "t".into(),
                levels: vec![LevelInfo { newest: 70, runs: vec![run] }],
                ttl_ms: 0,
            }],
            values: vec![ValueInfo {
                id: 1,
                extents: vec![Extent { offset: 131_072, len: 8192 }],
                used: 5000,
            }],
            few: vec![(2, few)],
            tables_seq: Some(78),
            clock_ms: None,
        }
    }

    #[test]
    fn what_expires_costs_nothing_where_nothing_does_and_comes_back() {
        let mut m = sample();
        let plain = m.encode().len();
        m.clock_ms = Some(1_000_000);
        assert_eq!(m.encode().len(), plain + 8 + 4 + 4);
        m.tables[0].ttl_ms = 60_000;
        m.tables[0].levels[0].runs[0].expiring = Expiring { records: 5, first_ms: 7, last_ms: 9 };
        let bytes = m.encode();
        assert_eq!(Manifest::decode(&bytes, 0).unwrap(), m);
        // (Without all of it, it is the manifest of an older file.)
        assert!((plain + 1..bytes.len()).all(|n| Manifest::decode(&bytes[..n], 0).is_err()));
        for (records, first_ms, last_ms) in [(10, 7, 9), (5, 9, 7)] {
            m.tables[0].levels[0].runs[0].expiring = Expiring { records, first_ms, last_ms };
            assert!(matches!(Manifest::decode(&m.encode(), 0), Err(Error::Corrupt { .. })));
        }
    }

    /// Code that prints a name relies on this limit.
    #[test]
    fn a_name_over_the_limit_is_refused() {
        let mut m = sample();
        m.tables[0].name = "n".repeat(NAME_BYTES_MAX).into();
        assert_eq!(Manifest::decode(&m.encode(), 0).unwrap(), m);
        m.tables[0].name = "n".repeat(NAME_BYTES_MAX + 1).into();
        assert!(matches!(Manifest::decode(&m.encode(), 0), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn round_trip_and_every_truncation_is_an_error() {
        let m = sample();
        let bytes = m.encode();
        assert_eq!(Manifest::decode(&bytes, 0).unwrap(), m);
        // Without what older files do not have, one after the other, a manifest is still valid.
        let old = bytes.len() - SAMPLE_TABLES_BYTES;
        let older = old - SAMPLE_DURABLE_BYTES;
        let oldest = older - SAMPLE_FEW_BYTES;
        for n in (0..bytes.len()).filter(|n| ![oldest, older, old].contains(n)) {
            assert!(Manifest::decode(&bytes[..n], 0).is_err(), "{n}");
        }
        let without = Manifest { tables_seq: None, ..m.clone() };
        assert_eq!(Manifest::decode(&bytes[..old], 0).unwrap(), without);
        assert_eq!(without.encode(), bytes[..old]);
        let mut old = without;
        old.logs[0].durable_below = 0;
        assert_eq!(Manifest::decode(&bytes[..older], 0).unwrap(), old);
        old.few.clear();
        assert_eq!(Manifest::decode(&bytes[..oldest], 0).unwrap(), old);
        let mut other = bytes;
        other[older + 4] ^= 1;
        assert!(matches!(Manifest::decode(&other, 0), Err(Error::Corrupt { .. })), "of another chain");
    }

    /// Found by the fuzzer: counting on from such a number overflows.
    #[test]
    fn numbers_to_which_nobody_has_counted_are_refused() {
        let of = |change: fn(&mut Manifest, u64)| {
            let decode = |n| {
                let mut manifest = sample();
                change(&mut manifest, n);
                Manifest::decode(&manifest.encode(), 0).is_ok()
            };
            let short = u64::from(SHORT_COUNT_END);
            [decode(short - 1), decode(short), decode(COUNT_END - 1), decode(COUNT_END), decode(u64::MAX)]
        };
        let long = [true, true, true, false, false];
        assert_eq!(of(|m, n| m.next_id = n), long);
        assert_eq!(of(|m, n| m.flushed_seq = n), long);
        assert_eq!(of(|m, n| m.tables_seq = Some(n)), long);
        assert_eq!(of(|m, n| m.logs[0].chain = n), long);
        assert_eq!(of(|m, n| m.logs[0].first_frame = n), long);
        assert_eq!(of(|m, n| m.tables[0].levels[0].runs[0].id = n), long);
        let short = [true, false, false, false, false];
        assert_eq!(of(|m, n| m.next_table = u32::try_from(n).unwrap_or(u32::MAX)), short);
        assert_eq!(of(|m, n| m.tables[0].id = u32::try_from(n).unwrap_or(u32::MAX)), short);
        assert_eq!(of(|m, n| m.values[0].id = u32::try_from(n).unwrap_or(u32::MAX)), short);
    }

    #[test]
    fn runs_of_every_form_come_back_and_others_are_refused() {
        let fixed = Fixed { stride: 8, tag: Tag::Put };
        for (page_bytes, fixed) in [(PAGE_BYTES, Some(fixed)), (PAGE_BYTES, None), (SMALL_PAGE_BYTES, None)] {
            let mut manifest = sample();
            let run = &mut manifest.tables[0].levels[0].runs[0];
            (run.page_bytes, run.fixed) = (page_bytes, fixed);
            run.units = u32_of(20_480usize.div_ceil(page_bytes));
            let mut bytes = manifest.encode();
            assert_eq!(Manifest::decode(&bytes, 0).unwrap(), manifest);
            let form = form_of(&manifest.tables[0].levels[0].runs[0]);
            // The form stands before stride, tag, both keys and the value segments of the run. A value
            // segment follows.
            let end = bytes.len() - SAMPLE_TABLES_BYTES - SAMPLE_DURABLE_BYTES - SAMPLE_FEW_BYTES;
            let at = end - (4 + 4 + 8 + 8 + 8) - (4 + 4 + 8) - (4 + 1 + 4 + 2) - (4 + 1) - 1;
            assert_eq!(bytes[at], form);
            for unknown in 3..=u8::MAX {
                bytes[at] = unknown;
                assert!(Manifest::decode(&bytes, 0).is_err(), "form {unknown}");
            }
        }
    }

    #[test]
    fn a_segment_in_several_parts_comes_back_and_all_but_its_last_are_full() {
        let part = |n: u64| Extent { offset: n << 20, len: 8192 };
        let mut manifest = sample();
        manifest.values.push(ValueInfo { id: 2, extents: vec![part(3), part(1), part(2)], used: 17_000 });
        manifest.values.push(ValueInfo { id: 3, extents: vec![part(4)], used: 8192 });
        let bytes = manifest.encode();
        assert_eq!(Manifest::decode(&bytes, 0).unwrap(), manifest);
        let of = |cut_bytes: u64| {
            let mut value = manifest.values[1].clone();
            value.cut(cut_bytes);
            value.extents
        };
        assert_eq!(of(24_576), [part(3), part(1), part(2)]);
        assert_eq!(of(20_480), [part(3), part(1), Extent { len: 4096, ..part(2) }]);
        assert_eq!(of(8192), [part(3)]);
        // The used length of the second of four parts, which stand at the end.
        let mut bytes = bytes;
        let end = bytes.len() - SAMPLE_TABLES_BYTES - SAMPLE_DURABLE_BYTES - SAMPLE_FEW_BYTES;
        let at = end - 2 * 28 - 8;
        bytes[at..at + 8].copy_from_slice(&8000u64.to_le_bytes());
        assert!(Manifest::decode(&bytes, 0).is_err());
    }

    /// Found by the fuzzer: merging such a run reserved a filter for all the records that it claims.
    #[test]
    fn a_run_with_more_records_than_its_pages_hold_is_refused() {
        let of = |change: fn(&mut RunInfo)| {
            let mut manifest = sample();
            let run = manifest
                .tables
                .iter_mut()
                .flat_map(|t| t.levels.iter_mut().flat_map(|l| &mut l.runs))
                .next()
                .unwrap();
            change(run);
            Manifest::decode(&manifest.encode(), 0)
        };
        assert!(of(|_| {}).is_ok());
        assert!(of(|run| run.records = u64::from(run.units) * 65_535 + 1).is_err());
        assert!(of(|run| run.deletes = run.records + 1).is_err());
    }

    /// This many pages would make their numbers overflow.
    #[test]
    fn a_run_with_more_pages_than_there_are_numbers_is_refused() {
        let of = |filter_pages: u64| {
            let mut manifest = sample();
            let run = manifest
                .tables
                .iter_mut()
                .flat_map(|t| t.levels.iter_mut().flat_map(|l| &mut l.runs))
                .next()
                .unwrap();
            run.filter_blocks = filter_pages * crate::format::page::BLOCKS_PER_PAGE;
            run.extents = vec![Extent { offset: 8192, len: 1 << 62 }];
            Manifest::decode(&manifest.encode(), 0)
        };
        assert!(of((1 << 31) - 1).is_ok());
        assert!(of(1 << 31).is_err());
        assert!(of(1 << 40).is_err());
    }
}
