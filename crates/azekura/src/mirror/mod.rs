//! Mirrors: a file that is, at every moment, another database after one of its commits.
//!
//! A mirror has what its source has, at the same places. `Mirror` follows the source, as readers in other
//! processes do, while somebody writes it. It ships two things:
//!
//! - **A checkpoint** (`checkpoint`): the extents that the mirror lacks, one sync, the superblock.
//! - **The log** (`frames`): the frames that are durable in the source, in their order. They are sealed anew,
//!   since what they say of other frames' durability must be true of the mirror. So a mirror that is cut off
//!   is recovered like any database.
//!
//! Why no write tears what stands in the mirror: whatever is written, `Dest::put` and `Dest::put_frame` first
//! look whether a state of the mirror needs that place, by comparing extents (`spans`). They refuse it if so.
//! These states are its newest one, and those that its own readers have pinned. A pin in the source keeps the
//! extents of each of them, so the source puts nothing else there, and nothing has to be refused. Where there
//! was no such pin (the mirror did not run, or the source's limits were passed) the mirror is built anew, in
//! a file beside it that gets its name when it is whole (`build`).
//!
//! What is shipped is durable in the source: checkpoints whose second superblock was written too, and frames
//! of which a later one says so. So a mirror never has a commit that its source may lose.
//!
//! A mirror's superblock says what it is, and nobody opens the file for writing until `promote` has given it
//! a lineage of its own.

mod acknowledge;
mod build;
mod chain;
mod checkpoint;
mod copied;
mod copy;
mod dest;
mod frames;
mod going;
mod load;
mod log;
mod moved;
mod named;
mod names;
mod pipe;
mod places;
mod promote;
mod source;
mod spans;
mod status;
#[cfg(all(test, not(loom)))]
mod tests;

pub use going::Mirror;
pub use pipe::{MirrorPipe, MirrorReport, stream_mirror, stream_mirror_on};
pub use promote::{promote, promote_on};
pub use status::MirrorStatus;
