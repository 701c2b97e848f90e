//! The command line of the Azekura storage engine. The binary `azekura` only calls [`main`].
//!
//! [`main`] parses the arguments, runs one command and turns its outcome into an exit status: 0 done, 1 not
//! found, 2 usage or I/O error, 3 corrupt, 130 interrupted. Everything that a command prints goes through
//! `output`, and every complaint through `failure`. So a closed pipe ends the program quietly, and an error
//! always reads `azekura: …`.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod arguments;
mod bench;
mod bytes;
mod cli;
mod commands;
mod failure;
mod foreign;
mod interrupt;
mod keys;
mod output;
mod output_file;
mod priority;
mod progress;
mod store;
mod style;
mod times;
mod units;

pub use commands::import::import_from;

use std::process::ExitCode;

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    let command = match cli::parse() {
        Ok(command) => command,
        Err(status) => return status,
    };
    match command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
