//! What a repository of backups holds, and what a stream of one is made of.
//!
//! A **part** is a run, the used bytes of a value segment, or a log: what was committed after the checkpoint
//! that the manifest is of. It is stored in **pieces** of up to 8 MiB, each a file whose name says of which
//! lineage, of which part and which piece of it, and what its digest is. A **point** is the state after one
//! commit: the manifest of a packed file, and the pieces that fill that file.
//!
//! ```text
//! point: "AZKPOINT" | u32 version | u64 file id | u64 lineage | u64 hash seed | u64 point | u64 checkpoint
//!        | u64 commit | u64 time, in ms since 1970 | u64 manifest's length | manifest
//!        | u32 n, then n pieces | only with a log: u64 first commit | u32 tables | u32 version of the file
//!        | u32 m, then m marks | 16 bytes digest of all before
//! mark: u64 commit | u64 time, in ms since 1970
//! piece: u8 kind (0 run, 1 values, 2 log) | u64 id | u32 index | u64 offset in the file | u32 bytes
//!        | 16 bytes digest
//! head of a repository: "AZKREPO\0" | u32 version | u64 file id | u64 lineage | 16 bytes digest of all before
//! ```
//!
//! A digest is XXH3 in its 128-bit form, little-endian.

use super::superblock::{PLAIN_VERSION, VERSION};
use crate::base::codec::{Reader, Writer, u32_of, usize_of64};
use crate::base::error::{Error, Result};
use crate::base::key::TableKind;
use crate::base::limits::{SUPERBLOCKS_BYTES, align_up};
use crate::format::frame::{RecordPart, TableChange};
use crate::format::hidden::is_hidden;
use crate::format::manifest::{Manifest, TableInfo};
use crate::space::Extent;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;

/// The largest piece: large enough that a file and its sync cost little, small enough for a buffer.
pub(crate) const PIECE_BYTES_MAX: usize = 8 << 20;

const POINT_MAGIC: &[u8; 8] = b"AZKPOINT";
const HEAD_MAGIC: &[u8; 8] = b"AZKREPO\0";
const DIGEST_BYTES: usize = 16;
/// What one piece takes in a point.
pub(crate) const PIECE_ENTRY_BYTES: usize = 1 + 8 + 4 + 8 + 4 + DIGEST_BYTES;
const KIND_RUN: u8 = 0;
const KIND_VALUES: u8 = 1;
const KIND_LOG: u8 = 2;
/// The version of points, and of streams, that have a log.
pub(crate) const LOG_VERSION: u32 = 4;

const _: () = assert!(LOG_VERSION > VERSION, "who knows files alone knows no point with a log");

/// The digest of some bytes.
pub(crate) fn digest(bytes: &[u8]) -> u128 {
    xxh3_128(bytes)
}

/// Which part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PartId {
    Run(u64),
    Values(u32),
    /// A log of one chain, by the chain's id.
    Log(u64),
}

impl fmt::Display for PartId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartId::Run(id) => write!(f, "run {id}"),
            PartId::Values(id) => write!(f, "value segment {id}"),
            PartId::Log(id) => write!(f, "log {id}"),
        }
    }
}

/// Which life of which file: two that have both in common share their runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) file_id: u64,
    pub(crate) lineage: u64,
}

/// A piece of a part, and where it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) part: PartId,
    /// Which piece of the part: it begins at so many times the largest piece.
    pub(crate) index: u32,
    /// Where it stands in the restored file.
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
    pub(crate) digest: u128,
}

impl Piece {
    /// The name of its file in a repository.
    pub(crate) fn name(&self, identity: Identity) -> String {
        let part = match self.part {
            PartId::Run(id) => format!("r{id}"),
            PartId::Values(id) => format!("v{id}"),
            PartId::Log(id) => format!("l{id}"),
        };
        format!("{:016x}-{part}-{}-{:032x}", identity.lineage, self.index, self.digest)
    }

