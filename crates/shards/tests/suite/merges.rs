//! Sets merged, and divided anew.

use crate::common::{Place, names, random, some_records, write_all, write_version};
use azekura::{Error, TableKind};
use azekura_shards::{Column, ColumnType, Draft, RowForm, ShardedReader, Spec, merge, prune, verify};
use std::path::PathBuf;
use std::time::Duration;

#[test]
fn the_last_set_wins() {
    for (seed, kind, shards) in [(1, TableKind::Hash, 5), (2, TableKind::Ordered, 4), (3, TableKind::Hash, 1)]
    {
        println!("seed {seed}");
        let place = Place::new();
        let spec = Spec { kind, hash_seed: seed, ..Spec::hash(3) };
        let mut all = some_records(3000, seed);
        write_version(&place.set(), &spec, &all);
        let mut random = random(seed);
        let mut replaced = 0;
        let others: Vec<PathBuf> = (0..2_u64)
            .map(|number| {
                let path = place.path(&format!("other-{number}.azs"));
                let mut some = some_records(500, seed + 10 + number);
                let taken: Vec<_> = all.keys().filter(|_| random(5) == 0).cloned().collect();
                some.extend(taken.into_iter().map(|key| (key, format!("new {number}").into_bytes())));
                replaced += some.keys().filter(|key| all.contains_key(*key)).count();
                write_version(&path, &Spec { shards: 2, ..spec.clone() }, &some);
                all.extend(some);
                path
            })
            .collect();
        let mut told = (0, 0);
        let report =
            merge(place.set(), &others, Some(shards), |done, total| told = (done, total)).expect("a merge");
        let count = u64::try_from(all.len()).unwrap();
        assert_eq!((report.version, report.records), (2, count));
        assert_eq!(report.replaced, u64::try_from(replaced).unwrap());
        assert_eq!(told, (count + report.replaced, count + report.replaced));
        let reader = ShardedReader::open(place.set()).expect("a reader");
        assert_eq!(reader.version().manifest().spec.shards, shards);
        let keys: Vec<_> = all.keys().collect();
        let found = reader.get_many(&keys).expect("values");
        assert!(found.iter().zip(all.values()).all(|(found, due)| found.as_ref() == Some(due)));
        assert!(verify(place.set(), None, |_, _| {}).expect("a report").problems.is_empty());
    }
}

#[test]
fn a_set_is_divided_anew() {
    let place = Place::new();
    let records = some_records(2000, 4);
    write_version(&place.set(), &Spec::hash(2), &records);
    let none: [PathBuf; 0] = [];
    assert_eq!(merge(place.set(), &none, Some(16), |_, _| {}).expect("a version").version, 2);
    let version = ShardedReader::open(place.set()).expect("a reader").version();
    assert_eq!((version.manifest().files.len(), version.manifest().records), (16, 2000));
    assert!(verify(place.set(), None, |_, _| {}).expect("a report").problems.is_empty());
}

#[test]
fn sets_that_differ_are_refused_and_leave_nothing() {
    let place = Place::new();
    let none: [PathBuf; 0] = [];
    assert!(merge(place.set(), &none, None, |_, _| {}).is_err());
    let records = some_records(100, 1);
    write_version(&place.set(), &Spec::hash(2), &records);
    let other = place.path("other.azs");
    for spec in [Spec::ordered(2), Spec { hash_seed: 1, ..Spec::hash(2) }, {
        let mut spec = Spec::hash(2);
        spec.value[0].name = "another".into();
        spec
    }] {
        write_version(&other, &spec, &records);
        let error = merge(place.set(), std::slice::from_ref(&other), None, |_, _| {}).expect_err("refused");
        assert!(matches!(error, azekura::Error::Invalid { .. }), "{error}");
    }
    // A damaged source leaves no version, and no draft.
    write_version(&other, &Spec::hash(2), &records);
    let damaged = other.join("v0004/shard-00001-a.azk");
    std::fs::remove_file(damaged).expect("it was there");
    assert!(merge(place.set(), &[other], None, |_, _| {}).is_err());
    assert_eq!(names(&place.set()), ["manifest-0001.json", "v0001"]);
}

