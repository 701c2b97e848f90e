//! What the commit lock guards, and the buffers that commits use again.

use crate::base::sync::CountedArc;
use crate::engine::history::History;
use crate::engine::state::ActiveBuf;

/// Active buffers that wait to be used again.
const SPARES_MAX: usize = 4;
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
    /// Active buffers, to be used again once no reader holds them.
    pub(in crate::engine) spare: Vec<CountedArc<ActiveBuf>>,
    /// Tables that have got a chunk and may have too many now.
    pub(in crate::engine) chunk_added: Vec<u32>,
    /// Tables whose memtables were empty at the last freeze and are not now.
    pub(in crate::engine) touched: Vec<u32>,
    /// Tables of which is known whether their memtables were read.
    pub(in crate::engine) noted: Vec<u32>,
    /// A table was made, renamed or dropped by a commit since the last freeze. The log before that is needed
    /// until a manifest knows it.
    pub(in crate::engine) tables_changed: bool,
}

impl Commit {
    pub(in crate::engine) fn new(next_seq: u64) -> Commit {
        Commit {
            next_seq,
            history: History::default(),
            live_bytes: 0,
            queued_before: 0,
            large_bytes: 0,
            spare: Vec::new(),
            chunk_added: Vec::new(),
            touched: Vec::new(),
            noted: Vec::new(),
            tables_changed: false,
        }
    }

    /// Lets go of the value segments to which buffers of the past refer.
    pub(in crate::engine) fn clear_spares(&mut self) {
        // One that a reader still holds is not worth waiting for. It goes even if the reader lets go of it at
        // this moment, for what it refers to stays in the file as long as it is kept.
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
        if self.spare.len() > SPARES_MAX
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
        let suits = |a: &ActiveBuf| (size..=size * SPARE_TIMES_MAX).contains(&a.list.capacity_bytes());
        let found = self.spare.iter_mut().position(|a| CountedArc::get_mut(a).is_some_and(|a| suits(a)));
        if let Some(i) = found {
            let mut spare = self.spare.swap_remove(i);
            if let Some(buf) = CountedArc::get_mut(&mut spare) {
                buf.list.reset();
                buf.segments.get_mut().clear();
                return spare;
            }
        }
        CountedArc::new(ActiveBuf::new(size))
    }
}
