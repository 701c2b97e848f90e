//! The write buffer: small commits in an ordered list, large ones as sorted chunks.

pub(crate) mod active;
pub(crate) mod chunk;
pub(crate) mod pool;
mod presence;
