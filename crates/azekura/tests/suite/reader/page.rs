//! The marked tables of `FORMAT.md`, and decoding by them.
//!
//! A mark is a line `<!-- constants -->`, `<!-- layout: name -->` (fixed offsets) or
//! `<!-- sequence: name -->` (one field after the other), and the table follows it. Whatever is asked
//! for is noted, so that a test can tell which lines of the page nobody has needed.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

/// The tables, and which of their names have been used.
pub struct Doc {
    constants: HashMap<String, u64>,
    /// Fixed layouts: offset, bytes, field.
    layouts: HashMap<String, Vec<(usize, usize, String)>>,
    /// Sequences: type, field.
    sequences: HashMap<String, Vec<(String, String)>>,
    used: RefCell<BTreeSet<String>>,
}

/// A decoded structure.
pub struct Node<'a> {
    doc: &'a Doc,
    name: String,
    fields: HashMap<String, Value<'a>>,
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    List(Vec<Node<'a>>),
}

fn number(text: &str) -> u64 {
    let parsed = text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u64::from_str_radix(hex, 16));
    parsed.unwrap_or_else(|_| panic!("FORMAT.md: {text:?} is not a number"))
}

pub fn little_endian(b: &[u8]) -> u64 {
    b.iter().rev().fold(0, |n, &x| n << 8 | u64::from(x))
}

/// The first `n` bytes of `b`, which moves on.
pub fn take<'a>(b: &mut &'a [u8], n: u64) -> &'a [u8] {
    let (head, tail) = b.split_at(n as usize);
    *b = tail;
    head
}

impl Doc {
    pub fn parse(text: &str) -> Doc {
        let (constants, layouts, sequences) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut doc = Doc { constants, layouts, sequences, used: RefCell::default() };
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let Some(mark) = line.strip_prefix("<!-- ").and_then(|l| l.strip_suffix(" -->")) else {
                continue;
            };
            let rows: Vec<Vec<&str>> =
                lines.by_ref().take_while(|l| l.starts_with('|')).skip(2).map(cells).collect();
            assert!(!rows.is_empty(), "FORMAT.md: no table follows {line}");
            match mark.split_once(": ") {
                None => doc.constants.extend(rows.iter().map(|r| (r[0].to_owned(), number(r[1])))),
                Some(("layout", name)) => {
                    let fields =
                        rows.iter().map(|r| (number(r[0]) as usize, number(r[1]) as usize, r[2].to_owned()));
                    let fields: Vec<_> = fields.collect();
                    let whole = fields.windows(2).all(|w| w[0].0 + w[0].1 == w[1].0) && fields[0].0 == 0;
                    assert!(whole, "FORMAT.md: {name} has gaps or overlaps");
                    doc.layouts.insert(name.to_owned(), fields);
                }
                Some((_, name)) => {
                    let fields = rows.iter().map(|r| (r[0].to_owned(), r[1].to_owned())).collect();
                    doc.sequences.insert(name.to_owned(), fields);
                }
            }
        }
        doc
    }

    fn use_name(&self, name: String) {
        self.used.borrow_mut().insert(name);
    }

    pub fn constant(&self, name: &str) -> u64 {
        self.use_name(name.to_owned());
        *self.constants.get(name).unwrap_or_else(|| panic!("FORMAT.md has no constant {name}"))
    }

    /// Decodes a fixed layout from the start of `b`; fields named `zero` must be.
    pub fn layout<'a>(&'a self, name: &str, b: &'a [u8]) -> Node<'a> {
        let mut fields = HashMap::new();
        for (at, n, field) in &self.layouts[name] {
            let bytes = &b[*at..at + n];
            if field == "zero" {
                assert!(bytes.iter().all(|&x| x == 0), "{name}: not zero at {at}");
                self.use_name(format!("{name}.zero"));
            }
            let value =
                if (1..=8).contains(n) { Value::Number(little_endian(bytes)) } else { Value::Bytes(bytes) };
            fields.insert(field.clone(), value);
        }
        Node { doc: self, name: name.to_owned(), fields }
    }

    /// Where a field of a layout begins.
    pub fn offset(&self, name: &str, field: &str) -> usize {
        self.use_name(format!("{name}.{field}"));
        let fields = &self.layouts[name];
        fields.iter().find(|f| f.2 == field).unwrap_or_else(|| panic!("{name} has no field {field}")).0
    }

    /// Decodes a sequence from `b`, which moves on behind it.
    pub fn sequence<'a>(&'a self, name: &str, b: &mut &'a [u8]) -> Node<'a> {
        let mut node = Node { doc: self, name: name.to_owned(), fields: HashMap::new() };
        for (kind, field) in &self.sequences[name] {
            let value = match kind.as_str() {
                "u8" => Value::Number(little_endian(take(b, 1))),
                "u32" => Value::Number(little_endian(take(b, 4))),
                "u64" => Value::Number(little_endian(take(b, 8))),
                "blob" => Value::Bytes(blob(b)),
                kind => match (kind.strip_suffix("[]"), kind.strip_suffix(" bytes")) {
                    (Some(item), _) => {
                        let n = little_endian(take(b, 4));
                        Value::List((0..n).map(|_| self.sequence(item, b)).collect())
                    }
                    (_, Some(length)) => Value::Bytes(take(b, node.num(length))),
                    _ => panic!("FORMAT.md: {name}.{field} has the type {kind}"),
                },
            };
            node.fields.insert(field.clone(), value);
        }
        node
    }

    /// The names that nobody has asked for.
    pub fn unused(&self) -> Vec<String> {
        let layouts = self.layouts.iter().flat_map(|(s, l)| l.iter().map(move |f| format!("{s}.{}", f.2)));
        let sequences =
            self.sequences.iter().flat_map(|(s, l)| l.iter().map(move |f| format!("{s}.{}", f.1)));
        let all = self.constants.keys().cloned().chain(layouts).chain(sequences);
        all.filter(|name| !self.used.borrow().contains(name)).collect()
    }
}

/// The cells of a table's row, without their backticks.
fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(|c| c.trim().trim_matches('`')).collect()
}

pub fn blob<'a>(b: &mut &'a [u8]) -> &'a [u8] {
    let n = little_endian(take(b, 4));
    take(b, n)
}

impl<'a> Node<'a> {
    fn field(&self, field: &str) -> &Value<'a> {
        self.doc.use_name(format!("{}.{field}", self.name));
        self.fields.get(field).unwrap_or_else(|| panic!("FORMAT.md: {} has no field {field}", self.name))
    }

    pub fn num(&self, field: &str) -> u64 {
        let Value::Number(n) = self.field(field) else { panic!("{field} is not a number") };
        *n
    }

    pub fn bytes(&self, field: &str) -> &'a [u8] {
        let Value::Bytes(b) = self.field(field) else { panic!("{field} is not bytes") };
        b
    }

    pub fn list(&self, field: &str) -> &[Node<'a>] {
        let Value::List(l) = self.field(field) else { panic!("{field} is not a list") };
        l
    }
}
