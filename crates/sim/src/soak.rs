//! The parts of `sim soak`: the load, and the gauges.

pub mod gauges;
pub mod load;
