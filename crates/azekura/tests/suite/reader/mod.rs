//! A reader of database files that knows only what `FORMAT.md` says and shares no code with the engine.
//! Every offset, size and constant comes from the marked tables of the page.

mod feed;
mod index;
mod page;
mod repository;

pub use feed::Fed;
pub use index::{Entries, Field};
pub use page::Doc;
use page::{Node, blob, little_endian, take};
pub use repository::restored;
use std::collections::{BTreeMap, BTreeSet};

pub type Records = BTreeMap<Vec<u8>, Vec<u8>>;
/// By name: whether it is a hash table, and its records. An index is called by its table, a zero byte and its
/// own name; the feed by its name in the file.
pub type Tables = BTreeMap<String, (bool, Records)>;

/// What the reader has come across, so that a test can tell that nothing was left out.
#[derive(Debug, Default)]
pub struct Seen {
    pub levels: usize,
    pub pages: [usize; 2],
    /// Those of them that have a column of expiries.
    pub expiring_pages: [usize; 2],
    /// Records that have expired.
    pub expired: usize,
    /// Operands, by what they met: another one or a value in a run or the log, nothing, a value that is none.
    pub operands: [usize; 3],
    /// Those with a length: all, those that stand apart, and those whose base does.
    pub long: [usize; 3],
    /// How long records of tables live that say so.
    pub lifetimes: Vec<u64>,
    pub large_pages: usize,
    /// Runs by their forms: mixed, fixed, small.
    pub run_forms: [usize; 3],
    /// Runs that cover nothing, and those that do.
    pub covers: [usize; 2],
    pub filters: usize,
    pub run_ranges: usize,
    pub chains: usize,
    pub ended: usize,
    pub skipped: usize,
    /// Frames without records, and jumps whose second copy says more than the first.
    pub empty: usize,
    pub vouching_jumps: usize,
    pub jumps: usize,
    pub forms: [usize; 7],
    /// Tables whose records stand in the manifest.
    pub small: usize,
    pub log_ranges: usize,
    pub large: usize,
    /// Large values in segments that stand in several parts.
    pub parted: usize,
    pub outside: bool,
    /// It is a copy, or was restored.
    pub is_copy: bool,
}

/// One file being read.
struct File<'a> {
    doc: &'a Doc,
    bytes: &'a [u8],
    file_id: u64,
    hash_seed: u64,
    /// Of the manifest, and of the table whose runs are being read: as pages name it.
    flushed: u64,
    table: u64,
    table_name: Vec<u8>,
    /// Value segments: offset and length of each part, in order.
    segments: BTreeMap<u64, Vec<(u64, u64)>>,
    /// By id: name, and whether it is a hash table.
    names: BTreeMap<u64, (String, bool)>,
    /// Tables that a record makes have been dropped if their ids are below.
    tables_until: u64,
    /// The latest time that the file says, in milliseconds.
    clock: u64,
    /// By id, of runs: how many records expire, and when the first and the last of them do.
    expiring: BTreeMap<u64, [u64; 3]>,
    /// By id, of runs: how many records are operands, and of which operator.
    folding: BTreeMap<u64, (u64, u64)>,
    /// By id, of runs with sets: how long an element is.
    widths: BTreeMap<u64, u64>,
    /// By id, of tables: how long records live.
    lifetimes: BTreeMap<u64, u64>,
    seen: Seen,
}

/// A table by its sort keys, with the tag and value of each.
type Sorted = BTreeMap<Vec<u8>, Tagged>;
type Tagged = (u64, Vec<u8>);
/// A range delete: first key, and first key beyond.
type Range = (Vec<u8>, Option<Vec<u8>>);

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

fn head(b: &[u8]) -> u64 {
    (0..8).fold(0, |n, i| n << 8 | u64::from(b.get(i).copied().unwrap_or(0)))
}

pub fn mix(doc: &Doc, x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(doc.constant("mix_multiplier_1"));
    let x = (x ^ x >> 27).wrapping_mul(doc.constant("mix_multiplier_2"));
    x ^ x >> 31
}

