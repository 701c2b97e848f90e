//! Transactions. What any thread writes while one is under way is part of it.

use crate::call::Caller;
use crate::codes::KCDB;

/// Begins a transaction. While another one is under way it waits for its end. If `hard` is set it will be
/// durable when its end returns. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbbegintran(db: *mut KCDB, hard: i32) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.done(db, |store| store.begin(hard != 0, true))
}

/// As kcdbbegintran, but fails with KCELOGIC while another transaction is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbbegintrantry(db: *mut KCDB, hard: i32) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.done(db, |store| store.begin(hard != 0, false))
}

/// Ends the transaction: all that was written since its beginning is there, or nothing if `commit` is 0.
/// Returns 0 on failure, and nothing is there then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbendtran(db: *mut KCDB, commit: i32) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.done(db, |store| store.end(commit != 0))
}
