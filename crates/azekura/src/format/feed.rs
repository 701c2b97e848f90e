//! The feed of changes: the hidden table that holds it, and what stands there.
//!
//! ```text
//! name:                             NUL "feed"
//! key                               value
//! (empty)                           u8 version, 1 | u64 bytes that are kept | u64 ms that are kept, 0: for ever
//!                                   u32 number of tables that are fed; each: u32 id, u8 what, u64 since which commit
//! "c", name                         u64 the last commit with which the reader of this name has done
//! "d", u64 BE commit, u32 BE part   a part of what the commit has changed
//! "m", u64 BE commit                a mark: u64 bytes of all parts up to this commit | u64 ms since 1970
//! "t"                               as a mark, after u64 commit: the parts up to this commit are gone
//!
//! part:     u8 version, 1 | u64 ms since 1970 | sections
//! section:  u8 kind of the table | n name | changes | u8 255
//! change:   u8 0, n key, n value: put | u8 1, n key: put, without its value | u8 2, n key: removed
//!           u8 3, n start, n end: a range is removed | u8 4, n start: the range to the end of the table is
//!           u8 5, n name: the table has this name from then on | u8 6: it is dropped
//!           u8 7, u64 ms since 1970, n key, n value: put, expires then | u8 8, u64 ms, n key: without its value
//! n:        the length in base 128, the low seven bits first; then so many bytes
//! ```
//!
//! Keys are those of the user, also of hash tables. The ranges of a part come before its records, which they
//! do not remove.

use crate::base::codec::{Reader, Writer, u32_of, usize_of64};
use crate::base::error::Result;
use crate::base::key::TableKind;
use crate::format::expiry::Expiry;
use std::collections::BTreeMap;
use std::ops::Range;

/// The name of the hidden table.
pub(crate) const FEED_NAME: &str = "\0feed";
/// The key of the record that says what is fed.
pub(crate) const CONFIG_KEY: &[u8] = b"";
/// The key of the record that says what is gone.
pub(crate) const TRIMMED_KEY: &[u8] = b"t";

const VERSION: u8 = 1;
const PUT: u8 = 0;
const PUT_KEY: u8 = 1;
const REMOVE: u8 = 2;
const REMOVE_RANGE: u8 = 3;
const REMOVE_FROM: u8 = 4;
const RENAME: u8 = 5;
const DROP: u8 = 6;
const PUT_UNTIL: u8 = 7;
const PUT_KEY_UNTIL: u8 = 8;
const END: u8 = 255;

/// How much of a change the feed has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedContent {
    /// The keys that were put, and those that were removed.
    Keys,
    /// The new values besides.
    Values,
}

/// A table that is fed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FedTable {
    pub(crate) content: FeedContent,
    /// All later commits are in the feed.
    pub(crate) since: u64,
}

/// What is fed, and how much of it is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FeedConfig {
    pub(crate) bytes_max: u64,
    /// 0: however old.
    pub(crate) age_max_ms: u64,
    pub(crate) tables: BTreeMap<u32, FedTable>,
}

impl FeedConfig {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.u8(VERSION);
        w.u64(self.bytes_max);
        w.u64(self.age_max_ms);
        w.u32(u32_of(self.tables.len()));
        for (&id, table) in &self.tables {
            w.u32(id);
            w.u8(if table.content == FeedContent::Values { 1 } else { 0 });
            w.u64(table.since);
        }
        w.bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<FeedConfig> {
        let mut r = Reader::new(bytes, "state of the feed", 0);
        let version = r.u8()?;
        if version != VERSION {
            return Err(r.bad(format!("version {version}, this library knows {VERSION}")));
        }
        let (bytes_max, age_max_ms) = (r.u64()?, r.u64()?);
        let mut tables = BTreeMap::new();
        for _ in 0..r.count(13)? {
            let id = r.counted_short()?;
            let content = match r.u8()? {
                0 => FeedContent::Keys,
                1 => FeedContent::Values,
                other => return Err(r.bad(format!("content {other} is impossible"))),
            };
            let since = r.counted()?;
            if tables.insert(id, FedTable { content, since }).is_some() {
                return Err(r.bad(format!("table {id} is named twice")));
            }
        }
        r.finish()?;
        Ok(FeedConfig { bytes_max, age_max_ms, tables })
    }
}

