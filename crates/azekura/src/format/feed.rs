//! The feed of changes: the hidden table that holds it, and what stands there.
//!
//! ```text
//! name:                             NUL "feed"
//! key                               value
//! (empty)                           u8 version, 1 | u64 lineage of the file | u64 base
//!                                   u64 bytes that are kept | u64 ms that are kept, 0: for ever
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
//!           u8 9, u8 what: it is fed from then on | u8 10: it is no longer fed
//!           u8 11, n key, n value, n old value: put | u8 12, n key, n old value: removed
//!           u8 13, u64 ms since 1970, n key, n value, n old value: put, expires then
//! n:        the length in base 128, the low seven bits first; then so many bytes
//! ```
//!
//! Keys are those of the user, also of hash tables. The ranges of a part come before its records, which they
//! do not remove.
//!
//! A commit's number in the feed is its number in the file, and the base. A restored file goes back to a
//! commit that others have been told of, and from there other commits follow. So it has a base of its own,
//! which its lineage gives: no number of the feed stands for two commits. Where the lineage of the record is
//! not that of the file, the file was restored since, and its feed begins anew.

use crate::base::codec::{Reader, Writer, u32_of, usize_of64};
use crate::base::error::Result;
use crate::base::fault::fault;
use crate::base::key::TableKind;
use crate::base::limits::COUNT_END;
use crate::format::block::Tag;
use crate::format::expiry::{Content, Expiry};
use std::collections::BTreeMap;
use std::ops::Range;

/// The name of the hidden table.
pub(crate) const FEED_NAME: &str = "\0feed";
/// The key of the record that says what is fed.
pub(crate) const CONFIG_KEY: &[u8] = b"";
/// The key of the record that says what is gone.
pub(crate) const TRIMMED_KEY: &[u8] = b"t";

const VERSION: u8 = 1;
/// How long the key of a part is.
pub(crate) const PART_KEY_BYTES: usize = 13;
const PUT: u8 = 0;
const PUT_KEY: u8 = 1;
const REMOVE: u8 = 2;
const REMOVE_RANGE: u8 = 3;
const REMOVE_FROM: u8 = 4;
const RENAME: u8 = 5;
const DROP: u8 = 6;
const PUT_UNTIL: u8 = 7;
const PUT_KEY_UNTIL: u8 = 8;
const BEGIN: u8 = 9;
const STOP: u8 = 10;
const PUT_OLD: u8 = 11;
const REMOVE_OLD: u8 = 12;
const PUT_OLD_UNTIL: u8 = 13;
const END: u8 = 255;

/// How much of a change the feed has.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-feedcontent-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// use azekura::FeedContent;
/// t.set_feed(Some(FeedContent::Keys))?;
/// assert_eq!(db.feed_info()?.unwrap().tables[0].content, FeedContent::Keys);
/// t.set_feed(None)?;
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FeedContent {
    /// The keys that were put, and those that were removed.
    Keys,
    /// The new values besides.
    Values,
    /// The values before, too. To know them each commit reads what it changes, and a range that is removed is
    /// told record by record.
    Both,
}

impl FeedContent {
    fn code(self) -> u8 {
        match self {
            FeedContent::Keys => 0,
            FeedContent::Values => 1,
            FeedContent::Both => 2,
        }
    }

    fn from_code(code: u8) -> Option<FeedContent> {
        [FeedContent::Keys, FeedContent::Values, FeedContent::Both].into_iter().find(|c| c.code() == code)
    }
}

/// A restored file's numbers begin about so far beyond those of the file that it is a copy of.
const LIFE_COMMITS: u64 = 1 << 40;

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
    /// The file's, when this was written.
    pub(crate) lineage: u64,
    /// What the feed's numbers of commits are beyond those of the file.
    pub(crate) base: u64,
    pub(crate) bytes_max: u64,
    /// 0: however old.
    pub(crate) age_max_ms: u64,
    pub(crate) tables: BTreeMap<u32, FedTable>,
}

impl FeedConfig {
    /// As it is in a file of this lineage. True if the feed begins anew there.
    pub(crate) fn in_life(mut self, lineage: u64) -> (FeedConfig, bool) {
        let is_new = self.lineage != lineage;
        if is_new {
            self.lineage = lineage;
            // Two files that were restored from one place have different bases, too.
            self.base += LIFE_COMMITS + lineage % LIFE_COMMITS;
        }
        (self, is_new)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.u8(VERSION);
        w.u64(self.lineage);
        w.u64(self.base);
        w.u64(self.bytes_max);
        w.u64(self.age_max_ms);
        w.u32(u32_of(self.tables.len()));
        for (&id, table) in &self.tables {
            w.u32(id);
            w.u8(table.content.code());
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
        let (lineage, base) = (r.u64()?, r.counted()?);
        let (bytes_max, age_max_ms) = (r.u64()?, r.u64()?);
        let mut tables = BTreeMap::new();
        for _ in 0..r.count(13)? {
            let id = r.counted_short()?;
            let content = content(&mut r)?;
            let since = r.counted()?;
            if tables.insert(id, FedTable { content, since }).is_some() {
                return Err(r.bad(format!("table {id} is named twice")));
            }
        }
        r.finish()?;
        Ok(FeedConfig { lineage, base, bytes_max, age_max_ms, tables })
    }
}

fn content(r: &mut Reader<'_>) -> Result<FeedContent> {
    let code = r.u8()?;
    FeedContent::from_code(code).ok_or_else(|| r.bad(format!("content {code} is impossible")))
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
        let commit = commit.filter(|commit| *commit < COUNT_END);
        let commit = commit.ok_or_else(|| r.bad("its key is impossible"))?;
        let mark = FeedMark { commit, total_bytes: r.counted()?, time_ms: r.u64()? };
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
        let mark = FeedMark { commit: r.counted()?, total_bytes: r.counted()?, time_ms: r.u64()? };
        r.finish()?;
        Ok(mark)
    }
}

