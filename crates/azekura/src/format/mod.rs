//! The bytes of the file: pure functions between bytes and structures. `FORMAT.md` describes them in prose.

pub(crate) mod block;
pub(crate) mod expiry;
pub(crate) mod feed;
pub(crate) mod few;
pub(crate) mod frame;
pub(crate) mod guide;
pub(crate) mod hidden;
pub(crate) mod manifest;
pub(crate) mod operand;
pub(crate) mod packed;
pub(crate) mod page;
pub(crate) mod point;
pub(crate) mod ranges;
pub(crate) mod search;
pub(crate) mod superblock;
mod tag;
pub(crate) mod unpacked;
