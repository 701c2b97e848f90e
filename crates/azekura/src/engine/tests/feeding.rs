//! Feeds that no call can make.

use crate::api::{Db, FeedContent, Options};
use crate::base::error::Error;
use crate::base::key::TableKind;
use crate::engine::{Batch, BatchPart};
use crate::format::block::Tag;
use crate::format::feed::{TRIMMED_KEY, mark_key};
use crate::storage::MemStorage;

/// What counts how much is kept cannot be read: the database opens, the feed begins anew, and readers are
/// told.
#[test]
fn a_feed_that_cannot_be_read_begins_anew() {
    let damaged: [fn(u64) -> Vec<u8>; 3] =
        [|_| TRIMMED_KEY.to_vec(), |newest| mark_key(newest), |_| mark_key(u64::MAX - 1)];
    for key in damaged {
        let storage = MemStorage::default();
        let options = || Options::new().memory_bytes(8 << 20).threads(false);
        let db = Db::open_on(&storage, "feeding.azk", options()).unwrap();
        let t = db.create_table("t", TableKind::Ordered).unwrap();
        t.set_feed(Some(FeedContent::Values)).unwrap();
        t.put("a", "1").unwrap();
        let before = db.feed_info().unwrap().unwrap().newest;
        let table = db.engine.feed.fed().table.unwrap();
        let part = BatchPart::single(table, &key(before), Tag::Put, b"short");
        db.engine.commit(Batch { parts: vec![part], durable: true, ..Batch::default() }).unwrap();
        assert!(!db.check(|_| {}).unwrap().problems.is_empty());
        db.close().unwrap();
        drop(t);
        for _ in 0..2 {
            let db = Db::open_on(&storage, "feeding.azk", options()).unwrap();
            let gap = db.feed(before).err();
            let Some(Error::FeedGap { resume_at, .. }) = gap else { panic!("{gap:?}") };
            let mut feed = db.feed(resume_at).unwrap();
            while feed.next().unwrap().is_some() {}
            db.open_table("t").unwrap().put("b", "2").unwrap();
            assert!(feed.next().unwrap().is_some_and(|change| change.table == "t"));
            assert_eq!(db.check(|_| {}).unwrap().problems, [""; 0]);
            drop(feed);
            db.close().unwrap();
        }
    }
}
