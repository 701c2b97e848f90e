//! What is printed, stored and drawn of the measurements.

pub mod columns;
mod format;
pub mod gates;
pub mod machine;
pub mod markdown;
pub mod page;
mod plot;
mod summary;
pub mod table;
