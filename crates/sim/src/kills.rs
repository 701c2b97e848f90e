//! The parts of `sim kills`: the child that is killed, the oracle that survives it, the plan that both know,
//! and the comparison.

pub mod child;
pub mod oracle;
pub mod plan;
pub mod verify;
