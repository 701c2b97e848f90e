//! The versions of crates.

/// The version of a crate that this program is built with.
pub(super) fn locked_version(name: &str) -> String {
    const LOCK: &str = include_str!("../../../../../Cargo.lock");
    let named = format!("name = \"{name}\"");
    let version = LOCK.lines().skip_while(|line| **line != *named).nth(1);
    version.map_or("", |line| line.trim_start_matches("version = ").trim_matches('"')).to_owned()
}
