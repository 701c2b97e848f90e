//! What a file says, before there is an engine: its superblocks, its manifest, and the commits in its log.

use super::checkpoint::OldLog;
use super::length::Length;
use crate::base::checksum::crc;
use crate::base::codec::{usize_of, usize_of64};
use crate::base::error::{Error, Result};
use crate::base::limits::{ALIGN_BYTES, SUPERBLOCKS_BYTES, align_up};
use crate::format::frame::{RecordPart, TableChange};
use crate::format::manifest::{LogChain, Manifest, ValueInfo};
use crate::format::superblock::{self, ManifestAt, Parsed, Role, Superblock};
use crate::log::recovery::{ChainReader, Tail, replay};
use crate::space::Extent;
use crate::storage::File;
use crate::storage::read_error;
use crate::values::ValuePointer;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// What the superblocks say.
pub(super) struct Found {
    pub(super) block: Superblock,
    /// The other copy of the superblock, unless it is the same.
    pub(super) stale_copy: Option<u64>,
    pub(super) manifest: Manifest,
    pub(super) extent: Option<Extent>,
}

/// What happens to the frames of a log that may not be durable.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Logs {
    /// Nothing: the file is only read.
    Leave,
    /// Their commits are logged anew, elsewhere.
    Copy,
    /// They are written again where they stand.
    Rewrite,
    /// Nothing, and the last chain is read while its writer goes on.
    Follow,
    /// As `Follow`, up to the commit of this number, which was durable before the checkpoint was written: so
    /// what is read is kept as long as the checkpoint is pinned.
    FollowTo(u64),
}

pub(super) fn read_superblocks(file: &dyn File, length: &Length<'_>) -> Result<Found> {
    let Newest { block, stale_copy } = read_newest(file, length)?;
    let (manifest, extent) = read_manifest(file, &block.manifest, length)?;
    Ok(Found { block, stale_copy, manifest, extent })
}

/// Refuses a file that is not for everybody.
pub(super) fn check_role(path: &Path, block: &Superblock, read_only: bool) -> Result<()> {
    let detail = match block.role {
        Role::Mirror if !read_only => {
            "it is a mirror of another database, and can only be read (azekura promote makes it one of its own)"
        }
        Role::Replaced => "the mirror was built anew, and another file has its name now: open it again",
        _ => return Ok(()),
    };
    Err(Error::open(path, io::ErrorKind::Other, detail))
}

/// The newest superblock.
#[derive(PartialEq)]
pub(crate) struct Newest {
    pub(crate) block: Superblock,
    /// See `Found::stale_copy`.
    pub(crate) stale_copy: Option<u64>,
}

/// Reads copy A first. While a checkpoint is written A is, and then B. So what is found here is the newest
/// one whose copy A was whole before this, or a newer one.
pub(crate) fn read_newest(file: &dyn File, length: &Length<'_>) -> Result<Newest> {
    let len = length.file_bytes;
    let mut best: Option<Superblock> = None;
    let mut copies = 0;
    let (mut damaged, mut newer) = (false, None);
    let mut best_at = 0;
    for at in [0, ALIGN_BYTES] {
        if at + ALIGN_BYTES > len {
            continue;
        }
        let mut bytes = vec![0; superblock::BYTES];
        file.read_at(&mut bytes, at).map_err(|e| read_error(e, at))?;
        match Superblock::parse(&bytes) {
            Ok(Parsed::Valid(b)) if best.as_ref() == Some(&b) => copies += 1,
            Ok(Parsed::Valid(b)) if best.as_ref().is_none_or(|x| b.number > x.number) => {
                (best, best_at, copies) = (Some(b), at, 1);
            }
            Ok(Parsed::Valid(_)) => {}
            Ok(Parsed::Damaged) => damaged = true,
            Ok(Parsed::Foreign) => {}
            Err(e) => newer = Some(e),
        }
    }
    if let Some(e) = newer {
        return Err(e);
    }
    let Some(block) = best else {
        if len < ALIGN_BYTES && begins_as_superblock(file, len)? {
            length.expect(SUPERBLOCKS_BYTES)?;
            return Err(Error::corrupt(
                "superblock",
                0,
                format!("the file was cut within it, after {len} bytes"),
            ));
        }
        return Err(if damaged {
            Error::corrupt("superblock", 0, "neither copy is whole")
        } else {
            let path = length.path.display().to_string();
            Error::NotADatabase { path, reason: "no superblock at its start".into() }
        });
    };
    let stale_copy = (copies < 2).then_some(ALIGN_BYTES - best_at);
    Ok(Newest { block, stale_copy })
}

/// Whether what there is of a first superblock begins as one.
fn begins_as_superblock(file: &dyn File, len: u64) -> Result<bool> {
    let mut bytes = vec![0; usize_of64(len.min(superblock::MAGIC.len() as u64))];
    file.read_at(&mut bytes, 0).map_err(|e| read_error(e, 0))?;
    Ok(bytes == superblock::MAGIC)
}