pub fn unmix(doc: &Doc, x: u64) -> u64 {
    let x = (x ^ x >> 31 ^ x >> 62).wrapping_mul(doc.constant("unmix_multiplier_1"));
    let x = (x ^ x >> 27 ^ x >> 54).wrapping_mul(doc.constant("unmix_multiplier_2"));
    x ^ x >> 30 ^ x >> 60
}

pub fn filter_hash8(doc: &Doc, x: u64) -> u64 {
    let x = (x ^ x >> 32).wrapping_mul(doc.constant("filter_hash_multiplier_1"));
    (x ^ x >> 29).wrapping_mul(doc.constant("filter_hash_multiplier_2"))
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

fn ranges_of(node: &Node<'_>) -> Vec<Range> {
    ranges_in(node, "ranges")
}

fn ranges_in(node: &Node<'_>, field: &str) -> Vec<Range> {
    let range =
        |r: &Node<'_>| (r.bytes("start").to_vec(), (r.num("bounded") != 0).then(|| r.bytes("end").to_vec()));
    node.list(field).iter().map(range).collect()
}

fn rows_of(node: &Node<'_>) -> Vec<(Vec<u8>, Tagged)> {
    let row = |r: &Node<'_>| (r.bytes("key").to_vec(), (r.num("tag"), r.bytes("value").to_vec()));
    node.list("rows").iter().map(row).collect()
}

/// A record without the word of one that expires, and when it does: section 7.5.
fn without_word(doc: &Doc, (tag, value): &Tagged) -> (Tagged, Option<u64>) {
    if *tag != doc.constant("tag_expiring") {
        return ((*tag, value.clone()), None);
    }
    let word = little_endian(&value[..8]);
    if word == doc.constant("operand_word") {
        return ((*tag, value.clone()), None);
    }
    let tag = doc.constant(if word.is_multiple_of(2) { "tag_put" } else { "tag_large" });
    ((tag, value[8..].to_vec()), Some(word / 2))
}

/// The bytes of an operand behind its word: section 7.6. None of another record.
fn operand_of<'a>(doc: &Doc, (tag, value): &'a Tagged) -> Option<&'a [u8]> {
    let is_operand =
        *tag == doc.constant("tag_expiring") && little_endian(&value[..8]) == doc.constant("operand_word");
    is_operand.then(|| &value[8..])
}

/// Its operator, and the bytes of an element of a set: those of one that stands apart are the same.
fn operator_of(doc: &Doc, operand: &[u8]) -> (u64, u64) {
    let operator = u64::from(operand[0]);
    let is = |name| operator == doc.constant(name);
    match () {
        () if is("operator_append_apart") => (doc.constant("operator_append"), 0),
        () if is("operator_union_apart") => (doc.constant("operator_union"), u64::from(operand[1])),
        () if is("operator_union") => (operator, u64::from(operand[1])),
        () => (operator, 0),
    }
}

/// The reference of an operand that stands apart, and what stands before it.
fn apart<'a>(doc: &'a Doc, operand: &'a [u8]) -> Option<(Vec<u8>, &'a [u8])> {
    let operator = u64::from(operand[0]);
    if operator == doc.constant("operator_append_apart") {
        let node = doc.layout("append_apart", operand);
        assert_eq!((node.num("operator"), operand.len()), (operator, 17));
        return Some((vec![doc.constant("operator_append") as u8], node.bytes("reference")));
    }
    (operator == doc.constant("operator_union_apart")).then(|| {
        let node = doc.layout("union_apart", operand);
        assert_eq!((node.num("operator"), operand.len()), (operator, 18));
        let head = vec![doc.constant("operator_union") as u8, node.num("element") as u8];
        (head, node.bytes("reference"))
    })
}

/// The elements of two sets.
fn united(a: &[u8], b: &[u8], width: usize) -> Vec<u8> {
    let all: std::collections::BTreeSet<&[u8]> = a.chunks(width).chain(b.chunks(width)).collect();
    all.into_iter().collect::<Vec<_>>().concat()
}

