//! The names of a set's files, and what makes them durable.

use crate::error::{invalid, io};
use azekura::Result;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Names that begin so are of versions that are being written.
pub(crate) const DRAFT: &str = ".new-";
/// The description of a version that is being written.
pub(crate) const SPEC: &str = "set.json";
/// The file that is locked by whoever publishes or removes anything.
pub(crate) const LOCK: &str = "set.lock";
/// The longest name of an attempt.
const ATTEMPT_BYTES_MAX: usize = 64;
/// A version's number has so many digits at least.
const DIGITS: usize = 4;

/// The folder of a version.
pub(crate) fn folder(version: u32) -> String {
    format!("v{version:0DIGITS$}")
}

/// The manifest of a version.
pub(crate) fn manifest(version: u32) -> String {
    format!("manifest-{version:0DIGITS$}.json")
}

/// The version in the name of a manifest.
pub(crate) fn version_of_manifest(name: &str) -> Option<u32> {
    let version = name.strip_prefix("manifest-")?.strip_suffix(".json")?.parse().ok()?;
    (manifest(version) == name).then_some(version)
}

/// The version in the name of a folder.
pub(crate) fn version_of_folder(name: &str) -> Option<u32> {
    let version = name.strip_prefix('v')?.parse().ok()?;
    (folder(version) == name).then_some(version)
}

/// Whether a name is one of those in the folder of a set.
pub(crate) fn is_of_set(name: &str) -> bool {
    name == LOCK
        || name.starts_with(DRAFT)
        || version_of_manifest(name).is_some()
        || version_of_folder(name).is_some()
}

/// Whether the name of an attempt can be a part of a file's name.
pub(crate) fn check_attempt(attempt: &str) -> Result<()> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=ATTEMPT_BYTES_MAX).contains(&attempt.len()) && attempt.bytes().all(fits) {
        return Ok(());
    }
    Err(invalid(format!(
        "an attempt is named by 1 to {ATTEMPT_BYTES_MAX} letters, digits, _ and -, not {attempt:?}"
    )))
}

/// The file of a shard.
pub(crate) fn shard(shard: u32, attempt: &str) -> String {
    format!("shard-{shard:05}-{attempt}.azk")
}

/// Whether a name is that of a file of this shard. Then it leads to no other folder.
pub(crate) fn is_of_shard(name: &str, number: u32) -> bool {
    let attempt =
        name.strip_prefix(&format!("shard-{number:05}-")).and_then(|rest| rest.strip_suffix(".azk"));
    attempt.is_some_and(|attempt| check_attempt(attempt).is_ok())
}

/// The names in a folder; none if there is no such folder. Names that are no text are passed over: no file of
/// a set has one.
pub(crate) fn listed(path: &Path) -> Result<Vec<String>> {
    let failed = |error: std::io::Error| io("listing a set of shards", path, &error);
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.map_err(failed)?.file_name().into_string().ok());
    }
    Ok(names)
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(path: &Path) -> Result<()> {
    let synced = File::open(path).and_then(|folder| folder.sync_all());
    synced.map_err(|error| io("making names durable", path, &error))
}

/// Writes a file that has its name only when it is whole and durable.
pub(crate) fn write_whole(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = folder.join(name);
    let fresh = folder.join(format!("{DRAFT}{name}-{}", random_name()));
    let written = (|| {
        let mut file = File::create_new(&fresh)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&fresh, &path)
    })();
    if let Err(error) = written {
        // The first error is the one to report.
        let _left_behind = fs::remove_file(&fresh);
        return Err(io("writing the description of a set of shards", &path, &error));
    }
    sync_folder(folder)
}

/// A name that nobody else has, as far as chance goes.
pub(crate) fn random_name() -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    // The standard library draws its keys from the system's random numbers.
    let drawn = [RandomState::new(), RandomState::new()].map(|state| state.build_hasher().finish());
    format!("{:08x}{:016x}", std::process::id(), drawn[0] ^ drawn[1].rotate_left(32))
}

/// Removes a folder with all that is in it. It may be gone already.
pub(crate) fn remove_folder(path: &PathBuf) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(io("removing a folder of a set of shards", path, &error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for version in [0, 1, 42, 9999, 10_000, u32::MAX] {
            assert_eq!(version_of_manifest(&manifest(version)), Some(version));
            assert_eq!(version_of_folder(&folder(version)), Some(version));
        }
        for wrong in ["manifest-1.json", "manifest-00001.json", "manifest-+001.json", "manifest-0001.json~"] {
            assert_eq!(version_of_manifest(wrong), None, "{wrong}");
        }
        assert_eq!(version_of_folder("v00001"), None);
    }

    #[test]
    fn names_of_shards_lead_nowhere_else() {
        assert!(is_of_shard(&shard(42, "a-1_Z"), 42));
        for wrong in
            ["shard-00042-/../x.azk", "shard-00042-.azk", "../shard-00042-a.azk", "shard-00043-a.azk", ""]
        {
            assert!(!is_of_shard(wrong, 42), "{wrong}");
        }
        assert!(check_attempt(&"a".repeat(65)).is_err());
    }

    #[test]
    fn random_names_differ() {
        assert_ne!(random_name(), random_name());
    }
}
