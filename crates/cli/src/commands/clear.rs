//! `azekura clear`: removes all records of a table.

use crate::commands::drop::remove_records;
use crate::failure::Outcome;
use crate::store::{self, WholeTableArg};

/// Arguments of `clear`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It does not ask, and what was there is gone. The table is always named: none is cleared by accident.\n\n\
                  Example:\n  azekura clear fruit.azk prices"
)]
pub struct Args {
    #[command(flatten)]
    pub of: WholeTableArg,
}

/// Runs `clear`.
pub fn run(Args { of: args }: &Args) -> Outcome {
    remove_records(args, "cleared", |db| Ok(store::open_table(db, &args.table)?.clear()?))
}
