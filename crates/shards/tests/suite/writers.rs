//! Who may write what, and which attempts count.

use crate::common::{Place, Records, divided, names, single, some_records, write_all};
use azekura::Error;
use azekura_shards::{Draft, ShardedReader, Spec, prune, versions};
use std::time::Duration;

fn said<T: std::fmt::Debug>(outcome: azekura::Result<T>) -> String {
    outcome.expect_err("refused").to_string()
}

#[test]
fn only_the_attempts_that_are_named_count() {
    let place = Place::new();
    let records = some_records(2000, 1);
    let draft = Draft::begin(place.set(), &Spec::hash(4)).expect("a draft");
    // Another process knows it by its id.
    let other = Draft::resume(place.set(), draft.id()).expect("the same draft");
    assert_eq!(other.spec(), draft.spec());
    let winners = write_all(&other, &records, "second").expect("shards");
    let losers = write_all(&draft, &Records::new(), "first").expect("shards");
    let mut killed = draft.writer(0, "third").expect("a writer");
    let own = divided(draft.spec(), &records);
    killed.put(own[0][0].0, b"not this").expect("a record");
    std::mem::forget(killed);

    assert!(versions(place.set()).expect("none yet").is_empty());
    assert!(matches!(ShardedReader::open(place.set()), Err(Error::Open { .. })));
    assert_eq!(draft.commit(&winners).expect("a version"), 1);
    let reader = ShardedReader::open(place.set()).expect("a reader");
    let keys: Vec<_> = records.keys().collect();
    assert!(
        reader.get_many(&keys).expect("values").iter().eq(records
            .values()
            .map(|v| Some(v.clone()))
            .collect::<Vec<_>>()
            .iter())
    );
    let files = names(&place.set().join("v0001"));
    assert!(files.iter().all(|name| name == "set.json" || name.contains("-second.azk")), "{files:?}");
    assert_eq!(names(&place.set()), ["manifest-0001.json", "v0001"]);
    assert!(losers.iter().all(|file| file.records == 0));
    assert!(matches!(Draft::resume(place.set(), draft.id()), Err(Error::Open { .. })));
    // A shard is a database like any other.
    assert_eq!(single(&place.set().join("v0001/shard-00000-second.azk")).len(), own[0].len());
}

#[test]
fn an_aborted_draft_leaves_nothing() {
    let place = Place::new();
    let draft = Draft::begin(place.set(), &Spec::hash(2)).expect("a draft");
    write_all(&draft, &some_records(100, 1), "a").expect("shards");
    draft.abort().expect("it goes");
    draft.abort().expect("it is gone");
    assert_eq!(names(&place.set()), Vec::<String>::new());
    assert!(draft.writer(0, "b").is_err());
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing() {
    let place = Place::new();
    let draft = Draft::begin(place.set(), &Spec::hash(1)).expect("a draft");
    let mut writer = draft.writer(0, "a").expect("a writer");
    writer.put(b"key", b"value").expect("a record");
    drop(writer);
    assert_eq!(names(&draft.folder()), ["set.json"]);
}

#[test]
fn rows_of_others_and_rows_out_of_order_are_refused_and_nothing_follows() {
    let place = Place::new();
    let records = some_records(100, 1);
    let draft = Draft::begin(place.set(), &Spec::hash(2)).expect("a draft");
    let own = divided(draft.spec(), &records);
    let mut writer = draft.writer(0, "a").expect("a writer");
    writer.put(own[0][1].0, b"").expect("its own");
    assert!(said(writer.put(own[1][0].0, b"")).contains("is of shard 1, not of shard 0"));
    assert!(said(writer.put(own[0][2].0, b"")).contains("is of shard 1"), "the first error stays");
    assert!(said(writer.finish()).contains("is of shard 1"));
    let mut writer = draft.writer(0, "b").expect("a writer");
    writer.put(own[0][1].0, b"").expect("its own");
    assert!(said(writer.put(own[0][0].0, b"")).contains("sorted by their hashes"));
    drop(writer);
    let mut writer = draft.writer(0, "c").expect("a writer");
    writer.put(own[0][1].0, b"").expect("its own");
    assert!(said(writer.put(own[0][1].0, b"")).contains("two records have the key"));
    drop(writer);
    assert_eq!(names(&draft.folder()), ["set.json"]);
}

#[test]
fn what_cannot_be_a_version_is_not_committed() {
    let place = Place::new();
    let draft = Draft::begin(place.set(), &Spec::hash(2)).expect("a draft");
    let files = write_all(&draft, &some_records(100, 1), "a").expect("shards");
    let again = write_all(&draft, &some_records(100, 1), "b").expect("shards");
    assert!(said(draft.commit(&[files[0].clone(), again[0].clone()])).contains("shard 0 twice"));
    let mut longer = files.clone();
    longer[1].bytes += 1;
    assert!(said(draft.commit(&longer)).contains("as was said"));
    let mut elsewhere = files.clone();
    elsewhere[1].file = "../../x.azk".into();
    assert!(said(draft.commit(&elsewhere)).contains("shard 1 is in"));
    std::fs::remove_file(draft.folder().join(&files[1].file)).expect("it was there");
    assert!(said(draft.commit(&files)).contains("No such file"));
    assert!(versions(place.set()).expect("none").is_empty());
    assert_eq!(draft.commit(&again).expect("these are whole"), 1);

    let ordered = Draft::begin(place.set(), &Spec::ordered(2)).expect("a draft");
    let files: Vec<_> = (0..2)
        .map(|shard| {
            let mut writer = ordered.writer(shard, "a").expect("a writer");
            ["b", "d"].iter().for_each(|key| writer.put(key.as_bytes(), b"").expect("a record"));
            writer.finish().expect("a shard")
        })
        .collect();
    assert!(said(ordered.commit(&files)).contains("overlap"));
    for wrong in ["", "a/b", "..", "a.b"] {
        assert!(said(ordered.writer(0, wrong).map(|_| ())).contains("an attempt is named"));
        assert!(said(Draft::resume(place.set(), wrong).map(|_| ())).contains("an attempt is named"));
    }
    assert!(said(ordered.writer(2, "a").map(|_| ())).contains("shard 2 of 2"));
    assert!(said(ordered.writer(0, "a").map(|_| ())).contains("exists already"));
}

#[test]
fn two_that_commit_at_once_are_two_versions() {
    let place = Place::new();
    for round in 0..10 {
        let drafts: Vec<Draft> =
            (0..4).map(|_| Draft::begin(place.set(), &Spec::hash(1)).expect("a draft")).collect();
        let mut numbers: Vec<u32> = std::thread::scope(|scope| {
            let commits: Vec<_> =
                drafts.iter().map(|draft| scope.spawn(|| draft.commit(&[]).expect("a version"))).collect();
            commits.into_iter().map(|commit| commit.join().expect("no panic")).collect()
        });
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=4).map(|i| round * 4 + i).collect::<Vec<u32>>());
    }
}

