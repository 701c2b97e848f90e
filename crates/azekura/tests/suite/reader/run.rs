//! Levels and runs: section 7.

use super::hashes::{filter_hash8, hash, head, page_checksum};
use super::page::{Doc, Node, blob, little_endian, take};
use super::words::{apart, operand_of, operator_of, without_word};
use super::{File, Range, Sorted, Tagged, ranges_in, ranges_of, remove};
use std::collections::BTreeMap;

/// A packed column of a page.
struct Column<'a> {
    base: u64,
    slope: u64,
    width: u64,
    bits: &'a [u8],
}

impl<'a> Column<'a> {
    fn new(b: &mut &'a [u8], n: u64, base: u64, slope: u64, width: u64) -> Column<'a> {
        Column { base, slope, width, bits: take(b, (n * width).div_ceil(8)) }
    }

    fn get(&self, i: u64) -> u64 {
        let bit = |b: u64| u64::from(self.bits[(b / 8) as usize] >> (b % 8) & 1);
        let residual = (0..self.width).fold(0, |r, k| r | bit(i * self.width + k) << k);
        self.base.wrapping_add(self.slope.wrapping_mul(i)).wrapping_add(residual)
    }
}

/// Whether a run's filter lets a sort key pass: section 7.2.
fn admits(doc: &Doc, filter: &[u8], blocks: u64, is_hash: bool, key: &[u8]) -> bool {
    let h = if is_hash || key.len() == 8 { filter_hash8(doc, head(key)) } else { hash(key, 0) };
    let block = ((u128::from(h) * u128::from(blocks)) >> 64) as u64;
    let (per_page, bytes) = (doc.constant("filter_blocks_per_page"), doc.constant("filter_block_bytes"));
    let start = block / per_page * doc.constant("page_bytes") + doc.constant("filter_header_bytes");
    let block = &filter[(start + block % per_page * bytes) as usize..][..bytes as usize];
    let g = h.wrapping_mul(doc.constant("filter_multiplier"));
    [55, 46, 37, 28, 19, 10].iter().all(|shift| {
        let bit = (g >> shift) as usize % 512;
        block[bit / 8] >> (bit % 8) & 1 == 1
    })
}

impl<'a> File<'a> {
    /// Applies one sorted run to what is older: section 7.4.
    pub(super) fn level(&mut self, level: &Node<'a>, is_hash: bool, next_id: u64, sorted: &mut Sorted) {
        self.seen.levels += 1;
        let (mut records, mut ranges) = (Vec::new(), Vec::new());
        let mut before: Option<&[u8]> = None;
        for run in level.list("partitions") {
            assert!(run.num("id") < next_id);
            assert!(before.is_none_or(|b| b < run.bytes("min")), "partitions overlap");
            let alone = before.map_or(Vec::new(), |b| [b, &[0]].concat());
            assert!(run.num("records") > 0 || run.bytes("min") == alone);
            before = Some(run.bytes("max"));
            self.run(run, is_hash, &mut records, &mut ranges);
        }
        ranges.iter().for_each(|r| remove(sorted, r));
        self.add(sorted, records);
    }

