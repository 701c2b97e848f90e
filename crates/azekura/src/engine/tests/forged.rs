//! Records that no call can make.

use crate::api::{Db, Options};
use crate::base::hash::hash_bytes;
use crate::base::key::TableKind;
use crate::engine::{Batch, BatchPart};
use crate::format::block::Tag;
use crate::storage::MemStorage;

/// `check` knows a record of a hash table that stands under what is no key's mix, in memory and in a run. No
/// lookup finds such a record, while a scan shows it.
#[test]
fn a_record_under_what_is_no_keys_mix_is_reported() {
    let empty = |seed: u64| [&hash_bytes(&[], seed).to_be_bytes()[..], &[0; 8]].concat();
    let forged: [fn(u64) -> Vec<u8>; 6] = [
        |_| b"as it is".to_vec()[..5].to_vec(),
        |_| b"an ordered table's key".to_vec(),
        |seed| [&hash_bytes(b"key", seed ^ 1).to_be_bytes()[..], b"key"].concat(),
        |seed| [&hash_bytes(b"key", seed).to_be_bytes()[..], b"kez"].concat(),
        |_| [[1; 8], [0; 8]].concat(),
        |seed| [&hash_bytes(&[], seed).to_be_bytes()[..], &[0, 0, 0, 0, 0, 0, 0, 1]].concat(),
    ];
    let right: [fn(u64) -> Vec<u8>; 2] =
        [|_| b"8 bytes.".to_vec(), |seed| [&hash_bytes(b"key", seed).to_be_bytes()[..], b"key"].concat()];
    let problems = |key: &dyn Fn(u64) -> Vec<u8>, flushed: bool| {
        let db = Db::open_on(&MemStorage::default(), "forged.azk", Options::new()).unwrap();
        let t = db.create_table("h", TableKind::Hash).unwrap();
        t.put(b"sound", b"1").unwrap();
        let part = BatchPart::single(t.id, &key(db.engine.hash_seed), Tag::Put, b"v");
        db.engine.commit(Batch { parts: vec![part], durable: true, ..Batch::default() }).unwrap();
        if flushed {
            db.flush().unwrap();
        }
        db.check(|_| {}).unwrap().problems
    };
    for flushed in [false, true] {
        for (n, key) in forged.iter().enumerate() {
            let found = problems(key, flushed);
            assert!(
                found.iter().any(|p| p.contains("the mix of no key")),
                "{n}, flushed: {flushed}: {found:?}"
            );
        }
        for key in right.iter().map(|f| f as &dyn Fn(u64) -> Vec<u8>).chain([&empty as _]) {
            assert_eq!(problems(key, flushed), [""; 0]);
        }
    }
}
