//! Files are short enough to be read at a sitting.

use super::source::Source;

/// So many lines a file may have outside its tests, comments included.
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
