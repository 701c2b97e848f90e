//! The log: section 9.

use super::page::{Node, little_endian, take};
use super::{File, Sorted, ranges_of, remove, rows_of};
use std::collections::{BTreeMap, BTreeSet};

impl<'a> File<'a> {
    /// The stream of records of a chain: section 9.
    pub(super) fn chain(&mut self, log: &Node<'a>, mut durable: u64, checkpoint: u64) -> Vec<u8> {
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
    pub(super) fn record<'b>(
        &mut self,
        rest: &mut &'b [u8],
        last: &mut u64,
        tables: &mut BTreeMap<u64, Sorted>,
    ) where
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