    /// Where it ends in the restored file.
    pub(crate) fn end(&self) -> u64 {
        self.offset + u64::from(self.bytes)
    }

    /// An error unless some bytes are those of the piece.
    pub(crate) fn verify(&self, bytes: &[u8]) -> Result<()> {
        let found = digest(bytes);
        let holds = found == self.digest || crate::base::checksum::is_ignored();
        if bytes.len() as u64 == u64::from(self.bytes) && holds {
            return Ok(());
        }
        let detail = format!(
            "piece {} of {} has {} bytes with digest {found:032x}, expected {} with {:032x}",
            self.index,
            self.part,
            bytes.len(),
            self.bytes,
            self.digest
        );
        Err(Error::corrupt("backup", 0, detail))
    }

    pub(crate) fn encode(&self, w: &mut Writer) {
        let (kind, id) = match self.part {
            PartId::Run(id) => (KIND_RUN, id),
            PartId::Values(id) => (KIND_VALUES, u64::from(id)),
            PartId::Log(id) => (KIND_LOG, id),
        };
        w.u8(kind);
        w.u64(id);
        w.u32(self.index);
        w.u64(self.offset);
        w.u32(self.bytes);
        w.bytes.extend_from_slice(&self.digest.to_le_bytes());
    }

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Piece> {
        let (kind, id) = (r.u8()?, r.counted()?);
        let part = match (kind, u32::try_from(id)) {
            (KIND_RUN, _) => PartId::Run(id),
            (KIND_VALUES, Ok(id)) => PartId::Values(id),
            (KIND_LOG, _) => PartId::Log(id),
            _ => return Err(r.bad(format!("a part of unknown kind {kind}, or with the id {id}"))),
        };
        let (index, offset, bytes) = (r.u32()?, r.counted()?, r.u32()?);
        if bytes == 0 || u64::from(bytes) > PIECE_BYTES_MAX as u64 {
            return Err(r.bad(format!("a piece of {bytes} bytes")));
        }
        Ok(Piece { part, index, offset, bytes, digest: read_digest(r)? })
    }
}

fn read_digest(r: &mut Reader<'_>) -> Result<u128> {
    let mut bytes = [0; DIGEST_BYTES];
    bytes.copy_from_slice(r.take(DIGEST_BYTES)?);
    Ok(u128::from_le_bytes(bytes))
}

/// The last commit that was known at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) commit: u64,
    pub(crate) time_ms: u64,
}

/// What one mark takes in a point.
const MARK_BYTES: usize = 8 + 8;

/// The state after one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) identity: Identity,
    pub(crate) hash_seed: u64,
    /// Its number in the repository, from 1 on; 0 in a stream.
    pub(crate) number: u64,
    pub(crate) checkpoint: u64,
    /// The commit after which it was: the last one of the log, if there is a log.
    pub(crate) commit: u64,
    /// The log can be cut behind each commit from this one on. Before it, the manifest may have tables that
    /// were not there then. Without a log it is the same as `commit`.
    pub(crate) first_commit: u64,
    pub(crate) time_ms: u64,
    /// That of the packed file.
    pub(crate) manifest: Manifest,
    /// By their offsets.
    pub(crate) pieces: Vec<Piece>,
    /// How many tables there were.
    pub(crate) tables: u32,
    /// When its log was read on, in order. Of a log that was read once there is none: `time_ms` says it.
    pub(crate) marks: Vec<Mark>,
}

impl Point {
    fn has_log(&self) -> bool {
        !self.manifest.logs.is_empty()
    }

    /// Bytes of its pieces.
    pub(crate) fn bytes(&self) -> u64 {
        self.pieces.iter().map(|p| u64::from(p.bytes)).sum()
    }

