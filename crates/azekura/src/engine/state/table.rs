//! One table of a state: its memtables, and its levels.

use super::level::Level;
use super::readers::{MemtableReaders, ReadBy};
use crate::base::key::TableKind;
use crate::base::sync::{CountedArc, Mutex};
use crate::engine::dials::Dials;
use crate::engine::indexes::Indexes;
use crate::format::few::Few;
use crate::memtable::active::Active;
use crate::memtable::chunk::Chunk;
use crate::run::label::Origin;
use crate::values::Segment;
use std::sync::{Arc, LazyLock};

/// The buffer of small commits of one table.
pub(crate) struct ActiveBuf {
    /// The log's queue may refer to it, too.
    pub(crate) list: CountedArc<Active>,
    /// The value segments that its records refer to.
    pub(crate) segments: Mutex<Vec<Arc<Segment>>>,
}

impl ActiveBuf {
    pub(crate) fn new(capacity_bytes: usize) -> ActiveBuf {
        let list = CountedArc::new(Active::new(capacity_bytes));
        ActiveBuf { list, segments: Mutex::new(Vec::new()) }
    }

    /// The list, if nobody else has it or the buffer.
    pub(in crate::engine) fn unshared_list(this: &mut CountedArc<ActiveBuf>) -> Option<&mut Active> {
        CountedArc::get_mut(this).and_then(|buf| CountedArc::get_mut(&mut buf.list))
    }

    /// The memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.list.memory_bytes() + size_of::<Active>() + size_of::<ActiveBuf>() + ACTIVE_OVERHEAD_BYTES
    }
}

/// What the allocator adds to an active buffer, and the state to a table that has one.
const ACTIVE_OVERHEAD_BYTES: usize = 128;

/// One table at one moment.
#[derive(Clone)]
pub(crate) struct TableState {
    pub(crate) id: u32,
    pub(crate) kind: TableKind,
    pub(crate) name: Arc<str>,
    pub(crate) active: Option<CountedArc<ActiveBuf>>,
    /// Newest first, older than `active`.
    pub(crate) chunks: Vec<Arc<Chunk>>,
    /// Being flushed. Newest first, older than `chunks`.
    pub(crate) frozen: Arc<Vec<Arc<Chunk>>>,
    /// Newest first, older than `frozen`.
    pub(crate) levels: Arc<Vec<Arc<Level>>>,
    /// What there is instead of runs in a small table, older than `frozen`.
    pub(crate) few: Option<Few>,
    /// Who reads the memtable. Noted anew for each memtable. None before the first.
    pub(crate) readers: Option<Arc<MemtableReaders>>,
    /// Who has read the memtable before this one.
    pub(crate) was_read_by: ReadBy,
    /// How large the next active buffer is to be, by what has come so far.
    pub(crate) active_bytes: u32,
    pub(crate) indexes: Indexes,
    /// How long its records live if nothing else is said, in milliseconds. 0: until they are removed.
    pub(crate) ttl_ms: u64,
}

/// The first active buffer of a table. If there are many tables, most get a record only now and then.
const ACTIVE_BYTES_MIN: u32 = 1 << 10;
/// The largest: it stays in the processor's caches.
pub(in crate::engine) const ACTIVE_BYTES_MAX: u32 = 2 << 20;
/// How much larger the buffer after a full one is.
const ACTIVE_GROWTH: u32 = 8;

/// An empty list, which tables share: an allocation of its own would be a good part of a table.
fn nothing<T>(shared: &'static LazyLock<Arc<Vec<T>>>) -> Arc<Vec<T>> {
    (**shared).clone()
}

static NO_CHUNKS: LazyLock<Arc<Vec<Arc<Chunk>>>> = LazyLock::new(Arc::default);
static NO_LEVELS: LazyLock<Arc<Vec<Arc<Level>>>> = LazyLock::new(Arc::default);

impl TableState {
    pub(crate) fn new(id: u32, kind: TableKind, name: Arc<str>) -> TableState {
        TableState {
            id,
            kind,
            name,
            active: None,
            chunks: Vec::new(),
            frozen: nothing(&NO_CHUNKS),
            levels: nothing(&NO_LEVELS),
            few: None,
            readers: None,
            was_read_by: ReadBy::Nobody,
            active_bytes: ACTIVE_BYTES_MIN,
            indexes: None,
            ttl_ms: 0,
        }
    }

