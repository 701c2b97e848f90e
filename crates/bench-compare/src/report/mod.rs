//! How the measurements are printed, stored and drawn.

mod better;
pub mod columns;
pub mod documents;
mod format;
pub mod gates;
pub mod machine;
pub mod markdown;
pub mod page;
mod plot;
mod summary;
pub mod table;
