//! The process in which something was made. A fork copies a handle with all that it knows. Both processes
//! would then write to the same places of one file, so the child is refused what its parent made.
//!
//! On Linux one page of memory tells the processes apart. The kernel fills it with zeros in a child
//! (`MADV_WIPEONFORK`), and the child's first `current` draws another number for it. So a check costs a load
//! and no system call, a child can open databases of its own, and a child of that child is told apart too.
//! Where no page can be marked, each check asks for the process id.
//!
//! No lock is taken here: a thread of the parent might have held it during the fork.

use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The process that made something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process(u64);

/// The page with this process's number, once one was asked for. It holds 0 in a child that has drawn none
/// yet.
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());
/// Stands for the page where none can be marked. It stays 0, which is no process's number.
static UNMARKED: AtomicU64 = AtomicU64::new(0);
/// The next number. In a child it is above all numbers that the parent had drawn.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// Marks a process id that stands in for a number.
const BY_ID: u64 = 1 << 63;

impl Process {
    /// The current process.
    pub(crate) fn current() -> Process {
        let page = page();
        if std::ptr::eq(page, &UNMARKED) {
            return Process::by_id();
        }
        let found = page.load(Ordering::Relaxed);
        if found != 0 {
            return Process(found);
        }
        let drawn = NEXT.fetch_add(1, Ordering::Relaxed);
        match page.compare_exchange(0, drawn, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Process(drawn),
            Err(found) => Process(found),
        }
    }

    fn by_id() -> Process {
        Process(BY_ID | u64::from(std::process::id()))
    }

    /// Whether it is the current process.
    #[inline(always)]
    pub(crate) fn is_current(self) -> bool {
        // SAFETY: a `Process` exists, so `current` has set the pointer, to a page that is never unmapped.
        let number = unsafe { &*PAGE.load(Ordering::Relaxed) }.load(Ordering::Relaxed);
        number == self.0 || self.is_current_by_id()
    }

    #[cold]
    fn is_current_by_id(self) -> bool {
        self.0 & BY_ID != 0 && self == Process::by_id()
    }
}

fn page() -> &'static AtomicU64 {
    let mut page = PAGE.load(Ordering::Acquire);
    if page.is_null() {
        let fresh = mark::page();
        let wanted = fresh.map_or((&raw const UNMARKED).cast_mut(), NonNull::as_ptr);
        page = match PAGE.compare_exchange(null_mut(), wanted, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => wanted,
            Err(faster) => {
                fresh.into_iter().for_each(mark::give_back);
                faster
            }
        };
    }
    // SAFETY: it is the static, or a mapping that is never given back once `PAGE` names it. All writes to
    // either are atomic, and the kernel's zeros are a valid value.
    unsafe { &*page }
}

#[cfg(target_os = "linux")]
mod mark {
    use super::{AtomicU64, NonNull};
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    /// The kernel rounds this up to whole pages.
    const BYTES: usize = 4096;

    /// A page that the kernel fills with zeros in a child. None if the kernel (before 4.14) cannot do that.
    pub(super) fn page() -> Option<NonNull<AtomicU64>> {
        // SAFETY: a new private mapping at an address of the kernel's choice touches no other memory.
        let mapping = unsafe {
            mmap_anonymous(std::ptr::null_mut(), BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        };
        let page = NonNull::new(mapping.ok()?.cast::<AtomicU64>())?;
        // SAFETY: the range is the mapping, and the advice changes no contents here.
        match unsafe { madvise(page.as_ptr().cast(), BYTES, Advice::LinuxWipeOnFork) } {
            Ok(()) => Some(page),
            Err(_unknown) => {
                give_back(page);
                None
            }
        }
    }

    /// Unmaps a page. REQUIRES: nobody else knows of it.
    pub(super) fn give_back(page: NonNull<AtomicU64>) {
        // SAFETY: it is the whole mapping that `page` has made, and the caller says that nobody uses it. The
        // call cannot fail for such a range.
        let _unmapped = unsafe { munmap(page.as_ptr().cast(), BYTES) };
    }
}

#[cfg(not(target_os = "linux"))]
mod mark {
    use super::{AtomicU64, NonNull};

    pub(super) fn page() -> Option<NonNull<AtomicU64>> {
        None
    }

    pub(super) fn give_back(_page: NonNull<AtomicU64>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_itself_and_no_other() {
        let here = Process::current();
        assert!(here.is_current() && here == Process::current());
        assert!(!Process(here.0 ^ 1).is_current());
        assert!(Process::by_id().is_current());
        assert!(!Process(Process::by_id().0 ^ 1).is_current());
    }
}
