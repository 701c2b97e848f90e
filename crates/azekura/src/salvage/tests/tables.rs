//! What transactions have done with tables, where the log alone tells it.

use super::*;
use crate::format::frame::{TableChange, write_table_change};

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
        whole_either_way(&world);
    }
}

/// Adds a block to the file: a frame with one commit, which drops a table.
fn forge_drop(world: &World, (chain, number): (u64, u64), (seq, table): (u64, u32)) {
    let mut w = Writer::default();
    let start = begin_record(&mut w, seq, 1);
    write_table_change(&mut w, &TableChange::Dropped(table));
    end_record(&mut w, start);
    let mut block = vec![0; 4096];
    block[HEADER_BYTES..][..w.bytes.len()].copy_from_slice(&w.bytes);
    let file_id = frames(world)[0].file_id;
    let (len, first_record, jump, checkpoint, durable_below) = (u32_of(w.bytes.len()), 0, false, 1, 1);
    Frame { file_id, chain, number, len, first_record, jump, checkpoint, durable_below, clock: 0 }
        .seal(&mut block);
    let file = world.file();
    file.write_at(&block, crate::base::limits::align_up(file.len().unwrap())).unwrap();
}

fn frames(world: &World) -> Vec<Frame> {
    let (bytes, blocks) = (world.bytes(), world.blocks(|b| b[4..8] == *b"AZLF"));
    blocks.into_iter().map(|at| Frame::parse(&bytes[usize::try_from(at).unwrap()..]).unwrap()).collect()
}

/// A crash has left a commit behind a missing frame. So it never happened, and its number was given anew.
#[test]
fn a_drop_that_nobody_was_told_of_takes_no_table_along() {
    for flushed in [true, false] {
        for late in 0..2 {
            let mut world = World::new();
            let numbers = |from, to| (from..to).map(|i| (number(i), Some(value(i, 20))));
            world.commit("t", TableKind::Ordered, numbers(0, 300));
            world.db().flush().unwrap();
            let table = world.db().open_table("t").unwrap().id;
            let seq = world.db().engine.state.load().visible() + 1;
            world.commit("t", TableKind::Ordered, numbers(300, 310));
            world.commit("t", TableKind::Ordered, numbers(310, 600));
            if flushed {
                world.db().flush().unwrap();
            }
            world.db().sync().unwrap();
            let copy = copy_of(&world);
            forge_drop(&copy, (1, 70), (seq + late, table));
            copy.lose_superblocks();
            copy.whole();
        }
    }
}

#[test]
fn tables_that_are_left_out_are_reported() {
    let mut world = World::new();
    for name in ["kept", "gone"] {
        world.commit(name, TableKind::Ordered, (0..300).map(|i| (number(i), Some(value(i, 20)))));
    }
    world.db().flush().unwrap();
    world.commit("kept", TableKind::Ordered, [(number(1), None)]);
    world.db().sync().unwrap();
    // Behind a frame that is missing.
    let behind_gap = copy_of(&world);
    let last = frames(&world).into_iter().max_by_key(|frame| (frame.chain, frame.number)).unwrap();
    let table = world.db().open_table("gone").unwrap().id;
    let seq = world.db().engine.state.load().visible() + 2;
    forge_drop(&behind_gap, (last.chain, last.number + 2), (seq, table));
    // Of a file without a manifest.
    world.db().transact(|txn| txn.drop_table("gone")).unwrap();
    let without_roots = copy_of(&world);
    without_roots.lose_superblocks();
    for mut world in [behind_gap, without_roots] {
        world.model.remove("gone").unwrap();
        let report = world.whole();
        let told = report.losses.iter().filter(|loss| loss.starts_with("table \"gone\" is left out")).count();
        assert_eq!(told, 1, "{report:?}");
        assert!(!report.losses.iter().any(|loss| loss.contains("kept")), "{report:?}");
    }
}

/// Ids are given when a transaction makes a table, and it may be committed after later ones.
#[test]
fn a_table_whose_beginning_is_lost_is_told_from_one_that_was_dropped() {
    let mut world = World::new();
    fill(&mut world, 0, 300, 0);
    world.db().flush().unwrap();
    let mut txn = world.db().write();
    let late = txn.create_table("late", TableKind::Ordered).unwrap();
    for name in ["early", "gone"] {
        world.commit(name, TableKind::Ordered, (0..9).map(|i| (text(i), Some(value(i, 9)))));
    }
    // A checkpoint, and no flush: the log has its records.
    world.db().drop_table("gone").unwrap();
    world.model.remove("gone").unwrap();
    txn.put(&late, "first", "lost").unwrap();
    txn.commit().unwrap();
    let records: Records = (0..9).map(|i| (text(i), value(i, 30))).collect();
    late.put_many(&records).unwrap();
    world.db().sync().unwrap();
    let world = copy_of(&world);
    let made = world.blocks(|b| b[4..8] == *b"AZLF" && b.windows(4).any(|w| w == b"late"));
    assert_eq!(made.len(), 1);
    world.flip(made[0] + 66);
    let (report, mut found) = world.salvage();
    assert!(report.manifest && report.log_gaps == 1, "{report:?}");
    assert_eq!(found.remove(&format!("table-{}", late.id)), Some(records), "{report:?}");
    assert!(found == world.model, "{report:?}");
    assert!(!report.losses.iter().any(|loss| loss.contains("of which kind")), "{report:?}");
}
