//! A file's bytes where the system keeps them: shared read-only mappings.
//!
//! The file is mapped in windows, each when something in it is first asked for. A window has its full length
//! even where the file is shorter, so that the file may grow under it. Nobody may touch what lies behind the
//! file's end.
//!
//! A mapping shows what is written to the file as soon as the write has returned. A plain touch of a page
//! that the system cannot read ends the process with a signal. So a reader first reads the same bytes once by
//! [`File::read_at`](super::File::read_at), or has the system enter a stretch around them that is all in
//! memory ([`FileMapping::enter`]). Both report errors. From then on the system has them in memory. It reads
//! them again where memory is short, or where a small durable write past its memory (`direct.rs`) has dropped
//! a block of which they are a part.
//!
//! The system reads pages that are not in memory one by one (`MADV_RANDOM`). A sequential reader asks for
//! reading ahead itself.

use std::fs;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The bytes of a window: much more than most files have, and a small part of the address space.
const WINDOW_BYTES: u64 = 64 << 30;
/// What lies behind the last window is not mapped.
const WINDOWS: usize = 256;

/// What is entered into a mapping at a time is a multiple of this, but for the end of what stands there.
pub(crate) const ENTER_BYTES: u64 = 64 << 10;

/// How much is entered at a time before a handle has committed: what one huge entry of the processor's tables
/// covers. It is the cheapest for each page. But the reader who first touches a stretch waits for 150 to
/// 250 µs, and for some 12 µs where [`ENTER_BYTES`] are entered.
const ENTER_BYTES_MAX: u64 = super::range::BLOCK_BYTES;

/// The mappings of one file.
pub struct FileMapping {
    file: Arc<fs::File>,
    windows: [OnceLock<Option<Window>>; WINDOWS],
    /// How much is entered at a time.
    enter_bytes: AtomicU64,
}

/// One mapping, of `WINDOW_BYTES`.
struct Window {
    first: NonNull<u8>,
}

// SAFETY: a window owns its mapping, whose address does not depend on the thread. It only hands out
// addresses.
unsafe impl Send for Window {}
// SAFETY: as above. A window never changes.
unsafe impl Sync for Window {}

impl FileMapping {
    /// Maps nothing yet. An implementation of [`File::mapping`](super::File::mapping) must give a file with
    /// the same bytes as its `File::read_at`.
    pub fn new(file: Arc<fs::File>) -> FileMapping {
        let enter_bytes = AtomicU64::new(ENTER_BYTES_MAX);
        FileMapping { file, windows: [const { OnceLock::new() }; WINDOWS], enter_bytes }
    }

    /// From now on reads are not to wait for long: the file is written to beside them.
    pub(crate) fn enter_less(&self) {
        if self.enter_bytes.load(Ordering::Relaxed) != ENTER_BYTES {
            self.enter_bytes.store(ENTER_BYTES, Ordering::Relaxed);
        }
    }

    /// What is to be entered together with byte `at` of a thing of `bytes` that stands in the file.
    pub(crate) fn stretch_of(&self, at: u64, bytes: u64) -> Range<u64> {
        let len = self.enter_bytes.load(Ordering::Relaxed);
        let start = at / len * len;
        start..bytes.min(start + len)
    }

    /// The address of `len` bytes of the file from `offset` on, valid as long as `self`. None where the bytes
    /// lie in two windows or cannot be mapped: then the caller reads them.
    #[inline(always)]
    pub(crate) fn at(&self, offset: u64, len: usize) -> Option<NonNull<u8>> {
        let (window, start) = (offset / WINDOW_BYTES, offset % WINDOW_BYTES);
        if start + len as u64 > WINDOW_BYTES {
            return None;
        }
        let slot = self.windows.get(usize::try_from(window).ok()?)?;
        let window = match slot.get() {
            Some(window) => window.as_ref()?,
            None => self.open(slot, window * WINDOW_BYTES)?,
        };
        // SAFETY: `start` is less than the window's length, which `Window::new` has mapped.
        Some(unsafe { window.first.add(usize::try_from(start).ok()?) })
    }

    /// Enters bytes of the file into the mapping, if the system has all of them in memory. Returns whether it
    /// has. From then on they may be touched, as if they had been read. What the system drops between the two
    /// steps, or is still reading, is waited for.
    pub(crate) fn enter(&self, offset: u64, len: u64) -> bool {
        let Some(first) = usize::try_from(len).ok().and_then(|len| self.at(offset, len)) else {
            return false;
        };
        cached::has_all(&self.file, offset, len) && cached::populate(first, offset, len)
    }

