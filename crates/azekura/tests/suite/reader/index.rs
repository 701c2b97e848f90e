//! Indexes: section 16.

use super::Records;
use super::page::{Doc, little_endian, take};

/// A field of an entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    Null,
    Bytes(Vec<u8>),
    Text(String),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// What the table of an index says.
pub struct Entries {
    pub is_ready: bool,
    pub specification: String,
    /// Fields and keys, in their order.
    pub all: Vec<(Vec<Field>, Vec<u8>)>,
}

/// The table and the index that the name of a hidden table stands for.
pub fn of(name: &str) -> Option<(u64, &str)> {
    let name = name.strip_prefix('\0').filter(|name| *name != "feed")?;
    let (table, index) = name.strip_prefix("index\0").and_then(|rest| rest.split_once('\0')).unwrap();
    Some((table.parse().unwrap(), index))
}

impl Entries {
    /// Reads the records of an index whose entries have so many fields.
    pub fn read(doc: &Doc, records: &Records, fields: usize) -> Entries {
        let mut state = records[&Vec::new()].as_slice();
        let node = doc.sequence("index_state", &mut state);
        assert!(state.is_empty());
        assert_eq!(node.num("version"), doc.constant("index_version"));
        let is_ready = node.num("status") == doc.constant("index_ready");
        assert_ne!(is_ready, node.num("status") == doc.constant("index_building"));
        assert!(!is_ready || node.bytes("next").is_empty());
        let entry = |mut entry: &[u8]| {
            let fields = (0..fields).map(|_| field(doc, &mut entry)).collect();
            (fields, entry.to_vec())
        };
        assert!(records.iter().all(|(key, value)| key.is_empty() != value.is_empty()));
        let all = records.keys().filter(|key| !key.is_empty()).map(|key| entry(key)).collect();
        let specification = String::from_utf8(node.bytes("specification").to_vec()).unwrap();
        Entries { is_ready, specification, all }
    }
}

fn field(doc: &Doc, rest: &mut &[u8]) -> Field {
    let is = |name: &str, byte: u64| byte == doc.constant(name);
    let kind = little_endian(take(rest, 1));
    let number = |rest: &mut &[u8]| u64::from_be_bytes(take(rest, 8).try_into().unwrap());
    match kind {
        kind if is("field_null", kind) => Field::Null,
        kind if is("field_bytes", kind) => Field::Bytes(unescaped(rest)),
        kind if is("field_text", kind) => Field::Text(String::from_utf8(unescaped(rest)).unwrap()),
        kind if is("field_u64", kind) => Field::U64(number(rest)),
        kind if is("field_i64", kind) => Field::I64((number(rest) ^ 1 << 63).cast_signed()),
        kind => {
            assert_eq!(kind, doc.constant("field_f64"));
            let bits = number(rest);
            Field::F64(f64::from_bits(if bits >> 63 == 1 { bits ^ 1 << 63 } else { !bits }))
        }
    }
}

fn unescaped(rest: &mut &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        match take(rest, 1)[0] {
            0 if take(rest, 1)[0] == 1 => return out,
            byte => out.push(byte),
        }
    }
}