/// So much had been fed up to a commit, and when that was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FeedMark {
    pub(crate) commit: u64,
    pub(crate) total_bytes: u64,
    pub(crate) time_ms: u64,
}

impl FeedMark {
    /// The mark's key and value.
    pub(crate) fn encode(&self) -> (Vec<u8>, Vec<u8>) {
        let mut w = Writer::default();
        w.u64(self.total_bytes);
        w.u64(self.time_ms);
        (mark_key(self.commit), w.bytes)
    }

    pub(crate) fn decode(key: &[u8], value: &[u8]) -> Result<FeedMark> {
        let mut r = Reader::new(value, "mark of the feed", 0);
        let commit = key.strip_prefix(b"m").and_then(|k| k.try_into().ok()).map(u64::from_be_bytes);
        let commit = commit.ok_or_else(|| r.bad("its key is impossible"))?;
        let mark = FeedMark { commit, total_bytes: r.u64()?, time_ms: r.u64()? };
        r.finish()?;
        Ok(mark)
    }

    /// The value of the record that says what is gone.
    pub(crate) fn encode_trimmed(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.u64(self.commit);
        w.u64(self.total_bytes);
        w.u64(self.time_ms);
        w.bytes
    }

    pub(crate) fn decode_trimmed(value: &[u8]) -> Result<FeedMark> {
        let mut r = Reader::new(value, "end of the feed", 0);
        let mark = FeedMark { commit: r.counted()?, total_bytes: r.u64()?, time_ms: r.u64()? };
        r.finish()?;
        Ok(mark)
    }
}

pub(crate) fn mark_key(commit: u64) -> Vec<u8> {
    [&b"m"[..], &commit.to_be_bytes()].concat()
}

pub(crate) fn part_key(commit: u64, part: u32) -> Vec<u8> {
    [&b"d"[..], &commit.to_be_bytes(), &part.to_be_bytes()].concat()
}

pub(crate) fn parse_part_key(key: &[u8]) -> Result<(u64, u32)> {
    let numbers = || {
        let (commit, part) = key.strip_prefix(b"d")?.split_first_chunk::<8>()?;
        Some((u64::from_be_bytes(*commit), u32::from_be_bytes(part.try_into().ok()?)))
    };
    numbers().ok_or_else(|| Reader::new(key, "key of the feed", 0).bad("it is of no part"))
}

pub(crate) fn cursor_key(name: &str) -> Vec<u8> {
    [b"c", name.as_bytes()].concat()
}

/// Writes parts.
#[derive(Default)]
pub(crate) struct PartWriter {
    bytes: Vec<u8>,
}

impl PartWriter {
    pub(crate) fn begin(&mut self, time_ms: u64) {
        self.bytes.clear();
        self.bytes.push(VERSION);
        self.bytes.extend_from_slice(&time_ms.to_le_bytes());
    }

    pub(crate) fn begin_section(&mut self, kind: TableKind, name: &str) {
        self.bytes.push(kind.code());
        self.field(name.as_bytes());
    }

    pub(crate) fn end_section(&mut self) {
        self.bytes.push(END);
    }

    pub(crate) fn put(&mut self, key: &[u8], value: Option<&[u8]>, expiry: Expiry) {
        let time_ms = expiry.time_ms();
        self.bytes.push(match (value, time_ms) {
            (Some(_), None) => PUT,
            (None, None) => PUT_KEY,
            (Some(_), Some(_)) => PUT_UNTIL,
            (None, Some(_)) => PUT_KEY_UNTIL,
        });
        time_ms.into_iter().for_each(|ms| self.bytes.extend_from_slice(&ms.to_le_bytes()));
        self.field(key);
        if let Some(value) = value {
            self.field(value);
        }
    }

