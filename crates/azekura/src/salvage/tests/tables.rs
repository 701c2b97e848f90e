//! What transactions have done with tables, where the log alone tells it.

use super::*;
use crate::base::hash::hash_bytes;
use crate::format::expiry::{Content, Expiry};
use crate::format::frame::{TableChange, write_table_change};
use crate::format::hidden::IndexState;

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

/// Adds a block to the file: a frame with one commit.
fn forge(world: &World, (chain, number): (u64, u64), (checkpoint, seq): (u64, u64), parts: &[Forged]) {
    let mut w = Writer::default();
    let start = begin_record(&mut w, seq, parts.len());
    for part in parts {
        match part {
            Forged::Drop(table) => write_table_change(&mut w, &TableChange::Dropped(*table)),
            Forged::Put(table, key, value) => {
                let mut block = Block::new(None);
                block.push(key, Tag::Put, value);
                write_part(&mut w, *table, &[], &Ranges::none(), &block);
            }
            Forged::EntryUntil(table, key, expiry) => {
                let (mut block, mut stored) = (Block::new(None), Vec::new());
                let content = Content { tag: Tag::Put, value: &[], expiry: *expiry };
                let (tag, stored) = content.stored(&mut stored);
                block.push(key, tag, stored);
                write_part(&mut w, *table, &[], &Ranges::none(), &block);
            }
        }
    }
    end_record(&mut w, start);
    let mut block = vec![0; 4096];
    block[HEADER_BYTES..][..w.bytes.len()].copy_from_slice(&w.bytes);
    let file_id = frames(world)[0].file_id;
    let (len, first_record, jump, durable_below) = (u32_of(w.bytes.len()), 0, false, 1);
    Frame { file_id, chain, number, len, first_record, jump, checkpoint, durable_below, clock: 0 }
        .seal(&mut block);
    let file = world.file();
    file.write_at(&block, crate::base::limits::align_up(file.len().unwrap())).unwrap();
}

enum Forged {
    EntryUntil(u32, Vec<u8>, Expiry),
    Drop(u32),
    Put(u32, Vec<u8>, Vec<u8>),
}

fn forge_drop(world: &World, frame: (u64, u64), (seq, table): (u64, u32)) {
    forge(world, frame, (1, seq), &[Forged::Drop(table)]);
}

fn newest_seq(world: &World) -> u64 {
    world.db().engine.state.load().visible()
}

/// The last frame with records.
fn last_frame(world: &World) -> Frame {
    let full = frames(world).into_iter().filter(|frame| frame.len > 0 && !frame.jump);
    full.max_by_key(|frame| (frame.chain, frame.number)).unwrap()
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
    let doubt = format!("table {}: the commit that made it is lost, or", late.id);
    assert_eq!(report.losses.iter().filter(|loss| loss.starts_with(&doubt)).count(), 1, "{report:?}");
}

/// The commit that has the drop's number was acknowledged, and its frame is damaged. So only what came after
/// it tells that nobody has dropped the table.
#[test]
fn a_drop_does_not_count_if_the_log_has_something_newer_of_the_table() {
    let mut world = World::new();
    let numbers = |from, to| (from..to).map(|i| (number(i), Some(value(i, 20))));
    world.commit("t", TableKind::Ordered, numbers(0, 300));
    world.db().flush().unwrap();
    let table = world.db().open_table("t").unwrap().id;
    let seq = newest_seq(&world) + 1;
    world.commit("t", TableKind::Ordered, numbers(300, 310));
    world.db().sync().unwrap();
    let lost = last_frame(&world);
    world.commit("t", TableKind::Ordered, numbers(310, 600));
    world.db().sync().unwrap();
    let mut world = copy_of(&world);
    let is_lost = |b: &[u8]| {
        Frame::parse(b).is_some_and(|f| (f.chain, f.number, f.len) == (lost.chain, lost.number, lost.len))
    };
    for at in world.blocks(is_lost) {
        world.flip(at + 70);
    }
    world.lose_superblocks();
    world.model.get_mut("t").unwrap().retain(|key, _| !(number(300)..number(310)).contains(key));
    let before = world.whole();
    forge_drop(&world, (1, 70), (seq, table));
    let report = world.whole();
    assert_eq!(report.commits, before.commits + 1, "the drop was read: {report:?}");
}