/// What an operand makes of a number.
fn operate(doc: &Doc, operator: u64, base: u64, number: u64) -> u64 {
    let is = |name| operator == doc.constant(name);
    let (x, y) = (base as i64, number as i64);
    let (f, g) = (f64::from_bits(base), f64::from_bits(number));
    match () {
        () if is("operator_add") => base.wrapping_add(number),
        () if is("operator_add_f64") => (f + g).to_bits(),
        () if is("operator_min_i64") => x.min(y) as u64,
        () if is("operator_max_i64") => x.max(y) as u64,
        () if is("operator_min_u64") => base.min(number),
        () if is("operator_max_u64") => base.max(number),
        () if is("operator_min_f64") => {
            if g.total_cmp(&f).is_lt() {
                number
            } else {
                base
            }
        }
        () if is("operator_max_f64") => {
            if g.total_cmp(&f).is_gt() {
                number
            } else {
                base
            }
        }
        () => {
            assert!(is("operator_or"), "operator {operator}");
            base | number
        }
    }
}

fn remove(sorted: &mut Sorted, (start, end): &Range) {
    sorted.retain(|k, _| k < start || end.as_ref().is_some_and(|e| k >= e));
}

pub fn hash(bytes: &[u8], seed: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed)
}

pub fn page_checksum(file_id: u64, run: u64, page: u64, bytes: &[u8]) -> u64 {
    let identity =
        [&file_id.to_le_bytes()[..], &run.to_le_bytes(), &(page as u32).to_le_bytes(), bytes].concat();
    u64::from(crc32c::crc32c(&identity))
}

/// Reads a database: section 11.
pub fn read(doc: &Doc, bytes: &[u8]) -> (Tables, Seen) {
    let size = doc.constant("superblock_bytes") as usize;
    let from = doc.offset("superblock", "version");
    let copies = (0..doc.constant("superblock_copies") as usize).map(|i| &bytes[i * size..(i + 1) * size]);
    let valid = copies.filter(|b| {
        let node = doc.layout("superblock", b);
        let sum = u64::from(crc32c::crc32c(&b[from..]));
        node.num("magic") == doc.constant("superblock_magic") && node.num("checksum") == sum
    });
    let block =
        valid.map(|b| doc.layout("superblock", b)).max_by_key(|n| n.num("number")).expect("no superblock");
    let is_plain = block.num("version") == doc.constant("plain_version");
    let is_newest = block.num("version") == doc.constant("format_version");
    assert!(is_plain || is_newest || block.num("version") == doc.constant("words_version"));
    let roles = ["role_database", "role_mirror", "role_replaced"].map(|role| doc.constant(role));
    assert!(roles.contains(&block.num("role")), "an unknown role");
    let [from, honoured, twin] = ["revocable_from", "honoured_from", "honoured_twin"].map(|f| block.num(f));
    assert!(twin == !honoured || [from, honoured, twin] == [0; 3], "limits for followers");
    let (offset, length) = (block.num("manifest_offset") as usize, block.num("manifest_bytes") as usize);
    let mut manifest = if offset == 0 {
        &block.bytes("inline")[..length]
    } else {
        assert_eq!(offset as u64 % doc.constant("alignment"), 0);
        &bytes[offset..offset + length]
    };
    let sum = if offset == 0 { 0 } else { u64::from(crc32c::crc32c(manifest)) };
    assert_eq!(sum, block.num("manifest_checksum"));
    let node = doc.sequence("manifest", &mut manifest);
    assert_eq!(manifest.is_empty(), is_plain, "bytes behind the manifest of a plain file");
    let expiry = (!is_plain).then(|| doc.sequence("expiry", &mut manifest));
    let folding = (!manifest.is_empty()).then(|| doc.sequence("folding", &mut manifest));
    let elements = is_newest.then(|| doc.sequence("elements", &mut manifest));
    assert!(manifest.is_empty(), "bytes behind the manifest");
    let widths = elements.iter().flat_map(|e| e.list("widths"));
    let widths: BTreeMap<u64, u64> = widths.map(|w| (w.num("run"), w.num("bytes"))).collect();
    let folding = folding.iter().flat_map(|f| f.list("operands"));
    let folding: BTreeMap<u64, (u64, u64)> =
        folding.map(|r| (r.num("run"), (r.num("records"), r.num("operator")))).collect();
    let is_long = folding.values().any(|(_, operator)| *operator >= doc.constant("operator_append"));
    assert_eq!(is_long, is_newest, "the version says whether operands have a length");
    let list = |field| expiry.iter().flat_map(move |e| e.list(field));
    let expiring = list("runs").map(|r| (r.num("run"), ["expire", "first_ms", "last_ms"].map(|f| r.num(f))));
    let lifetimes = list("lifetimes").map(|l| (l.num("table"), l.num("live_ms")));
    let (expiring, lifetimes) = (expiring.collect(), lifetimes.collect());
    let clock = expiry.as_ref().map_or(0, |e| e.num("clock"));
    let (file_id, hash_seed) = (block.num("file_id"), block.num("hash_seed"));
    let seen = Seen { outside: offset != 0, is_copy: block.num("lineage") != 0, ..Seen::default() };
    let (flushed, segments, names, tables_until) =
        (node.num("flushed"), BTreeMap::new(), BTreeMap::new(), node.num("tables_until"));
    let (table, table_name) = (0, Vec::new());
    let mut file = File {
        doc,
        bytes,
        file_id,
        hash_seed,
        flushed,
        table,
        table_name,
        segments,
        names,
        tables_until,
        clock,
        expiring,
        folding,
        widths,
        lifetimes,
        seen,
    };
    let tables = file.tables(&node, block.num("number"));
    assert!(file.expiring.is_empty(), "times of runs that are not there");
    assert!(file.folding.is_empty(), "operands of runs that are not there");
    assert!(file.widths.is_empty(), "elements of runs without sets");
    file.seen.lifetimes = file.lifetimes.values().copied().collect();
    (tables, file.seen)
}

