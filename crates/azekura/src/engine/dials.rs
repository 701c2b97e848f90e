//! What depends on whether somebody reads beside the writer.
//!
//! A reader looks into every chunk and every level, so where memtables are read there are to be few of both.
//! That costs writers some merging, which is in vain where nobody reads.

/// How many runs of a tier make one of the next.
pub(super) const FAN_IN: usize = 8;

/// The dials of a table, or of the memtables of all.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dials {
    /// A part with this many records becomes a chunk. A smaller one goes to the active buffer.
    pub(super) chunk_records_min: usize,
    /// So does one of this many bytes.
    pub(super) chunk_bytes_min: usize,
    /// Chunks that have more together are left for the flush.
    pub(super) merged_bytes_max: usize,
    /// Whether chunks have filters.
    pub(super) filters_chunks: bool,
    /// Memtables are flushed when they have filled this part of their size.
    pub(super) memtable_part: u64,
    /// Whether what a flush has written is made ready for readers before they meet it.
    pub(super) warms_runs: bool,
    /// How many runs of a tier are merged.
    pub(super) fan_in: usize,
    /// A bottom of fewer memtables is not merged for what newer levels hide of it.
    pub(super) bottom_memtables_min: u64,
}

const UNREAD: Dials = Dials {
    chunk_records_min: 64,
    chunk_bytes_min: 64 << 10,
    merged_bytes_max: 2 << 20,
    filters_chunks: false,
    memtable_part: 1,
    warms_runs: false,
    fan_in: FAN_IN,
    bottom_memtables_min: 4,
};

const READ: Dials = Dials {
    // Each chunk costs each get a look. All that is in the active buffer costs one.
    chunk_records_min: 16 * UNREAD.chunk_records_min,
    chunk_bytes_min: 16 * UNREAD.chunk_bytes_min,
    merged_bytes_max: 8 << 20,
    filters_chunks: true,
    memtable_part: 2,
    warms_runs: true,
    fan_in: 4,
    bottom_memtables_min: 1,
};

impl Dials {
    pub(super) fn of(is_read: bool) -> &'static Dials {
        if is_read { &READ } else { &UNREAD }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_read_has_fewer_chunks_and_fewer_runs() {
        let (read, unread) = (Dials::of(true), Dials::of(false));
        assert_eq!((unread.chunk_records_min, read.chunk_records_min), (64, 1024));
        assert_eq!((unread.chunk_bytes_min, read.chunk_bytes_min), (64 << 10, 1 << 20));
        assert!(read.merged_bytes_max > unread.merged_bytes_max && read.fan_in < unread.fan_in);
        assert!(read.memtable_part > unread.memtable_part);
        assert!(read.bottom_memtables_min < unread.bottom_memtables_min);
        assert!(read.filters_chunks && read.warms_runs && !unread.filters_chunks && !unread.warms_runs);
    }
}
