//! The parts of `sim kills`: the child that is killed, the reader of its feed that
//! is killed too, the oracle that survives it, the plan that both know,
//! and the comparison.

pub mod child;
pub mod copier;
pub mod oracle;
pub mod plan;
pub mod verify;
