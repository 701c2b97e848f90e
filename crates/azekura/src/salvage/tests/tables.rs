//! What transactions have done with tables, where the log alone tells it.

use super::*;

#[test]
fn tables_have_the_names_that_the_log_gave_them_and_dropped_ones_stay_away() {
    let mut world = World::new();
    for name in ["kept", "moved"] {
        world.commit(name, TableKind::Ordered, (0..300).map(|i| (number(i), Some(value(i, 20)))));
    }
    world.db().flush().unwrap();
    let mut txn = world.db().write();
    txn.rename_table("moved", "elsewhere").unwrap();
    let new = txn.create_table("moved", TableKind::Hash).unwrap();
    txn.put(&new, "k", "v").unwrap();
    txn.commit().unwrap();
    let old = world.model.remove("moved").unwrap();
    world.model.insert("elsewhere".into(), old);
    world.model.insert("moved".into(), Records::from([(b"k".to_vec(), b"v".to_vec())]));
    for round in 0..3 {
        if round == 1 {
            // A checkpoint that knows of it.
            let mut txn = world.db().write();
            txn.drop_table("kept").unwrap();
            txn.commit().unwrap();
            world.model.remove("kept").unwrap();
        }
        if round == 2 {
            world.commit("elsewhere", TableKind::Ordered, [(number(1), Some(value(7, 30)))]);
            world.db().transact(|txn| txn.rename_table("elsewhere", "at last")).unwrap();
            let last = world.model.remove("elsewhere").unwrap();
            world.model.insert("at last".into(), last);
        }
        for with_roots in [true, false] {
            let world = copy_of(&world);
            if !with_roots {
                world.lose_superblocks();
            }
            let report = world.whole();
            assert_eq!((report.manifest, report.is_whole()), (with_roots, with_roots), "{report:?}");
        }
    }
}
