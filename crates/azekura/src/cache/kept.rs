//! Pages that are never driven out: one mapping in huge pages, like the page cache's, read without a pin.

use std::sync::OnceLock;

use super::region::Region;
use crate::base::codec::usize_of;
use crate::base::error::Result;
use crate::base::sync::Mutex;

/// A number of pages of one owner, each loaded when it is first asked for.
pub(crate) struct KeptPages {
    region: Region,
    pages: Box<[Kept]>,
}

/// What is known of a page.
#[derive(Default)]
struct Kept {
    /// Set when the page has its bytes, which never change from then on.
    ready: OnceLock<()>,
    /// Held while it gets them.
    loading: Mutex<()>,
}

impl KeptPages {
    /// Reserves addresses for `pages` pages of `page_bytes`, a power of two, each.
    ///
    /// # Errors
    /// `Io` if the system refuses.
    pub(crate) fn new(pages: u32, page_bytes: usize) -> Result<KeptPages> {
        let region = Region::new(usize_of(pages), page_bytes)?;
        Ok(KeptPages { region, pages: (0..pages).map(|_| Kept::default()).collect() })
    }

    /// The page, if it is loaded.
    #[inline(always)]
    pub(crate) fn peek(&self, page: u32) -> Option<&[u8]> {
        self.pages.get(usize_of(page))?.ready.get()?;
        self.region.note_read(usize_of(page));
        // SAFETY: the page is ready, so its bytes were written before and are never written again; the
        // region has as many frames as there are pages, and belongs to `self`.
        Some(unsafe { self.region.bytes(usize_of(page)).as_ref() })
    }

    /// The page, loaded by `load` if it was not yet; none beyond the last one.
    ///
    /// # Errors
    /// Those of `load`; the page is loaded anew then when it is asked for again.
    #[inline(always)]
    pub(crate) fn get(&self, page: u32, load: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Option<&[u8]>> {
        match self.peek(page) {
            Some(bytes) => Ok(Some(bytes)),
            None => self.load(page, load),
        }
    }

    #[cold]
    fn load(&self, page: u32, load: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Option<&[u8]>> {
        let Some(kept) = self.pages.get(usize_of(page)) else { return Ok(None) };
        let loading = kept.loading.lock();
        if kept.ready.get().is_none() {
            self.region.note_write(usize_of(page));
            // SAFETY: a page that is not ready is read by nobody, and written only under its lock; its
            // bytes are initialised, as mappings begin as zeros.
            load(unsafe { self.region.bytes(usize_of(page)).as_mut() })?;
            let _first = kept.ready.set(());
        }
        drop(loading);
        Ok(self.peek(page))
    }
}