    pub(crate) fn remove(&mut self, key: &[u8]) {
        self.bytes.push(REMOVE);
        self.field(key);
    }

    pub(crate) fn remove_range(&mut self, start: &[u8], end: Option<&[u8]>) {
        self.bytes.push(if end.is_some() { REMOVE_RANGE } else { REMOVE_FROM });
        self.field(start);
        if let Some(end) = end {
            self.field(end);
        }
    }

    pub(crate) fn rename(&mut self, name: &str) {
        self.bytes.push(RENAME);
        self.field(name.as_bytes());
    }

    pub(crate) fn drop_table(&mut self) {
        self.bytes.push(DROP);
    }

    fn field(&mut self, bytes: &[u8]) {
        let mut n = bytes.len();
        while n >= 128 {
            self.bytes.push((n & 127) as u8 | 128);
            n >>= 7;
        }
        self.bytes.push(n as u8);
        self.bytes.extend_from_slice(bytes);
    }

    /// The part as far as it was written.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A change as it stands in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RawChange<'a> {
    /// The last is when the record expires, in milliseconds since 1970, if it does.
    Put(&'a [u8], Option<&'a [u8]>, Option<u64>),
    Remove(&'a [u8]),
    RemoveRange(&'a [u8], Option<&'a [u8]>),
    Rename(&'a str),
    Drop,
}

/// A place in a part.
#[derive(Debug, Default, Clone)]
pub(crate) struct PartPlace {
    at: usize,
    pub(crate) time_ms: u64,
    /// The section's table, where one is open.
    table: Option<(TableKind, Range<usize>)>,
}

impl PartPlace {
    /// The beginning of a part.
    pub(crate) fn first(bytes: &[u8]) -> Result<PartPlace> {
        let mut r = reader(bytes, 0);
        let version = r.u8()?;
        if version != VERSION {
            return Err(r.bad(format!("version {version}, this library knows {VERSION}")));
        }
        Ok(PartPlace { at: 9, time_ms: r.u64()?, table: None })
    }

    /// The table of the change that `next` has given.
    pub(crate) fn table<'a>(&self, bytes: &'a [u8]) -> &'a str {
        let name = self.table.as_ref().and_then(|(_, name)| bytes.get(name.clone()));
        name.and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default()
    }

    /// The next change of the part; none after the last.
    pub(crate) fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<RawChange<'a>>> {
        loop {
            let mut r = reader(bytes, self.at);
            if r.remaining() == 0 && self.table.is_none() {
                return Ok(None);
            }
            let code = r.u8()?;
            let change = match (&self.table, code) {
                (None, kind) => {
                    let kind = TableKind::from_code(kind).ok_or_else(|| r.bad("a table of unknown kind"))?;
                    let name = name(&mut r)?;
                    let end = bytes.len() - r.remaining();
                    self.table = Some((kind, end - name.len()..end));
                    None
                }
                (Some(_), END) => {
                    self.table = None;
                    None
                }
                (Some(_), PUT | PUT_KEY | PUT_UNTIL | PUT_KEY_UNTIL) => {
                    let until = if code >= PUT_UNTIL { Some(r.u64()?) } else { None };
                    let key = field(&mut r)?;
                    let has_value = matches!(code, PUT | PUT_UNTIL);
                    let value = if has_value { Some(field(&mut r)?) } else { None };
                    Some(RawChange::Put(key, value, until))
                }
                (Some(_), REMOVE) => Some(RawChange::Remove(field(&mut r)?)),
                (Some(_), REMOVE_RANGE) => Some(RawChange::RemoveRange(field(&mut r)?, Some(field(&mut r)?))),
                (Some(_), REMOVE_FROM) => Some(RawChange::RemoveRange(field(&mut r)?, None)),
                (Some(_), RENAME) => Some(RawChange::Rename(name(&mut r)?)),
                (Some(_), DROP) => Some(RawChange::Drop),
                (Some(_), other) => return Err(r.bad(format!("change {other} is impossible"))),
            };
            self.at = bytes.len() - r.remaining();
            if change.is_some() {
                return Ok(change);
            }
        }
    }
}

