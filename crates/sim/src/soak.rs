//! The parts of `sim soak`: the load, the gauges, and the judgement of what they showed.

pub mod gauges;
pub mod load;
