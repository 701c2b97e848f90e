//! Writes a run: takes blocks of sorted records, and writes pages in large writes.
//!
//! Pages gather in a buffer of 4 MiB, or less with a small budget. A full buffer is one write to the storage,
//! and writeback begins at once. The writer waits only for what it wrote 64 MiB ago. So the kernel never
//! holds many dirty pages of the engine, and a log sync does not wait behind a merge. A run that fits into
//! the buffer is one write, to an extent of exactly its size. One over 1 MiB may fill a smaller hole first.

use super::Store;
use super::filter::FilterBuilder;
use super::label::{Label, Origin, covered};
use super::meta::Meta;
use crate::base::checksum::seed;
use crate::base::codec::{u32_of, usize_of};
use crate::base::error::{Error, Result};
use crate::base::hash::filter_hash8;
use crate::base::key::{SortKey, common_prefix};
use crate::base::limits::{ALIGN_BYTES, PAGE_BYTES, WRITEBACK_WINDOW_BYTES, align_up};
use crate::format::block::{Block, Fixed, Tag};
use crate::format::expiry::{Expiring, WORD_BYTES};
use crate::format::manifest::RunInfo;
use crate::format::operand::Operands;
use crate::format::page::FILTER_PAGE_BASE;
use crate::format::page::{
    GeneralBuilder, PageIdentity, TAIL_BYTES, build_fixed, records_to_fill, seal, seal_records,
};
use crate::format::ranges::Ranges;
use crate::space::Extent;
use std::collections::{BTreeMap, VecDeque};

/// A buffer is not split into smaller parts than this to fill holes.
const PART_BYTES_MIN: u64 = 1 << 20;
/// The same on a nearly full disk.
const TIGHT_PART_BYTES_MIN: u64 = PAGE_BYTES as u64;

/// Runs with no more data than this have no filter. A filter has whole pages, which would be a large part of
/// a small file. It would only save a look into one of a few pages.
const FILTERED_BYTES_MIN: u64 = 4 * PAGE_BYTES as u64;
/// The same on a nearly full disk.
const TIGHT_FILTERED_BYTES_MIN: u64 = 16 * PAGE_BYTES as u64;

/// A longer key of the fence is cut to the bytes that tell two pages apart.
const FENCE_KEY_FULL_BYTES: usize = 8;

/// The form of all pages so far.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    None,
    Fixed(Fixed),
    Mixed,
}

/// Builds one run. If it is dropped before `finish`, it frees its extents.
pub(crate) struct RunWriter {
    store: Store,
    id: u64,
    seed: u32,
    origin: Origin,
    /// Records that are not in a page yet, from `pending_from` on.
    pending: Block,
    pending_from: usize,
    /// The size of a unit.
    page_bytes: usize,
    builder: GeneralBuilder,
    fixed_hint: usize,
    form: Form,
    buf: Vec<u8>,
    extents: Vec<Extent>,
    /// Parts that were written, but may not have reached the device.
    unsettled: VecDeque<Extent>,
    unsettled_bytes: u64,
    units: u32,
    /// Bytes at the end of the last page that nothing uses, in whole blocks.
    unused: usize,
    fence: Vec<Vec<u8>>,
    page_units: Vec<u32>,
    last_key: Vec<u8>,
    first_key: Option<Vec<u8>>,
    filter: Option<FilterBuilder>,
    hashes: Vec<u64>,
    records: u64,
    deletes: u64,
    expiring: Expiring,
    operands: Operands,
    large: BTreeMap<u32, u64>,
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        for &extent in &self.extents {
            self.store.room.space.free(extent);
        }
    }
}

impl RunWriter {
    /// A writer of run `id`, for records of this origin. `filter_keys` is at least the number of records that
    /// will come. 0: no filter.
    pub(crate) fn new(store: &Store, id: u64, origin: Origin, filter_keys: u64) -> RunWriter {
        RunWriter {
            store: store.clone(),
            id,
            seed: seed(store.file_id, id),
            origin,
            pending: Block::new(None),
            pending_from: 0,
            page_bytes: PAGE_BYTES,
            builder: GeneralBuilder::new(PAGE_BYTES),
            fixed_hint: 1024,
            form: Form::None,
            buf: Vec::new(),
            extents: Vec::new(),
            unsettled: VecDeque::new(),
            unsettled_bytes: 0,
            units: 0,
            unused: 0,
            fence: Vec::new(),
            page_units: Vec::new(),
            last_key: Vec::new(),
            first_key: None,
            filter: (filter_keys > 0).then(|| FilterBuilder::new(filter_keys)),
            hashes: Vec::new(),
            records: 0,
            deletes: 0,
            expiring: Expiring::default(),
            operands: Operands::default(),
            large: BTreeMap::new(),
        }
    }

