//! What is known of the pages of a run in a mapped file: whether a page was checked, and its guide.
//!
//! Each page has a byte of state. A guide, once written, stays as long as the run is open. So readers use it
//! without a pin and without a lock, and it costs them one cache line. Guides come in chunks of 64, from one
//! budget for all runs ([`Guides`]). A page beyond the budget gets a coarser guide, which is made of its
//! header at each use. Its checksum is checked again after every [`USES`] uses.
//!
//! ```text
//!   UNKNOWN -- checked, chunk there --> WRITING --> GUIDED
//!      |  ^
//!      |  +------------- the last use
//!      +-- checked, no chunk --> uses that are left, down to one
//! ```

use crate::base::codec::usize_of;
use crate::base::prefetch::prefetch_line;
use crate::base::sync::Shadow;
use crate::base::sync::atomic::{AtomicU8, Ordering};
use crate::cache::CacheStats;
use crate::format::guide::Guide;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};

/// Nothing is known of the page, or it must be checked again.
const UNKNOWN: u8 = 0;
/// The page's guide is in its place, for good.
const GUIDED: u8 = 255;
/// One thread is writing the page's guide.
const WRITING: u8 = 254;
/// A page without a kept guide is checked again after this many uses.
const USES: u8 = 64;
/// How many guides, of neighbouring pages, come together.
const CHUNK: usize = 64;

/// The bytes of a chunk.
const CHUNK_BYTES: usize = CHUNK * size_of::<Guide>();

/// How much memory the guides of all runs may take.
pub(crate) struct Guides {
    bytes_max: usize,
    taken: AtomicUsize,
    /// How many pages were checked.
    checked: AtomicU64,
}

impl Guides {
    pub(crate) fn new(bytes_max: usize) -> Arc<Guides> {
        Arc::new(Guides { bytes_max, taken: AtomicUsize::new(0), checked: AtomicU64::new(0) })
    }

    pub(super) fn stats(&self) -> CacheStats {
        let bytes = self.taken.load(Ordering::Relaxed) as u64;
        CacheStats { misses: self.checked.load(Ordering::Relaxed), bytes, ..CacheStats::default() }
    }

    fn has_room(&self) -> bool {
        self.taken.load(Ordering::Relaxed) + CHUNK_BYTES <= self.bytes_max
    }

    /// Takes this much memory, if it is left.
    fn take(self: &Arc<Self>, bytes: usize) -> Option<Share> {
        let more = |taken: usize| Some(taken + bytes).filter(|&sum| sum <= self.bytes_max);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Share { all: self.clone(), bytes })
    }
}

/// The memory of a chunk. It is given back on drop.
struct Share {
    all: Arc<Guides>,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.all.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What is known of the pages of one run.
pub(super) struct KnownPages {
    /// Made at the first use.
    parts: OnceLock<Parts>,
    guides: Arc<Guides>,
    pages: u32,
}

struct Parts {
    states: Box<[AtomicU8]>,
    /// Each is made when there is memory for it.
    chunks: Box<[OnceLock<Chunk>]>,
}

struct Chunk {
    guides: Box<[UnsafeCell<Guide>]>,
    shadow: Shadow,
    _share: Share,
}

// SAFETY: only the thread that has set its page's state to `WRITING` writes a guide. Others read it after
// they have seen `GUIDED`, which that thread stores with Release when it is done. Nobody writes to it after
// that.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}

/// A page that was checked.
pub(super) enum Known<'a> {
    /// Its kept guide.
    Guide(&'a Guide),
    /// It has no kept guide; its header must serve.
    Checked,
}

impl KnownPages {
    /// For a run of `pages` pages. Nothing is known of them yet.
    pub(super) fn new(pages: u32, guides: Arc<Guides>) -> KnownPages {
        KnownPages { parts: OnceLock::new(), guides, pages }
    }

    /// Whether any page was asked for yet.
    pub(super) fn is_used(&self) -> bool {
        self.parts.get().is_some()
    }

    /// From now on pages count as asked for.
    pub(super) fn note_used(&self) {
        self.parts.get_or_init(|| Parts::new(self.pages));
    }

    /// How much memory the guides of all runs may take.
    pub(super) fn guides_bytes_max(&self) -> usize {
        self.guides.bytes_max
    }

    /// Whether there is memory for more guides.
    pub(super) fn has_room(&self) -> bool {
        self.guides.has_room()
    }

