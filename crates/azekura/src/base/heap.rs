//! Gives the heap's free memory back to the system.
//!
//! A load takes and frees pieces of all sizes. The allocator keeps the freed memory: some 300 MB after 10^8
//! records with a budget of 512 MiB. The pool of vectors (`memtable/pool.rs`) limits its growth, but only the
//! allocator can hand it back.

/// Gives back what the allocator holds and nobody uses. The call takes some milliseconds, and other threads
/// may wait for memory meanwhile. So it is made when a load has ended, and seldom while one goes on.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // SAFETY: the C library's own function, which any thread may call at any time. If the process has
        // another allocator, the call gives nothing back.
        let _given = unsafe { malloc_trim(0) };
    }
}

/// Memory of the process that no file backs, in bytes. None where the system does not say.
pub(crate) fn resident_bytes() -> Option<u64> {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    None
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_process_has_some_memory() {
        let taken = std::hint::black_box(vec![1u8; 64 << 20]);
        if let Some(bytes) = super::resident_bytes() {
            assert!(bytes >= 64 << 20, "{bytes}");
        }
        drop(taken);
    }
}
