//! What depends on whether somebody reads beside the writer.
//!
//! A reader looks into every chunk, so where memtables are read there are to be few of them. And it would
//! have to check what a flush has written. Both cost writers something, in vain where nobody reads.

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
    /// Whether what a flush has written is made ready for readers before they meet it.
    pub(super) warms_runs: bool,
}

const UNREAD: Dials = Dials {
    chunk_records_min: 64,
    chunk_bytes_min: 64 << 10,
    merged_bytes_max: 2 << 20,
    filters_chunks: false,
    warms_runs: false,
};

const READ: Dials = Dials {
    // Each chunk costs each get a look. All that is in the active buffer costs one.
    chunk_records_min: 16 * UNREAD.chunk_records_min,
    chunk_bytes_min: 16 * UNREAD.chunk_bytes_min,
    merged_bytes_max: 8 << 20,
    filters_chunks: true,
    warms_runs: true,
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
    fn who_is_read_has_fewer_chunks() {
        let (read, unread) = (Dials::of(true), Dials::of(false));
        assert_eq!((unread.chunk_records_min, read.chunk_records_min), (64, 1024));
        assert_eq!((unread.chunk_bytes_min, read.chunk_bytes_min), (64 << 10, 1 << 20));
        assert!(read.merged_bytes_max > unread.merged_bytes_max);
        assert!(read.filters_chunks && read.warms_runs && !unread.filters_chunks && !unread.warms_runs);
    }
}
