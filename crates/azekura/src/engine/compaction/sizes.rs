//! How large partitions are.

use crate::base::limits::{PAGE_BYTES, PARTITION_BYTES_MAX, PARTITIONS, PASSING_PARTITIONS};

/// The size of the largest partitions of a level of `bytes`.
///
/// That is two memtables, and no less than a part of the whole, since each checkpoint names all partitions.
/// (There is a limit for very large levels.) What will be merged again (`passes`) has smaller ones. A merge
/// lets go of an input's partitions only as far as older inputs have gone (`ReplaceablePrefix`). So with
/// coarse partitions each input keeps more than the one before.
pub(in crate::engine) fn partition_bytes(memtable_bytes: u64, bytes: u64, passes: bool) -> u64 {
    let least = if passes { (memtable_bytes / 4).max(PAGE_BYTES as u64 * 4) } else { memtable_bytes * 2 };
    least.max(bytes / if passes { PASSING_PARTITIONS } else { PARTITIONS }).min(PARTITION_BYTES_MAX)
}
