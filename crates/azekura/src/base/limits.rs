//! The sizes that the format and the engine are built around, each with its reason.

/// A key's largest size in bytes.
pub const KEY_BYTES_MAX: usize = 65_536;

/// A value's largest size in bytes.
pub const VALUE_BYTES_MAX: u64 = u32::MAX as u64;

/// The largest size in bytes of an element of the sets that [`Merge::Union`](crate::Merge::Union) unites.
pub const ELEMENT_BYTES_MAX: usize = 255;

/// A longer operand does not wait to be folded: the value is read and put. (Such a commit is a large part of
/// a memtable, and reading costs little beside it.)
pub(crate) const OPERAND_BYTES_MAX: usize = 1 << 20;

/// A table name's largest size in bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// The unit in which runs are written, checked and cached. At 16 KiB a fixed-width page holds about a
/// thousand records. So fences cost 1/2000 of the data in the file, and twice that in memory; with pages of 4
/// KiB they would cost four times as much.
pub(crate) const PAGE_BYTES: usize = 16_384;

/// The unit of runs with small pages. The engine reads such runs and writes none.
pub(crate) const SMALL_PAGE_BYTES: usize = 4_096;

/// Every extent's offset and length are multiples of this, and so are those of every write to the file.
pub(crate) const ALIGN_BYTES: u64 = 4_096;

/// How much of a value segment one call writes. Also the most that one call writes of a run.
pub(crate) const SEGMENT_BYTES: usize = 4 << 20;

/// How far writeback may lag behind the writer of a run before the writer waits for it. The limit bounds the
/// kernel's dirty pages, so that no other sync has to wait for them.
pub(crate) const WRITEBACK_WINDOW_BYTES: u64 = 64 << 20;

/// Two superblocks of `ALIGN_BYTES` each stand at the start of the file.
pub(crate) const SUPERBLOCKS_BYTES: u64 = 2 * ALIGN_BYTES;

/// No partition of a level is much larger than this. So a merge frees its inputs as it goes on, and the
/// filter that it builds stays small (some 12 MB at 10 bits a key).
pub(crate) const PARTITION_BYTES_MAX: u64 = 128 << 20;

/// A merge makes no more than about this many partitions, unless they would be larger than
/// `PARTITION_BYTES_MAX`.
pub(crate) const PARTITIONS: u64 = 256;

/// As `PARTITIONS`, for a merge whose output will be merged again.
pub(crate) const PASSING_PARTITIONS: u64 = 32;

/// Numbers that a file counts (checkpoints, commits, runs, log chains and frames) stay below this. At a
/// thousand million a second that lasts 146 years. So a larger number is damage, and one below it can be
/// counted on without a wrap.
pub(crate) const COUNT_END: u64 = 1 << 62;

/// The same for the ids of tables and value segments.
pub(crate) const SHORT_COUNT_END: u32 = 1 << 31;

/// Values of this length and longer are never stored inline, whatever the options say.
pub(crate) const INLINE_VALUE_BYTES_MAX: usize = 8_192;

/// Rounds up to whole `ALIGN_BYTES`.
pub(crate) const fn align_up(bytes: u64) -> u64 {
    bytes.div_ceil(ALIGN_BYTES) * ALIGN_BYTES
}