    /// Takes bytes of the file out of the mapping, if they are mapped, so that the system may drop them.
    /// REQUIRES: nobody relies on these bytes having been entered.
    pub(crate) fn leave(&self, offset: u64, len: u64) {
        let Ok(len) = usize::try_from(len) else { return };
        let window = usize::try_from(offset / WINDOW_BYTES).ok().and_then(|n| self.windows.get(n)?.get());
        if window.is_some_and(|window| window.is_some())
            && let Some(first) = self.at(offset, len)
        {
            cached::leave(first, offset, len);
        }
    }

    #[cold]
    fn open<'a>(&self, slot: &'a OnceLock<Option<Window>>, offset: u64) -> Option<&'a Window> {
        slot.get_or_init(|| Window::new(&self.file, offset)).as_ref()
    }
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
impl Window {
    /// None if the system refuses: it may lack such mappings, or limit the address space of a process.
    fn new(file: &fs::File, offset: u64) -> Option<Window> {
        use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap};
        let len = usize::try_from(WINDOW_BYTES).ok()?;
        // SAFETY: a new mapping at an address of the system's choice touches no other memory.
        let mapping =
            unsafe { mmap(std::ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, file, offset) };
        let window = Window { first: NonNull::new(mapping.ok()?)?.cast() };
        // SAFETY: the range is the mapping's own, and the advice changes no contents. If it is refused, reads
        // are slower, no more.
        let _ = unsafe { madvise(window.first.as_ptr().cast(), len, Advice::Random) };
        Some(window)
    }
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
impl Window {
    /// Nothing is mapped: it is not known what other systems do behind a file's end.
    fn new(_: &fs::File, _: u64) -> Option<Window> {
        None
    }
}

/// What the system has of a file in memory.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub(super) mod cached {
    use rustix::mm::{Advice, madvise};
    use std::os::fd::AsRawFd;
    use std::ptr::NonNull;

    /// The number of the system call `cachestat` on most processors. Where it is another one, the system does
    /// not know this one, and nothing is entered.
    const CACHESTAT: std::ffi::c_long = 451;
    /// The least size of a page of memory. Where pages are larger, fewer are counted, and little is entered.
    const PAGE_BYTES: u64 = 4 << 10;

    #[repr(C)]
    struct Asked {
        offset: u64,
        len: u64,
    }

    /// Numbers of pages.
    #[repr(C)]
    #[derive(Default)]
    struct Found {
        cached: u64,
        dirty: u64,
        in_writeback: u64,
        evicted: u64,
        recently_evicted: u64,
    }

    /// None where the system does not say: older ones than Linux 6.5 do not.
    fn found(file: &std::fs::File, offset: u64, len: u64) -> Option<Found> {
        let (asked, mut found) = (Asked { offset, len }, Found::default());
        // SAFETY: both structures have the layout of the call, and are borrowed for its time.
        let done =
            unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const asked, &raw mut found, 0_u32) };
        (done == 0).then_some(found)
    }

    /// Whether the system has all pages of a range in memory. No where it does not say.
    pub(super) fn has_all(file: &std::fs::File, offset: u64, len: u64) -> bool {
        let pages = (offset + len).div_ceil(PAGE_BYTES) - offset / PAGE_BYTES;
        found(file, offset, len).is_some_and(|found| found.cached >= pages)
    }

    /// Whether the system has pages of a range in memory that are not on the disk. No where it does not say.
    pub(in crate::storage) fn has_dirty(file: &std::fs::File, offset: u64, len: u64) -> bool {
        found(file, offset, len).is_some_and(|found| found.dirty + found.in_writeback > 0)
    }

    /// Takes a range out of the mapping, if it begins and ends with pages. (Where pages of memory are larger,
    /// the system refuses.)
    pub(super) fn leave(first: NonNull<u8>, offset: u64, len: usize) {
        if offset.is_multiple_of(PAGE_BYTES) && (len as u64).is_multiple_of(PAGE_BYTES) {
            // SAFETY: the range is of a shared mapping of a file, which the caller borrows. That changes no
            // contents. If it is refused, the system keeps what it has.
            let _refused = unsafe { madvise(first.as_ptr().cast(), len, Advice::LinuxDontNeed) };
        }
    }

    /// Enters all pages of a range. Returns whether the system could.
    pub(super) fn populate(first: NonNull<u8>, offset: u64, len: u64) -> bool {
        let ahead = usize::try_from(offset % PAGE_BYTES).unwrap_or(0);
        let Ok(len) = usize::try_from(len) else { return false };
        let start = first.as_ptr().wrapping_sub(ahead).cast();
        // SAFETY: the range is of a mapping that the caller borrows, rounded down to a page of memory.
        // Entering pages changes no contents.
        unsafe { madvise(start, len + ahead, Advice::LinuxPopulateRead) }.is_ok()
    }
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
pub(super) mod cached {
    pub(super) fn has_all(_: &std::fs::File, _: u64, _: u64) -> bool {
        false
    }

