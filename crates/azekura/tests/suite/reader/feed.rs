//! The feed of changes: section 17.

use super::Records;
use super::page::{Doc, little_endian, take};
use std::collections::BTreeMap;

/// What the table of the feed says.
pub struct Fed {
    /// By id: what is fed of it, and since which commit.
    pub tables: BTreeMap<u64, (u64, u64)>,
    /// The tables as they are when all changes were made, by name.
    pub contents: BTreeMap<String, Records>,
    /// What is gone, and the marks since then: the commit, and how many bytes there were by then.
    pub trimmed: u64,
    pub marks: Vec<(u64, u64)>,
    pub cursors: BTreeMap<String, u64>,
}

impl Fed {
    pub fn read(doc: &Doc, records: &Records) -> Fed {
        let state = doc.sequence("feed_state", &mut records[&b""[..]].as_slice());
        assert_eq!(state.num("version"), doc.constant("feed_version"));
        assert_eq!((state.num("lineage"), state.num("base")), (0, 0), "this file was made here");
        assert!(state.num("bytes_max") > 0 && state.num("age_max_ms") == 0);
        let table = |node: &super::Node<'_>| (node.num("table"), (node.num("content"), node.num("since")));
        let tables = state.list("tables").iter().map(table).collect();
        let trimmed = doc.sequence("feed_trimmed", &mut records[&b"t"[..]].as_slice());
        // In this test nothing goes.
        assert_eq!((trimmed.num("total_bytes"), trimmed.num("time_ms")), (0, 0));
        let trimmed = trimmed.num("commit");
        let mut fed =
            Fed { tables, contents: BTreeMap::new(), trimmed, marks: Vec::new(), cursors: BTreeMap::new() };
        let mut bytes = 0;
        for (key, value) in records {
            let big_endian =
                |at: usize, n: usize| key[at..at + n].iter().fold(0, |n, &b| n << 8 | u64::from(b));
            match key.first() {
                None | Some(b't') => {}
                Some(b'c') => {
                    let name = String::from_utf8(key[1..].to_vec()).unwrap();
                    fed.cursors.insert(name, little_endian(value));
                }
                Some(b'd') => {
                    assert!(key.len() == 13 && big_endian(1, 8) > trimmed && big_endian(9, 4) < 100);
                    bytes += value.len() as u64;
                    part(doc, value, &mut fed.contents);
                }
                Some(b'm') => {
                    let mark = doc.sequence("feed_mark", &mut value.as_slice());
                    assert!(mark.num("time_ms") > 1 << 40 && key.len() == 9);
                    fed.marks.push((big_endian(1, 8), mark.num("total_bytes")));
                }
                other => panic!("a key of the feed begins with {other:?}"),
            }
        }
        assert!(fed.marks.iter().all(|mark| mark.1 <= bytes));
        fed
    }
}

/// Makes the changes of a part.
fn part(doc: &Doc, bytes: &[u8], contents: &mut BTreeMap<String, Records>) {
    let mut rest = bytes;
    let head = doc.sequence("feed_part", &mut rest);
    assert_eq!(head.num("version"), doc.constant("feed_version"));
    assert!(head.num("time_ms") > 1 << 40);
    while !rest.is_empty() {
        assert!(little_endian(take(&mut rest, 1)) <= 1);
        let mut name = String::from_utf8(field(&mut rest)).unwrap();
        loop {
            let code = little_endian(take(&mut rest, 1));
            let is = |name: &str| code == doc.constant(name);
            if is("feed_end") {
                break;
            }
            let table = contents.entry(name.clone()).or_default();
            if is("feed_put_until") || is("feed_put_key_until") || is("feed_put_old_until") {
                assert!(little_endian(take(&mut rest, 8)) > 1 << 40);
            }
            if is("feed_put") || is("feed_put_until") {
                table.insert(field(&mut rest), field(&mut rest));
            } else if is("feed_put_old") || is("feed_put_old_until") {
                let old = table.insert(field(&mut rest), field(&mut rest));
                assert_eq!(old, Some(field(&mut rest)));
            } else if is("feed_remove_old") {
                assert_eq!(table.remove(&field(&mut rest)), Some(field(&mut rest)));
            } else if is("feed_begin") {
                assert!(little_endian(take(&mut rest, 1)) <= 2);
            } else if is("feed_stop") {
                contents.remove(&name);
            } else if is("feed_put_key") || is("feed_put_key_until") {
                table.insert(field(&mut rest), Vec::new());
            } else if is("feed_remove") {
                table.remove(&field(&mut rest));
            } else if is("feed_remove_range") {
                let (start, end) = (field(&mut rest), field(&mut rest));
                table.retain(|key, _| *key < start || *key >= end);
            } else if is("feed_remove_from") {
                let start = field(&mut rest);
                table.retain(|key, _| *key < start);
            } else if is("feed_rename") {
                let table = std::mem::take(table);
                contents.remove(&name);
                name = String::from_utf8(field(&mut rest)).unwrap();
                contents.insert(name.clone(), table);
            } else {
                assert!(is("feed_drop"), "change {code}");
                contents.remove(&name);
            }
        }
    }
}

/// A length in base 128, the low bits first, and so many bytes.
fn field(rest: &mut &[u8]) -> Vec<u8> {
    let (mut n, mut shift) = (0, 0);
    loop {
        let b = little_endian(take(rest, 1));
        n |= (b & 127) << shift;
        shift += 7;
        if b < 128 {
            return take(rest, n).to_vec();
        }
    }
}
