//! The set that a command is about.

use std::path::PathBuf;

/// The set.
#[derive(Debug, clap::Args)]
pub struct SetArg {
    /// The folder of the set
    #[arg(value_name = "SET")]
    pub path: PathBuf,
}
