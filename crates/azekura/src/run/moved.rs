//! What stays known of a run of which parts were moved.
//!
//! The run is opened anew, at its new place. If nothing were known of it, readers would check all of its
//! pages again, and each would wait for that.

use super::standing::MappedPages;
use super::{Run, RunPages};
use crate::base::error::Result;
use crate::base::limits::PAGE_BYTES;
use std::ops::Range;
use std::sync::atomic::Ordering;

impl Run {
    /// Takes over what is known of the pages of `before`. It is the same run, of which the bytes of `moved`
    /// stand elsewhere. Known pages of these are checked at their new place, and an error says that one is
    /// not as it was. It is for before readers meet the run, and a favour: nothing is taken over, nor
    /// checked, where the file is not mapped, nor of pages without a kept guide.
    pub(crate) fn know_as(&self, before: &Run, moved: &Range<u64>) -> Result<()> {
        let (RunPages::Mapped(pages), RunPages::Mapped(known)) = (&self.pages, &before.pages) else {
            return Ok(());
        };
        self.know_filter(pages, known, moved)?;
        self.know_pages(pages, known, moved)
    }

    /// None where more than half of the memory for guides would be taken: readers may hold `before`, and runs
    /// before it, with guides of their own.
    fn know_pages(&self, pages: &MappedPages, known: &MappedPages, moved: &Range<u64>) -> Result<()> {
        if !known.data.is_used() {
            return Ok(());
        }
        pages.data.note_used();
        if !pages.data.leaves_half() {
            return Ok(());
        }
        let meta = self.meta()?;
        self.find_first(pages);
        for page in 0..meta.pages() {
            let (unit, units) = self.place_of(meta, page);
            let Some(guide) = known.data.kept(unit) else { continue };
            if meets(moved, self.unit_at(unit), units * self.info.page_bytes) {
                let _checked = self.mapped_page(pages, unit, units)?;
            } else {
                pages.data.put_guide(unit, *guide);
            }
        }
        Ok(())
    }

    fn know_filter(&self, pages: &MappedPages, known: &MappedPages, moved: &Range<u64>) -> Result<()> {
        let checked = known.filter.get().into_iter().flatten().map(|checked| checked.load(Ordering::Relaxed));
        for (page, _) in (0..pages.filter_pages).zip(checked).filter(|(_, checked)| *checked) {
            if meets(moved, self.filter_at(page), PAGE_BYTES) {
                self.check_filter(pages, page)?;
            } else {
                pages.note_filter(page);
            }
        }
        Ok(())
    }
}

/// Whether a range of bytes meets `len` bytes from `at` on.
fn meets(moved: &Range<u64>, at: u64, len: usize) -> bool {
    at < moved.end && moved.start < at + len as u64
}
