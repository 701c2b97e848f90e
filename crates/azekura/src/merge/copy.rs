//! Copying a source's records as they are.

use super::source::MergeSource;
use crate::format::block::{Block, Tag};

/// Appends the next record of a source to a block of either form.
#[inline(always)]
pub(super) fn copy_record(source: &MergeSource, out: &mut Block) {
    let (block, i) = (&source.block, source.at);
    if block.fixed.is_none() && out.fixed.is_none() {
        out.append_general(block, i, i + 1);
        return;
    }
    let mut tmp = [0; 8];
    out.push(block.key(i, &mut tmp), block.tag(i), block.value(i));
}

/// As `copy_record`, as the record is at `now`. Leaves out tombstones if nothing older exists (`bottom`).
#[inline(always)]
pub(super) fn copy_living(source: &MergeSource, out: &mut Block, bottom: bool, now: u64) {
    let is_past = now > 0 && source.block.content(source.at).expiry.is_past(now);
    if bottom && (is_past || source.block.tag(source.at) == Tag::Tombstone) {
        return;
    }
    if is_past {
        return out.push(source.block.key(source.at, &mut [0; 8]), Tag::Tombstone, &[]);
    }
    copy_record(source, out);
}

/// Appends the rest of a source's block, as `copy_living` does.
pub(super) fn copy_block(source: &mut MergeSource, out: &mut Block, bottom: bool, now: u64) {
    while source.at < source.block.len() {
        copy_living(source, out, bottom, now);
        source.at += 1;
    }
}
