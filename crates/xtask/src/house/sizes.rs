//! Files are short enough to read at one sitting.

use super::source::Source;

/// The most lines of a file, without its tests and with its comments.
const LINES_MAX: usize = 500;

/// The files that are longer.
pub fn long(files: &[Source]) -> Vec<String> {
    let too_long = files.iter().filter(|file| file.lines.len() > LINES_MAX);
    too_long
        .map(|file| {
            format!("{} has {} lines, {LINES_MAX} are allowed", file.path.display(), file.lines.len())
        })
        .collect()
}