    /// Reads a run: pages, filter, meta block.
    fn run(
        &mut self,
        run: &Node<'a>,
        is_hash: bool,
        out: &mut Vec<(Vec<u8>, Tagged)>,
        ranges: &mut Vec<Range>,
    ) {
        let doc = self.doc;
        let mut bytes = Vec::new();
        for e in run.list("extents") {
            assert_eq!((e.num("offset") | e.num("bytes")) % doc.constant("alignment"), 0);
            bytes.extend_from_slice(self.slice(e.num("offset"), e.num("bytes")));
        }
        let filter_page = doc.constant("page_bytes") as usize;
        let (unit, is_fixed) = self.form(run);
        let (data, blocks) = (run.num("data_bytes") as usize, run.num("filter_blocks"));
        let filter_pages = blocks.div_ceil(doc.constant("filter_blocks_per_page")) as usize;
        let filter = &bytes[data..data + filter_pages * filter_page];
        let meta_at = data + filter.len();
        let meta = &bytes[meta_at..meta_at + run.num("meta_bytes") as usize];
        let (file_id, id) = (self.file_id, run.num("id"));
        let sum = |page, from: &[u8]| page_checksum(file_id, id, page, from);
        for (i, page) in filter.chunks(filter_page).enumerate() {
            assert_eq!(
                little_endian(&page[..4]),
                sum(doc.constant("filter_page_number") + i as u64, &page[4..])
            );
        }
        let mut rest = meta;
        let node = doc.sequence("meta", &mut rest);
        assert_eq!(node.num("checksum"), sum(doc.constant("meta_page_number"), &meta[4..]));
        self.label(&node, meta, id, run);
        let fixed = node.num("form") == doc.constant("fence_fixed");
        assert!(fixed || node.num("form") == doc.constant("fence_blobs"));
        let n = node.num("pages");
        let fence: Vec<&[u8]> =
            (0..n).map(|_| if fixed { take(&mut rest, 8) } else { blob(&mut rest) }).collect();
        let units = match take(&mut rest, 1)[0] {
            0 => (0..n).collect::<Vec<u64>>(),
            _ => (0..n).map(|_| little_endian(take(&mut rest, 4))).collect(),
        };
        let own = ranges_of(&doc.sequence("ranges", &mut rest));
        assert!(rest.is_empty() && own.len() as u64 == run.num("ranges"));
        let zeroes = bytes[meta_at + meta.len()..].iter().all(|&b| b == 0);
        let mut pages = bytes[..data].to_vec();
        pages.resize(run.num("units") as usize * unit, 0);
        assert!(zeroes && pages.len() - data < unit);
        let first = out.len();
        for (i, (&at, least)) in units.iter().zip(&fence).enumerate() {
            let end = units.get(i + 1).copied().unwrap_or(run.num("units"));
            let page = &pages[at as usize * unit..end as usize * unit];
            let node = doc.layout("page", page);
            assert_eq!(node.num("checksum"), sum(at, &page[4..]), "page {at}");
            assert_eq!((node.num("number"), node.num("run"), node.num("table")), (at, id, self.table));
            assert!(
                page[node.num("used") as usize..].iter().all(|&b| b == 0),
                "page {at} goes on behind its end"
            );
            let before = (out.len() > first).then(|| out[out.len() - 1].0.clone());
            let begin = out.len();
            self.page(&node, page, unit, out);
            let shape = node.num("shape") & !doc.constant("shape_expiring");
            let word = if node.num("tag") == doc.constant("tag_expiring") { 8 } else { 0 };
            let widths =
                (shape == doc.constant("shape_fixed"), node.num("common_bytes") + word, node.num("tag"));
            assert!(!is_fixed || widths == (true, run.num("value_bytes"), run.num("tag")));
            assert!(
                *least <= out[begin].0.as_slice() && before.is_none_or(|b| *b < **least),
                "key {i} of the fence"
            );
        }
        let records = &out[first..];
        assert!(records.windows(2).all(|w| w[0].0 < w[1].0), "keys out of order");
        assert_eq!(records.len() as u64, run.num("records"));
        let with = |tag| records.iter().filter(move |r| r.1.0 == tag);
        assert_eq!(with(doc.constant("tag_tombstone")).count() as u64, run.num("deletes"));
        let min = records.first().map_or(run.bytes("min"), |r| &r.0);
        let max = records.last().map_or(min, |r| &r.0);
        assert_eq!((min, max), (run.bytes("min"), run.bytes("max")));
        let mut referred = BTreeMap::new();
        let mut times: Vec<u64> = Vec::new();
        for (_, tagged) in records {
            let ((tag, value), time) = without_word(doc, tagged);
            times.extend(time);
            let is_large = tag == doc.constant("tag_large");
            let word = if operand_of(doc, tagged).is_some() { 8 } else { 0 };
            assert!(value.len() as u64 - word <= doc.constant("inline_value_bytes_max"));
            let operand = operand_of(doc, tagged).and_then(|operand| apart(doc, operand));
            let Some(reference) = operand.map(|o| o.1).or(is_large.then_some(&value)) else { continue };
            let at = doc.layout("reference", reference);
            *referred.entry(at.num("segment")).or_insert(0) += at.num("bytes");
        }
        assert!(
            referred.into_iter().eq(run.list("referred").iter().map(|r| (r.num("segment"), r.num("bytes"))))
        );
        let count = times.len() as u64;
        let expected = times.iter().min().zip(times.iter().max()).map(|(first, last)| [count, *first, *last]);
        assert_eq!(self.expiring.remove(&id), expected, "times of run {id}");
        let operands: Vec<_> = records.iter().filter_map(|(_, tagged)| operand_of(doc, tagged)).collect();
        let operators = || operands.iter().map(|operand| operator_of(doc, operand));
        let operator = operators().max().unwrap_or((0, 0));
        assert!(operators().all(|o| o == operator || o.0 == doc.constant("operator_clash")));
        let expected = (!operands.is_empty()).then_some((operands.len() as u64, operator.0));
        assert_eq!(self.folding.remove(&id), expected, "operands of run {id}");
        assert_eq!(self.widths.remove(&id).unwrap_or(0), operator.1, "elements of run {id}");
        if blocks > 0 {
            self.seen.filters += 1;
            records
                .iter()
                .for_each(|r| assert!(admits(doc, filter, blocks, is_hash, &r.0), "filter denies {:?}", r.0));
        }
        self.seen.run_ranges += own.len();
        ranges.extend(own);
    }