#[test]
fn a_merge_does_not_hide_what_was_committed_meanwhile() {
    let place = Place::new();
    let records = some_records(2000, 6);
    write_version(&place.set(), &Spec::hash(2), &records);
    let other = place.path("other.azs");
    write_version(&other, &Spec::hash(2), &records);
    let mut between = Some(());
    let merged = merge(place.set(), &[other], None, |_, _| {
        if between.take().is_some() {
            assert_eq!(write_version(&place.set(), &Spec::hash(2), &some_records(9, 7)), 2);
        }
    });
    let error = merged.expect_err("the base is not the newest any more");
    assert!(error.to_string().contains("version 2 was committed meanwhile"), "{error}");
    assert_eq!(names(&place.set()), ["manifest-0001.json", "manifest-0002.json", "v0001", "v0002"]);
}

#[cfg(unix)]
#[test]
fn a_link_to_a_folder_of_others_is_left_alone() {
    let place = Place::new();
    write_version(&place.set(), &Spec::hash(1), &some_records(10, 8));
    let (folder, others) = (place.set().join("v0001"), place.path("others"));
    std::fs::rename(&folder, &others).expect("it moves");
    std::fs::write(others.join("letter"), "not a shard").expect("a file");
    std::os::unix::fs::symlink(&others, &folder).expect("a link");
    prune(place.set(), 1, Duration::ZERO).expect("a report");
    assert!(names(&others).contains(&"letter".to_owned()));
}

#[test]
fn a_shard_that_has_fewer_records_than_was_said_is_damage() {
    let place = Place::new();
    let draft = Draft::begin(place.set(), &Spec::hash(2)).expect("a draft");
    let mut files = write_all(&draft, &some_records(300, 9), "a").expect("shards");
    files[1].records += 1;
    draft.commit(&files).expect("nobody has counted yet");
    let none: [PathBuf; 0] = [];
    let error = merge(place.set(), &none, None, |_, _| {}).expect_err("a record is missing");
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("shard-00001-a.azk"), "{error}");
    assert_eq!(names(&place.set()), ["manifest-0001.json", "v0001"]);
}

#[test]
fn columns_that_may_have_nulls_in_one_set_may_have_them_in_the_merged_one() {
    let place = Place::new();
    let other = place.path("other.azs");
    let spec = |nullable: [bool; 2]| {
        let mut spec = Spec::hash(2);
        let names = ["text", "number"];
        let of = [ColumnType::Str, ColumnType::I32];
        spec.value =
            (0..2).map(|i| Column { nullable: nullable[i], ..Column::new(names[i], of[i]) }).collect();
        spec
    };
    let row = |spec: &Spec, cells: &[Option<&[u8]>]| {
        let mut row = Vec::new();
        RowForm::of(&spec.value).encode(cells, &mut row).expect("a row");
        row
    };
    let (firm, loose) = (spec([false, false]), spec([true, false]));
    let four: &[u8] = &4_i32.to_le_bytes();
    let first = [(b"a".to_vec(), row(&firm, &[Some(b"old"), Some(four)]))];
    let second = [(b"b".to_vec(), row(&loose, &[None, Some(four)]))];
    write_version(&place.set(), &firm, &first.into());
    write_version(&other, &loose, &second.into());
    merge(place.set(), &[&other], None, |_, _| {}).expect("a merge");
    let reader = ShardedReader::open(place.set()).expect("a reader");
    assert_eq!(reader.version().manifest().spec.value, loose.value);
    let due = row(&loose, &[Some(b"old"), Some(four)]);
    assert_eq!(reader.get(b"a").expect("a get"), Some(due));
    assert_eq!(reader.get(b"b").expect("a get"), Some(row(&loose, &[None, Some(four)])));
    assert!(verify(place.set(), None, |_, _| {}).expect("a report").problems.is_empty());
}
