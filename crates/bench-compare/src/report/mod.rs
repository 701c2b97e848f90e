//! What is printed and stored of the measurements.

mod columns;
mod format;
pub mod gates;
pub mod json;
pub mod machine;
mod summary;
pub mod table;
