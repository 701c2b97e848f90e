//! What was merged into values of which a part is lost.

use super::*;
use crate::base::error::shown;

/// Few enough that all can be named.
const KEYS: u64 = 900;

/// What is merged into each key, twice.
fn more(table: &str) -> Merge<'static> {
    if table == "counters" { Merge::AddU64(3) } else { Merge::Append(b"more") }
}

/// A value, after it was merged in.
fn with_more(table: &str, value: Option<&Vec<u8>>) -> Vec<u8> {
    match (table, value) {
        ("counters", value) => {
            let number = |v: &Vec<u8>| u64::from_le_bytes(v[..].try_into().unwrap());
            value.map_or(0, number).wrapping_add(3).to_le_bytes().to_vec()
        }
        (_, value) => [value.map_or(&[][..], |v| v), b"more"].concat(),
    }
}

fn merge_all(world: &mut World, table: &str) {
    let t = world.db().open_table(table).unwrap();
    let mut w = world.db().write();
    for i in 0..KEYS {
        w.merge(&t, number(i), more(table)).unwrap();
        let value = world.model.get_mut(table).unwrap().get_mut(&number(i)).unwrap();
        *value = with_more(table, Some(value));
    }
    w.commit().unwrap();
}

/// Each value has its beginning in the first run, and something merged in the second and the fourth. In the
/// third every tenth was put anew.
fn four_runs(table: &str, kind: TableKind) -> World {
    let mut world = World::new();
    let len = if table == "counters" { 8 } else { 40 };
    world.commit(table, kind, (0..KEYS).map(|i| (number(i), Some(value(i, len)))));
    world.db().flush().unwrap();
    merge_all(&mut world, table);
    world.db().flush().unwrap();
    world.commit(table, kind, (0..KEYS).step_by(10).map(|i| (number(i), Some(value(i + 7, len)))));
    world.db().flush().unwrap();
    merge_all(&mut world, table);
    world.db().flush().unwrap();
    assert_eq!(world.db().stats().runs, 4);
    copy_of(&world)
}

/// The pages of the oldest run.
fn oldest_pages(world: &World) -> Vec<u64> {
    let bytes = world.bytes();
    let run = |at: u64| PageIdentity::read(&bytes[at as usize..]).run;
    let pages = world.blocks(is_page);
    let oldest = pages.iter().map(|&at| run(at)).min().unwrap();
    pages.into_iter().filter(|&at| run(at) == oldest).collect()
}

#[test]
fn what_was_merged_into_a_lost_value_is_there_and_its_key_is_named() {
    for (table, kind) in [
        ("lists", TableKind::Ordered),
        ("lists", TableKind::Hash),
        ("counters", TableKind::Ordered),
        ("counters", TableKind::Hash),
    ] {
        let world = four_runs(table, kind);
        assert!(world.whole().is_whole());
        let pages = oldest_pages(&world);
        assert!(pages.len() > 1 || table == "counters", "{pages:?}");
        for (at, with_roots) in pages.iter().flat_map(|&at| [(at, true), (at, false)]) {
            let world = copy_of(&world);
            if !with_roots {
                world.lose_superblocks();
            }
            world.flip(at + 200);
            let (report, found) = world.salvage();
            assert_eq!((report.manifest, report.pages_lost), (with_roots, 1), "{report:?}");
            let twice = with_more(table, Some(&with_more(table, None)));
            let told = |key: &[u8]| {
                let text = format!("what {} had before", shown(key));
                report.losses.iter().filter(|line| line.contains(&text)).count()
            };
            let mut lost = 0;
            for (i, (key, whole)) in world.model[table].iter().enumerate() {
                let is = &found[table][key];
                // The last put of every tenth is in a page that is there.
                assert!(is == whole || *is == twice && i % 10 != 0, "{table}, {kind:?}, key {i}: {is:?}");
                assert_eq!(told(key), usize::from(is != whole), "key {i} of {table}, page at {at}");
                lost += usize::from(is != whole);
            }
            assert!(lost > 50 && (pages.len() == 1 || lost < 500), "{lost} of {table}, {kind:?}");
        }
    }
}

#[test]
fn what_was_merged_into_a_lost_large_value_is_there_and_its_key_is_named() {
    let mut world = World::new();
    let large = |i: u64| [text(i), value(i, 9000 + i as usize)].concat();
    world.commit("lists", TableKind::Ordered, (0..20).map(|i| (number(i), Some(large(i)))));
    world.db().flush().unwrap();
    let t = world.db().open_table("lists").unwrap();
    t.merge(number(7), Merge::Append(b"more")).unwrap();
    drop(t);
    world.db().flush().unwrap();
    // Where a flush has stored the whole value anew, both are there.
    for at in world.bytes().windows(100).enumerate().filter(|(_, w)| w.starts_with(&large(7)[..60])) {
        world.flip(at.0 as u64 + 300);
    }
    let world = copy_of(&world);
    let (report, mut found) = world.salvage();
    assert!(report.values_lost > 0, "{report:?}");
    let key = shown(&number(7));
    assert!(report.losses.iter().any(|line| line.contains(&format!("the value of {key}"))), "{report:?}");
    assert_eq!(found.get_mut("lists").unwrap().remove(&number(7)), Some(b"more".to_vec()), "{report:?}");
    let mut others = world.model["lists"].clone();
    others.remove(&number(7));
    assert!(found["lists"] == others);
}
