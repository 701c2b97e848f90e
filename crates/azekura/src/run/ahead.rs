//! Asking the system for pages before they are needed, where they have to come from the disk.

use super::Run;
use std::ops::Range;

impl Run {
    /// Asks the system to begin reading the pages of some of the fence's entries. A hint.
    pub(crate) fn will_read(&self, pages: Range<usize>) {
        let Some(meta) = self.meta.get() else { return };
        let unit = |page| if page < meta.pages() { meta.unit_of(page) } else { self.info.units };
        let mut at = self.unit_at(unit(pages.start));
        let end = self.unit_at(unit(pages.end)).min(self.info.data_bytes);
        while at < end {
            let Some((offset, together)) = self.stretch(at) else { break };
            let len = together.min(end - at);
            self.store.file.will_read(offset, len);
            at += len;
        }
    }
}