    /// What a run of the table says of itself that has all commits up to `newest`. `oldest`: nothing is
    /// older.
    pub(crate) fn origin(&self, newest: u64, oldest: bool) -> Origin {
        Origin { table: self.id, kind: self.kind, name: self.name.clone(), newest, oldest }
    }

    /// The active buffer was too small: the next is larger.
    pub(in crate::engine) fn active_is_full(&mut self) {
        self.active_bytes = (self.active_bytes * ACTIVE_GROWTH).min(ACTIVE_BYTES_MAX);
    }

    /// A table that is about to get something into a memtable that was empty.
    pub(in crate::engine) fn begin_memtable(&mut self) {
        self.readers.get_or_insert_default();
    }

    /// Freezes the sealed memtable of a table in which `live_bytes` were.
    pub(in crate::engine) fn freeze(&mut self, live_bytes: usize) {
        // If it is there, it is empty. The next writer must find that nothing is live.
        self.active = None;
        self.frozen = Arc::new(std::mem::take(&mut self.chunks));
        self.was_read_by = self.live_read_by();
        self.readers = Some(Arc::default());
        let enough = u32::try_from(live_bytes.next_power_of_two()).unwrap_or(ACTIVE_BYTES_MAX);
        self.active_bytes = self.active_bytes.min(enough).max(ACTIVE_BYTES_MIN);
    }

    /// Other tables were frozen. The memtable is empty, and all that is known of its readers is what was
    /// known of the one before.
    pub(in crate::engine) fn pass_freeze(&mut self) {
        self.was_read_by = self.live_read_by();
        self.readers = (self.was_read_by > ReadBy::Nobody).then(Arc::default);
    }

    /// What was frozen is in runs.
    pub(in crate::engine) fn thaw(&mut self) {
        self.frozen = nothing(&NO_CHUNKS);
    }

    /// Whether nothing is in memory.
    pub(crate) fn memtable_is_empty(&self) -> bool {
        self.active.as_ref().is_none_or(|a| a.list.is_empty())
            && self.chunks.is_empty()
            && self.frozen.is_empty()
    }

    /// The value segments to which records in memory refer, some more than once.
    pub(in crate::engine) fn segments(&self) -> Vec<Arc<Segment>> {
        let active = self.active.iter().flat_map(|active| active.segments.lock().clone());
        let chunks = self.chunks.iter().chain(self.frozen.iter()).flat_map(|chunk| &chunk.segments);
        active.chain(chunks.cloned()).collect()
    }

    /// Who has looked into the live memtable.
    fn live_read_by(&self) -> ReadBy {
        self.readers.as_ref().map_or(ReadBy::Nobody, |readers| readers.by())
    }

    /// Who has looked into the table's memtables lately.
    pub(crate) fn read_by(&self) -> ReadBy {
        self.was_read_by.max(self.live_read_by())
    }

    /// Whether somebody has.
    pub(crate) fn is_read(&self) -> bool {
        self.read_by() > ReadBy::Nobody
    }

    /// How its memtables and runs are looked after.
    pub(crate) fn dials(&self) -> &'static Dials {
        Dials::of(self.is_read())
    }

    /// Memory of the live part of the memtable.
    pub(crate) fn live_bytes(&self) -> usize {
        self.active.as_ref().map_or(0, |a| a.bytes()) + self.chunks.iter().map(|c| c.bytes()).sum::<usize>()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::super::readers::LOOKS_WITHOUT_COMMIT;
    use super::*;

    #[test]
    fn what_is_known_of_readers_outlives_one_freeze() {
        let mut table = TableState::new(1, TableKind::Ordered, "t".into());
        table.begin_memtable();
        (0..=LOOKS_WITHOUT_COMMIT).for_each(|_| table.readers.as_ref().unwrap().note());
        table.freeze(0);
        assert_eq!(table.read_by(), ReadBy::Readers);
        table.freeze(0);
        assert_eq!(table.read_by(), ReadBy::Nobody);
    }
}