pub(crate) fn read_manifest(
    file: &dyn File,
    at: &ManifestAt,
    length: &Length<'_>,
) -> Result<(Manifest, Option<Extent>)> {
    match at {
        ManifestAt::Inline(bytes) => Ok((Manifest::decode(bytes, 64)?, None)),
        ManifestAt::Extent { offset, len, crc: expected } => {
            let extent = Extent { offset: *offset, len: align_up(u64::from(*len)) };
            length.expect(extent.end())?;
            if extent.end() > length.file_bytes || offset % ALIGN_BYTES != 0 {
                return Err(Error::corrupt(
                    "superblock",
                    0,
                    format!("manifest at {offset}+{len} is outside the file"),
                ));
            }
            let mut bytes = vec![0; usize_of(*len)];
            file.read_at(&mut bytes, *offset).map_err(|e| read_error(e, *offset))?;
            let found = crc(0, &bytes);
            if found != *expected && !crate::base::checksum::is_ignored() {
                let detail = format!("checksum {found:08x}, expected {expected:08x}");
                return Err(Error::corrupt("manifest", *offset, detail));
            }
            Ok((Manifest::decode(&bytes, *offset)?, Some(extent)))
        }
    }
}

/// A commit that was read from a log.
pub(super) struct Replay {
    pub(super) seq: u64,
    pub(super) parts: Vec<RecordPart>,
    /// It ends in a frame that may not be durable.
    pub(super) in_doubt: bool,
}

/// What the log chains hold, before there is an engine to apply it to.
#[derive(Default)]
pub(super) struct Replayed {
    pub(super) commits: Vec<Replay>,
    pub(super) logs: Vec<OldLog>,
    /// The time of the newest frame, in seconds. 0: none says it.
    pub(super) clock: u32,
    /// Segments that commits refer to.
    pub(super) segments: BTreeMap<u32, ValueInfo>,
    /// The last commit whose frames the manifest knows to be durable. The manifest may have tables as they
    /// were renamed or dropped after it and before the next one.
    pub(super) named_seq: u64,
    /// Whether the manifest has a part of a commit, what it did with tables, and the log the rest.
    pub(super) is_torn: bool,
    /// Where a follower goes on to read.
    pub(super) tail: Option<LogTail>,
}

impl Replayed {
    /// Records of its commits, tombstones included.
    pub(super) fn records(&self) -> u64 {
        self.commits.iter().flat_map(|c| &c.parts).map(|p| p.block.len() as u64).sum()
    }
}

/// Which commits of a log count, and what of them.
pub(crate) struct Admission {
    /// The number of the last one that does.
    last: u64,
    tables: BTreeSet<u32>,
    next_table: u32,
    /// See `Manifest::tables_seq`.
    tables_seq: Option<u64>,
    /// Later ones are of no interest.
    end: u64,
}

impl Admission {
    /// For all commits of the log behind a manifest.
    pub(crate) fn of_all(manifest: &Manifest) -> Admission {
        Admission::after(manifest, Logs::Leave)
    }

    fn after(manifest: &Manifest, logs: Logs) -> Admission {
        Admission {
            last: manifest.flushed_seq,
            tables: manifest.tables.iter().map(|t| t.id).collect(),
            next_table: manifest.next_table,
            tables_seq: manifest.tables_seq,
            end: if let Logs::FollowTo(seq) = logs { seq } else { u64::MAX },
        }
    }

    /// Leaves out what does not count. False if nothing of the commit does.
    pub(crate) fn admit(&mut self, seq: u64, parts: &mut Vec<RecordPart>) -> bool {
        if seq <= self.last || seq > self.end {
            return false;
        }
        self.last = seq;
        let Admission { tables, next_table, tables_seq, .. } = self;
        let is_new = tables_seq.map(|known| seq > known);
        // A table that the manifest does not know was dropped after the commit. The values that the commit
        // stored for it may have made room for others. What the manifest knows of tables is not done again:
        // in an older file it knows those that were made with the ids that it counts.
        parts.retain(|p| match p.change {
            Some(TableChange::Made(_)) if is_new.unwrap_or(p.table >= *next_table) => {
                *next_table = (p.table + 1).max(*next_table);
                tables.insert(p.table)
            }
            Some(TableChange::Renamed(..) | TableChange::Lives(..)) if is_new != Some(false) => {
                tables.contains(&p.table)
            }
            Some(TableChange::Dropped(_)) if is_new != Some(false) => tables.remove(&p.table),
            Some(_) => false,
            None => tables.contains(&p.table),
        });
        true
    }
}

/// The end of the log, for a follower.
pub(super) struct LogTail {
    reader: ChainReader,
    admission: Admission,
}

impl LogTail {
    /// Reads the commits that have come since. See `ChainReader::read_further`.
    pub(super) fn read_on(&mut self, file: &dyn File) -> Result<Vec<Replay>> {
        let LogTail { reader, admission } = self;
        let mut commits = Vec::new();
        reader.read_further(file, &mut |_, seq, mut parts| {
            if admission.admit(seq, &mut parts) {
                commits.push(Replay { seq, parts, in_doubt: false });
            }
            Ok(())
        })?;
        Ok(commits)
    }

