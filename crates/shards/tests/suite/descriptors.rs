//! With few files that a process may have open: what goes through a whole set needs few, and a machine that
//! is short of them has no damaged shards.

use crate::common::{Place, some_records, write_version};
use azekura::Error;
use azekura_shards::{Spec, merge, verify};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// With this in the environment the test below is the child with few descriptors.
const CHILD: &str = "AZEKURA_SHARDS_FEW_FILES";
const SHARDS: u32 = 200;
const FILES_MAX: u32 = 64;

/// All files that this process may still open, but some.
fn taken(path: &Path, but: usize) -> Vec<File> {
    let mut files: Vec<File> = std::iter::from_fn(|| File::open(path).ok()).collect();
    assert!(files.len() < usize::try_from(FILES_MAX).unwrap());
    files.truncate(files.len() - but);
    files
}

fn child(root: &str) {
    let (root, none): (&Path, [PathBuf; 0]) = (Path::new(root), []);
    let report = verify(root, None, |_, _| {}).expect("a report");
    assert_eq!((report.problems, report.records), (Vec::<String>::new(), 2000));
    let report = merge(root, &none, None, |_, _| {}).expect("a merge");
    assert_eq!((report.version, report.records), (2, 2000));
    // Too few for one shard. Something goes wrong on the way, and never is it said to be damage.
    for but in 1..6 {
        let _taken = taken(root, but);
        match verify(root, None, |_, _| {}) {
            Err(error) => assert!(matches!(error, Error::Io { .. } | Error::Open { .. }), "{error}"),
            Ok(report) => assert_eq!(report.problems, Vec::<String>::new()),
        }
    }
    let _taken = taken(root, 1);
    verify(root, None, |_, _| {}).expect_err("a shard needs another file than the manifest");
}

#[cfg(unix)]
#[test]
fn a_whole_set_is_read_with_few_files_open() {
    if let Ok(root) = std::env::var(CHILD) {
        return child(&root);
    }
    let place = Place::new();
    write_version(&place.set(), &Spec::hash(SHARDS), &some_records(2000, 8));
    let ran = Command::new("sh")
        .args(["-c", &format!("ulimit -n {FILES_MAX}; exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", "descriptors::a_whole_set_is_read_with_few_files_open", "--nocapture"])
        .env(CHILD, place.set())
        .output()
        .expect("a child");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}
