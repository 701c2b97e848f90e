//! The parts of `sim isolation`: the history of a run, the workload that makes one on the real engine, and
//! the checker that judges it without knowing the engine.

pub mod checker;
mod graph;
pub mod history;
pub mod workload;
