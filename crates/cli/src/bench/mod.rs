//! `azekura bench`: the engine measured on a real file.
//!
//! | `--order`    | what it does                                                             |
//! |--------------|--------------------------------------------------------------------------|
//! | `sequential` | ascending keys in N transactions; close, reopen, get and verify each     |
//! | `random`     | a lookup table loaded in random order; then gets, present and absent     |
//! | `mixed`      | one thread updates while another gets                                    |
//! | `durable`    | single-record durable transactions, beside the disk's own sync rate      |
//!
//! [`data`] makes keys and values so cheaply that the engine is what is measured. [`verify`] compares every
//! byte that is read. [`process`] counts what the process writes. [`report`] and [`table`] print the results.

mod args;
mod data;
mod durable;
mod mix;
mod mixed;
mod place;
mod process;
mod random;
mod report;
mod rows;
mod sequential;
mod settle;
mod table;
mod text_keys;
mod verify;

pub use args::Args;

use args::Order;

use crate::failure::Outcome;

/// Runs `bench`.
pub fn run(mut args: Args) -> Outcome {
    args.validate()?;
    let outcome = match args.order {
        Order::Sequential => sequential::run(&args),
        Order::Random => random::run(&args),
        Order::Mixed => mixed::run(&args),
        Order::Durable => durable::run(&args),
    };
    outcome.map_err(|failure| failure.at(&args.path.unwrap_or_else(std::env::temp_dir)))
}