impl<'a> File<'a> {
    fn tables(&mut self, manifest: &Node<'a>, checkpoint: u64) -> Tables {
        let doc = self.doc;
        for s in manifest.list("segments") {
            self.segments.entry(s.num("id")).or_default().push((s.num("offset"), s.num("bytes")));
            assert!(s.num("used") <= s.num("bytes"));
        }
        let mut tables: BTreeMap<u64, Sorted> = BTreeMap::new();
        for t in manifest.list("tables") {
            assert!(t.num("id") < manifest.num("next_table"));
            self.name(t.num("id"), t);
            let mut sorted = Sorted::new();
            let is_hash = t.num("kind") == doc.constant("kind_hash");
            self.table = t.num("id") + if is_hash { doc.constant("table_is_hash") } else { 0 };
            self.table_name = t.bytes("name").to_vec();
            let ages: Vec<u64> = t.list("levels").iter().map(|l| l.num("newest")).collect();
            assert!(
                ages.windows(2).all(|w| w[0] > w[1]) && ages.first().is_none_or(|&n| n <= self.flushed),
                "{ages:?}"
            );
            for level in t.list("levels").iter().rev() {
                self.level(level, is_hash, manifest.num("next_id"), &mut sorted);
            }
            tables.insert(t.num("id"), sorted);
        }
        for small in manifest.list("small") {
            self.seen.small += 1;
            let sorted = tables.get_mut(&small.num("of")).expect("records of no table");
            assert!(sorted.is_empty());
            sorted.extend(rows_of(small));
            assert!(sorted.values().all(|(tag, _)| *tag == doc.constant("tag_put")));
        }
        let mut last = manifest.num("flushed");
        let durable = manifest.list("durable");
        assert_eq!(durable.len(), manifest.list("logs").len());
        for (log, durable) in manifest.list("logs").iter().zip(durable) {
            self.seen.chains += 1;
            assert_eq!(durable.num("chain"), log.num("chain"));
            let stream = self.chain(log, durable.num("below"), checkpoint);
            let mut rest = stream.as_slice();
            while rest.len() >= 8 && little_endian(&rest[..8]) <= rest.len() as u64 - 8 {
                self.record(&mut rest, &mut last, &mut tables);
            }
        }
        assert!(self.tables_until <= last, "the log ends before what the manifest has of it");
        let names = std::mem::take(&mut self.names);
        let shown = |name: &str| match index::of(name) {
            None => name.to_owned(),
            Some((table, index)) => format!("{}\0{index}", names[&table].0),
        };
        let whole = names
            .iter()
            .map(|(id, (name, is_hash))| (shown(name), (*is_hash, self.user(*is_hash, &tables[id]))));
        whole.collect()
    }

