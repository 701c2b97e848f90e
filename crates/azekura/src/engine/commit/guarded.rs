//! What the commit lock guards, and the buffers that commits use again.

use crate::base::codec::usize_of;
use crate::base::sync::CountedArc;
use crate::engine::fed::FeedTally;
use crate::engine::history::History;
use crate::engine::state::{ACTIVE_BYTES_MAX, ActiveBuf};
use crate::format::feed::PartWriter;
use crate::memtable::active::{Active, Node};

/// Active buffers that wait to be used again, at least.
const SPARES_MIN: usize = 4;
/// Most of them wait until the log needs them no more. So they may take as much memory as a memtable that
/// fills and one that is flushed.
const SPARE_MEMTABLES: usize = 2;
/// A spare buffer is passed over for a table that wants one this many times smaller.
const SPARE_TIMES_MAX: usize = 4;

/// What the commit lock guards: numbers, conflicts, and what is known of the live memtables.
pub(in crate::engine) struct Commit {
    /// The number of the next commit.
    pub(in crate::engine) next_seq: u64,
    pub(in crate::engine) history: History,
    /// Memory of the live memtables.
    pub(in crate::engine) live_bytes: usize,
    /// What the log had been given at the last freeze.
    pub(in crate::engine) queued_before: u64,
    /// Bytes of the commits with large values since the last freeze.
    pub(in crate::engine) large_bytes: u64,
    /// What all commits have cost flush and merges (`Batch::cost`).
    pub(in crate::engine) cost: u64,
    /// Active buffers, to be used again once neither a reader nor the log holds them.
    pub(in crate::engine) spare: Vec<CountedArc<ActiveBuf>>,
    spares_max: usize,
    /// What a commit has inserted.
    pub(super) nodes: Vec<Node>,
    /// What it tells the feed.
    pub(in crate::engine) told: PartWriter,
    /// A key of that.
    pub(in crate::engine) told_key: Vec<u8>,
    /// The table of the last commit that was to a single one.
    pub(super) last_table: u32,
    /// Tables that have got a chunk and may have too many now.
    pub(in crate::engine) chunk_added: Vec<u32>,
    /// Tables whose memtables were empty at the last freeze and are not now.
    pub(in crate::engine) touched: Vec<u32>,
    /// Tables of which is known whether their memtables were read.
    pub(in crate::engine) noted: Vec<u32>,
    /// A table was made, renamed or dropped by a commit since the last freeze. The log before that is needed
    /// until a manifest knows it.
    pub(in crate::engine) tables_changed: bool,
    pub(in crate::engine) feed: FeedTally,
}

impl Commit {
    pub(in crate::engine) fn new(next_seq: u64, memtable_bytes: usize) -> Commit {
        Commit {
            next_seq,
            history: History::default(),
            live_bytes: 0,
            queued_before: 0,
            large_bytes: 0,
            cost: 0,
            spare: Vec::new(),
            spares_max: SPARES_MIN.max(memtable_bytes / usize_of(ACTIVE_BYTES_MAX) * SPARE_MEMTABLES),
            nodes: Vec::new(),
            told: PartWriter::default(),
            told_key: Vec::new(),
            last_table: 0,
            chunk_added: Vec::new(),
            touched: Vec::new(),
            noted: Vec::new(),
            tables_changed: false,
            feed: FeedTally::default(),
        }
    }

    /// Lets go of the value segments to which buffers of the past refer.
    pub(in crate::engine) fn clear_spares(&mut self) {
        // A buffer that a reader still holds is dropped, even if the reader is about to let go of it. If it
        // were kept, what it refers to would stay in the file.
        self.spare.retain_mut(|spare| match CountedArc::get_mut(spare) {
            Some(buf) => {
                buf.segments.get_mut().clear();
                true
            }
            None => false,
        });
    }

    /// Keeps a buffer to be used again. The smallest goes if there are too many.
    pub(in crate::engine) fn keep_spare(&mut self, spare: Option<CountedArc<ActiveBuf>>) {
        self.spare.extend(spare);
        if self.spare.len() > self.spares_max
            && let Some((smallest, _)) =
                self.spare.iter().enumerate().min_by_key(|(_, a)| a.list.capacity_bytes())
        {
            self.spare.swap_remove(smallest);
        }
    }

    /// An empty active buffer of about `size` bytes, with room for `bytes` in `records`.
    pub(in crate::engine) fn new_active(
        &mut self,
        size: usize,
        records: usize,
        bytes: usize,
    ) -> CountedArc<ActiveBuf> {
        let size = size.max((bytes + records * 64 + 256) * 2);
        let suits = |list: &mut Active| (size..=size * SPARE_TIMES_MAX).contains(&list.capacity_bytes());
        let found = self.spare.iter_mut().position(|a| ActiveBuf::unshared_list(a).is_some_and(suits));
        if let Some(i) = found {
            let mut spare = self.spare.swap_remove(i);
            if let Some(list) = ActiveBuf::unshared_list(&mut spare) {
                list.reset();
                // Dropping the last reference to a segment takes other locks, so it is done without this one.
                let segments = std::mem::take(&mut *spare.segments.lock());
                drop(segments);
                return spare;
            }
        }
        CountedArc::new(ActiveBuf::new(size))
    }
}
