//! The parts of `sim followers`: what is in the database after each commit, the process that writes, and the
//! processes that follow.

pub mod plan;
pub mod reader;
pub mod writer;