#[test]
fn old_versions_go_but_for_those_that_are_read() {
    let place = Place::new();
    let records = some_records(500, 1);
    let version = |_| crate::common::write_version(&place.set(), &Spec::hash(4), &records);
    (1..=3).for_each(|number| assert_eq!(version(number), number));
    let held = ShardedReader::open_with(
        place.set(),
        azekura_shards::ReadOptions { version: Some(1), ..Default::default() },
    )
    .expect("a reader");
    let late = place.set().join("v0003/shard-00000-late.azk");
    std::fs::write(&late, b"late").expect("a file");
    let started = Draft::begin(place.set(), &Spec::hash(1)).expect("a draft");

    let report = prune(place.set(), 1, Duration::from_secs(3600)).expect("a report");
    assert_eq!((report.kept, report.held, report.removed), (vec![1, 3], vec![1], vec![2]));
    assert!(report.bytes > 1000 && !late.exists());
    // None of its shards was open.
    let (key, value) = records.first_key_value().expect("a record");
    assert_eq!(held.get(key).expect("a get").as_ref(), Some(value));
    assert!(started.folder().exists());

    drop(held);
    let report = prune(place.set(), 0, Duration::ZERO).expect("a report");
    assert_eq!((report.kept, report.held, report.removed), (vec![3], vec![], vec![1]));
    assert_eq!(report.unfinished, 1);
    assert_eq!(names(&place.set()), ["manifest-0003.json", "v0003"]);
    assert_eq!(version(4), 4, "numbers are not used again");
}

/// A file that runs is not opened for writing, so nobody can say whether it is locked.
#[cfg(target_os = "linux")]
#[test]
fn a_version_of_which_nobody_knows_whether_it_is_read_stays() {
    let place = Place::new();
    let records = some_records(10, 1);
    crate::common::write_version(&place.set(), &Spec::hash(1), &records);
    let program = std::env::current_exe().expect("this program");
    std::os::unix::fs::symlink(&program, place.set().join("manifest-0000.json")).expect("a link");
    let report = prune(place.set(), 1, Duration::ZERO).expect("a report");
    assert_eq!((report.kept, report.held, report.unknown), (vec![0, 1], vec![0], vec![0]));
    assert!(program.exists());
}

#[test]
fn what_is_no_set_is_not_pruned() {
    let place = Place::new();
    for path in [place.set(), place.path("")] {
        assert!(matches!(prune(&path, 1, Duration::ZERO), Err(Error::Open { .. })));
    }
    assert_eq!(std::fs::read_dir(place.path("")).expect("a folder").count(), 0, "it has got no lock");
}