    /// Where the last piece ends in the restored file, in whole blocks.
    pub(crate) fn end(&self) -> u64 {
        self.pieces.last().map_or(SUPERBLOCKS_BYTES, |p| align_up(p.end()))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let manifest = self.manifest.encode();
        let mut w = Writer::default();
        w.bytes.extend_from_slice(POINT_MAGIC);
        w.u32(match self.has_log() {
            true => LOG_VERSION,
            false if self.manifest.is_plain() => PLAIN_VERSION,
            false => VERSION,
        });
        w.u64(self.identity.file_id);
        w.u64(self.identity.lineage);
        w.u64(self.hash_seed);
        w.u64(self.number);
        w.u64(self.checkpoint);
        w.u64(self.commit);
        w.u64(self.time_ms);
        w.u64(manifest.len() as u64);
        w.bytes.extend_from_slice(&manifest);
        w.u32(u32_of(self.pieces.len()));
        self.pieces.iter().for_each(|p| p.encode(&mut w));
        if self.has_log() {
            w.u64(self.first_commit);
            w.u32(self.tables);
            w.u32(self.manifest.version());
            w.u32(u32_of(self.marks.len()));
            for mark in &self.marks {
                w.u64(mark.commit);
                w.u64(mark.time_ms);
            }
        }
        seal(w)
    }

    /// Reads a point. Its pieces follow each other, and what the manifest names is among them.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Point> {
        let mut r = opened(bytes, POINT_MAGIC, "point of a backup")?;
        let identity = Identity { file_id: r.u64()?, lineage: r.u64()? };
        let (hash_seed, number, checkpoint) = (r.u64()?, r.counted()?, r.counted()?);
        let (commit, time_ms, manifest_bytes) = (r.counted()?, r.u64()?, r.counted()?);
        let manifest = Manifest::decode(r.take(usize_of64(manifest_bytes))?, 0)?;
        let mut pieces = Vec::new();
        for _ in 0..r.count(PIECE_ENTRY_BYTES)? {
            pieces.push(Piece::decode(&mut r)?);
        }
        let mut point = Point {
            identity,
            hash_seed,
            number,
            checkpoint,
            commit,
            first_commit: commit,
            time_ms,
            tables: Tables::of(&manifest).count(),
            manifest,
            pieces,
            marks: Vec::new(),
        };
        if point.has_log() {
            point.decode_log(&mut r)?;
        }
        let flushed = point.manifest.flushed_seq;
        let is_of_commit = if point.has_log() { commit > flushed } else { commit == flushed };
        if !is_of_commit || !point.is_filled() {
            return Err(r.bad("manifest and pieces do not agree"));
        }
        r.finish()?;
        Ok(point)
    }

    /// Reads what only a point with a log says.
    fn decode_log(&mut self, r: &mut Reader<'_>) -> Result<()> {
        let (first_commit, tables, version) = (r.counted()?, r.u32()?, r.u32()?);
        let first = self.manifest.flushed_seq.max(self.manifest.tables_seq.unwrap_or(self.commit));
        if version != self.manifest.version() || !(first..=self.commit).contains(&first_commit) {
            return Err(r.bad(format!("version {version} and commit {first_commit} are not its manifest's")));
        }
        let mut last = first_commit;
        for _ in 0..r.count(MARK_BYTES)? {
            let mark = Mark { commit: r.counted()?, time_ms: r.u64()? };
            if mark.commit < last || mark.commit > self.commit {
                return Err(r.bad(format!("it says when commit {} was the last, behind {last}", mark.commit)));
            }
            last = mark.commit;
            self.marks.push(mark);
        }
        (self.first_commit, self.tables) = (first_commit, tables);
        Ok(())
    }

    /// Each part, where its pieces begin and where they end, if they stand one behind the other.
    fn parts(&self) -> Option<Vec<(PartId, u64, u64)>> {
        let mut parts: Vec<(PartId, u64, u64)> = Vec::new();
        let (mut end, mut next) = (SUPERBLOCKS_BYTES, None);
        for piece in &self.pieces {
            let goes_on = next == Some((piece.part, u64::from(piece.index))) && piece.offset == end;
            match parts.last_mut() {
                Some(last) if goes_on => last.2 = piece.end(),
                _ if piece.index == 0 && piece.offset == align_up(end) => {
                    parts.push((piece.part, piece.offset, piece.end()));
                }
                _ => return None,
            }
            end = piece.end();
            next = Some((piece.part, u64::from(piece.index) + 1));
        }
        Some(parts)
    }

    /// Whether the pieces are what the manifest names: each run, each segment and each log have one extent,
    /// filled by its pieces, and the last part is a log if there is one.
    fn is_filled(&self) -> bool {
        let Some(parts) = self.parts() else { return false };
        let runs = self.manifest.tables.iter().flat_map(|t| t.levels.iter().flat_map(|l| &l.runs));
        let runs = runs.map(|r| (PartId::Run(r.id), r.extents.as_slice()));
        let values = self.manifest.values.iter().map(|v| (PartId::Values(v.id), v.extents.as_slice()));
        let logs = self.manifest.logs.iter();
        let logs = logs.map(|log| (PartId::Log(log.chain), std::slice::from_ref(&log.first)));
        let named = runs.chain(values).chain(logs);
        let mut named: Vec<_> =
            named.filter_map(|(id, extents)| Some((id, *extents.first()?, extents.len()))).collect();
        named.sort_by_key(|(_, extent, _)| extent.offset);
        let fills = |&(part, extent, extents): &(PartId, Extent, usize),
                     &(id, from, to): &(PartId, u64, u64)| {
            part == id && extents == 1 && extent.offset == from && extent.len == align_up(to - from)
        };
        let ends_so = parts.last().is_none_or(|last| matches!(last.0, PartId::Log(_)) == self.has_log());
        named.len() == parts.len()
            && ends_so
            && named.iter().zip(&parts).all(|(named, found)| fills(named, found))
    }
}

