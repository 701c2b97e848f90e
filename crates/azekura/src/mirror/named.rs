//! What a checkpoint names, piece by piece.

use super::copied::Piece;
use crate::base::error::{Error, Result};
use crate::base::limits::{ALIGN_BYTES, SUPERBLOCKS_BYTES, align_up};
use crate::format::manifest::{Manifest, RunInfo, ValueInfo};
use crate::format::point::PartId;
use crate::space::Extent;
use std::collections::{BTreeMap, BTreeSet};

/// Runs of a manifest.
pub(super) fn runs(manifest: &Manifest) -> impl Iterator<Item = &RunInfo> {
    manifest.tables.iter().flat_map(|t| t.levels.iter().flat_map(|l| &l.runs))
}

/// The first `bytes` of what stands in some extents, from byte `from` of it on.
fn pieces_in(part: PartId, extents: &[Extent], from: u64, to: u64) -> Vec<Piece> {
    let mut before = 0;
    let mut pieces = Vec::new();
    for e in extents {
        let (first, last) = (from.max(before), to.min(before + e.len));
        if first < last {
            pieces.push(Piece { part, at: first, offset: e.offset + (first - before), bytes: last - first });
        }
        before += e.len;
    }
    pieces
}

/// The runs of a manifest, and what they may refer to of value segments. All of it is in whole blocks.
pub(super) fn pieces(manifest: &Manifest) -> Vec<Piece> {
    let run = |r: &RunInfo| {
        let bytes = align_up(r.meta_at().saturating_add(u64::from(r.meta_bytes)));
        pieces_in(PartId::Run(r.id), &r.extents, 0, bytes)
    };
    let referred = referred(manifest);
    let values = manifest.values.iter().filter(|v| referred.contains(&v.id));
    let values = values.flat_map(|v| pieces_in(PartId::Values(v.id), &v.extents, 0, align_up(v.used)));
    runs(manifest).flat_map(run).chain(values).collect()
}

/// How long the file of a manifest must be for segments of the log, and for value segments to which perhaps
/// only the log refers.
pub(super) fn reach(manifest: &Manifest) -> u64 {
    let logs = manifest.logs.iter().map(|log| log.first.end());
    let values = manifest.values.iter();
    let values = values.flat_map(|v| pieces_in(PartId::Values(v.id), &v.extents, 0, align_up(v.used)));
    logs.chain(values.map(|piece| piece.offset + piece.bytes)).max().unwrap_or(0)
}

/// The value segments to which runs refer.
fn referred(manifest: &Manifest) -> BTreeSet<u32> {
    runs(manifest).flat_map(|r| r.large.iter().map(|l| l.0)).collect()
}

/// The value segments to which runs refer that two manifests have. These are the same segments: a number is
/// given again when nothing refers to its segment any more.
pub(super) fn common_segments(a: &Manifest, b: &Manifest) -> BTreeSet<u32> {
    let in_a: BTreeSet<u64> = runs(a).map(|r| r.id).collect();
    runs(b).filter(|r| in_a.contains(&r.id)).flat_map(|r| r.large.iter().map(|l| l.0)).collect()
}

/// Where value segments stand: as a manifest says, or else the log.
pub(super) struct Segments(BTreeMap<u32, Vec<Extent>>);

impl Segments {
    pub(super) fn of(manifest: &Manifest) -> Segments {
        let all = |v: &ValueInfo| (v.id, v.extents.clone());
        Segments(manifest.values.iter().map(all).collect())
    }

    /// A record of the log says where a segment is.
    pub(super) fn note(&mut self, id: u32, extent: Extent) -> Result<()> {
        let is_aligned = extent.offset.is_multiple_of(ALIGN_BYTES) && extent.len.is_multiple_of(ALIGN_BYTES);
        let end = extent.offset.checked_add(extent.len).filter(|end| *end <= i64::MAX.unsigned_abs());
        if !is_aligned || extent.offset < SUPERBLOCKS_BYTES || end.is_none() {
            let detail = format!("value segment {id} at {}+{} is impossible", extent.offset, extent.len);
            return Err(Error::corrupt("log", 0, detail));
        }
        self.0.entry(id).or_insert_with(|| vec![extent]);
        Ok(())
    }

    /// Whether a piece of a segment stands where the segment has it.
    pub(super) fn has_placed(&self, id: u32, piece: &Piece) -> bool {
        let there = self.bytes(id, piece.at, piece.at.saturating_add(piece.bytes));
        let is_there =
            |part: &Piece| part.offset.wrapping_sub(part.at) == piece.offset.wrapping_sub(piece.at);
        there.iter().all(is_there) && there.iter().map(|part| part.bytes).sum::<u64>() == piece.bytes
    }

    /// The blocks in which some bytes of a segment stand.
    pub(super) fn blocks(&self, id: u32, from: u64, to: u64) -> Vec<Piece> {
        let first = from / ALIGN_BYTES * ALIGN_BYTES;
        self.bytes(id, first, align_up(to))
    }

    /// Some bytes of a segment.
    pub(super) fn bytes(&self, id: u32, from: u64, to: u64) -> Vec<Piece> {
        let extents = self.0.get(&id).map_or(&[][..], Vec::as_slice);
        pieces_in(PartId::Values(id), extents, from, to)
    }
}