pub(crate) fn mark_key(commit: u64) -> Vec<u8> {
    [&b"m"[..], &commit.to_be_bytes()].concat()
}

pub(crate) fn part_key(commit: u64, part: u32) -> [u8; PART_KEY_BYTES] {
    let mut key = [b'd'; PART_KEY_BYTES];
    key[1..9].copy_from_slice(&commit.to_be_bytes());
    key[9..].copy_from_slice(&part.to_be_bytes());
    key
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
    pub(crate) fn with_capacity(bytes: usize) -> PartWriter {
        PartWriter { bytes: Vec::with_capacity(bytes) }
    }

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

    pub(crate) fn put_key(&mut self, key: &[u8], expiry: Expiry) {
        self.begin_put(PUT_KEY, PUT_KEY_UNTIL, expiry);
        self.field(key);
    }

    /// The byte of a put, and when the record expires.
    #[inline(always)]
    fn begin_put(&mut self, code: u8, code_until: u8, expiry: Expiry) {
        match expiry.time_ms() {
            None => self.bytes.push(code),
            Some(ms) => {
                self.bytes.push(code_until);
                self.bytes.extend_from_slice(&ms.to_le_bytes());
            }
        }
    }

    pub(crate) fn put(&mut self, key: &[u8], value: &[u8], old: Option<&[u8]>, expiry: Expiry) {
        let (code, code_until) = if old.is_some() { (PUT_OLD, PUT_OLD_UNTIL) } else { (PUT, PUT_UNTIL) };
        self.begin_put(code, code_until, expiry);
        self.field(key);
        self.field(value);
        if let Some(old) = old {
            self.field(old);
        }
    }

    pub(crate) fn remove(&mut self, key: &[u8], old: Option<&[u8]>) {
        self.bytes.push(if old.is_some() { REMOVE_OLD } else { REMOVE });
        self.field(key);
        if let Some(old) = old {
            self.field(old);
        }
    }

    /// Writes the change of a record, with the value before if that is given. Of a large value it is the
    /// value itself that is given.
    #[inline(always)]
    pub(crate) fn change(&mut self, told: FeedContent, key: &[u8], new: Content<'_>, old: Option<&[u8]>) {
        match (new.tag, told) {
            (Tag::Tombstone, _) if fault!("forget_change") => {}
            (Tag::Tombstone, _) => self.remove(key, old),
            (_, FeedContent::Keys) => self.put_key(key, new.expiry),
            _ => self.put(key, new.value, old, new.expiry),
        }
    }

    pub(crate) fn begin_table(&mut self, content: FeedContent) {
        self.bytes.extend([BEGIN, content.code()]);
    }

    pub(crate) fn stop_table(&mut self) {
        self.bytes.push(STOP);
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
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Gives the part away.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

/// A change as it stands in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RawChange<'a> {
    /// Key, value, the value before, and when the record expires, in milliseconds since 1970, if it does.
    Put(&'a [u8], Option<&'a [u8]>, Option<&'a [u8]>, Option<u64>),
    /// Key, and the value before.
    Remove(&'a [u8], Option<&'a [u8]>),
    RemoveRange(&'a [u8], Option<&'a [u8]>),
    Rename(&'a str),
    Drop,
    Begin(FeedContent),
    Stop,
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
                (Some(_), code) => Some(change(&mut r, code)?),
            };
            self.at = bytes.len() - r.remaining();
            if change.is_some() {
                return Ok(change);
            }
        }
    }
}

/// A put of a record that expires, with or without its value, and the value before.
fn put_until<'a>(r: &mut Reader<'a>, has_value: bool, has_old: bool) -> Result<RawChange<'a>> {
    let (until, key) = (r.u64()?, field(r)?);
    let value = if has_value { Some(field(r)?) } else { None };
    let old = if has_old { Some(field(r)?) } else { None };
    Ok(RawChange::Put(key, value, old, Some(until)))
}

