//! The foundation of all other rooms: errors, limits, byte codec, checksums, hashing, the heap.

pub(crate) mod checksum;
pub(crate) mod clock;
pub(crate) mod codec;
pub(crate) mod error;
pub(crate) mod fault;
#[cfg(target_arch = "x86_64")]
mod fold;
pub(crate) mod hash;
pub(crate) mod heap;
pub(crate) mod key;
pub(crate) mod life;
pub(crate) mod limits;
pub(crate) mod poison;
pub(crate) mod prefetch;
pub(crate) mod process;
pub(crate) mod sync;
