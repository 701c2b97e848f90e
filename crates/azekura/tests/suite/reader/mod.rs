//! A reader of database files that knows only what `FORMAT.md` says and shares no code with the engine.
//! Every offset, size and constant comes from the marked tables of the page.

mod feed;
mod hashes;
mod index;
mod log;
mod page;
mod repository;
mod run;
mod values;
mod words;

pub use feed::Fed;
pub use hashes::{filter_hash8, hash, mix, page_checksum};
pub use index::{Entries, Field};
pub use page::Doc;
use page::{Node, little_endian};
pub use repository::restored;
use std::collections::BTreeMap;

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

fn remove(sorted: &mut Sorted, (start, end): &Range) {
    sorted.retain(|k, _| k < start || end.as_ref().is_some_and(|e| k >= e));
}

/// The newest superblock: section 4.
fn superblock<'a>(doc: &'a Doc, bytes: &'a [u8]) -> Node<'a> {
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
    let versions = ["plain_version", "words_version", "format_version"].map(|name| doc.constant(name));
    assert!(versions.contains(&block.num("version")), "an unknown version");
    let roles = ["role_database", "role_mirror", "role_replaced"].map(|role| doc.constant(role));
    assert!(roles.contains(&block.num("role")), "an unknown role");
    let [from, honoured, twin] = ["revocable_from", "honoured_from", "honoured_twin"].map(|f| block.num(f));
    assert!(twin == !honoured || [from, honoured, twin] == [0; 3], "limits for followers");
    block
}

/// The bytes of the manifest, which stand in the superblock or elsewhere: section 5.
fn manifest<'a>(doc: &Doc, bytes: &'a [u8], block: &Node<'a>) -> &'a [u8] {
    let (offset, length) = (block.num("manifest_offset") as usize, block.num("manifest_bytes") as usize);
    let manifest = if offset == 0 {
        &block.bytes("inline")[..length]
    } else {
        assert_eq!(offset as u64 % doc.constant("alignment"), 0);
        &bytes[offset..offset + length]
    };
    let sum = if offset == 0 { 0 } else { u64::from(crc32c::crc32c(manifest)) };
    assert_eq!(sum, block.num("manifest_checksum"));
    manifest
}

/// Reads a database: section 11.
pub fn read(doc: &Doc, bytes: &[u8]) -> (Tables, Seen) {
    let block = superblock(doc, bytes);
    let is_plain = block.num("version") == doc.constant("plain_version");
    let is_newest = block.num("version") == doc.constant("format_version");
    let mut manifest = manifest(doc, bytes, &block);
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
    let seen = Seen {
        outside: block.num("manifest_offset") != 0,
        is_copy: block.num("lineage") != 0,
        ..Seen::default()
    };
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
}