/// What is said of a table: what it is, its name and how long its records live.
type TableView = (TableKind, Arc<str>, u64);

/// The tables after some commit, by their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tables(BTreeMap<u32, TableView>);

impl Tables {
    /// Those of a manifest.
    pub(crate) fn of(manifest: &Manifest) -> Tables {
        let view = |t: &TableInfo| (t.id, (t.kind, t.name.clone(), t.ttl_ms));
        Tables(manifest.tables.iter().map(view).collect())
    }

    /// Notes what a commit has done with tables. REQUIRES: they are those before it.
    pub(crate) fn note(&mut self, parts: &[RecordPart]) {
        parts.iter().filter_map(|part| part.change.as_ref()).for_each(|change| self.note_change(change));
    }

    /// Notes one change. REQUIRES: as `note`.
    pub(crate) fn note_change(&mut self, change: &TableChange) {
        match change {
            TableChange::Made(made) => {
                self.0.insert(made.id, (made.kind, made.name.clone(), made.ttl_ms));
            }
            TableChange::Dropped(id) => {
                self.0.remove(id);
            }
            TableChange::Renamed(id, name) => {
                self.0.entry(*id).and_modify(|table| table.1 = name.clone());
            }
            TableChange::Lives(id, ttl_ms) => {
                self.0.entry(*id).and_modify(|table| table.2 = *ttl_ms);
            }
        }
    }

    /// How many there are, but for hidden ones.
    pub(crate) fn count(&self) -> u32 {
        u32_of(self.0.values().filter(|table| !is_hidden(&table.1)).count())
    }
}

/// The head of a repository.
pub(crate) fn encode_head(identity: Identity) -> Vec<u8> {
    let mut w = Writer::default();
    w.bytes.extend_from_slice(HEAD_MAGIC);
    w.u32(PLAIN_VERSION);
    w.u64(identity.file_id);
    w.u64(identity.lineage);
    seal(w)
}

