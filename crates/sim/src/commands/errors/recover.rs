//! What must hold once the fault is over.

use crate::disk::Disk;
use crate::judge::Setting;
use crate::script::{Ack, Script, problems};
use azekura::Error;

pub(super) const HANG_SECONDS: u64 = 120;

/// Opens the database without faults: the state is right, `check` is clean, and the script goes on.
pub(super) fn recover(script: &Script, disk: &Disk, ack: Ack, set: Setting) -> Result<(), String> {
    let text = |e: Error| e.to_string();
    let db = set.open(disk).map_err(|e| format!("does not open: {e}"))?;
    if let Ok(table) = db.open_table("ordered")
        && table.contains(b"after").map_err(text)?
    {
        table.remove(b"after").map_err(text)?;
    }
    let k = script.state_of(&db, ack.durable, ack.begun)?;
    let wrong = problems(&db);
    if !wrong.is_empty() {
        return Err(format!("state {k}, but check says {wrong:?}"));
    }
    script.run(&db, k, &mut Ack::default(), &|_| {}).map_err(|e| format!("going on from state {k}: {e}"))?;
    script.state_of(&db, script.last(), script.last())?;
    db.close().map_err(|e| format!("closing: {e}"))
}
