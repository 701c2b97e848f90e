//! The largest allocation that a thread makes: damaged lengths must not be believed.
//!
//! The binary has [`Measured`] as its allocator; where it is not, nothing is measured.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator; remembers each thread's largest allocation.
pub struct Measured;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

fn note(bytes: usize) {
    // A thread that ends has no such cell any more, and nobody who asks.
    let _ended = LARGEST.try_with(|largest| largest.set(largest.get().max(bytes)));
}

/// The largest allocation of this thread since [`forget_largest`], in bytes.
pub fn largest() -> usize {
    LARGEST.with(Cell::get)
}

/// Begins anew.
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
        note(bytes);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.realloc(ptr, layout, bytes) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}