/// Whose backups a repository holds.
pub(crate) fn decode_head(bytes: &[u8]) -> Result<Identity> {
    let mut r = opened(bytes, HEAD_MAGIC, "head of a repository")?;
    let identity = Identity { file_id: r.u64()?, lineage: r.u64()? };
    r.finish()?;
    Ok(identity)
}

/// Appends the digest.
fn seal(mut w: Writer) -> Vec<u8> {
    let sum = digest(&w.bytes);
    w.bytes.extend_from_slice(&sum.to_le_bytes());
    w.bytes
}

/// What stands between magic, version and digest, which hold.
fn opened<'a>(bytes: &'a [u8], magic: &[u8; 8], what: &'static str) -> Result<Reader<'a>> {
    let mut r = Reader::new(bytes, what, 0);
    if r.take(magic.len())? != magic {
        return Err(r.bad("it begins otherwise"));
    }
    let version = r.u32()?;
    let body_bytes = r.remaining().saturating_sub(DIGEST_BYTES);
    let body = r.take(body_bytes)?;
    let sum = digest(&bytes[..bytes.len() - DIGEST_BYTES.min(r.remaining())]);
    if read_digest(&mut r)? != sum && !crate::base::checksum::is_ignored() {
        return Err(r.bad("its digest does not hold"));
    }
    if version > LOG_VERSION {
        return Err(Error::NewerVersion { found: version, supported: LOG_VERSION });
    }
    Ok(Reader::new(body, what, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::key::TableKind;
    use crate::format::manifest::{LogChain, TableInfo, ValueInfo};

    fn sample() -> Point {
        let piece = |index: u32, offset, bytes| Piece {
            part: PartId::Values(3),
            index,
            offset,
            bytes,
            digest: digest(&[7; 5]),
        };
        let first = u32_of(PIECE_BYTES_MAX);
        let extent = Extent { offset: 8192, len: (PIECE_BYTES_MAX + 4096) as u64 };
        let values = ValueInfo { id: 3, extents: vec![extent], used: (PIECE_BYTES_MAX + 9) as u64 };
        let table =
            TableInfo { id: 1, kind: TableKind::Hash, name: "t".into(), levels: Vec::new(), ttl_ms: 0 };
        Point {
            identity: Identity { file_id: 5, lineage: 6 },
            hash_seed: 7,
            number: 2,
            checkpoint: 9,
            commit: 77,
            first_commit: 77,
            time_ms: 1_700_000_000_000,
            manifest: Manifest {
                next_id: 4,
                next_table: 2,
                flushed_seq: 77,
                tables: vec![table],
                values: vec![values],
                ..Manifest::default()
            },
            pieces: vec![piece(0, 8192, first), piece(1, 8192 + PIECE_BYTES_MAX as u64, 9)],
            tables: 1,
            marks: Vec::new(),
        }
    }

    /// As `sample`, with a log of three commits.
    fn logged() -> Point {
        let mut point = sample();
        let first = Extent { offset: 8192 + PIECE_BYTES_MAX as u64 + 4096, len: 4096 };
        point.manifest.logs =
            vec![LogChain { chain: 3, first, first_frame: 1, end_frame: 2, durable_below: 2 }];
        point.manifest.tables_seq = Some(78);
        let (part, offset) = (PartId::Log(3), first.offset);
        point.pieces.push(Piece { part, index: 0, offset, bytes: 4096, digest: digest(&[8]) });
        (point.commit, point.first_commit, point.tables) = (80, 79, 3);
        point
    }

    /// As `logged`, with a second log that was read later, and its large values.
    fn continued() -> Point {
        let mut point = logged();
        let at = 8192 + PIECE_BYTES_MAX as u64 + 8192;
        let values = Extent { offset: at, len: 4096 };
        point.manifest.values.push(ValueInfo { id: 4, extents: vec![values], used: 2000 });
        let first = Extent { offset: at + 4096, len: 8192 };
        point.manifest.logs.push(LogChain {
            chain: 4,
            first,
            first_frame: 1,
            end_frame: 3,
            durable_below: 3,
        });
        let piece = |part, offset, bytes| Piece { part, index: 0, offset, bytes, digest: digest(&[9]) };
        point.pieces.push(piece(PartId::Values(4), at, 2000));
        point.pieces.push(piece(PartId::Log(4), at + 4096, 8192));
        point.marks = vec![Mark { commit: 80, time_ms: 5 }, Mark { commit: 90, time_ms: 7 }];
        point.commit = 95;
        point
    }

    #[test]
    fn points_and_heads_come_back_and_every_flipped_bit_and_cut_is_noticed() {
        for point in [sample(), logged(), continued()] {
            let bytes = point.encode();
            assert_eq!(Point::decode(&bytes).unwrap(), point);
            for n in 0..bytes.len() {
                assert!(Point::decode(&bytes[..n]).is_err(), "{n}");
            }
            for bit in 0..bytes.len() * 8 {
                let mut bad = bytes.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert!(Point::decode(&bad).is_err(), "bit {bit}");
            }
        }
        let identity = sample().identity;
        let head = encode_head(identity);
        assert_eq!(decode_head(&head).unwrap(), identity);
        for bit in 0..head.len() * 8 {
            let mut bad = head.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_head(&bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn pieces_that_do_not_fill_what_the_manifest_names_are_refused() {
        let of = |change: fn(&mut Point)| {
            let mut point = sample();
            change(&mut point);
            Point::decode(&point.encode()).is_ok()
        };
        assert!(of(|_| {}));
        assert!(!of(|p| p.pieces[1].offset += 4096), "a gap");
        assert!(!of(|p| p.pieces[1].offset -= 4096), "over another");
        assert!(!of(|p| p.pieces[0].part = PartId::Run(3)), "of another part");
        assert!(!of(|p| p.pieces.clear()), "none");
        assert!(!of(|p| p.pieces[1].bytes = 0), "an empty one");
        assert!(!of(|p| p.pieces[1].bytes = u32::MAX), "too large");
        assert!(!of(|p| p.manifest.values.clear()), "of what nobody names");
        assert!(!of(|p| p.commit += 1), "a later commit, and no log");
    }

    #[test]
    fn a_log_that_is_not_what_the_manifest_names_is_refused() {
        let of = |change: fn(&mut Point)| {
            let mut point = logged();
            change(&mut point);
            Point::decode(&point.encode()).is_ok()
        };
        assert!(of(|_| {}));
        assert!(!of(|p| p.commit = 77), "no commit in the log");
        assert!(of(|p| p.first_commit = 78) && of(|p| p.first_commit = 80));
        assert!(!of(|p| p.first_commit = 77), "before tables that it has");
        assert!(!of(|p| p.first_commit = 81), "after its last one");
        assert!(!of(|p| p.pieces[2].part = PartId::Log(4)), "another log");
        assert!(!of(|p| p.pieces[2].part = PartId::Run(3)), "no log");
        assert!(!of(|p| p.pieces.truncate(2)), "none");
        assert!(!of(|p| p.manifest.logs.clear()), "one that nobody names");
        assert!(!of(|p| p.manifest.logs[0].first.offset += 4096), "in another place");
        assert!(!of(|p| p.manifest.logs.push(p.manifest.logs[0].clone())), "two, one of which is not there");
    }

    #[test]
    fn logs_that_follow_are_in_order_and_so_are_marks() {
        let of = |change: fn(&mut Point)| {
            let mut point = continued();
            change(&mut point);
            Point::decode(&point.encode()).is_ok()
        };
        assert!(of(|_| {}));
        assert!(!of(|p| p.pieces.truncate(4)), "values without their log");
        assert!(!of(|p| p.marks.reverse()), "marks out of order");
        assert!(!of(|p| p.marks[1].commit = 96), "a mark behind the last commit");
        assert!(!of(|p| p.marks[0].commit = 78), "a mark before the first");
    }
}
