//! Memory of cursors that are gone, for those that come: each thread keeps its own.

use crate::format::unpacked::Unpacked;
use std::cell::Cell;

/// A thread keeps as many batches, of no more bytes each.
const BATCHES_MAX: usize = 32;
const BATCH_BYTES_MAX: usize = 8 << 10;

thread_local! {
    static SPARE: Cell<Vec<Unpacked>> = const { Cell::new(Vec::new()) };
}

/// An empty batch.
pub(super) fn take() -> Unpacked {
    let taken = SPARE.try_with(|spare| {
        let mut batches = spare.take();
        let batch = batches.pop();
        spare.set(batches);
        batch
    });
    taken.ok().flatten().unwrap_or_default()
}

/// A batch that is not used any more. A thread that is ending keeps none.
pub(super) fn give(mut batch: Unpacked) {
    let bytes = batch.capacity_bytes();
    if bytes == 0 || bytes > BATCH_BYTES_MAX {
        return;
    }
    batch.clear();
    let _ending = SPARE.try_with(|spare| {
        let mut batches = spare.take();
        if batches.len() < BATCHES_MAX {
            batches.push(batch);
        }
        spare.set(batches);
    });
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::format::block::Tag;

    fn used(key_bytes: usize) -> Unpacked {
        let mut batch = Unpacked::default();
        batch.push(&vec![b'k'; key_bytes], Tag::Put, 0, 0);
        batch
    }

    #[test]
    fn batches_come_back_empty_and_large_ones_do_not() {
        give(Unpacked::default());
        give(used(BATCH_BYTES_MAX + 1));
        assert_eq!(take().capacity_bytes(), 0);
        give(used(100));
        let again = take();
        assert!(again.len() == 0 && again.capacity_bytes() >= 100);
        assert_eq!(take().capacity_bytes(), 0);
    }

    #[test]
    fn a_thread_keeps_no_more_than_some() {
        (0..BATCHES_MAX * 2).for_each(|_| give(used(1)));
        assert_eq!((0..BATCHES_MAX * 2).filter(|_| take().capacity_bytes() > 0).count(), BATCHES_MAX);
    }
}