    /// What a meta block says of its run must be what the manifest says.
    fn label(&mut self, meta: &Node<'_>, block: &[u8], id: u64, run: &Node<'a>) {
        let doc = self.doc;
        assert_eq!((meta.num("magic"), meta.num("bytes")), (doc.constant("meta_magic"), block.len() as u64));
        assert_eq!((meta.num("file_id"), meta.num("hash_seed")), (self.file_id, self.hash_seed));
        assert_eq!(
            (meta.num("run"), meta.num("table"), meta.bytes("name")),
            (id, self.table, &*self.table_name)
        );
        let covers = ranges_in(meta, "covers");
        // Behind the first four fields: five of fixed width, a blob, a number, and a list of ranges.
        let range = |r: &Range| 4 + r.0.len() + 1 + 4 + r.1.as_ref().map_or(0, Vec::len);
        let length =
            8 + 8 + 8 + 4 + 4 + meta.bytes("name").len() + 8 + 4 + covers.iter().map(range).sum::<usize>();
        assert_eq!(meta.num("label_checksum"), u64::from(crc32c::crc32c(&block[16..16 + length])));
        assert!(
            covers.len() < 2 && (covers.is_empty() || run.num("deletes") == 0),
            "deletes in what is oldest"
        );
        let answers = |(from, to): &Range| {
            from.as_slice() <= run.bytes("min")
                && to.as_ref().is_none_or(|to| *to == [run.bytes("max"), &[0]].concat())
        };
        assert!(covers.iter().all(answers), "{covers:?}");
        assert!(meta.num("newest") <= self.flushed);
        self.seen.covers[covers.len()] += 1;
    }

    /// The size of a unit of a run, and whether all of its pages are fixed.
    fn form(&mut self, run: &Node<'_>) -> (usize, bool) {
        let (doc, form) = (self.doc, run.num("form"));
        let forms = ["run_mixed", "run_fixed", "run_small"].map(|name| doc.constant(name));
        let known = forms.iter().position(|&f| f == form).unwrap_or_else(|| panic!("form {form} of a run"));
        self.seen.run_forms[known] += 1;
        let unit = doc.constant(if known == 2 { "small_page_bytes" } else { "page_bytes" });
        (unit as usize, known == 1)
    }

