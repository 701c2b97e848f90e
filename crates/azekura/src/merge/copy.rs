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

/// Appends the rest of a source's block. Leaves out deletes if nothing older exists (`bottom`).
pub(super) fn copy_block(source: &mut MergeSource, out: &mut Block, bottom: bool) {
    while source.at < source.block.len() {
        if !(bottom && source.block.tag(source.at) == Tag::Tombstone) {
            copy_record(source, out);
        }
        source.at += 1;
    }
}