    /// The same, with units of 4 KiB, which the engine does not write.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn of_small_pages(mut self) -> RunWriter {
        self.page_bytes = crate::base::limits::SMALL_PAGE_BYTES;
        self.builder = GeneralBuilder::new(self.page_bytes);
        self
    }

    /// Records so far.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Bytes of pages so far, about.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.units) * self.page_bytes as u64 + self.pending.bytes() as u64
    }

    /// Notes that a record refers to `bytes` of a value segment.
    pub(crate) fn refer(&mut self, segment: u32, bytes: u64) {
        *self.large.entry(segment).or_default() += bytes;
    }

    /// Takes all records of `block`. REQUIRES: they are above those taken before.
    pub(crate) fn append(&mut self, block: &Block) -> Result<()> {
        if block.is_empty() {
            return Ok(());
        }
        let form = block.fixed.or_else(|| uniform(block));
        self.count(block);
        if self.pending.len() > self.pending_from && self.pending.fixed != form {
            self.cut(true)?;
        }
        if self.pending.len() == self.pending_from {
            self.pending.reset(form);
            self.pending_from = 0;
        }
        self.take(block, form);
        self.cut(false)
    }

    fn count(&mut self, block: &Block) {
        let mut tmp = [0; 8];
        if self.first_key.is_none() {
            self.first_key = Some(block.key(0, &mut tmp).to_vec());
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(block.key(block.len() - 1, &mut tmp));
        self.records += block.len() as u64;
        let (mut deletes, mut words) = (0, 0);
        match block.fixed.map(|f| f.tag) {
            Some(Tag::Tombstone) => deletes = block.len() as u64,
            Some(Tag::Expiring | Tag::Operand) => words = block.len() as u64,
            Some(Tag::Put | Tag::Large) => {}
            None => block.recs.iter().for_each(|r| {
                deletes += u64::from(r.tag() == Tag::Tombstone);
                words += u64::from(r.tag() == Tag::Expiring);
            }),
        }
        self.deletes += deletes;
        if words > 0 {
            self.expiring = self.expiring.and(block.expiring());
            self.operands = self.operands.and(block.operands());
        }
        let Some(filter) = &mut self.filter else { return };
        self.hashes.clear();
        let kind = self.origin.kind;
        if block.fixed.is_some() {
            self.hashes.extend(block.heads.iter().map(|&h| filter_hash8(h)));
        } else {
            let keys = (0..block.len()).map(|i| SortKey::new(block.general_key(i)));
            self.hashes.extend(keys.map(|k| kind.filter_hash(k)));
        }
        filter.add_all(&self.hashes);
    }

    /// Copies records to `pending`, in the form of the pages to come.
    fn take(&mut self, block: &Block, form: Option<Fixed>) {
        let pending = &mut self.pending;
        if block.fixed.is_some() {
            pending.heads.extend_from_slice(&block.heads);
            pending.heap.extend_from_slice(&block.heap);
        } else if form.is_some() {
            for i in 0..block.len() {
                pending.push(block.general_key(i), block.tag(i), block.value(i));
            }
        } else {
            pending.append_general(block, 0, block.len());
        }
    }

    /// Cuts pages off `pending`: all of them, or as long as another full page is sure to follow.
    fn cut(&mut self, all: bool) -> Result<()> {
        let start = self.pending_from;
        while self.pending_from < self.pending.len() && (all || self.fills_a_page()) {
            let before = self.buf.len();
            let first = self.pending_from;
            if self.buf.capacity() == 0 {
                self.buf.reserve_exact(self.expected_bytes());
            }
            let (n, used) = self.build_page();
            self.pending_from += n;
            self.note_page(first, before, used);
            let full = self.store.buffers.write;
            if self.buf.len() >= full {
                self.write_buffer(full)?;
            }
        }
        if self.pending_from > start {
            self.pending.drop_front(self.pending_from);
            self.pending_from = 0;
        }
        Ok(())
    }

    /// Whether the pending records surely fill a page, however well they pack.
    fn fills_a_page(&self) -> bool {
        let left = self.pending.len() - self.pending_from;
        match self.pending.fixed {
            Some(f) => left >= records_to_fill(f.page_stride(), self.page_bytes),
            // Raw bytes of three pages: shared prefixes rarely save more than that.
            None => {
                let first = self.pending.recs[self.pending_from];
                // Words are packed well.
                let words = if first.tag() == Tag::Expiring { left * WORD_BYTES } else { 0 };
                self.pending.heap.len() - usize_of(first.offset) >= 3 * self.page_bytes + words
            }
        }
    }

    /// Bytes for a full buffer, or for all of a small run.
    fn expected_bytes(&self) -> usize {
        let all = self.pending.bytes() * 2 + PAGE_BYTES;
        let full = self.store.buffers.write;
        if all < full / 8 { all } else { full + 2 * PAGE_BYTES }
    }

    fn build_page(&mut self) -> (usize, usize) {
        match self.pending.fixed {
            None => {
                self.merge_form(Form::Mixed);
                self.builder.build(&self.pending, self.pending_from, &mut self.buf)
            }
            Some(f) if f.page_stride() > crate::base::limits::INLINE_VALUE_BYTES_MAX => {
                unreachable!("values this long are stored apart")
            }
            Some(f) => {
                self.merge_form(Form::Fixed(f));
                let start = self.buf.len();
                self.buf.resize(start + self.page_bytes, 0);
                let from = self.pending_from;
                let values = &self.pending.heap[from * usize_of(f.stride)..];
                let heads = &self.pending.heads[from..];
                let (n, used) = build_fixed(heads, values, f, self.fixed_hint, &mut self.buf[start..]);
                self.fixed_hint = n;
                (n, used)
            }
        }
    }

    fn merge_form(&mut self, form: Form) {
        if self.form == Form::None {
            self.form = form;
        } else if self.form != form {
            self.form = Form::Mixed;
        }
    }

    /// Seals the page that was just built at `start` of the buffer, and notes its key for the fence.
    fn note_page(&mut self, first: usize, start: usize, used: usize) {
        let mut tmp = [0; 8];
        let mut tmp_last = [0; 8];
        let key = self.pending.key(first, &mut tmp);
        // What must stand there depends on the key before. That one is in `pending`, unless the page begins
        // there: then it is the whole key.
        let least = if first == 0 || key.len() <= FENCE_KEY_FULL_BYTES {
            key
        } else {
            let before = self.pending.key(first - 1, &mut tmp_last);
            &key[..(common_prefix(before, key) + 1).min(key.len())]
        };
        self.fence.push(least.to_vec());
        let page = &mut self.buf[start..];
        // Readers in the file's mapping need all bytes that a page may use in one piece.
        let end = (used + TAIL_BYTES).next_multiple_of(ALIGN_BYTES as usize);
        self.unused = page.len().saturating_sub(end);
        let Origin { table, kind, .. } = self.origin;
        seal_records(page, self.seed, PageIdentity { table, kind, run: self.id, number: self.units });
        self.page_units.push(self.units);
        self.units += u32_of(page.len() / self.page_bytes);
    }

    /// Writes the first `len` bytes of the buffer at the run's end.
    fn write_buffer(&mut self, len: usize) -> Result<()> {
        let mut buf = std::mem::take(&mut self.buf);
        let written = self.write_all(&buf[..len]);
        buf.drain(..len);
        self.buf = buf;
        written
    }

    /// Writes `bytes` at the run's end.
    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        let mut from = 0;
        while from < bytes.len() {
            let left = (bytes.len() - from) as u64;
            // Parts are whole units, so that no data page is split between extents. (Filter pages may be
            // split: they begin behind a last data page that is cut short.)
            let room = &self.store.room;
            let least = left.min(if room.is_tight() { TIGHT_PART_BYTES_MIN } else { PART_BYTES_MIN });
            let extent = room.take(align_up(least), align_up(left), "writing a run")?;
            let extent = self.whole_pages(extent, left);
            self.extents.push(extent);
            let n = usize_of(u32::try_from(extent.len.min(left)).unwrap_or(u32::MAX));
            self.write_part(&bytes[from..from + n], extent)?;
            from += n;
        }
        Ok(())
    }

    /// Cuts an extent to whole pages, unless it is the last one of the buffer.
    fn whole_pages(&self, extent: Extent, left: u64) -> Extent {
        let page = PAGE_BYTES as u64;
        if extent.len >= left || extent.len.is_multiple_of(page) {
            return extent;
        }
        self.store.room.space.shrink(extent, extent.len / page * page)
    }

    fn write_part(&mut self, bytes: &[u8], extent: Extent) -> Result<()> {
        let file = &self.store.file;
        self.store.bulk.write_at(bytes, extent.offset).map_err(|e| Error::io("writing a run", e))?;
        file.write_back(extent.offset, bytes.len() as u64);
        self.unsettled.push_back(extent);
        self.unsettled_bytes += extent.len;
        while self.unsettled_bytes > WRITEBACK_WINDOW_BYTES {
            let Some(old) = self.unsettled.pop_front() else { break };
            file.wait_written(old.offset, old.len);
            self.unsettled_bytes -= old.len;
        }
        Ok(())
    }

    /// Writes what is left, the filter and the meta block. Returns None if the run is empty. The caller syncs
    /// the file before it names the run in a checkpoint. `before` is the largest key of the partition before
    /// this one. `last` says that no partition follows.
    pub(crate) fn finish(
        mut self,
        ranges: &Ranges,
        before: Option<&[u8]>,
        last: bool,
    ) -> Result<Option<RunInfo>> {
        self.cut(true)?;
        if self.records == 0 && ranges.is_empty() {
            return Ok(None);
        }
        let mut data_bytes = u64::from(self.units) * self.page_bytes as u64;
        data_bytes -= self.trim_last_page();
        let filter_blocks = self.append_filter()?;
        // As many pages as units: every page has one unit.
        let plain = self.page_units.len() == usize_of(self.units);
        let units = (!plain).then(|| std::mem::take(&mut self.page_units));
        // The covered stretch begins behind the partition before this one.
        let from = before.map_or(Vec::new(), |max| [max, &[0]].concat());
        let label = self.label(from.clone(), last);
        let meta = Meta::new(&self.fence, units, ranges.clone()).encode(self.seed, &label);
        self.buf.extend_from_slice(&meta);
        self.buf.resize(usize_of(u32_of(self.buf.len())).next_multiple_of(ALIGN_BYTES as usize), 0);
        let len = self.buf.len();
        self.write_buffer(len)?;
        // A run that has only range deletes has no key of its own.
        let min = self.first_key.take().unwrap_or(from);
        Ok(Some(RunInfo {
            id: self.id,
            extents: join(std::mem::take(&mut self.extents)),
            page_bytes: self.page_bytes,
            units: self.units,
            data_bytes,
            filter_blocks,
            meta_bytes: u32_of(meta.len()),
            records: self.records,
            deletes: self.deletes,
            ranges: u32_of(ranges.len()),
            fixed: match self.form {
                Form::Fixed(f) => Some(f),
                _ => None,
            },
            max: if self.records == 0 { min.clone() } else { std::mem::take(&mut self.last_key) },
            min,
            large: std::mem::take(&mut self.large).into_iter().collect(),
            expiring: self.expiring,
            operands: self.operands,
        }))
    }

    /// The run's label. A run of the oldest records covers the keys from `from` on.
    fn label(&self, from: Vec<u8>, last: bool) -> Label {
        let end = (!last).then(|| [&self.last_key[..], &[0]].concat());
        let covers = if self.origin.oldest { covered(from, end) } else { Ranges::default() };
        let (file_id, hash_seed) = (self.store.file_id, self.store.hash_seed);
        Label { file_id, hash_seed, run: self.id, origin: self.origin.clone(), covers }
    }

    /// Cuts the last page behind its used bytes, in whole blocks. Returns how many bytes it has cut.
    fn trim_last_page(&mut self) -> u64 {
        if self.buf.is_empty() {
            return 0;
        }
        self.buf.truncate(self.buf.len() - self.unused);
        self.unused as u64
    }

    /// Adds the filter behind the pages. A large one is written from where it was built.
    fn append_filter(&mut self) -> Result<u64> {
        let Some(filter) = self.filter.take() else { return Ok(0) };
        let least = if self.store.room.is_tight() { TIGHT_FILTERED_BYTES_MIN } else { FILTERED_BYTES_MIN };
        if self.records == 0 || u64::from(self.units) * self.page_bytes as u64 <= least {
            return Ok(0);
        }
        let mut filter = filter.finish_pages();
        for (i, page) in filter.pages_mut().iter_mut().enumerate() {
            seal(page, self.seed, FILTER_PAGE_BASE + u32_of(i));
        }
        let bytes = filter.pages_mut().as_flattened();
        if self.buf.len() + bytes.len() <= self.store.buffers.write {
            self.buf.extend_from_slice(bytes);
        } else {
            let len = self.buf.len();
            self.write_buffer(len)?;
            self.write_all(bytes)?;
        }
        Ok(filter.blocks())
    }
}

/// Joins extents that follow each other in the file.
fn join(extents: Vec<Extent>) -> Vec<Extent> {
    let mut out: Vec<Extent> = Vec::new();
    for e in extents {
        match out.last_mut() {
            Some(last) if last.offset + last.len == e.offset => last.len += e.len,
            _ => out.push(e),
        }
    }
    out
}

/// The widths of a general block whose records are all alike, if it can be written as fixed.
fn uniform(block: &Block) -> Option<Fixed> {
    let (tag, stride) = (block.tag(0), block.value(0).len());
    let alike = |i| block.general_key(i).len() == 8 && block.tag(i) == tag && block.value(i).len() == stride;
    (0..block.len()).all(alike).then(|| Fixed { stride: u32_of(stride), tag })
}
