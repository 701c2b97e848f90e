//! The chunks that large commits make.

use super::*;

fn eventual() -> Db {
    let options = Options::new().memory_bytes(64 << 20).threads(false).durability(Durability::Eventual);
    Db::open_on(&MemStorage::default(), "chunks.azk", options).unwrap()
}

/// A lookup in a chunk without a filter is a search, which a reader of many chunks would make in each.
#[test]
fn chunks_of_tables_that_are_read_have_filters() {
    let db = eventual();
    let t = db.create_table("t", TableKind::Hash).unwrap();
    let put = |first: u64| {
        t.put_many((first..first + 5000).map(|i| (i.to_be_bytes(), i.to_be_bytes()))).unwrap();
        let state = db.engine.state.load_full();
        let chunk = &state.table(t.id).unwrap().chunks[0];
        chunk.bytes() - chunk.block.bytes()
    };
    assert!(put(0) < 1000, "nobody reads it");
    assert!(t.get(7u64.to_be_bytes()).unwrap().is_some());
    assert!(put(5000) > 2500);
    for i in 0..10_000u64 {
        assert_eq!(t.get(i.to_be_bytes()).unwrap().unwrap(), i.to_be_bytes());
        assert_eq!(t.get((i + 10_000).to_be_bytes()).unwrap(), None);
    }
}

/// A commit has a large part and a small one: one becomes a chunk, the other goes to the active buffer. Both
/// show at once.
#[test]
fn a_small_part_beside_a_large_one_is_no_chunk() {
    let db = eventual();
    let (a, b) =
        (db.create_table("a", TableKind::Hash).unwrap(), db.create_table("b", TableKind::Hash).unwrap());
    for round in 0..3u64 {
        let before = db.read();
        let mut txn = db.write();
        (0..2000u64).for_each(|i| txn.put(&a, i.to_be_bytes(), round.to_be_bytes()).unwrap());
        txn.put(&b, round.to_be_bytes(), "small").unwrap();
        txn.commit().unwrap();
        let state = db.engine.state.load_full();
        let (of_a, of_b) = (state.table(a.id).unwrap(), state.table(b.id).unwrap());
        assert!(of_a.active.is_none() && !of_a.chunks.is_empty());
        assert!(of_b.active.is_some() && of_b.chunks.is_empty());
        let old = round.checked_sub(1).map(|old| old.to_be_bytes().to_vec());
        assert_eq!(before.get(&a, 7u64.to_be_bytes()).unwrap(), old);
        assert_eq!(before.get(&b, round.to_be_bytes()).unwrap(), None);
        assert_eq!(a.get(7u64.to_be_bytes()).unwrap().unwrap(), round.to_be_bytes());
        assert_eq!(b.get(round.to_be_bytes()).unwrap().unwrap(), b"small");
    }
}