    /// Whether guides for all pages of the run would leave half of the memory for guides to others.
    pub(super) fn leaves_half(&self) -> bool {
        let bytes = usize_of(self.pages) * size_of::<Guide>();
        self.guides.taken.load(Ordering::Relaxed) + bytes <= self.guides.bytes_max / 2
    }

    /// The kept guide of a page. Does not count as a use.
    pub(super) fn kept(&self, page: u32) -> Option<&Guide> {
        let parts = self.parts.get()?;
        let is_kept = parts.states.get(usize_of(page))?.load(Ordering::Acquire) == GUIDED;
        // SAFETY: the state is `GUIDED`.
        if is_kept { unsafe { parts.guide(page) } } else { None }
    }

    /// What is known of a page, if it was checked. Counts as a use.
    #[inline(always)]
    pub(super) fn get(&self, page: u32) -> Option<Known<'_>> {
        let parts = self.parts.get()?;
        let state = parts.states.get(usize_of(page))?;
        match state.load(Ordering::Acquire) {
            // SAFETY: the state is `GUIDED`.
            GUIDED => Some(Known::Guide(unsafe { parts.guide(page)? })),
            UNKNOWN | WRITING => None,
            left => {
                // Relaxed: it only counts. If another thread was quicker, that one has counted.
                let _raced = state.compare_exchange(left, left - 1, Ordering::Relaxed, Ordering::Relaxed);
                Some(Known::Checked)
            }
        }
    }

    /// Has the processor fetch the guide of a page.
    #[inline(always)]
    pub(super) fn prefetch(&self, page: u32) {
        let Some(parts) = self.parts.get() else { return };
        if let Some(chunk) = parts.chunks.get(usize_of(page) / CHUNK).and_then(OnceLock::get) {
            prefetch_line(chunk.guides[usize_of(page) % CHUNK].get().cast());
        }
    }

    /// The chunk of that number, if there is memory for it.
    fn chunk<'a>(&self, parts: &'a Parts, number: usize) -> Option<&'a Chunk> {
        let place = parts.chunks.get(number)?;
        if place.get().is_none() {
            let pages = CHUNK.min(parts.states.len() - number * CHUNK);
            // If another thread was quicker, this thread's chunk is dropped.
            let _ours = place.set(Chunk::new(&self.guides, pages)?);
        }
        place.get()
    }

    /// Notes that a page was just found whole, and keeps its guide. Returns the kept guide. None if there is
    /// no memory for it, or if another thread is writing it.
    pub(super) fn keep_guide(&self, page: u32, guide: Guide) -> Option<&Guide> {
        self.guides.checked.fetch_add(1, Ordering::Relaxed);
        self.put_guide(page, guide)
    }

    /// As `keep_guide`, of a page that was found whole before. REQUIRES: it stands where it stood then, and
    /// in one piece.
    pub(super) fn put_guide(&self, page: u32, guide: Guide) -> Option<&Guide> {
        let parts = self.parts.get_or_init(|| Parts::new(self.pages));
        let state = parts.states.get(usize_of(page))?;
        let Some(chunk) = self.chunk(parts, usize_of(page) / CHUNK) else {
            // If another thread was quicker, it has set the same.
            let _raced = state.compare_exchange(UNKNOWN, USES, Ordering::Relaxed, Ordering::Relaxed);
            return None;
        };
        match state.compare_exchange(UNKNOWN, WRITING, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => {
                let at = usize_of(page) % CHUNK;
                chunk.shadow.write(at * size_of::<Guide>()..(at + 1) * size_of::<Guide>());
                // SAFETY: this thread has set the state to `WRITING`, so nobody else touches the guide.
                unsafe { *chunk.guides[at].get() = guide };
                state.store(GUIDED, Ordering::Release);
            }
            Err(GUIDED) => {}
            Err(_) => return None,
        }
        // SAFETY: the state is `GUIDED`.
        unsafe { parts.guide(page) }
    }
}

