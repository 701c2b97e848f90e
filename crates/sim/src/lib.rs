//! The machinery that tries to break each of the engine's promises, and a judge of the results.
//!
//! - [`disk`] is a simulated disk under the engine's storage trait. It can lose power, fail calls, be full,
//!   and lie.
//! - [`script`] is a random but reproducible workload, with the state after each commit.
//! - [`fed`] is a copy of tables that is made by the feed of changes.
//! - [`report`] is what all commands share: limits, progress, and the verdict.
//! - [`fuzz`] has the targets for hostile bytes.
//! - [`isolation`] makes histories of transactions and judges them.
//! - [`kills`] is the child that is killed, and the oracle that survives it.
//! - [`followers`] is the plan, the writer and the readers of a file that is followed.
//! - [`mounted`] is a small mounted file system.
//! - [`soak`] is a load, and the gauges beside it.
//! - [`commands`] has one file for each command of the binary.
//!
//! Everything random follows from one seed, which every command prints.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod commands;
pub mod disk;
pub mod fed;
pub mod followers;
pub mod fuzz;
pub mod isolation;
pub mod judge;
pub mod kills;
pub mod memory;
pub mod mounted;
pub mod report;
pub mod rng;
pub mod script;
pub mod soak;
pub mod watchdog;