    /// See `ChainReader::clock`.
    pub(super) fn clock(&self) -> u32 {
        self.reader.clock()
    }

    /// See `ChainReader::tail`.
    pub(super) fn place(&self, file: &dyn File) -> Result<Option<Tail>> {
        self.reader.tail(file)
    }
}

pub(super) fn read_logs(file: &dyn File, length: &Length<'_>, found: &Found, logs: Logs) -> Result<Replayed> {
    let mut out = Replayed::default();
    let mut admission = Admission::after(&found.manifest, logs);
    let mut open = None;
    let (flushed, tables_seq, mut is_torn) = (found.manifest.flushed_seq, found.manifest.tables_seq, false);
    for log in &found.manifest.logs {
        if matches!(logs, Logs::FollowTo(seq) if admission.last >= seq) {
            break;
        }
        let mut ends = Vec::new();
        let (commits, segments) = (&mut out.commits, &mut out.segments);
        let first = commits.len();
        let mut apply = |frame, seq, mut parts: Vec<RecordPart>| {
            ends.push((frame, seq));
            is_torn |= seq > flushed && tables_seq.is_some_and(|known| seq <= known) && is_joint(&parts);
            if admission.admit(seq, &mut parts) {
                for part in &parts {
                    note_segments(segments, part)?;
                }
                commits.push(Replay { seq, parts, in_doubt: false });
            }
            Ok(())
        };
        let (id, number) = (found.block.file_id, found.block.number);
        let named_below = if log.end_frame == u64::MAX { log.durable_below } else { log.end_frame };
        if matches!(logs, Logs::Follow | Logs::FollowTo(_)) {
            let mut reader = ChainReader::new(id, number, log);
            match logs {
                Logs::FollowTo(seq) => reader.read_to(file, seq, &mut apply)?,
                _ => reader.read_beside_writer(file, &mut apply)?,
            }
            out.clock = out.clock.max(reader.clock());
            out.named_seq = out.named_seq.max(last_below(&ends, named_below));
            let (chain, segments) = (log.clone(), reader.segments().to_vec());
            out.logs.push(OldLog { chain, segments, last_seq: ends.last().map_or(0, |e| e.1) });
            open = (log.end_frame == u64::MAX && logs == Logs::Follow).then_some(reader);
            continue;
        }
        let done = replay(file, id, number, log, apply).map_err(|e| length.or_cut(e))?;
        out.clock = out.clock.max(done.clock);
        let end_frame = if logs == Logs::Copy { done.safe_below } else { done.end_frame };
        if logs == Logs::Rewrite {
            done.rewrite(file)?;
        }
        // The last commit before the chain's end. As long as that is not flushed the manifest names the
        // chain.
        let last_seq = last_below(&ends, end_frame);
        out.named_seq = out.named_seq.max(last_below(&ends, named_below));
        commits[first..].iter_mut().for_each(|c| c.in_doubt = c.seq > last_seq);
        let chain = LogChain { end_frame, ..log.clone() };
        out.logs.push(OldLog { chain, segments: done.segments, last_seq });
    }
    check_tables_seq(&found.manifest, admission.last)?;
    out.is_torn = is_torn;
    out.tail = open.map(|reader| LogTail { reader, admission });
    Ok(out)
}

/// The last of the commits that end in frames below a number.
fn last_below(ends: &[(u64, u64)], frame: u64) -> u64 {
    ends.iter().filter(|end| end.0 < frame).map(|end| end.1).max().unwrap_or(0)
}

/// A commit that has changed tables was durable before a manifest knew of it: the log, which ends with commit
/// `last`, has those that are in no run.
fn check_tables_seq(manifest: &Manifest, last: u64) -> Result<()> {
    match manifest.tables_seq {
        Some(seq) if seq > last => {
            let detail =
                format!("it ends with commit {last}, and the manifest knows the tables of commit {seq}");
            Err(Error::corrupt("log", 0, detail))
        }
        _ => Ok(()),
    }
}

/// Whether a commit changes tables and something else, and half of it would show.
fn is_joint(parts: &[RecordPart]) -> bool {
    let changes = || parts.iter().filter_map(|part| part.change.as_ref());
    let others = parts.len() - changes().count();
    changes().any(|change| change.is_joint(others))
}

/// Remembers the segments of a part, and how far its references reach into them.
fn note_segments(segments: &mut BTreeMap<u32, ValueInfo>, part: &RecordPart) -> Result<()> {
    for &(id, extent) in &part.segments {
        segments.entry(id).or_insert(ValueInfo { id, extents: vec![extent], used: 0 });
    }
    if part.segments.is_empty() {
        return Ok(());
    }
    for i in 0..part.block.len() {
        if let Some(reference) = part.block.reference(i) {
            let at = ValuePointer::decode(reference)?;
            if let Some(s) = segments.get_mut(&at.segment) {
                s.used = s.used.max(u64::from(at.offset) + u64::from(at.len));
            }
        }
    }
    Ok(())
}
