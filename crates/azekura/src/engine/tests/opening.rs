//! Opening, in ways that only the engine's inside can tell apart.

use super::hooked::{Call, Hooked};
use crate::api::{Db, Options};
use crate::base::key::TableKind;
use crate::base::sync::atomic::Ordering;
use std::io;
use std::sync::atomic::AtomicBool;

/// Where there is no room to log the last commits anew, what was begun for that may have left frames behind.
/// The engine that opens the file in the other way gives their chain's id to nobody.
#[test]
fn opening_on_a_full_disk_names_no_two_chains_alike() {
    let options = || Options::new().threads(false);
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "opening.azk", options()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put(b"k", b"v").unwrap();
    let base = db.engine.ids.peek();
    // Nobody closes what has failed.
    disk.fail_all(Call::WriteDurable);
    t.put(b"l", b"w").unwrap_err();
    drop((t, db));
    let is_full = AtomicBool::new(true);
    disk.hook(move |call| match call {
        Call::Write if is_full.swap(false, Ordering::Relaxed) => {
            Err(io::Error::from(rustix::io::Errno::NOSPC))
        }
        _ => Ok(()),
    });
    disk.drawn();
    let db = Db::open_on(&disk, "opening.azk", options()).unwrap();
    assert_eq!(db.open_table("t").unwrap().get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    let drawn = disk.drawn();
    assert_eq!(drawn.len(), 2, "each way has an id of its own");
    let next = db.engine.ids.peek();
    let gap = |drawn: u64| (1 << 20) + (drawn >> 32);
    assert!(next.abs_diff(base + gap(drawn[1])) < 1000, "{next}, not by {drawn:?} from {base}");
}
