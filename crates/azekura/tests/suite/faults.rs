//! A failed write or sync of the log: nothing later is acknowledged, reads go on, reopening recovers. (Faults
//! at every call, of every kind, are the `errors` command of the crate `sim`.)

use azekura::{Durability, Error, TableKind, WriteOptions};
use sim::disk::{Call, Disk, Effect, Fault, Keep};
use sim::judge::Setting;
use sim::rng::Rng;

/// Another thread's sync fails while a durable commit waits for its turn.
#[test]
fn a_failed_log_write_poisons_the_handle() {
    // No flush is due, which would meet the fault in the place of the log.
    let set = Setting { memtable_bytes: 16 << 20, ..Setting::STEADY };
    for call in [Call::Write, Call::Sync] {
        let disk = Disk::new();
        let db = set.open(&disk).unwrap();
        let table = db.create_table("t", TableKind::Ordered).unwrap();
        table.put(b"a", b"1").unwrap();
        disk.set_fault(Some(Fault { call, nth: 1, forever: false, effect: Effect::Error(5) }));
        let eventual = WriteOptions { durability: Some(Durability::Eventual), ..WriteOptions::default() };
        let mut txn = db.write_with(eventual);
        // Two frames, so that the log is synced and not only written through.
        txn.put(&table, b"b", b"2").unwrap();
        for i in 0..1500u32 {
            txn.put(&table, &i.to_be_bytes(), &[7; 900]).unwrap();
        }
        let committed = txn.commit();
        let synced = db.sync();
        assert!(committed.is_err() || synced.is_err(), "{call:?}");
        assert!(matches!(table.put(b"c", b"3"), Err(Error::Poisoned { .. })), "{call:?}");
        assert!(db.sync().is_err() && db.flush().is_err(), "{call:?}");
        assert_eq!(table.get(b"a").unwrap().as_deref(), Some(&b"1"[..]), "reads go on");
        assert!(db.close().is_err());
        drop(table);
        let disk = disk.after_cut(Keep::None, &mut Rng(1));
        let db = set.open(&disk).unwrap();
        let table = db.open_table("t").unwrap();
        assert_eq!(table.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(table.get(b"c").unwrap(), None);
    }
}