    /// Remembers name and kind of a table, as the manifest or a record has them.
    fn name(&mut self, id: u64, node: &Node<'_>) {
        let doc = self.doc;
        let name = String::from_utf8(node.bytes("name").to_vec()).unwrap();
        assert!((1..=doc.constant("name_bytes_max")).contains(&(name.len() as u64)));
        let is_hash = node.num("kind") == doc.constant("kind_hash");
        assert!(is_hash || node.num("kind") == doc.constant("kind_ordered"));
        self.names.insert(id, (name, is_hash));
    }

    /// Adds records to older ones.
    fn add(&mut self, sorted: &mut Sorted, records: impl IntoIterator<Item = (Vec<u8>, Tagged)>) {
        let doc = self.doc;
        for (key, tagged) in records {
            let operand =
                operand_of(doc, &tagged).filter(|o| u64::from(o[0]) != doc.constant("operator_clash"));
            let Some(operand) = operand else {
                sorted.insert(key, tagged);
                continue;
            };
            let base = sorted.get(&key).filter(|(tag, _)| *tag != doc.constant("tag_delete"));
            let made = match base {
                // (All that is older was added before, so an operand there is a clash.)
                Some(base) if operand_of(doc, base).is_some() => {
                    self.seen.operands[2] += 1;
                    base.clone()
                }
                base if operator_of(doc, operand).0 >= doc.constant("operator_append") => {
                    let base = base.cloned();
                    self.lengthen(operand, base)
                }
                base => self.operate(operand, base.cloned()),
            };
            sorted.insert(key, made);
        }
    }

    fn clash(&mut self, number: u64) -> Tagged {
        self.seen.operands[2] += 1;
        let word = self.doc.constant("operand_word").to_le_bytes();
        let operator = [self.doc.constant("operator_clash") as u8];
        (self.doc.constant("tag_expiring"), [&word[..], &operator, &number.to_le_bytes()].concat())
    }

    /// What an operand of a number makes of its base.
    fn operate(&mut self, operand: &[u8], base: Option<Tagged>) -> Tagged {
        let doc = self.doc;
        let node = doc.layout("number_operand", operand);
        let (operator, number) = (node.num("operator"), node.num("number"));
        let put = |number: u64| (doc.constant("tag_put"), number.to_le_bytes().to_vec());
        match base {
            None => {
                self.seen.operands[1] += 1;
                put(number)
            }
            Some((tag, value)) if tag == doc.constant("tag_put") && value.len() == 8 => {
                self.seen.operands[0] += 1;
                put(operate(doc, operator, little_endian(&value), number))
            }
            Some((tag, value)) => {
                self.clash(if tag == doc.constant("tag_large") { u64::MAX } else { value.len() as u64 })
            }
        }
    }

