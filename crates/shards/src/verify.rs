//! Whether a version is what was written: every byte of it.

use crate::Result;
use crate::error::of_shard;
use crate::manifest::ShardFile;
use crate::order::{Gate, shown};
use crate::version::{ReadOptions, Version};
use crate::writer::digest_of;
use azekura::{Db, Error, Options, TableKind};
use std::path::Path;

/// What verifying a version has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// The version.
    pub version: u32,
    /// Its shards with records.
    pub shards: u64,
    /// The records that were read.
    pub records: u64,
    /// The bytes of the files.
    pub bytes: u64,
    /// What is wrong, a line each, which names the shard's file. None if all is well.
    pub problems: Vec<String>,
}

/// Reads a version: the digest of each file, all that [`Db::check`] looks at, and whether each key is in its
/// shard. One shard is open at a time. `progress` gets how many shards of how many are done.
///
/// # Errors
/// As [`Version::open`]; `Io` if this process can open no more files, or the set is out of reach. What is
/// wrong with shards is in the report.
pub fn verify(
    root: impl AsRef<Path>,
    version: Option<u32>,
    mut progress: impl FnMut(u64, u64),
) -> Result<VerifyReport> {
    let version = Version::open(root, ReadOptions { version, ..ReadOptions::default() })?;
    let shards = u64::try_from(version.manifest().files.len()).unwrap_or(u64::MAX);
    let mut report = VerifyReport { version: version.number(), shards, ..VerifyReport::default() };
    for (done, (place, file)) in (1..).zip(version.manifest().files.iter().enumerate()) {
        let mut problems = Vec::new();
        if let Err(error) = verify_shard(&version, place, file, &mut report, &mut problems) {
            version.expect_reachable()?;
            problems.push(error.to_string());
        }
        report.problems.extend(problems.into_iter().map(|problem| format!("{}: {problem}", file.file)));
        progress(done, shards);
    }
    Ok(report)
}

fn verify_shard(
    version: &Version,
    place: usize,
    file: &ShardFile,
    report: &mut VerifyReport,
    problems: &mut Vec<String>,
) -> Result<()> {
    let path = version.path_of(place);
    let (bytes, digest) = digest_of(&path)?;
    report.bytes += bytes;
    if digest != file.digest || bytes != file.bytes {
        problems.push("the file is not what was written: its length or its digest is another".to_owned());
    }
    let db = Options::new().read_only(true).open(&path).map_err(|error| of_shard(error, &path))?;
    let checked = check(&db, version, place, file, report, problems);
    // Nothing was written, so closing can lose nothing.
    let _closed = db.close();
    checked.map_err(|error| of_shard(error, &path))
}

fn check(
    db: &Db,
    version: &Version,
    place: usize,
    file: &ShardFile,
    report: &mut VerifyReport,
    problems: &mut Vec<String>,
) -> Result<()> {
    problems.extend(db.check(|_| {})?.problems);
    let spec = &version.manifest().spec;
    let mut cursor = version.table_of(db, place)?.cursor()?;
    let mut gate = Gate::new(spec.kind, spec.hash_seed, (file.shard, spec.shards));
    let mut records = 0_u64;
    let mut first = None;
    while let Some((key, value)) = cursor.next()? {
        value.bytes()?;
        if let Err(Error::Invalid { detail }) = gate.pass(key) {
            problems.push(detail);
            break;
        }
        first.get_or_insert_with(|| key.to_vec());
        records += 1;
    }
    report.records += records;
    if records != file.records {
        problems.push(format!("it has {records} records, and the manifest says {}", file.records));
    }
    if let (TableKind::Ordered, Some([least, most])) = (spec.kind, &file.keys)
        && (first.as_ref() != Some(least) || gate.last() != most)
    {
        problems.push(format!("its keys are not those from {} to {}", shown(least), shown(most)));
    }
    Ok(())
}
