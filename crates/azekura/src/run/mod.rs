//! Runs: sorted, immutable sets of records in the file.
//!
//! ```text
//! run:  data pages of 16 or 4 KiB (the last cut to whole 4 KiB) | filter pages | meta block
//! ```
//!
//! A run is addressed by its own offsets and pages. Its extents say where these are in the file, so it can be
//! moved without being rewritten. Checksums name the run, not the place.

mod ahead;
pub(crate) mod filter;
mod handle;
mod held;
mod known;
pub(crate) mod label;
mod lookup;
mod mapped;
pub(crate) mod meta;
mod moved;
pub(crate) mod reader;
mod standing;
pub(crate) mod writer;

pub(crate) use handle::PageHandle;
pub(crate) use held::HeldPage;
pub(crate) use known::Guides;
pub(crate) use lookup::{Hit, find_held};

use crate::base::checksum::seed;
use crate::base::clock::Clock;
use crate::base::codec::{u32_of, usize_of, usize_of64};
use crate::base::error::{Error, Result};
use crate::base::sync::Mutex;
use crate::cache::{Cache, CacheStats, PageSlots};
use crate::format::manifest::RunInfo;
use crate::space::{Extent, Room, scattered};
use crate::storage::{BulkWrites, File, FileMapping, Watched};
use crate::values::Segment;
use meta::Meta;
use standing::MappedPages;
use std::sync::{Arc, OnceLock};

/// What all runs of a file share: the file, its room, its identity, its page source.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) file: Arc<dyn File>,
    pub(crate) bulk: Arc<BulkWrites>,
    pub(crate) room: Arc<Room>,
    pub(crate) pages: PageSource,
    pub(crate) file_id: u64,
    pub(crate) lineage: u64,
    pub(crate) hash_seed: u64,
    pub(crate) buffers: Buffers,
    pub(crate) clock: Arc<Clock>,
    /// What `file` is, where pins under which it is read may be revoked.
    pub(crate) watched: Option<Arc<Watched>>,
}

impl Store {
    /// Whether the file is read in a mapping.
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self.pages, PageSource::Mapped { .. })
    }

    /// The store of one run. Other checkpoints may name the run than those that name the others.
    fn of_run(&self) -> Store {
        let store = self.clone();
        match &self.watched {
            None => store,
            Some(watched) => {
                let watched = Arc::new(watched.of_part());
                Store { file: watched.clone(), watched: Some(watched), ..store }
            }
        }
    }
}

/// How pages of runs are read.
#[derive(Clone)]
pub(crate) enum PageSource {
    /// In place in the mapped file. Guides are kept within a budget.
    Mapped { mapping: Arc<FileMapping>, guides: Arc<Guides> },
    /// Through the page cache.
    Cached(Arc<Cache>),
}

impl PageSource {
    /// From now on the file is written to beside those who read.
    #[inline]
    pub(crate) fn note_changes(&self) {
        if let PageSource::Mapped { mapping, .. } = self {
            mapping.enter_less();
        }
    }

    /// What is kept in memory, and what was loaded for it.
    pub(crate) fn stats(&self) -> CacheStats {
        match self {
            PageSource::Mapped { guides, .. } => guides.stats(),
            PageSource::Cached(cache) => cache.stats(),
        }
    }
}

/// How many bytes of a run one call reads or writes: whole pages, and fewer with a small memory budget.
#[derive(Clone, Copy)]
pub(crate) struct Buffers {
    pub(crate) read: usize,
    pub(crate) write: usize,
}

