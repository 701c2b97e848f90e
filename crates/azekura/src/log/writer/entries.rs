//! Small commits that wait by reference: their records stand in the active buffer of their table, and are
//! copied only if they are written. Mostly a flush comes first. What such a commit tells the feed is one
//! record more, in the buffer of the feed's table.
//!
//! The buffer's memory is not used again while anything refers to it. So what waits counts with the length
//! that it has in the log, for a buffer takes about as much.

use crate::base::codec::Writer;
use crate::base::sync::CountedArc;
use crate::format::block::Block;
use crate::format::frame::{ROW_BYTES, begin_record, end_record, write_part};
use crate::format::ranges::Ranges;
use crate::memtable::active::{Active, Entry, Node};

/// What a commit takes in the log beside its rows: the record's length, number and count of parts; the part's
/// table, its counts of segments and of ranges, its form, its count of rows.
const COMMIT_BYTES: usize = 8 + 8 + 4 + PART_BYTES;
const PART_BYTES: usize = 4 + 4 + 4 + 1 + 4;

/// What commits that tell the feed count besides, once for all that stand in the same two buffers: where
/// tables take turns, that is each of them.
const TOLD_BYTES: usize = 256;

/// What a commit has inserted into the active buffer of a table: its records in the order of their keys, with
/// keys and values of so many bytes in all.
#[derive(Clone, Copy)]
pub(crate) struct Inserted<'a> {
    pub(crate) table: u32,
    pub(crate) list: &'a CountedArc<Active>,
    pub(crate) nodes: &'a [Node],
    pub(crate) payload_bytes: usize,
}

impl Inserted<'_> {
    /// How many bytes it takes in the log, at most, without what a part has besides.
    fn bytes(&self) -> usize {
        self.nodes.len() * ROW_BYTES + self.payload_bytes
    }
}

/// Records of one table, those of each commit after those of the one before.
struct Own {
    table: u32,
    list: CountedArc<Active>,
    nodes: Vec<Node>,
}

impl Own {
    fn new(from: &Inserted<'_>) -> Own {
        Own { table: from.table, list: from.list.clone(), nodes: Vec::new() }
    }

    fn is_of(&self, from: &Inserted<'_>) -> bool {
        CountedArc::ptr_eq(&self.list, from.list)
    }

    fn entry(&self, node: Node) -> Entry<'_> {
        // SAFETY: who has added the node has promised that the buffer gave it. It was not reset since, for
        // this is a reference to it. The queue's lock was between that and this.
        unsafe { self.list.inserted(node) }
    }
}

/// Commits of one table, one after the other.
pub(super) struct Entries {
    own: Own,
    /// What they tell the feed, a record each.
    told: Option<Own>,
    bytes: usize,
}

impl Entries {
    pub(super) fn new(own: &Inserted<'_>, told: Option<&Inserted<'_>>) -> Entries {
        Entries { own: Own::new(own), told: told.map(Own::new), bytes: 0 }
    }

    /// Whether the records stand in these buffers.
    pub(super) fn are_in(&self, own: &Inserted<'_>, told: Option<&Inserted<'_>>) -> bool {
        let is_told = match (&self.told, told) {
            (Some(mine), Some(told)) => mine.is_of(told),
            (mine, told) => mine.is_none() && told.is_none(),
        };
        is_told && self.own.is_of(own)
    }

    /// Adds a commit. Returns how many bytes it takes in the log, at most. REQUIRES: `are_in`; `told` is one
    /// record.
    ///
    /// # Safety
    ///
    /// REQUIRES: inserts into the buffers gave the nodes, after the last `reset`.
    pub(super) unsafe fn add(&mut self, own: &Inserted<'_>, told: Option<&Inserted<'_>>) -> usize {
        self.own.nodes.extend_from_slice(own.nodes);
        let mut bytes = COMMIT_BYTES + own.bytes();
        if let (Some(mine), Some(told)) = (&mut self.told, told) {
            mine.nodes.extend_from_slice(told.nodes);
            bytes += PART_BYTES + told.bytes() + if self.bytes == 0 { TOLD_BYTES } else { 0 };
        }
        self.bytes += bytes;
        bytes
    }

    /// How many bytes they take in the log, at most.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The commits in the form of the log.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut w = Writer { bytes: Vec::with_capacity(self.bytes) };
        let (mut block, own) = (Block::default(), &self.own);
        let commits = own.nodes.chunk_by(|&a, &b| own.entry(a).seq == own.entry(b).seq);
        let mut told = self.told.iter().flat_map(|told| told.nodes.chunks(1).map(move |node| (told, node)));
        for commit in commits {
            let seq = own.entry(commit[0]).seq;
            let told = told.next();
            let start = begin_record(&mut w, seq, 1 + usize::from(told.is_some()));
            write_rows_of(&mut w, own, commit, &mut block);
            if let Some((told, node)) = told {
                debug_assert_eq!(told.entry(node[0]).seq, seq, "each commit has told one record");
                write_rows_of(&mut w, told, node, &mut block);
            }
            end_record(&mut w, start);
        }
        w.bytes
    }
}