/// A change that begins with this byte.
#[inline(always)]
fn change<'a>(r: &mut Reader<'a>, code: u8) -> Result<RawChange<'a>> {
    Ok(match code {
        PUT => RawChange::Put(field(r)?, Some(field(r)?), None, None),
        PUT_OLD => RawChange::Put(field(r)?, Some(field(r)?), Some(field(r)?), None),
        PUT_KEY => RawChange::Put(field(r)?, None, None, None),
        PUT_UNTIL => put_until(r, true, false)?,
        PUT_OLD_UNTIL => put_until(r, true, true)?,
        PUT_KEY_UNTIL => put_until(r, false, false)?,
        REMOVE => RawChange::Remove(field(r)?, None),
        REMOVE_OLD => RawChange::Remove(field(r)?, Some(field(r)?)),
        REMOVE_RANGE => RawChange::RemoveRange(field(r)?, Some(field(r)?)),
        REMOVE_FROM => RawChange::RemoveRange(field(r)?, None),
        RENAME => RawChange::Rename(name(r)?),
        DROP => RawChange::Drop,
        BEGIN => RawChange::Begin(content(r)?),
        STOP => RawChange::Stop,
        other => return Err(r.bad(format!("change {other} is impossible"))),
    })
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
        w.put(b"key", &[7; 300], None, Expiry::NEVER);
        w.put(b"key", &[8], Some(&[7; 300]), Expiry::NEVER);
        w.put_key(b"", Expiry::NEVER);
        w.put(b"short", b"v", None, Expiry::at(5));
        w.put_key(b"short", Expiry::at(6));
        w.put(b"short", b"v", Some(b"w"), Expiry::at(7));
        w.end_section();
        w.begin_section(TableKind::Hash, "");
        w.remove(b"gone", None);
        w.remove(b"gone", Some(b"old"));
        w.rename("new");
        w.drop_table();
        w.begin_table(FeedContent::Both);
        w.stop_table();
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
        assert_eq!(found.len(), 14, "{found:?}");
        assert!(found[2].starts_with("a table Put([107, 101, 121], Some([7, 7"));
        assert!(found[3].starts_with("a table Put([107, 101, 121], Some([8]), Some([7, 7"));
        assert!(found[5].ends_with("Some([118]), None, Some(5))"), "{found:?}");
        assert!(found[6].ends_with("None, None, Some(6))"), "{found:?}");
        assert!(found[7].ends_with("Some([118]), Some([119]), Some(7))"), "{found:?}");
        assert_eq!(found[8], " Remove([103, 111, 110, 101], None)");
        assert_eq!(found[9], " Remove([103, 111, 110, 101], Some([111, 108, 100]))");
        assert_eq!(found[10..], [" Rename(\"new\")", " Drop", " Begin(Both)", " Stop"]);
        // What is cut is an error, but between two sections.
        let whole: Vec<usize> = (0..=bytes.len()).filter(|&n| all(&bytes[..n]).is_ok()).collect();
        assert_eq!(whole.len(), 3, "{whole:?}");
        assert!(all(&[&bytes[..bytes.len() - 1], &[9, 255]].concat()).is_err());
    }

    #[test]
    fn what_is_fed_is_read_as_it_was_written_and_nothing_else() {
        let table = |content, since| FedTable { content, since };
        let tables = [(3, FeedContent::Keys, 9), (70, FeedContent::Values, 0), (71, FeedContent::Both, 5)];
        let tables = tables.map(|(id, content, since)| (id, table(content, since)));
        let (lineage, base) = (77, 88);
        let config = FeedConfig { lineage, base, bytes_max: 5, age_max_ms: 6, tables: tables.into() };
        let bytes = config.encode();
        assert_eq!(FeedConfig::decode(&bytes).unwrap(), config);
        assert!((0..bytes.len()).all(|n| FeedConfig::decode(&bytes[..n]).is_err()));
        let mark = FeedMark { commit: 5, total_bytes: 6, time_ms: 7 };
        let (key, value) = mark.encode();
        assert_eq!(FeedMark::decode(&key, &value).unwrap(), mark);
        assert!(FeedMark::decode(&key[1..], &value).is_err());
        assert!(FeedMark::decode(&mark_key(u64::MAX), &value).is_err(), "nobody has counted so far");
        assert_eq!(FeedMark::decode_trimmed(&mark.encode_trimmed()).unwrap(), mark);
        assert_eq!(parse_part_key(&part_key(5, 6)).unwrap(), (5, 6));
        assert!(parse_part_key(b"d").is_err());
    }

    #[test]
    fn each_life_of_a_file_has_numbers_of_its_own() {
        let config = FeedConfig { base: 3, ..FeedConfig::default() };
        assert_eq!(config.clone().in_life(0), (config.clone(), false));
        let (restored, is_new) = config.clone().in_life(5);
        assert!(is_new && restored.base == 3 + LIFE_COMMITS + 5 && restored.lineage == 5);
        assert_eq!(restored.clone().in_life(5), (restored.clone(), false));
        assert_ne!(config.in_life(6).0.base, restored.base);
        // Copies of copies, more than anybody makes, and still nothing overflows.
        let mut far = FeedConfig { base: COUNT_END - 1, ..FeedConfig::default() };
        for lineage in 1..1000 {
            far = far.in_life(u64::MAX - lineage).0;
        }
        assert!(far.base > COUNT_END);
    }
}
