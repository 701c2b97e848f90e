//! Removing versions that are not wanted any more, and what crashes and lost attempts have left.

use crate::error::{io, not_there};
use crate::lock::{self, Held};
use crate::manifest::{Manifest, read_bounded};
use crate::names::{self, DRAFT};
use crate::version::versions;
use crate::{Error, Result};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// What pruning has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// The versions that stay.
    pub kept: Vec<u32>,
    /// Those of them that would have gone, but readers hold them, or may hold them.
    pub held: Vec<u32>,
    /// Those of the held ones of which nobody knows: the file system gives no lock on their manifests.
    pub unknown: Vec<u32>,
    /// The versions that were removed.
    pub removed: Vec<u32>,
    /// How many folders of no version were removed.
    pub unfinished: u64,
    /// The bytes of the files that were removed.
    pub bytes: u64,
}

/// Removes all versions but the `keep` newest ones (at least one), except those that readers of this machine
/// hold. It also removes what is of no version and was last changed `unfinished_after` ago: drafts of
/// programs that were killed, and folders that a crash has left without a manifest. It waits for commits that
/// are under way.
///
/// # Errors
/// `Open` if there is no set, `Io`. What was removed before is gone.
pub fn prune(root: impl AsRef<Path>, keep: usize, unfinished_after: Duration) -> Result<PruneReport> {
    let root = root.as_ref();
    if !names::listed(root)?.iter().any(|name| names::is_of_set(name)) {
        return Err(not_there(root, "there is no set of shards"));
    }
    let mut report = PruneReport::default();
    let _alone = lock::alone(root)?;
    let all = versions(root)?;
    let (old, new) = all.split_at(all.len().saturating_sub(keep.max(1)));
    for &version in old {
        match remove_version(root, version, &mut report)? {
            true => report.removed.push(version),
            false => report.held.push(version),
        }
    }
    report.kept = report.held.iter().chain(new).copied().collect();
    for &version in &report.kept.clone() {
        remove_others(root, version, &mut report)?;
    }
    remove_unfinished(root, &all, unfinished_after, &mut report)?;
    names::sync_folder(root)?;
    Ok(report)
}

/// Removes a version, unless somebody reads it. Its manifest goes first, so that it is never seen in part.
fn remove_version(root: &Path, version: u32, report: &mut PruneReport) -> Result<bool> {
    let path = root.join(names::manifest(version));
    let _alone = match lock::ask(&path) {
        Held::Alone(file) => file,
        Held::Gone => return Ok(true),
        Held::ByReaders => return Ok(false),
        Held::Unknown => {
            report.unknown.push(version);
            return Ok(false);
        }
    };
    fs::remove_file(&path).map_err(|error| io("removing a manifest", &path, &error))?;
    names::sync_folder(root)?;
    remove_counted(&root.join(names::folder(version)), report)?;
    Ok(true)
}

/// Removes what is in a version's folder and not in its manifest: an attempt that came too late.
fn remove_others(root: &Path, version: u32, report: &mut PruneReport) -> Result<()> {
    let manifest = match read_bounded(&root.join(names::manifest(version))) {
        Ok((bytes, _)) => Manifest::decode(&bytes, version),
        Err(Error::Open { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    // Of a damaged one nothing is removed.
    let Ok(manifest) = manifest else { return Ok(()) };
    let folder = root.join(names::folder(version));
    // A link may lead to a folder of others.
    if !fs::symlink_metadata(&folder).is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    for name in names::listed(&folder)? {
        let path = folder.join(&name);
        let found = fs::symlink_metadata(&path);
        let is_file = found.as_ref().is_ok_and(|found| found.is_file());
        if is_file && name != names::SPEC && !manifest.files.iter().any(|file| file.file == name) {
            report.bytes += found.map_or(0, |found| found.len());
            fs::remove_file(&path).map_err(|error| io("removing a file of no version", &path, &error))?;
        }
    }
    Ok(())
}

fn remove_unfinished(root: &Path, all: &[u32], after: Duration, report: &mut PruneReport) -> Result<()> {
    for name in names::listed(root)? {
        let of_version = names::version_of_folder(&name);
        let is_unfinished = match of_version {
            Some(version) => !all.contains(&version) && !root.join(names::manifest(version)).exists(),
            None => name.starts_with(DRAFT),
        };
        let path = root.join(&name);
        if !is_unfinished || !is_older(&path, after) {
            continue;
        }
        if path.is_dir() {
            remove_counted(&path, report)?;
        } else {
            report.bytes += fs::metadata(&path).map_or(0, |found| found.len());
            fs::remove_file(&path).map_err(|error| io("removing what is unfinished", &path, &error))?;
        }
        report.unfinished += 1;
    }
    Ok(())
}

/// Whether a file or folder, and all files in it, were last changed so long ago.
fn is_older(path: &Path, after: Duration) -> bool {
    let age = |path: &Path| {
        let changed = fs::metadata(path).and_then(|found| found.modified()).ok()?;
        // A time that is to come counts as now.
        Some(changed.elapsed().unwrap_or_default())
    };
    let old = |path: &Path| age(path).is_none_or(|age| age >= after);
    let inside = names::listed(path).unwrap_or_default();
    old(path) && inside.iter().all(|name| old(&path.join(name)))
}

fn remove_counted(folder: &Path, report: &mut PruneReport) -> Result<()> {
    for name in names::listed(folder)? {
        report.bytes += fs::metadata(folder.join(name)).map_or(0, |found| found.len());
    }
    names::remove_folder(&folder.to_path_buf())
}