    /// What an operand with a length makes of its base.
    fn lengthen(&mut self, operand: &[u8], base: Option<Tagged>) -> Tagged {
        let doc = self.doc;
        let whole = match apart(doc, operand) {
            Some((head, reference)) => {
                self.seen.long[1] += 1;
                [head, self.large(reference)].concat()
            }
            None => operand.to_vec(),
        };
        let (operator, width) = operator_of(doc, &whole);
        self.seen.long[0] += 1;
        let base = match base {
            Some((tag, value)) if tag == doc.constant("tag_large") => {
                self.seen.long[2] += 1;
                self.large(&value)
            }
            Some((_, value)) => value,
            None => Vec::new(),
        };
        if operator == doc.constant("operator_append") {
            return (doc.constant("tag_put"), [&base[..], &whole[1..]].concat());
        }
        assert_eq!(operator, doc.constant("operator_union"));
        let (width, elements) = (width as usize, &whole[2..]);
        assert_eq!(united(elements, &[], width), elements, "elements in no order");
        if base.len() % width > 0 {
            return self.clash(base.len() as u64 | (width as u64) << 32);
        }
        (doc.constant("tag_put"), united(&base, elements, width))
    }

    /// The value to which a reference leads: section 8.
    fn large(&mut self, reference: &[u8]) -> Vec<u8> {
        self.seen.large += 1;
        let at = self.doc.layout("reference", reference);
        let value = self.value(at.num("segment"), at.num("offset"), at.num("bytes"));
        assert_eq!(u64::from(crc32c::crc32c(&value)), at.num("checksum"));
        value
    }

    /// The records as the user knows them: sections 6 and 8.
    fn user(&mut self, is_hash: bool, sorted: &Sorted) -> Records {
        let doc = self.doc;
        let said: Vec<(&Vec<u8>, Tagged, bool)> = sorted
            .iter()
            .map(|(key, tagged)| {
                let (tagged, time) = without_word(doc, tagged);
                (key, tagged, time.is_some_and(|time| time <= self.clock))
            })
            .collect();
        self.seen.expired += said.iter().filter(|(.., is_past)| *is_past).count();
        // (Who reads a clash gets an error.)
        let is_none = |tag| tag == doc.constant("tag_delete") || tag == doc.constant("tag_expiring");
        let live = said.into_iter().filter(|(_, (tag, _), is_past)| !is_none(*tag) && !is_past);
        live.map(|(key, (tag, value), _)| {
            let user = match key.len() {
                _ if !is_hash => key.clone(),
                8 => (unmix(doc, head(key)) ^ self.hash_seed).to_be_bytes().to_vec(),
                16 => Vec::new(),
                _ => key[8..].to_vec(),
            };
            let expected = if user.len() == 8 {
                mix(doc, head(&user) ^ self.hash_seed)
            } else {
                hash(&user, self.hash_seed)
            };
            assert!(!is_hash || head(key) == expected, "the hash of {user:?}");
            assert!(user.len() as u64 <= doc.constant("key_bytes_max"));
            if tag == doc.constant("tag_put") {
                return (user, value);
            }
            assert_eq!(tag, doc.constant("tag_large"));
            (user, self.large(&value))
        })
        .collect()
    }

    /// Bytes of a value segment, from as many of its parts as they stand in.
    fn value(&mut self, segment: u64, offset: u64, length: u64) -> Vec<u8> {
        let parts = &self.segments[&segment];
        self.seen.parted += usize::from(parts.len() > 1);
        let (mut value, mut before) = (Vec::new(), 0);
        for &(at, bytes) in parts {
            let (from, to) = (offset.max(before), (offset + length).min(before + bytes));
            if from < to {
                value.extend_from_slice(self.slice(at + from - before, to - from));
            }
            before += bytes;
        }
        assert_eq!(value.len() as u64, length, "a value that passes the end of its segment");
        value
    }

