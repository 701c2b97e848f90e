//! The parts of `sim soak`: the load, that of a cache, and the gauges.

pub mod expiring;
pub mod gauges;
pub mod load;
