//! How long the records of a table live if nothing else is said.

use super::*;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3_600_000);
const LONGER: Duration = Duration::from_millis(7_200_000_001);

/// Tables that got their times at several moments, and what these are.
fn times() -> (World, BTreeMap<String, Option<Duration>>) {
    let mut world = World::new();
    let records = || (0..300).map(|i| (number(i), Some(value(i, 20))));
    for name in ["in the manifest", "taken back"] {
        world.db().create_expiring_table(name, TableKind::Ordered, LONG).unwrap();
    }
    for name in ["in the manifest", "taken back", "never", "later"] {
        world.commit(name, TableKind::Ordered, records());
    }
    world.db().flush().unwrap();
    world.db().open_table("taken back").unwrap().set_usual_ttl(None).unwrap();
    world.db().open_table("later").unwrap().set_usual_ttl(Some(LONGER)).unwrap();
    world.db().create_expiring_table("young", TableKind::Hash, LONG).unwrap();
    world.commit("young", TableKind::Hash, (0..9).map(|i| (number(i), Some(value(i, 9)))));
    world.db().sync().unwrap();
    let times = [
        ("in the manifest", Some(LONG)),
        ("taken back", None),
        ("never", None),
        ("later", Some(LONGER)),
        ("young", Some(LONG)),
    ];
    (copy_of(&world), times.map(|(name, ttl)| (name.to_owned(), ttl)).into())
}

fn found_times(report: &SalvageReport) -> BTreeMap<String, Option<Duration>> {
    report.tables.iter().map(|table| (table.name.clone(), table.ttl)).collect()
}

#[test]
fn a_tables_time_to_live_is_that_of_the_manifest_or_of_a_later_commit() {
    let (world, times) = times();
    let report = world.whole();
    assert!(report.is_whole(), "{report:?}");
    assert_eq!(found_times(&report), times);
}

#[test]
fn without_the_manifest_the_log_tells_it_and_else_it_is_reported() {
    let (world, times) = times();
    world.lose_superblocks();
    // The commits from before the flush are those that made the first tables.
    let first = |b: &[u8]| b[4..8] == *b"AZLF" && b.windows(15).any(|w| w == b"in the manifest");
    world.blocks(first).into_iter().for_each(|at| world.flip(at + 66));
    let report = world.whole();
    let mut found = found_times(&report);
    assert_eq!(found.remove("in the manifest"), Some(None), "{report:?}");
    assert!(times.iter().filter(|(name, _)| *name != "in the manifest").eq(&found), "{report:?}");
    let told = report.losses.iter().filter(|line| line.contains("how long its records live"));
    let told: Vec<_> = told.collect();
    assert!(matches!(&told[..], [one] if one.contains("\"in the manifest\"")), "{told:?}");
}

#[test]
fn an_older_manifest_tells_it_where_the_log_says_nothing_later() {
    let (world, mut times) = times();
    let older = world.bytes()[4096..8192].to_vec();
    let (storage, model) = (world.storage, world.model);
    let db = Db::open_on(&storage, PATH, options()).unwrap();
    db.open_table("never").unwrap().set_usual_ttl(Some(LONGER)).unwrap();
    db.flush().unwrap();
    db.open_table("young").unwrap().set_usual_ttl(Some(LONGER)).unwrap();
    times.insert("never".into(), Some(LONGER));
    times.insert("young".into(), Some(LONGER));
    let world = copy_of(&World { storage, db: Some(db), model });
    world.lose_superblocks();
    world.file().write_at(&older, 4096).unwrap();
    let report = world.whole();
    assert!(!report.manifest, "{report:?}");
    assert_eq!(found_times(&report), times);
}
