//! The sizes that the format and the engine are built around, each beside its reason.

/// A key's largest size in bytes.
pub const KEY_BYTES_MAX: usize = 65_536;

/// A value's largest size in bytes.
pub const VALUE_BYTES_MAX: u64 = u32::MAX as u64;

/// A table name's largest size in bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// The unit in which runs are written, checked and cached. At 16 KiB a fixed-width page holds about a
/// thousand records, so that fences cost 1/2000 of the data in the file, and twice that in memory;
/// 4 KiB pages quadruple them.
pub(crate) const PAGE_BYTES: usize = 16_384;

/// The other unit that runs may have: it is read, and not written.
pub(crate) const SMALL_PAGE_BYTES: usize = 4_096;

/// Every extent is a multiple of this, and so is every write to the file.
pub(crate) const ALIGN_BYTES: u64 = 4_096;

/// How much of a value segment is written by one call, and of a run at most.
pub(crate) const SEGMENT_BYTES: usize = 4 << 20;

/// How far writeback may lag behind the writer of a run before the writer waits for it. It keeps
/// the kernel's dirty pages bounded, so that nobody else's sync waits for ours.
pub(crate) const WRITEBACK_WINDOW_BYTES: u64 = 64 << 20;

/// Two superblocks of `ALIGN_BYTES` each stand at the start of the file.
pub(crate) const SUPERBLOCKS_BYTES: u64 = 2 * ALIGN_BYTES;

/// No partition of a level is larger than this by much, so that a merge frees its inputs as it goes and a
/// filter under construction stays small (12 MB at 10 bits a key).
pub(crate) const PARTITION_BYTES_MAX: u64 = 128 << 20;

/// A merge makes no more than about this many partitions, unless they would be larger than that.
pub(crate) const PARTITIONS: u64 = 256;

/// The same of a merge whose output will be merged again.
pub(crate) const PASSING_PARTITIONS: u64 = 32;

/// What is counted in a file (checkpoints, commits, runs, log chains and frames) stays below this: at a
/// thousand million a second for 146 years. A file with a larger number was not written by us, and counting
/// on might wrap.
pub(crate) const COUNT_END: u64 = 1 << 62;

/// The same for the ids of tables and value segments.
pub(crate) const SHORT_COUNT_END: u32 = 1 << 31;

/// Rounds up to whole `ALIGN_BYTES`.
pub(crate) const fn align_up(bytes: u64) -> u64 {
    bytes.div_ceil(ALIGN_BYTES) * ALIGN_BYTES
}