/// Writes a commit's part for one table. `block` is memory to be used again.
fn write_rows_of(w: &mut Writer, of: &Own, nodes: &[Node], block: &mut Block) {
    block.reset(of.entry(nodes[0]).widths());
    for &node in nodes {
        let entry = of.entry(node);
        if block.fixed.is_some() && block.fixed != entry.widths() {
            *block = block.to_general();
        }
        block.push(entry.key, entry.tag(), entry.value);
    }
    write_part(w, of.table, &[], &Ranges::none(), block);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::format::block::Tag;
    use crate::format::frame::read_record;

    type Row = (&'static [u8], Tag, &'static [u8]);

    /// Commits of records of one width, of several, with a tombstone in each place, and of one record.
    const COMMITS: [(u64, &[Row]); 5] = [
        (7, &[(b"eight..a", Tag::Put, b"12"), (b"eight..b", Tag::Put, b"34")]),
        (8, &[(b"eight..a", Tag::Put, b"56"), (b"eight..b", Tag::Put, b"7890")]),
        (9, &[(b"a", Tag::Tombstone, b""), (b"bb", Tag::Put, b"x"), (b"bb\0", Tag::Put, b"")]),
        (10, &[(b"eight..a", Tag::Put, b"1"), (b"eight..b", Tag::Tombstone, b"")]),
        (12, &[(b"eight..c", Tag::Put, b"the only one")]),
    ];

    /// What each commit tells.
    const TOLD: Row = (b"d, a number", Tag::Put, b"what was put");

    /// Commits as they are in the log, by a queue that refers to them. If `tells`, each tells the feed a
    /// record.
    fn encoded(tells: bool) -> Vec<u8> {
        let mut lists = [(); 2].map(|()| CountedArc::new(Active::new(4096)));
        let mut entries: Option<Entries> = None;
        for (seq, rows) in COMMITS {
            let insert = |list: &CountedArc<Active>, &(key, tag, value): &Row| {
                // SAFETY: nobody else inserts.
                unsafe { list.insert(key, seq, tag as u8, value) }.expect("it fits")
            };
            let payload = |rows: &[Row]| rows.iter().map(|(key, _, value)| key.len() + value.len()).sum();
            let nodes: Vec<Node> = rows.iter().map(|row| insert(&lists[0], row)).collect();
            let own = Inserted { table: 3, list: &lists[0], nodes: &nodes, payload_bytes: payload(rows) };
            let told = tells.then(|| [insert(&lists[1], &TOLD)]);
            let told = told.as_ref().map(|nodes| Inserted {
                table: 4,
                list: &lists[1],
                nodes,
                payload_bytes: payload(&[TOLD]),
            });
            let entries = entries.get_or_insert_with(|| Entries::new(&own, told.as_ref()));
            assert!(entries.are_in(&own, told.as_ref()));
            assert!(!entries.are_in(&own, told.is_none().then_some(&own)), "with another table, or without");
            // SAFETY: the lists have just given the nodes.
            let bytes = unsafe { entries.add(&own, told.as_ref()) };
            assert!(bytes >= payload(rows) + if tells { payload(&[TOLD]) } else { 0 });
        }
        let used = if tells { 2 } else { 1 };
        for list in &mut lists[..used] {
            assert!(CountedArc::get_mut(list).is_none(), "what waits keeps the buffer as it is");
        }
        drop(lists);
        let entries = entries.expect("there are commits");
        let bytes = entries.encode();
        assert!(bytes.len() <= entries.bytes(), "{} of {}", bytes.len(), entries.bytes());
        bytes
    }

    #[test]
    fn commits_are_encoded_as_they_were_made_after_the_buffer_was_sealed() {
        for tells in [false, true] {
            let bytes = encoded(tells);
            let mut rest = bytes.as_slice();
            for (seq, rows) in COMMITS {
                let (len, behind) = rest.split_first_chunk::<8>().expect("a length");
                let (record, behind) = behind.split_at(usize::try_from(u64::from_le_bytes(*len)).unwrap());
                let (found, parts) = read_record(record, 0).expect("a record");
                let tables: Vec<u32> = parts.iter().map(|part| part.table).collect();
                assert_eq!((found, tables.as_slice()), (seq, if tells { &[3, 4][..] } else { &[3] }));
                for (part, rows) in parts.iter().zip([rows, &[TOLD]]) {
                    let (block, mut tmp) = (&part.block, [0; 8]);
                    assert_eq!(block.len(), rows.len());
                    for (i, &(key, tag, value)) in rows.iter().enumerate() {
                        let found = (block.key(i, &mut tmp), block.tag(i), block.value(i));
                        assert_eq!(found, (key, tag, value), "{seq}");
                    }
                }
                rest = behind;
            }
            assert!(rest.is_empty());
        }
    }
}
