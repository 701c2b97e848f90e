//! A run's pages where they stand in the mapped file: what is known of them, and what holders get.

use super::known::{Guides, KnownPages};
use crate::base::codec::{usize_of, usize_of64};
use crate::base::prefetch::prefetch_line;
use crate::format::guide::Guide;
use crate::format::page::Page;
use crate::storage::{ENTER_BYTES, FileMapping};
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

/// The pages of a run, in the file's mapping.
pub(super) struct MappedPages {
    pub(super) mapping: Arc<FileMapping>,
    /// Where the run begins in the mapping, if it is in one piece and was asked for. Else null.
    pub(super) first: AtomicPtr<u8>,
    pub(super) data: KnownPages,
    /// Which pages of the filter were found whole.
    pub(super) filter: OnceLock<Box<[AtomicBool]>>,
    pub(super) filter_pages: u32,
    entered: Entered,
}

/// For each part of a run of [`ENTER_BYTES`], whether the system was asked to enter it into the mapping, and
/// did. Made at the first use.
#[derive(Default)]
struct Entered(OnceLock<Box<[AtomicU8]>>);

/// The system was not asked, did not, did.
const UNASKED: u8 = 0;
const REFUSED: u8 = 1;
const ENTERED: u8 = 2;

impl Entered {
    /// Whether all of a range of a run of `run_bytes` was entered. What was not asked for is entered by
    /// `enter`, together with all of the stretch of its byte. No part is asked for twice, so a file that is
    /// not in memory costs hardly more.
    fn has(
        &self,
        range: Range<u64>,
        run_bytes: u64,
        stretch_of: impl Fn(u64) -> Range<u64>,
        enter: impl Fn(Range<u64>) -> bool,
    ) -> bool {
        let parts = usize_of64(run_bytes.div_ceil(ENTER_BYTES));
        let states = self.0.get_or_init(|| (0..parts).map(|_| AtomicU8::new(UNASKED)).collect());
        let has = |number: u64| {
            let Some(state) = states.get(usize_of64(number)) else { return false };
            if claim(state) {
                let stretch = stretch_of(number * ENTER_BYTES);
                let Some(states) = states.get(parts_of(&stretch)) else { return false };
                for state in states {
                    let _others = claim(state);
                }
                if enter(stretch) {
                    states.iter().for_each(|state| state.store(ENTERED, Ordering::Relaxed));
                }
            }
            state.load(Ordering::Relaxed) == ENTERED
        };
        range.end <= run_bytes && (range.start / ENTER_BYTES..range.end.div_ceil(ENTER_BYTES)).all(has)
    }
}

