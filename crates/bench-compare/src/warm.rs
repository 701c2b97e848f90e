//! Memory that nobody has used for some seconds may belong to the host of a virtual machine. The host gives
//! it back at a fraction of a gigabyte a second. The first peer that is measured would pay for those that
//! follow.

use crate::failure::{Failure, Result};

/// The system's page, or a part of it.
const PAGE_BYTES: usize = 4096;

/// Touches this many bytes of memory and gives them back, so that the next measurement finds them at once.
pub fn touch(bytes: u64) -> Result<()> {
    let refused = || Failure::Usage(format!("there are no {bytes} bytes of memory to be touched (--warm)"));
    let bytes = usize::try_from(bytes).map_err(|_| refused())?;
    let mut memory: Vec<u8> = Vec::new();
    memory.try_reserve_exact(bytes).map_err(|_| refused())?;
    for page in memory.spare_capacity_mut().chunks_mut(PAGE_BYTES) {
        if let Some(first) = page.first_mut() {
            first.write(1);
        }
    }
    // Otherwise the compiler may find that nobody needs it.
    std::hint::black_box(memory.spare_capacity_mut());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_touched_or_refused() {
        touch(1 << 20).unwrap();
        assert!(touch(u64::MAX).is_err());
    }
}
