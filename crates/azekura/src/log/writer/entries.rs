//! Small commits that wait by reference: their records stand in the active buffer of their table, and are
//! copied only if they are written. Mostly a flush comes first.
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
const COMMIT_BYTES: usize = 8 + 8 + 4 + 4 + 4 + 4 + 1 + 4;

/// Commits of one table, one after the other.
pub(super) struct Entries {
    table: u32,
    list: CountedArc<Active>,
    nodes: Vec<Node>,
    bytes: usize,
}

impl Entries {
    pub(super) fn new(table: u32, list: &CountedArc<Active>) -> Entries {
        Entries { table, list: list.clone(), nodes: Vec::new(), bytes: 0 }
    }

    /// Whether the records stand in this buffer.
    pub(super) fn are_in(&self, list: &CountedArc<Active>) -> bool {
        CountedArc::ptr_eq(&self.list, list)
    }

    /// Adds a commit: its records in the order of their keys, with keys and values of so many bytes in all.
    /// Returns how many bytes it takes in the log, at most.
    ///
    /// # Safety
    ///
    /// REQUIRES: inserts into the buffer gave the nodes, after the last `reset`.
    pub(super) unsafe fn add(&mut self, nodes: &[Node], payload_bytes: usize) -> usize {
        self.nodes.extend_from_slice(nodes);
        let bytes = COMMIT_BYTES + nodes.len() * ROW_BYTES + payload_bytes;
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
        let mut block = Block::default();
        for commit in self.nodes.chunk_by(|&a, &b| self.entry(a).seq == self.entry(b).seq) {
            let first = self.entry(commit[0]);
            block.reset(first.widths());
            for &node in commit {
                let entry = self.entry(node);
                if block.fixed.is_some() && block.fixed != entry.widths() {
                    block = block.to_general();
                }
                block.push(entry.key, entry.tag(), entry.value);
            }
            let start = begin_record(&mut w, first.seq, 1);
            write_part(&mut w, self.table, &[], &Ranges::none(), &block);
            end_record(&mut w, start);
        }
        w.bytes
    }

    fn entry(&self, node: Node) -> Entry<'_> {
        // SAFETY: who has added the node has promised that the buffer gave it. It was not reset since, for
        // this is a reference to it. The queue's lock was between that and this.
        unsafe { self.list.inserted(node) }
    }
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

    #[test]
    fn commits_are_encoded_as_they_were_made_after_the_buffer_was_sealed() {
        let mut list = CountedArc::new(Active::new(4096));
        let mut entries = Entries::new(3, &list);
        for (seq, rows) in COMMITS {
            let insert = |&(key, tag, value): &Row| {
                // SAFETY: nobody else inserts.
                unsafe { list.insert(key, seq, tag as u8, value) }.expect("it fits")
            };
            let nodes: Vec<Node> = rows.iter().map(insert).collect();
            let payload = rows.iter().map(|(key, _, value)| key.len() + value.len()).sum();
            // SAFETY: the list has just given the nodes.
            let bytes = unsafe { entries.add(&nodes, payload) };
            assert!(bytes >= payload);
        }
        assert!(CountedArc::get_mut(&mut list).is_none(), "what waits keeps the buffer as it is");
        drop(list);
        let bytes = entries.encode();
        assert!(bytes.len() <= entries.bytes(), "{} of {}", bytes.len(), entries.bytes());
        let mut rest = bytes.as_slice();
        for (seq, rows) in COMMITS {
            let (len, behind) = rest.split_first_chunk::<8>().expect("a length");
            let (record, behind) = behind.split_at(usize::try_from(u64::from_le_bytes(*len)).unwrap());
            let (found, parts) = read_record(record, 0).expect("a record");
            assert_eq!((found, parts.len(), parts[0].table), (seq, 1, 3));
            let (block, mut tmp) = (&parts[0].block, [0; 8]);
            assert_eq!(block.len(), rows.len());
            for (i, &(key, tag, value)) in rows.iter().enumerate() {
                assert_eq!(
                    (block.key(i, &mut tmp), block.tag(i), block.value(i)),
                    (key, tag, value),
                    "{seq}"
                );
            }
            rest = behind;
        }
        assert!(rest.is_empty());
    }
}
