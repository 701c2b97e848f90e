//! The stock: free frames whose memory is there already.
//!
//! A frame's memory comes when it is first touched: the kernel fills a huge page with zeros, which takes
//! 0.1 to 0.2 ms, and where a hypervisor has taken idle memory back it must first get it from there, up to
//! 10 ms. A reader that misses should not wait for that. So, while the cache fills, a thread touches frames
//! that nobody has asked for yet: an eighth of those in use, so that a cache that hardly anybody reads takes
//! hardly more than it needs, and 32 MiB at most. The thread ends when the stock is full, when the cache nearly
//! is, and when the database is closed. Readers that are faster than it touch frames of their own, as they would without it.
//!
//! Frames that are being touched are `CLAIMED` and named by no slot and no list, as those that are being
//! filled.

use super::{Cache, Clock};
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::sync::thread::{self, JoinHandle};
use std::sync::Arc;

/// Smaller caches go without: their first frames are in small pages, and cost little.
const USED_BYTES_MIN: usize = if cfg!(loom) { 0 } else { 4 << 20 };
/// The stock, as a part of what is in use.
const PART: usize = if cfg!(loom) { 1 } else { 8 };
/// The stock at most.
const BYTES_MAX: usize = 32 << 20;
/// What is touched between two looks at the cache: a huge page.
const STEP_BYTES: usize = 2 << 20;
/// The last frames are left to readers: who finds none while they are being touched drives a page out.
const KEPT_STEPS: usize = 2;

/// How many frames are touched in a step.
fn steps_frames(frame_bytes: usize) -> usize {
    if cfg!(loom) { 1 } else { STEP_BYTES / frame_bytes }
}

impl Clock {
    /// How many frames should be in stock.
    fn stock_wanted(&self, frame_bytes: usize) -> usize {
        let used = self.frames_used();
        if used * frame_bytes < USED_BYTES_MIN { 0 } else { (used / PART).min(BYTES_MAX / frame_bytes) }
    }

    /// Whether a thread should be started that fills the stock; the caller then does.
    pub(super) fn wants_stock(&mut self, frame_bytes: usize) -> bool {
        let has_cold = self.cold_frames() >= KEPT_STEPS * steps_frames(frame_bytes);
        let low = !self.stocking && has_cold && self.free.len() < self.stock_wanted(frame_bytes) / 2;
        self.stocking |= low;
        low
    }

    /// How many frames have no memory.
    fn cold_frames(&self) -> usize {
        self.cold.len() + self.limit.saturating_sub(self.untouched)
    }

    /// Takes frames to be touched, a huge page's at most, unless there are enough or hardly any more.
    fn take_cold(&mut self, frame_bytes: usize) -> Option<Vec<usize>> {
        let step = steps_frames(frame_bytes);
        if self.free.len() >= self.stock_wanted(frame_bytes) || self.cold_frames() < KEPT_STEPS * step {
            return None;
        }
        if !self.cold.is_empty() {
            return Some(self.cold.split_off(self.cold.len().saturating_sub(step)));
        }
        let end = ((self.untouched / step + 1) * step).min(self.limit);
        let taken = (self.untouched < end).then(|| (self.untouched..end).rev().collect());
        self.untouched = self.untouched.max(end);
        taken
    }
}

/// The thread that fills the stock.
#[derive(Default)]
pub(super) struct Stocker {
    /// The last one that was started, which may have ended.
    thread: Mutex<Option<JoinHandle<()>>>,
    stop: AtomicBool,
}

impl Cache {
    /// Has a thread fill the stock. If none can be started there is no stock from then on, and readers touch
    /// their frames.
    pub(super) fn start_stocking(self: &Arc<Cache>) {
        let Some(stocker) = &self.slow.stocker else { return };
        let mut thread = stocker.thread.lock();
        if !stocker.stop.load(Ordering::Acquire) {
            // The last one, if there was one, is at its end.
            if let Some(ended) = thread.take() {
                let _panicked = ended.join();
            }
            let cache = self.clone();
            *thread = thread::Builder::new().name("azekura-stock".into()).spawn(move || cache.fill_stock()).ok();
        }
    }

    /// Ends the thread, for good: it finishes the huge page that it is at.
    pub(super) fn stop_stocking(&self) {
        let Some(stocker) = &self.slow.stocker else { return };
        stocker.stop.store(true, Ordering::Release);
        let thread = stocker.thread.lock().take();
        if let Some(thread) = thread {
            // It has said so itself if it panicked.
            let _panicked = thread.join();
        }
    }

    fn fill_stock(&self) {
        let goes_on = || self.slow.stocker.as_ref().is_some_and(|s| !s.stop.load(Ordering::Acquire));
        while goes_on() && self.stock_step() {}
    }

    /// Frames to be touched, which are the caller's alone; none when the stock is at its end.
    pub(super) fn take_for_stock(&self) -> Option<Vec<usize>> {
        let mut clock = self.slow.clock.lock();
        let taken = clock.take_cold(self.frame_bytes());
        // Before the lock is given up: nobody else may claim them from then on.
        taken.iter().flatten().for_each(|&index| self.frames[index].begin());
        clock.stocking = taken.is_some();
        clock.touching = taken.as_ref().map_or(0, Vec::len);
        taken
    }

    /// Adds some frames to the stock; false when that is at its end.
    pub(super) fn stock_step(&self) -> bool {
        let Some(mut taken) = self.take_for_stock() else { return false };
        for &index in &taken {
            // SAFETY: the frame is CLAIMED and in no list, so it is this thread's alone.
            unsafe { self.region.touch(index) };
        }
        let mut clock = self.slow.clock.lock();
        clock.touching = 0;
        // The cache may have become smaller meanwhile.
        let limit = clock.limit;
        let mut beyond: Vec<usize> = taken.extract_if(.., |index| *index >= limit).collect();
        clock.free.append(&mut taken);
        beyond.sort_unstable();
        for frames in beyond.chunk_by(|a, b| a + 1 == *b) {
            self.region.give_back(frames[0], frames.len());
        }
        clock.parked.append(&mut beyond);
        true
    }
}
