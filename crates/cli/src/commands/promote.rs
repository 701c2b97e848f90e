//! `azekura promote`: makes a mirror a database of its own.

use crate::failure::Outcome;
use crate::output;
use crate::store::{self, FileArg};

/// Arguments of `promote`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It has what it had, can be written from then on, and never again mirrors what it has mirrored.\n\n\
                  Example:\n  azekura promote /backup/fruit.azk"
)]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
}

/// Runs `promote`.
pub fn run(args: &Args) -> Outcome {
    store::must_exist(&args.file.path)?;
    azekura::promote(&args.file.path)?;
    let path = crate::bytes::harmless(&args.file.path.display().to_string());
    output::print_line(&format!("{path} is a database of its own"))
}