    fn slice(&self, offset: u64, length: u64) -> &'a [u8] {
        &self.bytes[offset as usize..(offset + length) as usize]
    }

    /// Applies one sorted run to what is older: section 7.4.
    fn level(&mut self, level: &Node<'a>, is_hash: bool, next_id: u64, sorted: &mut Sorted) {
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
        let fixed = node.num("form") == doc.constant("separators_fixed");
        assert!(fixed || node.num("form") == doc.constant("separators_blobs"));
        let n = node.num("pages");
        let separators: Vec<&[u8]> =
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
        for (i, (&at, separator)) in units.iter().zip(&separators).enumerate() {
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
                *separator <= out[begin].0.as_slice() && before.is_none_or(|b| *b < **separator),
                "separator {i}"
            );
        }
        let records = &out[first..];
        assert!(records.windows(2).all(|w| w[0].0 < w[1].0), "keys out of order");
        assert_eq!(records.len() as u64, run.num("records"));
        let with = |tag| records.iter().filter(move |r| r.1.0 == tag);
        assert_eq!(with(doc.constant("tag_delete")).count() as u64, run.num("deletes"));
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

    /// The stream of records of a chain: section 9.
    fn chain(&mut self, log: &Node<'a>, mut durable: u64, checkpoint: u64) -> Vec<u8> {
        let (doc, align) = (self.doc, self.doc.constant("alignment"));
        let (mut offset, mut length) = (log.num("offset"), log.num("bytes"));
        let (mut at, mut number, mut inside) = (0, log.num("first_frame"), false);
        let mut stream = Vec::new();
        let header = doc.offset("frame", "payload") as u64;
        let open = log.num("end_frame") == doc.constant("no_end");
        while number != log.num("end_frame") && at + align <= length {
            // A reader must check that this lies within the file; here it does.
            let block = self.slice(offset + at, align);
            if little_endian(&block[doc.offset("frame", "magic")..][..4]) != doc.constant("frame_magic") {
                break;
            }
            let frame = doc.layout("frame", block);
            let ids = (frame.num("file_id"), frame.num("chain"), frame.num("number"));
            if ids != (self.file_id, log.num("chain"), number) {
                break;
            }
            let size = header + frame.num("payload_bytes");
            if u64::from(crc32c::crc32c(&self.slice(offset + at, size)[4..])) != frame.num("checksum") {
                break;
            }
            assert!(frame.num("checkpoint") <= checkpoint && frame.num("durable_below") <= number);
            self.clock = self.clock.max(frame.num("clock") * 1000);
            let payload = self.slice(offset + at + header, frame.num("payload_bytes"));
            let records = frame.num("kind") == doc.constant("frame_kind_records");
            self.seen.empty += usize::from(payload.is_empty());
            if records && payload.is_empty() && number + 1 != log.num("end_frame") {
                break;
            }
            (at, number) = (at + size.next_multiple_of(align), number + 1);
            if frame.num("kind") == doc.constant("frame_kind_jump") {
                self.seen.jumps += 1;
                // A reader must see whether the second copy is whole; here it is.
                let twin = doc.layout("frame", self.slice(offset + at, align));
                assert_eq!((twin.num("number"), twin.num("kind")), (number - 1, frame.num("kind")));
                self.seen.vouching_jumps += usize::from(twin.num("durable_below") > number);
                durable = durable.max(twin.num("durable_below"));
                let jump = doc.layout("jump", payload);
                (offset, length, at) = (jump.num("offset"), jump.num("bytes"), 0);
                continue;
            }
            assert!(records, "no other kinds");
            let first = frame.num("first_record");
            if inside {
                stream.extend_from_slice(payload);
                continue;
            }
            self.seen.skipped += usize::from(first != 0);
            if first != doc.constant("no_record") {
                stream.extend_from_slice(&payload[first as usize..]);
                inside = true;
            }
        }
        self.seen.ended += usize::from(!open);
        assert!(!open || durable <= number, "frame {number} is missing");
        assert!(open || number == log.num("end_frame"));
        for later in (at + align..length).step_by(align as usize).filter(|_| open) {
            let block = self.slice(offset + later, align);
            if little_endian(&block[doc.offset("frame", "magic")..][..4]) == doc.constant("frame_magic") {
                // A reader must check the checksum before it complains; here there is nothing to see.
                let frame = doc.layout("frame", block);
                let ours = (frame.num("file_id"), frame.num("chain")) == (self.file_id, log.num("chain"));
                let knows = frame.num("number") > number && frame.num("durable_below") > number;
                assert!(!ours || !knows, "frame {number} is missing");
            }
        }
        stream
    }

    /// Applies one commit.
    fn record<'b>(&mut self, rest: &mut &'b [u8], last: &mut u64, tables: &mut BTreeMap<u64, Sorted>)
    where
        'a: 'b,
    {
        let doc = self.doc;
        let whole = rest.len();
        let record = doc.sequence("record", rest);
        let apply = record.num("sequence") > *last;
        let (mut changed, mut renamed, mut ranks) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        for _ in 0..record.num("parts") {
            let part = doc.sequence("part", rest);
            self.seen.forms[part.num("form") as usize] += 1;
            let form = |name| part.num("form") == doc.constant(name);
            let rank = if form("form_cache") {
                3
            } else {
                let forms = ["form_dropped", "form_renamed", "form_lives", "form_table"];
                forms.into_iter().position(form).unwrap_or(4)
            };
            ranks.push(rank);
            assert!(ranks.is_sorted(), "parts that change tables, in another order: {ranks:?}");
            let changes = ["form_table", "form_cache", "form_renamed", "form_lives", "form_dropped"];
            if changes.into_iter().any(form) {
                let id = part.num("table");
                let has_name = form("form_lives") && renamed.contains(&id);
                assert!(changed.insert(id) || has_name, "two parts change table {id}");
                let is_new = apply && record.num("sequence") > self.tables_until;
                assert!(part.list("segments").is_empty() && part.list("ranges").is_empty());
                if form("form_table") || form("form_cache") {
                    let made = doc.sequence("made", rest);
                    let lives = form("form_cache").then(|| doc.sequence("caching", rest).num("lives_ms"));
                    if is_new {
                        self.lifetimes.extend(lives.map(|lives| (id, lives)));
                        self.name(id, &made);
                        assert!(tables.insert(id, Sorted::new()).is_none());
                    }
                } else if form("form_lives") {
                    let lives = doc.sequence("caching", rest).num("lives_ms");
                    if is_new && tables.contains_key(&id) {
                        self.lifetimes.remove(&id);
                        self.lifetimes.extend((lives > 0).then_some((id, lives)));
                    }
                } else if form("form_renamed") {
                    assert!(renamed.insert(id));
                    let renamed = doc.sequence("renamed", rest);
                    assert_ne!(renamed.bytes("name").first(), Some(&0));
                    if let Some(known) = self.names.get_mut(&id).filter(|_| is_new) {
                        known.0 = String::from_utf8(renamed.bytes("name").to_vec()).unwrap();
                    }
                } else if is_new {
                    self.names.remove(&id);
                    self.lifetimes.remove(&id);
                    tables.remove(&id);
                }
                continue;
            }
            let rows = if part.num("form") == doc.constant("form_rows") {
                rows_of(&doc.sequence("rows", rest))
            } else {
                assert_eq!(part.num("form"), doc.constant("form_fixed"));
                let columns = doc.sequence("columns", rest);
                let key = |k: &[u8]| k.iter().rev().copied().collect::<Vec<u8>>();
                let keys: Vec<_> = (0..columns.num("records")).map(|_| key(take(rest, 8))).collect();
                let mut value = || (columns.num("tag"), take(rest, columns.num("value_bytes")).to_vec());
                keys.into_iter().map(|k| (k, value())).collect()
            };
            let Some(sorted) = tables.get_mut(&part.num("table")).filter(|_| apply) else { continue };
            for s in part.list("segments") {
                self.segments.entry(s.num("id")).or_insert_with(|| vec![(s.num("offset"), s.num("bytes"))]);
            }
            let ranges = ranges_of(&part);
            self.seen.log_ranges += ranges.len();
            ranges.iter().for_each(|r| remove(sorted, r));
            self.add(sorted, rows);
        }
        assert_eq!((whole - rest.len()) as u64, record.num("bytes") + 8);
        *last = (*last).max(record.num("sequence"));
    }
}