    /// Reads a data page: section 7.1.
    fn page<'p>(&mut self, page: &Node<'_>, bytes: &'p [u8], unit: usize, out: &mut Vec<(Vec<u8>, Tagged)>) {
        let doc = self.doc;
        let is_expiring = page.num("shape") & doc.constant("shape_expiring") != 0;
        let shape = page.num("shape") & !doc.constant("shape_expiring");
        let (n, fixed) = (page.num("records"), shape == doc.constant("shape_fixed"));
        assert!(page.num("type") == doc.constant("page_type_records") && n > 0);
        assert!(fixed || shape == doc.constant("shape_general"));
        let units = page.num("units");
        assert!(units as usize * unit == bytes.len() && bytes.len() as u64 <= doc.constant("page_bytes_max"));
        assert!(page.num("used") + doc.constant("page_tail_bytes") <= bytes.len() as u64);
        self.seen.pages[usize::from(!fixed)] += 1;
        self.seen.expiring_pages[usize::from(!fixed)] += usize::from(is_expiring);
        self.seen.large_pages += usize::from(units > 1);
        let mut rest = &bytes[doc.offset("page", "columns")..page.num("used") as usize];
        let prefix = take(&mut rest, if fixed { 0 } else { page.num("common_bytes") });
        let (base, slope) = (page.num("heads_base"), page.num("heads_slope"));
        let heads = Column::new(&mut rest, n, base, slope, page.num("heads_width"));
        let expiries = |rest: &mut &'p [u8]| {
            let header = doc.layout("expiries", take(rest, doc.offset("expiries", "residuals") as u64));
            Column::new(rest, n, header.num("base"), 0, header.num("width"))
        };
        if fixed {
            let expiries = is_expiring.then(|| expiries(&mut rest));
            assert_eq!(is_expiring, page.num("tag") == doc.constant("tag_expiring"));
            for i in 0..n {
                let word = expiries.as_ref().map(|e| e.get(i).to_le_bytes().to_vec()).unwrap_or_default();
                let value = [&word[..], take(&mut rest, page.num("common_bytes"))].concat();
                out.push((heads.get(i).to_be_bytes().to_vec(), (page.num("tag"), value)));
            }
            return assert!(rest.is_empty());
        }
        let lengths = Column::new(&mut rest, n, page.num("lengths_base"), 0, page.num("lengths_width"));
        let base = i64::from(page.num("ends_base") as u32 as i32) as u64;
        let ends = Column::new(&mut rest, n, base, page.num("ends_slope"), page.num("ends_width"));
        let expiries = is_expiring.then(|| expiries(&mut rest));
        let differ = page.num("tag") == doc.constant("tags_differ");
        let tags = take(&mut rest, if differ { n.div_ceil(4) } else { 0 });
        let (mut start, mut unpacked) = (0, 0);
        for i in 0..n {
            let mut part = take(&mut rest, ends.get(i) - start);
            start = ends.get(i);
            let length = lengths.get(i) as usize - prefix.len();
            let in_head = length.min(8);
            let key =
                [prefix, &heads.get(i).to_be_bytes()[..in_head], take(&mut part, (length - in_head) as u64)];
            let tag =
                if differ { u64::from(tags[i as usize / 4] >> (i % 4 * 2) & 3) } else { page.num("tag") };
            let word = expiries.as_ref().filter(|_| tag == doc.constant("tag_expiring"));
            assert_eq!(word.is_some(), tag == doc.constant("tag_expiring"));
            let word = word.map(|e| e.get(i).to_le_bytes().to_vec()).unwrap_or_default();
            unpacked += lengths.get(i) + (word.len() + part.len()) as u64;
            out.push((key.concat(), (tag, [&word[..], part].concat())));
        }
        assert!(rest.is_empty() && (n == 1 || unpacked <= doc.constant("page_unpacked_bytes_max")));
    }
}
