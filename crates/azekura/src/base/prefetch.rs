//! Asks the processor for lines of memory before they are read, so that it waits for several at once.

/// The bytes of one line.
pub(crate) const LINE_BYTES: usize = 64;
/// The most lines to ask for at once. Processors keep track of little more.
const LINES_MAX: usize = 8;

/// Has the processor fetch a line. A hint: any address is allowed.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn prefetch_line(line: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch has no effect but on speed, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn prefetch_line(_line: *const u8) {}

/// Has the processor fetch the first lines of a slice.
#[inline(always)]
pub(crate) fn prefetch_lines<T>(slice: &[T]) {
    let (first, bytes) = (slice.as_ptr().cast::<u8>(), size_of_val(slice));
    for at in (0..bytes).step_by(LINE_BYTES).take(LINES_MAX) {
        prefetch_line(first.wrapping_add(at));
    }
}
