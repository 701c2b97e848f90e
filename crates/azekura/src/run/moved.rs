//! What stays known of a run of which parts were moved.
//!
//! The run is opened anew, at its new place. If nothing were known of it, readers would check all of its
//! pages again, and each would wait for that.

use super::known::Known;
use super::standing::MappedPages;
use super::{Run, RunPages};
use crate::base::error::Result;
use crate::base::limits::PAGE_BYTES;
use std::ops::Range;
use std::sync::atomic::Ordering;

impl Run {
    /// Takes over what is known of the pages of `before`. It is the same run, of which the bytes of `moved`
    /// stand elsewhere. Of these the pages that were known are checked at their new place. It is for before
    /// readers meet the run, and only a favour: a page that cannot be read is an error for those who ask for
    /// it. In the page cache nothing is taken over.
    pub(crate) fn know_as(&self, before: &Run, moved: &Range<u64>) {
        if let (RunPages::Mapped(pages), RunPages::Mapped(known)) = (&self.pages, &before.pages) {
            self.know_filter(pages, known, moved);
            let _known_so_far = self.know_pages(pages, known, moved);
        }
    }

    /// As far as there is room for guides. Readers who look at `before` until then keep theirs.
    fn know_pages(&self, pages: &MappedPages, known: &MappedPages, moved: &Range<u64>) -> Result<()> {
        if !known.data.is_used() {
            return Ok(());
        }
        let meta = self.meta()?;
        self.find_first(pages);
        for page in 0..meta.pages() {
            let (unit, units) = self.place_of(meta, page);
            let Some(Known::Guide(guide)) = known.data.get(unit) else { continue };
            if !pages.data.has_room() {
                break;
            }
            if meets(moved, self.unit_at(unit), units * self.info.page_bytes) {
                let _checked = self.mapped_page(pages, unit, units)?;
            } else {
                // The page stands where it stood, in one piece.
                pages.data.put_guide(unit, *guide);
            }
        }
        Ok(())
    }

    fn know_filter(&self, pages: &MappedPages, known: &MappedPages, moved: &Range<u64>) {
        let checked = known.filter.get().into_iter().flatten().map(|checked| checked.load(Ordering::Relaxed));
        for (page, _) in (0..pages.filter_pages).zip(checked).filter(|(_, checked)| *checked) {
            if !meets(moved, self.filter_at(page), PAGE_BYTES) {
                pages.note_filter(page);
            } else if self.check_filter(pages, page).is_err() {
                return;
            }
        }
    }
}

/// Whether a range of bytes meets `len` bytes from `at` on.
fn meets(moved: &Range<u64>, at: u64, len: usize) -> bool {
    at < moved.end && moved.start < at + len as u64
}
