//! A damaged shard, and a damaged manifest: named by `verify`, an error to readers, never a wrong value.

use crate::common::{Place, Records, some_records, write_version};
use azekura::Error;
use azekura_shards::{ReadOptions, ShardedReader, Spec, Version, verify};
use std::fs;

fn set(place: &Place) -> Records {
    let records = some_records(20_000, 3);
    write_version(&place.set(), &Spec::hash(3), &records);
    records
}

#[test]
fn a_damaged_shard_is_named_and_never_gives_wrong_values() {
    let place = Place::new();
    let records = set(&place);
    let path = place.set().join("v0001/shard-00001-a.azk");
    let whole = fs::read(&path).expect("a shard");
    let (mut errors, mut quiet) = (0, 0);
    for step in 0..40 {
        let mut bytes = whole.clone();
        bytes[step * whole.len() / 40 + step] ^= 1 << (step % 8);
        fs::write(&path, &bytes).expect("a file");
        let report = verify(place.set(), None, |_, _| {}).expect("a report");
        assert!(report.problems.iter().all(|problem| problem.starts_with("shard-00001-a.azk: ")));
        assert!(report.problems[0].contains("digest"), "{:?}", report.problems);
        let reader = ShardedReader::open(place.set()).expect("the manifest is whole");
        let mut any = false;
        for (key, value) in &records {
            match reader.get(key) {
                Ok(found) => assert_eq!(found.as_ref(), Some(value)),
                Err(error) => {
                    assert!(error.to_string().contains("shard-00001-a.azk"), "{error}");
                    any = true;
                }
            }
        }
        errors += usize::from(any);
        quiet += usize::from(!any);
    }
    // A flip of a byte that no get needs is seen by `verify` alone.
    assert!(errors >= 20, "{errors} with errors, {quiet} without");
    fs::write(&path, &whole).expect("a file");
    assert!(verify(place.set(), None, |_, _| {}).expect("a report").problems.is_empty());
}

#[test]
fn a_shard_that_was_cut_or_is_gone_or_is_another_is_an_error() {
    let place = Place::new();
    let records = set(&place);
    let path = place.set().join("v0001/shard-00001-a.azk");
    let whole = fs::read(&path).expect("a shard");
    let spec = Spec::hash(3);
    let key = records.keys().find(|key| spec.shard_of(key) == Some(1)).expect("a key of the shard");
    let fails = |why: &str| {
        let reader = ShardedReader::open(place.set()).expect("the manifest is whole");
        let error = reader.get(key).expect_err("it is damaged").to_string();
        assert!(error.contains("shard-00001-a.azk") && error.contains(why), "{error}");
        let report = verify(place.set(), None, |_, _| {}).expect("a report");
        assert!(!report.problems.is_empty());
        assert!(report.problems.iter().all(|line| line.starts_with("shard-00001-a.azk: ")), "{report:?}");
    };
    fs::write(&path, &whole[..whole.len() / 2]).expect("a file");
    fails("the manifest says");
    fs::remove_file(&path).expect("it was there");
    fails("No such file");
    let other = fs::read(place.set().join("v0001/shard-00002-a.azk")).expect("a shard");
    let mut padded = other.clone();
    padded.resize(whole.len().max(other.len()), 0);
    fs::write(&path, &padded).expect("a file");
    let report = verify(place.set(), None, |_, _| {}).expect("a report");
    assert!(report.problems.iter().any(|line| line.contains("is of shard 2, not of shard 1")), "{report:?}");
}

#[test]
fn a_damaged_manifest_is_an_error() {
    let place = Place::new();
    set(&place);
    let path = place.set().join("manifest-0001.json");
    let whole = fs::read(&path).expect("a manifest");
    for at in [0, 20, whole.len() / 2, whole.len() - 2] {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        fs::write(&path, &bytes).expect("a file");
        let error = Version::open(place.set(), ReadOptions::default()).expect_err("it is damaged");
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        assert!(error.to_string().contains("manifest-0001.json"), "{error}");
    }
    fs::write(&path, b"").expect("a file");
    assert!(Version::open(place.set(), ReadOptions::default()).is_err());
    let file = fs::File::create(&path).expect("a file");
    file.set_len(1 << 40).expect("a long file");
    let error = Version::open(place.set(), ReadOptions::default()).expect_err("it is too long");
    assert!(error.to_string().contains("more than"), "{error}");
}