/// An open run. If it was replaced, dropping the last reference frees its extents.
pub(crate) struct Run {
    pub(crate) info: RunInfo,
    store: Store,
    seed: u32,
    /// Blocks of the filter that lookups use. 0: none.
    filter_blocks: u64,
    pages: RunPages,
    meta: OnceLock<Meta>,
    /// The value segments that its records refer to. The run keeps them alive.
    _segments: Vec<Arc<Segment>>,
    /// The run that took over the rest of the extents when a part was moved. The successor's extents must not
    /// be freed while this run is read, so it is kept alive.
    successor: OnceLock<Arc<Run>>,
    /// Extents that are freed when nobody holds the run any more.
    freed_on_drop: Mutex<Vec<Extent>>,
    /// The error if the file, when it was opened, ended before the run. Then nothing of the run is believed:
    /// later writes make the file longer, and a forged manifest could name lengths that fit then.
    cut: Option<Error>,
}

/// The run's part of its `PageSource`.
enum RunPages {
    Mapped(MappedPages),
    Cached { data: PageSlots, filter: PageSlots },
}

impl RunPages {
    fn new(info: &RunInfo, source: &PageSource) -> RunPages {
        let filter_pages = u32_of(usize_of64(info.filter_pages()));
        match source {
            PageSource::Mapped { mapping, guides } => {
                RunPages::Mapped(MappedPages::new(mapping.clone(), guides.clone(), info.units, filter_pages))
            }
            PageSource::Cached(cache) => RunPages::Cached {
                data: PageSlots::new(cache.clone(), info.units),
                filter: PageSlots::new(cache.clone(), filter_pages),
            },
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let extents = std::mem::take(self.freed_on_drop.get_mut());
        self.store.room.space.free_needless(&extents);
        // In a loop: dropping a long chain of runs would recurse deeply.
        let mut next = self.successor.take().and_then(Arc::into_inner);
        while let Some(mut run) = next {
            next = run.successor.take().and_then(Arc::into_inner);
        }
    }
}

impl Run {
    pub(crate) fn new(info: RunInfo, store: &Store, segments: Vec<Arc<Segment>>) -> Run {
        Run {
            filter_blocks: info.filter_blocks,
            seed: seed(store.file_id, info.id),
            pages: RunPages::new(&info, &store.pages),
            store: store.of_run(),
            info,
            meta: OnceLock::new(),
            _segments: segments,
            successor: OnceLock::new(),
            freed_on_drop: Mutex::new(Vec::new()),
            cut: None,
        }
    }

    /// The run, as it was found in a file of `file_len` bytes.
    pub(crate) fn found_in(mut self, file_len: u64) -> Run {
        let end = self.info.meta_at() + u64::from(self.info.meta_bytes);
        self.cut = self.check_inside(0, end, file_len).err();
        if self.cut.is_some() {
            // Lookups ask the filter first. Without one they go on to the fence, and get the error there.
            self.filter_blocks = 0;
        }
        self
    }

    /// Whether the file, when it was opened, ended before the run.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// Frees the run's extents when nobody holds it any more. REQUIRES: the newest durable checkpoint does
    /// not name it.
    pub(crate) fn free_on_drop(&self) {
        self.free_parts_on_drop(self.info.extents.clone());
    }

    /// As `free_on_drop`, for some of the extents. The others belong to the run's successor.
    pub(crate) fn free_parts_on_drop(&self, extents: Vec<Extent>) {
        // Noted when the lock is given up: both are leaves.
        let before = std::mem::replace(&mut *self.freed_on_drop.lock(), extents.clone());
        self.store.room.space.note_needless(&extents, &before);
    }

    /// Sets the run that has taken over all extents but those that were moved.
    pub(crate) fn succeeded_by(&self, successor: Arc<Run>) {
        let is_first = self.successor.set(successor).is_ok();
        debug_assert!(is_first, "a run is moved from only once: its successor is moved from after that");
    }

    /// The fence and the range deletes. They are read at the first use.
    #[inline(always)]
    pub(crate) fn meta(&self) -> Result<&Meta> {
        match self.meta.get() {
            Some(meta) => Ok(meta),
            None => self.load_meta(),
        }
    }

