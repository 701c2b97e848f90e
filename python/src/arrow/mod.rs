//! Records in columns, to and from other libraries without a copy on their side: Arrow's C data interface, in
//! Python's capsules (`__arrow_c_stream__`, `__arrow_c_array__`). No such library is needed here.
//!
//! - `abi`: the interface's structures.
//! - `layout`: the types of columns that can be read.
//! - `read`: batches of others, as encoded keys and values.
//! - `write`: records of a table as batches.
//! - `batches`: the class `RecordBatches`, `to_arrow` and `from_arrow`.

pub mod abi;
mod batches;
pub mod layout;
pub mod read;
pub mod write;

pub use batches::RecordBatches;
pub use read::{ArrowColumn, Names, Pairs};
