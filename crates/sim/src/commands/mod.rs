//! The commands, one file each. Each has a function `run` that takes the limits and gives a verdict.

pub mod backup;
pub mod canaries;
pub mod crash;
pub mod errors;
pub mod flips;
pub mod followers;
pub mod fuzz;
pub mod isolation;
pub mod kills;
pub mod metamorphic;
pub mod mirror;
pub mod salvage;
pub mod soak;