/// A commit of an earlier handle, which nobody was told of, has a larger number than a drop.
#[test]
fn what_a_crash_has_left_undoes_no_drop() {
    let mut world = World::new();
    for name in ["kept", "gone"] {
        world.commit(name, TableKind::Ordered, (0..300).map(|i| (number(i), Some(value(i, 20)))));
    }
    world.db().flush().unwrap();
    let table = world.db().open_table("gone").unwrap().id;
    world.db().transact(|txn| txn.drop_table("gone")).unwrap();
    world.db().sync().unwrap();
    world.model.remove("gone").unwrap();
    let seq = newest_seq(&world) + 1;
    let world = copy_of(&world);
    let checkpoint = last_frame(&world).checkpoint;
    assert!(checkpoint > 1);
    world.lose_superblocks();
    forge(&world, (1, 70), (checkpoint - 1, seq), &[Forged::Put(table, number(1), value(1, 20))]);
    world.whole();
    // What is as new as the drop has not come before it.
    forge(&world, (1, 90), (checkpoint, seq), &[Forged::Put(table, number(1), value(1, 20))]);
    let (report, found) = world.salvage();
    assert!(found.contains_key("gone"), "{report:?}");
}

#[test]
fn many_tables_that_were_dropped_are_one_line_among_the_losses() {
    let mut world = World::new();
    world.commit("kept", TableKind::Ordered, [(number(1), Some(value(1, 20)))]);
    let names: Vec<String> = (0..30).map(|n| format!("gone {n}")).collect();
    for name in &names {
        world.db().create_table(name, TableKind::Ordered).unwrap().put("k", "v").unwrap();
    }
    let drop_all =
        |txn: &mut crate::WriteTxn| names.iter().try_for_each(|name| txn.drop_table(name).map(drop));
    world.db().transact(drop_all).unwrap();
    world.db().sync().unwrap();
    let world = copy_of(&world);
    world.lose_superblocks();
    let report = world.whole();
    let told: Vec<&String> = report.losses.iter().filter(|loss| loss.contains("left out")).collect();
    assert!(told.len() == 1 && told[0].starts_with("30 tables") && told[0].contains("gone 0"), "{report:?}");
    let noted =
        |name| report.notes.iter().any(|note| note.starts_with(&format!("table {name:?} is left out")));
    assert!(names.iter().all(noted), "{report:?}");
}

/// A frame knows of the checkpoint that has dropped an index, and has entries of it. Who dropped it may have
/// been overtaken.
#[test]
fn the_entries_of_an_index_that_was_dropped_show_as_no_table() {
    let times = [Expiry::NEVER, Expiry::at(1 << 42)];
    for (kind, expiry) in [TableKind::Ordered, TableKind::Hash].into_iter().zip(times) {
        let mut world = World::new();
        world.commit("t", kind, (0..300).map(|i| (text(i), Some(value(i, 20)))));
        let t = world.db().open_table("t").unwrap();
        t.create_index("by value", "v").unwrap();
        world.db().flush().unwrap();
        let (of_records, state) = (t.id, world.db().engine.state.load_full());
        let of_index =
            (1..state.next_table).find(|&id| id != of_records && state.tables.get(id).is_some()).unwrap();
        t.drop_index("by value").unwrap();
        world.commit("t", kind, [(text(1), Some(value(7, 20)))]);
        world.db().sync().unwrap();
        let (seed, mut seq) = (world.db().engine.store.hash_seed, newest_seq(&world) + 1);
        drop(t);
        let mut world = copy_of(&world);
        let last = last_frame(&world);
        let key = match kind {
            TableKind::Ordered => b"new".to_vec(),
            TableKind::Hash => [&hash_bytes(b"new", seed).to_be_bytes()[..], b"new"].concat(),
        };
        let spec = "v".to_owned();
        let put = Forged::Put(of_records, key, b"its value".to_vec());
        let entry = Forged::EntryUntil(of_index, b"its value\0\0new".to_vec(), expiry);
        let progress = Forged::Put(of_index, Vec::new(), IndexState { next: None, spec }.encode());
        for (n, parts) in [vec![put, entry], vec![progress]].into_iter().enumerate() {
            forge(&world, (last.chain, last.number + 20 + n as u64), (last.checkpoint, seq), &parts);
            seq += 1;
        }
        world.model.get_mut("t").unwrap().insert(b"new".to_vec(), b"its value".to_vec());
        let report = world.whole();
        assert!(report.manifest && report.log_gaps == 1, "{report:?}");
        let told = format!("commits to table {of_index}, which was dropped, or");
        assert!(report.losses.iter().any(|loss| loss.starts_with(&told)), "{report:?}");
        // A table in which anything else stands is one of the user's.
        let other = Forged::Put(of_index, b"its key".to_vec(), b"its value".to_vec());
        forge(&world, (last.chain, last.number + 22), (last.checkpoint, seq), &[other]);
        let (report, found) = world.salvage();
        assert!(found.contains_key(&format!("table-{of_index}")), "{report:?}");
    }
}
