//! The largest allocation that a thread makes, since damaged lengths must not be believed. For the soak also
//! the total that is allocated: what a process holds beyond that is mappings, or memory that the allocator
//! keeps.
//!
//! It works in programs that have [`Measured`] as their allocator. In others nothing is measured.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator. It remembers each thread's largest allocation, and the total that is allocated.
pub struct Measured;

/// The limit between large and small pieces. Below, the bytes allocated in each.
const LARGE_BYTES: usize = 128 << 10;
static LIVE_LARGE: AtomicUsize = AtomicUsize::new(0);
static LIVE_SMALL: AtomicUsize = AtomicUsize::new(0);

fn count_of(bytes: usize) -> &'static AtomicUsize {
    if bytes >= LARGE_BYTES { &LIVE_LARGE } else { &LIVE_SMALL }
}

/// The bytes that are allocated in large pieces, and in small ones.
pub fn live() -> (usize, usize) {
    (LIVE_LARGE.load(Ordering::Relaxed), LIVE_SMALL.load(Ordering::Relaxed))
}

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

fn note(bytes: usize) {
    count_of(bytes).fetch_add(bytes, Ordering::Relaxed);
    // A thread that is ending has no such cell, and nobody asks for it.
    let _ended = LARGEST.try_with(|largest| largest.set(largest.get().max(bytes)));
}

fn forget(bytes: usize) {
    count_of(bytes).fetch_sub(bytes, Ordering::Relaxed);
}

/// The largest allocation of this thread since [`forget_largest`], in bytes.
pub fn largest() -> usize {
    LARGEST.with(Cell::get)
}

/// Starts a new measurement on this thread.
pub fn forget_largest() {
    LARGEST.with(|largest| largest.set(0));
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Measured {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        forget(layout.size());
        note(bytes);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.realloc(ptr, layout, bytes) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        forget(layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}
