//! A chain that is written at once, in one segment: the log of a copy.
//!
//! Its records run through frames of up to a mebibyte, as those of any chain. All of its frames are durable
//! when something names it.

use crate::base::codec::{Writer, u32_of, usize_of64};
use crate::base::limits::align_up;
use crate::format::frame::{
    Frame, HEADER_BYTES, NO_RECORD, RecordPart, begin_record, end_record, write_part, write_table_change,
};
use crate::format::manifest::LogChain;
use crate::space::Extent;

/// The most bytes that one frame carries.
const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// Whose frames they are.
#[derive(Clone, Copy)]
pub(crate) struct ImageId {
    pub(crate) file_id: u64,
    pub(crate) chain: u64,
    /// The number of the checkpoint that names the chain.
    pub(crate) checkpoint: u64,
}

/// The frames so far. Their headers are filled in at the end.
#[derive(Default)]
pub(crate) struct LogImage {
    bytes: Vec<u8>,
    /// Where each frame begins, and its `first_record`.
    frames: Vec<(usize, u32)>,
}

impl LogImage {
    /// Adds a commit. They come in order.
    pub(crate) fn add(&mut self, seq: u64, parts: &[RecordPart]) {
        let mut w = Writer::default();
        let start = begin_record(&mut w, seq, parts.len());
        for part in parts {
            match &part.change {
                Some(change) => write_table_change(&mut w, change),
                None => write_part(&mut w, part.table, &part.segments, &part.ranges, &part.block),
            }
        }
        end_record(&mut w, start);
        self.add_record(&w.bytes);
    }

    /// Bytes so far.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn add_record(&mut self, mut record: &[u8]) {
        let mut is_start = true;
        while !record.is_empty() {
            let mut begins = self.frames.last().map_or(0, |last| last.0);
            if self.frames.is_empty() || self.bytes.len() - begins == HEADER_BYTES + PAYLOAD_BYTES_MAX {
                self.pad();
                begins = self.bytes.len();
                self.frames.push((begins, NO_RECORD));
                self.bytes.resize(begins + HEADER_BYTES, 0);
            }
            let payload = self.bytes.len() - begins - HEADER_BYTES;
            if let Some(frame) = self.frames.last_mut().filter(|frame| is_start && frame.1 == NO_RECORD) {
                frame.1 = u32_of(payload);
            }
            is_start = false;
            let (now, later) = record.split_at(record.len().min(PAYLOAD_BYTES_MAX - payload));
            self.bytes.extend_from_slice(now);
            record = later;
        }
    }

    /// Fills the last block.
    fn pad(&mut self) {
        let whole = usize_of64(align_up(self.bytes.len() as u64));
        self.bytes.resize(whole, 0);
    }

    /// The bytes of the segment, and the chain if that stands at `offset`. None if no commit was added.
    /// `clock` is the latest time that the frames say.
    pub(crate) fn finish(mut self, id: ImageId, clock: u32, offset: u64) -> Option<(Vec<u8>, LogChain)> {
        let payload_ends = self.bytes.len();
        self.pad();
        for (n, &(begins, first_record)) in self.frames.iter().enumerate() {
            let number = 1 + n as u64;
            let len = payload_ends.min(begins + HEADER_BYTES + PAYLOAD_BYTES_MAX) - begins - HEADER_BYTES;
            let frame = Frame {
                file_id: id.file_id,
                chain: id.chain,
                number,
                len: u32_of(len),
                first_record,
                jump: false,
                checkpoint: id.checkpoint,
                durable_below: number,
                clock,
            };
            frame.seal(&mut self.bytes[begins..begins + HEADER_BYTES + len]);
        }
        let end_frame = 1 + self.frames.len() as u64;
        let first = Extent { offset, len: self.bytes.len() as u64 };
        let chain = LogChain { chain: id.chain, first, first_frame: 1, end_frame, durable_below: end_frame };
        (end_frame > 1).then_some((self.bytes, chain))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::key::TableKind;
    use crate::format::block::{Block, Tag};
    use crate::format::frame::{NewTable, TableChange};
    use crate::format::ranges::Ranges;
    use crate::log::recovery::replay;
    use crate::storage::{MemStorage, OpenMode, Storage};
    use std::path::Path;

    const ID: ImageId = ImageId { file_id: 5, chain: 9, checkpoint: 3 };

    fn part(table: u32, values: &[usize]) -> RecordPart {
        let mut block = Block::new(None);
        for (n, len) in values.iter().enumerate() {
            block.push(&(n as u32).to_be_bytes(), Tag::Put, &vec![n as u8; *len]);
        }
        RecordPart { table, change: None, segments: Vec::new(), ranges: Ranges::none(), block }
    }

    fn made(id: u32) -> RecordPart {
        let new = NewTable { id, kind: TableKind::Hash, name: "new".into(), ttl_ms: 0 };
        RecordPart { change: Some(TableChange::Made(new)), ..part(id, &[]) }
    }

    fn described(parts: &[RecordPart]) -> Vec<(Option<TableChange>, Vec<u8>)> {
        let of = |part: &RecordPart| {
            let mut w = Writer::default();
            write_part(&mut w, part.table, &part.segments, &part.ranges, &part.block);
            (part.change.clone(), w.bytes)
        };
        parts.iter().map(of).collect()
    }

    /// Records end within frames, at their ends, and go through several.
    #[test]
    fn commits_come_back_from_the_frames_whatever_their_lengths() {
        let edge = PAYLOAD_BYTES_MAX - 100;
        let commits = [
            vec![part(1, &[10, 0, 30])],
            vec![made(2), part(2, &[edge])],
            vec![],
            vec![part(1, &[3 * PAYLOAD_BYTES_MAX + 7]), part(2, &[1])],
            vec![part(1, &[5])],
        ];
        for extra in 0..160 {
            let mut image = LogImage::default();
            image.add(10, &[part(1, &[extra])]);
            let mut expected = vec![(10, described(&[part(1, &[extra])]))];
            // All lengths where the second record's end meets the frame's are tried with that alone.
            let last = if extra % 40 == 0 { commits.len() } else { 2 };
            for (seq, parts) in (11..).zip(&commits[..last]) {
                image.add(seq, parts);
                expected.push((seq, described(parts)));
            }
            let disk = MemStorage::default();
            let file = disk.open(Path::new("log"), OpenMode::CreateNew).unwrap();
            let (bytes, chain) = image.finish(ID, 77, 8192).unwrap();
            file.write_at(&bytes, 8192).unwrap();
            assert_eq!((chain.first.len, chain.first.len % 4096), (bytes.len() as u64, 0));
            let mut found = Vec::new();
            let apply = |_, seq, parts: Vec<RecordPart>| {
                found.push((seq, described(&parts)));
                Ok(())
            };
            let done = replay(file.as_ref(), 5, 3, &chain, apply).unwrap();
            assert!(found == expected, "{extra}");
            let told = (done.end_frame, done.safe_below, done.clock);
            assert_eq!(told, (chain.end_frame, chain.end_frame, 77));
        }
        assert!(LogImage::default().finish(ID, 0, 8192).is_none());
    }
}