/// Takes it upon the caller to ask for a part. False if somebody has asked.
fn claim(state: &AtomicU8) -> bool {
    state.compare_exchange(UNASKED, REFUSED, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

/// The numbers of a stretch's parts.
fn parts_of(stretch: &Range<u64>) -> Range<usize> {
    usize_of64(stretch.start / ENTER_BYTES)..usize_of64(stretch.end.div_ceil(ENTER_BYTES))
}

impl MappedPages {
    pub(super) fn new(
        mapping: Arc<FileMapping>,
        guides: Arc<Guides>,
        units: u32,
        filter_pages: u32,
    ) -> MappedPages {
        let (first, filter) = (AtomicPtr::default(), OnceLock::new());
        let data = KnownPages::new(units, guides);
        MappedPages { mapping, first, data, filter, filter_pages, entered: Entered::default() }
    }

    /// Notes that a page of the filter was found whole.
    pub(super) fn note_filter(&self, page: u32) {
        let none = || (0..self.filter_pages).map(|_| AtomicBool::new(false)).collect();
        if let Some(checked) = self.filter.get_or_init(none).get(usize_of(page)) {
            checked.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the system has entered a range of the run, whose pages have `run_bytes`, into the mapping.
    /// `place` gives the place in the file of a byte of the run, and how many bytes follow it there.
    pub(super) fn has_entered(
        &self,
        range: Range<u64>,
        run_bytes: u64,
        place: impl Fn(u64) -> Option<(u64, u64)>,
    ) -> bool {
        let stretch_of = |at| self.mapping.stretch_of(at, run_bytes);
        self.entered.has(range, run_bytes, stretch_of, |stretch| {
            let len = stretch.end - stretch.start;
            place(stretch.start)
                .is_some_and(|(offset, together)| together >= len && self.mapping.enter(offset, len))
        })
    }
}

/// A page in the mapping, with its guide.
pub(crate) struct MappedPage<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) guide: GuideOf<'a>,
}

pub(super) enum GuideOf<'a> {
    Kept(&'a Guide),
    /// Shared, so that a value that borrows from it may be moved together with it.
    Own(Arc<Guide>),
}

impl MappedPage<'_> {
    #[inline(always)]
    pub(super) fn page(&self) -> Page<'_> {
        match &self.guide {
            GuideOf::Kept(guide) => Page::new(self.bytes, guide),
            GuideOf::Own(guide) => Page::new(self.bytes, guide),
        }
    }

    /// Has the processor fetch the line of a byte of the page.
    #[inline(always)]
    pub(super) fn prefetch(&self, byte: usize) {
        // A page with a forged checksum may name any byte. A prefetch may have any address.
        prefetch_line(self.bytes.as_ptr().wrapping_add(byte));
    }

    /// The same page, with a longer lifetime.
    ///
    /// # Safety
    /// The caller keeps the run until the result has been dropped.
    pub(super) unsafe fn extend<'b>(self) -> MappedPage<'b> {
        // SAFETY: the page borrows from the run, which the caller keeps.
        unsafe { std::mem::transmute::<MappedPage<'_>, MappedPage<'b>>(self) }
    }
}

impl Deref for MappedPage<'_> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// The stretch of so many parts in which a byte of a run is.
    fn of_parts(parts: u64, run_bytes: u64) -> impl Fn(u64) -> Range<u64> {
        let len = parts * ENTER_BYTES;
        move |at| at / len * len..run_bytes.min((at / len + 1) * len)
    }

    #[test]
    fn a_stretch_is_asked_for_once_and_the_answer_is_kept() {
        let (entered, whole) = (Entered::default(), 5 * ENTER_BYTES - 4096);
        let never = |_| -> bool { panic!("it was asked for before") };
        let two = of_parts(2, whole);
        assert!(!entered.has(0..4096, whole, &two, |_| false));
        assert!(!entered.has(ENTER_BYTES..ENTER_BYTES + 4096, whole, &two, never));
        let last = |stretch| stretch == (4 * ENTER_BYTES..whole);
        assert!(entered.has(whole - 4096..whole, whole, &two, last));
        assert!(entered.has(whole - 8192..whole, whole, of_parts(1, whole), never));
        assert!(!entered.has(whole - 1..whole + 1, whole, &two, never), "behind the end there is nothing");
        assert!(entered.has(3 * ENTER_BYTES..3 * ENTER_BYTES + 1, whole, two, |stretch| {
            stretch == (2 * ENTER_BYTES..4 * ENTER_BYTES)
        }));
        assert!(entered.has(2 * ENTER_BYTES..whole, whole, of_parts(1, whole), never));
    }

    #[test]
    fn a_page_in_several_stretches_has_all_of_them_entered() {
        let (entered, whole) = (Entered::default(), 5 * ENTER_BYTES);
        let (asked, one) = (Cell::new(0), of_parts(1, whole));
        let numbered = |stretch: Range<u64>| {
            asked.set(asked.get() + 1);
            stretch.start != 3 * ENTER_BYTES
        };
        assert!(entered.has(ENTER_BYTES - 1..2 * ENTER_BYTES + 1, whole, &one, numbered));
        assert!(entered.has(0..3 * ENTER_BYTES, whole, &one, numbered));
        assert!(!entered.has(2 * ENTER_BYTES..whole, whole, &one, numbered), "one of them is not in memory");
        assert!(!entered.has(2 * ENTER_BYTES..whole, whole, &one, numbered));
        assert_eq!(asked.get(), 4, "each was asked for once, and none behind the one that was refused");
    }
}
