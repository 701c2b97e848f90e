//! The heap's free memory, given back to the system.
//!
//! What a load takes and frees in pieces of all sizes the allocator keeps: some 300 MB after 10^8
//! records under a budget of 512 MiB, which the page cache could not have. Vectors of a pool
//! (`memtable/pool.rs`) keep it from growing further; only the allocator itself can hand it back.

/// Gives back what the allocator holds and nobody uses. It takes some milliseconds, in which other
/// threads may have to wait for memory; so it is for the moment when a load has ended, and for now and then
/// while one goes on.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // SAFETY: the C library's own function, which may be called at any time from any thread. If
        // the process has another allocator, there is nothing to give back here.
        let _given = unsafe { malloc_trim(0) };
    }
}

/// Memory that the process has of its own, in bytes, where the system tells.
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