impl Parts {
    fn new(pages: u32) -> Parts {
        let pages = usize_of(pages);
        Parts {
            states: (0..pages).map(|_| AtomicU8::new(UNKNOWN)).collect(),
            chunks: (0..pages.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The guide of a page.
    ///
    /// # Safety
    /// The caller has seen the page's state `GUIDED`, with Acquire, or has made it so.
    #[inline(always)]
    unsafe fn guide(&self, page: u32) -> Option<&Guide> {
        let chunk = self.chunks.get(usize_of(page) / CHUNK)?.get()?;
        let at = usize_of(page) % CHUNK;
        chunk.shadow.read(at * size_of::<Guide>()..(at + 1) * size_of::<Guide>());
        // SAFETY: by the caller's promise the guide was written, and nobody writes to it again.
        Some(unsafe { &*chunk.guides[at].get() })
    }
}

impl Chunk {
    /// A chunk for this many pages. None beyond the budget.
    fn new(all: &Arc<Guides>, pages: usize) -> Option<Chunk> {
        let share = all.take(pages * size_of::<Guide>())?;
        let guides = (0..pages).map(|_| UnsafeCell::new(Guide::NONE)).collect();
        Some(Chunk { guides, shadow: Shadow::new(pages * size_of::<Guide>()), _share: share })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn known(pages: u32, bytes: usize) -> KnownPages {
        KnownPages::new(pages, Guides::new(bytes))
    }

    fn guide_of(page: u32) -> Guide {
        Guide::numbered(page)
    }

    #[test]
    fn a_guide_stays() {
        let known = known(200, 1 << 20);
        assert!(!known.is_used() && known.get(7).is_none());
        for page in [7, 8, 70, 199] {
            assert_eq!(known.keep_guide(page, guide_of(page)).unwrap().len(), page as usize + 1);
        }
        for _ in 0..1_000 {
            for page in [7, 8, 70, 199] {
                let Some(Known::Guide(guide)) = known.get(page) else { panic!("no guide of page {page}") };
                assert_eq!(guide.len(), page as usize + 1);
            }
        }
        assert!(known.is_used() && known.get(9).is_none());
        assert!(known.get(200).is_none() && known.keep_guide(200, guide_of(0)).is_none());
    }

    #[test]
    fn beyond_the_budget_a_page_is_checked_again_after_some_uses() {
        let known = known(CHUNK as u32 * 2, CHUNK_BYTES);
        assert!(known.has_room());
        assert!(known.keep_guide(0, guide_of(0)).is_some());
        assert!(!known.has_room() && known.keep_guide(64, guide_of(64)).is_none());
        for round in 0..3 {
            for _ in 0..USES {
                assert!(matches!(known.get(64), Some(Known::Checked)), "round {round}");
            }
            assert!(known.get(64).is_none(), "round {round}");
            assert!(known.keep_guide(64, guide_of(64)).is_none());
        }
        assert!(matches!(known.get(0), Some(Known::Guide(_))));
    }

    #[test]
    fn what_a_run_has_taken_of_the_budget_others_take_when_it_goes() {
        let guides = Guides::new(3 * size_of::<Guide>());
        let (first, second) = (KnownPages::new(2, guides.clone()), KnownPages::new(2, guides.clone()));
        assert!(first.keep_guide(0, guide_of(0)).is_some() && second.keep_guide(0, guide_of(0)).is_none());
        assert_eq!(guides.stats().bytes, 2 * size_of::<Guide>() as u64);
        drop(first);
        assert_eq!(guides.stats().bytes, 0);
        // A page that was used without a kept guide gets one when it is checked again.
        assert!(second.keep_guide(1, guide_of(1)).is_some() && second.keep_guide(0, guide_of(0)).is_none());
        while second.get(0).is_some() {}
        assert!(second.keep_guide(0, guide_of(0)).is_some());
        assert!(matches!(second.get(0), Some(Known::Guide(_))));
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;

    /// Two threads keep a page's guide while a third one reads. A reader that sees a guide sees all of it.
    #[test]
    fn a_guide_is_seen_whole_or_not_at_all() {
        loom::model(|| {
            let known = Arc::new(KnownPages::new(1, Guides::new(1 << 20)));
            let parts = known.parts.get_or_init(|| Parts::new(1));
            let _chunk = known.chunk(parts, 0);
            let keep_guide = |known: &KnownPages| {
                if let Some(guide) = known.keep_guide(0, Guide::numbered(4)) {
                    assert_eq!(guide.len(), 5);
                }
            };
            let other = known.clone();
            let second = loom::thread::spawn(move || keep_guide(&other));
            keep_guide(&known);
            if let Some(Known::Guide(guide)) = known.get(0) {
                assert_eq!(guide.len(), 5);
            }
            second.join().unwrap();
            assert!(matches!(known.get(0), Some(Known::Guide(_))));
        });
    }
}
