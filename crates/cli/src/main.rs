//! `azekura`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    azekura_cli::main()
}
