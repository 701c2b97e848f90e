//! What a reader holds of a segment that is closed, cut and moved meanwhile.

use super::ValueStore;
use crate::base::limits::ALIGN_BYTES;
use crate::base::poison::Poison;
use crate::space::{Extent, Room, Space};
use crate::storage::{BulkWrites, MemStorage, OpenMode, Storage};
use std::sync::Arc;

#[test]
fn a_reader_of_the_open_segment_keeps_its_place_when_that_is_cut_and_moved() {
    let file = MemStorage::default().open("f".as_ref(), OpenMode::CreateNew).unwrap();
    let space = Arc::new(Space::from_live(0, Vec::new()).unwrap());
    let store = ValueStore::new(
        file.clone(),
        None,
        BulkWrites::new(file.clone(), false),
        Room::new(file, space.clone(), 0),
        Arc::new(Poison::default()),
        1,
    );
    let (_, segment) = store.append(&[7; 100]).unwrap();
    // A reader has looked up where the segment stands, and has not read yet.
    let held = segment.place();
    let first = Extent { len: ALIGN_BYTES, ..held.extents()[0] };
    store.close_open().unwrap();
    assert_eq!(segment.place().extents(), [first]);
    let second = space.alloc(ALIGN_BYTES);
    segment.moved(vec![second], vec![first]);
    let is_free = || space.free_extents().contains(&first);
    assert!(!is_free(), "the reader still reads there");
    drop(held);
    assert!(is_free());
}