fn reader(bytes: &[u8], at: usize) -> Reader<'_> {
    Reader::new(bytes.get(at..).unwrap_or_default(), "part of the feed", at as u64)
}

fn name<'a>(r: &mut Reader<'a>) -> Result<&'a str> {
    let name = field(r)?;
    std::str::from_utf8(name).map_err(|_| r.bad("a table's name is not UTF-8"))
}

fn field<'a>(r: &mut Reader<'a>) -> Result<&'a [u8]> {
    let mut n = 0u64;
    for shift in (0..63).step_by(7) {
        let b = r.u8()?;
        n |= u64::from(b & 127) << shift;
        if b < 128 {
            return r.take(usize_of64(n));
        }
    }
    Err(r.bad("a length is impossible"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_as_they_were_written_and_no_others() {
        let mut w = PartWriter::default();
        w.begin(77);
        w.begin_section(TableKind::Ordered, "a table");
        w.remove_range(b"a", Some(b"c"));
        w.remove_range(b"", None);
        w.put(b"key", Some(&[7; 300]), Expiry::NEVER);
        w.put(b"", None, Expiry::NEVER);
        w.put(b"short", Some(b"v"), Expiry::at(5));
        w.put(b"short", None, Expiry::at(6));
        w.end_section();
        w.begin_section(TableKind::Hash, "");
        w.remove(b"gone");
        w.rename("new");
        w.drop_table();
        w.end_section();
        let bytes = w.bytes().to_vec();
        let all = |bytes: &[u8]| -> Result<Vec<String>> {
            let (mut place, mut out) = (PartPlace::first(bytes)?, Vec::new());
            while let Some(change) = place.next(bytes)? {
                out.push(format!("{} {change:?}", place.table(bytes)));
            }
            assert_eq!(place.time_ms, 77);
            Ok(out)
        };
        let found = all(&bytes).unwrap();
        assert_eq!(found.len(), 9, "{found:?}");
        assert!(found[2].starts_with("a table Put([107, 101, 121], Some([7, 7"));
        assert!(
            found[4].ends_with("Some([118]), Some(5))") && found[5].ends_with("None, Some(6))"),
            "{found:?}"
        );
        assert_eq!(found[6], " Remove([103, 111, 110, 101])");
        assert_eq!(found[7..], [" Rename(\"new\")", " Drop"]);
        // What is cut is an error, but between two sections.
        let whole: Vec<usize> = (0..=bytes.len()).filter(|&n| all(&bytes[..n]).is_ok()).collect();
        assert_eq!(whole.len(), 3, "{whole:?}");
        assert!(all(&[&bytes[..bytes.len() - 1], &[9, 255]].concat()).is_err());
    }

    #[test]
    fn what_is_fed_is_read_as_it_was_written_and_nothing_else() {
        let table = |content, since| FedTable { content, since };
        let tables = [(3, table(FeedContent::Keys, 9)), (70, table(FeedContent::Values, 0))];
        let config = FeedConfig { bytes_max: 5, age_max_ms: 6, tables: tables.into() };
        let bytes = config.encode();
        assert_eq!(FeedConfig::decode(&bytes).unwrap(), config);
        assert!((0..bytes.len()).all(|n| FeedConfig::decode(&bytes[..n]).is_err()));
        let mark = FeedMark { commit: 5, total_bytes: 6, time_ms: 7 };
        let (key, value) = mark.encode();
        assert_eq!(FeedMark::decode(&key, &value).unwrap(), mark);
        assert!(FeedMark::decode(&key[1..], &value).is_err());
        assert_eq!(FeedMark::decode_trimmed(&mark.encode_trimmed()).unwrap(), mark);
        assert_eq!(parse_part_key(&part_key(5, 6)).unwrap(), (5, 6));
        assert!(parse_part_key(b"d").is_err());
    }
}