    pub(in crate::storage) fn has_dirty(_: &std::fs::File, _: u64, _: u64) -> bool {
        false
    }

    pub(super) fn populate(_: std::ptr::NonNull<u8>, _: u64, _: u64) -> bool {
        false
    }

    pub(super) fn leave(_: std::ptr::NonNull<u8>, _: u64, _: usize) {}
}

impl Drop for Window {
    fn drop(&mut self) {
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        if let Ok(len) = usize::try_from(WINDOW_BYTES) {
            // SAFETY: the mapping is this window's own, and everything that points into it keeps the window
            // alive.
            let _ = unsafe { rustix::mm::munmap(self.first.as_ptr().cast(), len) };
        }
    }
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::AtomicU32;

    fn mapped() -> (Arc<fs::File>, FileMapping) {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("azekura-mapping-{}-{number}", std::process::id()));
        let file =
            fs::OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let file = Arc::new(file);
        (file.clone(), FileMapping::new(file))
    }

    #[test]
    fn a_mapping_shows_what_is_written_later_too() {
        let (file, mapping) = mapped();
        let at = mapping.at(4096, 5).unwrap();
        file.write_all_at(b"hello", 4096).unwrap();
        // SAFETY: the file has these bytes, and nobody changes them.
        assert_eq!(unsafe { std::slice::from_raw_parts(at.as_ptr(), 5) }, b"hello");
        assert_eq!(
            mapping.at(4098, 3).map(|p| p.as_ptr()),
            Some(at.as_ptr().wrapping_add(2)),
            "the same window"
        );
    }

    #[test]
    fn only_what_the_system_has_in_memory_is_entered() {
        let (file, mapping) = mapped();
        file.write_all_at(&[7; 3 << 20], 0).unwrap();
        if !mapping.enter(0, 3 << 20) {
            // The system does not say what it has in memory.
            return;
        }
        assert!(mapping.enter(1_234_567, 1_000_001), "any part of it");
        assert!(!mapping.enter((3 << 20) - 4096, 8192), "behind the file's end there is nothing");
        assert!(!mapping.enter(u64::MAX - 1, 1) && !mapping.enter(WINDOW_BYTES - 1, 2));
        file.set_len(2 << 20).unwrap();
        assert!(!mapping.enter(1 << 20, 2 << 20), "a file that was cut");
    }

    #[test]
    fn less_is_entered_at_a_time_where_the_file_is_written_to() {
        let (_, mapping) = mapped();
        let whole = 2 * ENTER_BYTES_MAX + 4096;
        assert_eq!(mapping.stretch_of(ENTER_BYTES_MAX + 7, whole), ENTER_BYTES_MAX..2 * ENTER_BYTES_MAX);
        assert_eq!(mapping.stretch_of(whole - 1, whole), 2 * ENTER_BYTES_MAX..whole);
        mapping.enter_less();
        let first = ENTER_BYTES_MAX..ENTER_BYTES_MAX + ENTER_BYTES;
        assert_eq!(mapping.stretch_of(ENTER_BYTES_MAX + 7, whole), first);
        assert_eq!(mapping.stretch_of(whole - 1, whole), 2 * ENTER_BYTES_MAX..whole);
    }

    #[test]
    fn what_does_not_stand_together_is_not_given() {
        let (_, mapping) = mapped();
        assert!(mapping.at(WINDOW_BYTES - 4096, 4096).is_some());
        assert!(mapping.at(WINDOW_BYTES - 4096, 4097).is_none());
        assert!(mapping.at(WINDOW_BYTES * WINDOWS as u64, 1).is_none());
        assert!(mapping.at(u64::MAX - 1, 1).is_none());
    }
}
