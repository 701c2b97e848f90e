//! Where the bench puts its files. They may take gigabytes, so they are removed afterwards, also after a
//! failure or an interrupt.

use std::path::{Path, PathBuf};

use super::args::Args;
use crate::failure::{Failure, Outcome};
use crate::interrupt::Scratch;

/// The database file of a bench. It is removed afterwards, unless it is to be kept.
pub struct BenchPlace {
    path: PathBuf,
    scratch: Option<Scratch>,
}

impl BenchPlace {
    /// The given file, which must not exist, or a file in the temporary directory.
    pub fn new(args: &Args) -> Outcome<BenchPlace> {
        let path = args.path.clone().unwrap_or_else(|| {
            std::env::temp_dir().join(format!("azekura-bench-{}.azk", std::process::id()))
        });
        if path.exists() {
            let text = format!("{} exists already: bench makes a new file", path.display());
            return Err(Failure::Usage(text));
        }
        let scratch = (!args.keep).then(|| Scratch::new(&path));
        Ok(BenchPlace { path, scratch })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file stays afterwards.
    pub fn is_kept(&self) -> bool {
        self.scratch.is_none()
    }

    /// Removes the file of the previous row.
    pub fn clear(&self) -> Outcome {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Failure::io("removing", &self.path, &error))
            }
            _ => Ok(()),
        }
    }

    /// The file's size in bytes.
    pub fn size(&self) -> Outcome<u64> {
        let metadata = std::fs::metadata(&self.path);
        Ok(metadata.map_err(|error| Failure::io("reading", &self.path, &error))?.len())
    }

    /// A file beside the database: its name with another extension, and with `mark` if there are several.
    pub fn beside(&self, mark: Option<u64>, extension: &str) -> PathBuf {
        match mark {
            None => self.path.with_extension(extension),
            Some(mark) => self.path.with_extension(format!("{mark}.{extension}")),
        }
    }
}