    #[cold]
    fn load_meta(&self) -> Result<&Meta> {
        if let Some(cut) = &self.cut {
            return Err(cut.clone());
        }
        let at = self.info.meta_at();
        // The length is checked before memory is taken for it.
        let file_len = self.store.file.len().map_err(|e| Error::io("reading the file's length", e))?;
        self.check_inside(at, u64::from(self.info.meta_bytes), file_len)?;
        let mut bytes = vec![0; usize_of(self.info.meta_bytes)];
        self.read(at, &mut bytes)?;
        let meta = Meta::decode(&bytes, self.seed, self.file_offset(at), self.info.units)?;
        Ok(self.meta.get_or_init(|| meta))
    }

    /// Fails if a file of `file_len` bytes lacks some of the `len` bytes of the run from `at` on.
    fn check_inside(&self, at: u64, len: u64, file_len: u64) -> Result<()> {
        scattered::check_inside(&self.info.extents, at, at + len, file_len)
    }

    /// Where byte `at` of the run is in the file.
    pub(crate) fn file_offset(&self, at: u64) -> u64 {
        scattered::stretch(&self.info.extents, at).map_or(0, |place| place.0)
    }

    /// Where byte `at` of the run is in the file, and how many of the run's bytes follow it there.
    #[inline(always)]
    fn stretch(&self, at: u64) -> Option<(u64, u64)> {
        scattered::stretch(&self.info.extents, at)
    }

    /// Where a unit begins in the run.
    #[inline(always)]
    fn unit_at(&self, unit: u32) -> u64 {
        u64::from(unit) * self.info.page_bytes as u64
    }

    /// Where a unit is in the file.
    pub(crate) fn unit_offset(&self, unit: u32) -> u64 {
        self.file_offset(self.unit_at(unit))
    }

    /// Fills `buf` from byte `at` of the run on, across its extents.
    pub(crate) fn read(&self, at: u64, buf: &mut [u8]) -> Result<()> {
        let end = || Error::corrupt("run", at, "a read passes the end of the run");
        if scattered::read(&self.info.extents, self.store.file.as_ref(), at, buf)? {
            Ok(())
        } else {
            Err(end())
        }
    }

    /// Fills whole units from unit `first` on. What the file cuts short reads as zeros.
    pub(crate) fn read_units(&self, first: u32, buf: &mut [u8]) -> Result<()> {
        let at = self.unit_at(first);
        let have = usize_of64(self.info.data_bytes.saturating_sub(at)).min(buf.len());
        let (there, beyond) = buf.split_at_mut(have);
        beyond.fill(0);
        self.read(at, there)
    }

    /// Whether it is read under pins that may be revoked.
    pub(crate) fn is_watched(&self) -> bool {
        self.store.watched.is_some()
    }

    /// A follower has found it in checkpoint `number`, too, which is pinned.
    pub(crate) fn is_named_by(&self, number: u64) {
        if let Some(watched) = &self.store.watched {
            watched.is_named_by(number);
        }
    }

    /// The seed of the run's checksums.
    pub(crate) fn seed(&self) -> u32 {
        self.seed
    }

    /// Whether all that the run says has expired at `now`.
    pub(crate) fn is_past(&self, now: u64) -> bool {
        let RunInfo { expiring, records, ranges, .. } = &self.info;
        *ranges == 0 && expiring.records == *records && expiring.all_past(now)
    }

    /// Bytes that the run keeps of the file for records that have likely expired at `now`.
    pub(crate) fn past_bytes(&self, now: u64) -> u64 {
        if !self.info.expiring.any_past(now) {
            return 0;
        }
        let kept = self.info.large.iter().fold(self.info.bytes(), |sum, l| sum.saturating_add(l.1));
        (kept as f64 * self.info.expiring.past(now) / self.info.records.max(1) as f64) as u64
    }

    /// Whether the run may have keys or range deletes between `min` and `max`.
    pub(crate) fn overlaps(&self, min: &[u8], max: &[u8]) -> bool {
        self.info.ranges > 0 || (self.info.min.as_slice() <= max && min <= self.info.max.as_slice())
    }
}
