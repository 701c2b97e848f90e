//! Replacing a value by what a callback makes of it.

use crate::arguments::azk_bytes;
use crate::call::Caller;
use crate::files;
use crate::handles::{azk_table, azk_write};
use crate::slots::{owned, shared};
use crate::status::azk_status::{AZK_OK, AZK_STOPPED};
use crate::status::{Failure, Outcome, azk_status, invalid};
use azekura::{Error, Table};
use std::ffi::c_void;

/// Called with the value of a key: its `data` is NULL if the key is absent. It sets *value to the new value,
/// or its `data` to NULL and its `len` to 0 to remove the key; if it leaves *value as it is, nothing is
/// written. The old bytes stay until it returns. The new ones, which may be a part of them, must stay until
/// the function that has called it returns, and are copied there. 0 goes on; any other number ends the call,
/// and nothing is written.
pub type azk_update_fn = Option<unsafe extern "C" fn(user_data: *mut c_void, value: *mut azk_bytes) -> i32>;

/// What a callback has decided.
enum Decision {
    Put(Vec<u8>),
    Remove,
    /// Nothing is written, and this is returned.
    Leave(Outcome<azk_status>),
}

/// A callback for a value, with what it is given.
#[derive(Clone, Copy)]
struct Updater {
    caller: Caller,
    call: unsafe extern "C" fn(*mut c_void, *mut azk_bytes) -> i32,
    user_data: *mut c_void,
}

impl Updater {
    fn new(caller: Caller, call: azk_update_fn, user_data: *mut c_void) -> Outcome<Updater> {
        let call = call.ok_or_else(|| invalid("callback is NULL"))?;
        Ok(Updater { caller, call, user_data })
    }

    /// What it makes of a value.
    fn decide(self, old: Option<&[u8]>) -> Decision {
        let was = old.map_or(azk_bytes::NONE, azk_bytes::of);
        let mut value = was;
        // SAFETY: the bytes and the place are there when it is called. The caller answers for what it does.
        let answer = files::within(|| unsafe { (self.call)(self.user_data, &raw mut value) });
        if answer != 0 {
            return Decision::Leave(Ok(AZK_STOPPED));
        }
        if value.data == was.data && value.len == was.len {
            return Decision::Leave(Ok(AZK_OK));
        }
        if value.data.is_null() && value.len == 0 {
            return Decision::Remove;
        }
        match self.caller.bytes(value.data, value.len, "the new value") {
            Ok(new) => Decision::Put(new.to_vec()),
            Err(failure) => Decision::Leave(Err(failure)),
        }
    }

    /// Has the engine update a value. `update` gets what the engine calls.
    fn run(
        self,
        update: impl FnOnce(
            &mut dyn FnMut(Option<&[u8]>) -> azekura::Result<Option<Vec<u8>>>,
        ) -> azekura::Result<()>,
    ) -> Outcome<azk_status> {
        let mut left = None;
        let done = update(&mut |old| match self.decide(old) {
            Decision::Put(new) => Ok(Some(new)),
            Decision::Remove => Ok(None),
            Decision::Leave(outcome) => {
                left = Some(outcome);
                // Whatever error it is: the engine writes nothing, and gives it back.
                Err(Error::Invalid { detail: "the callback writes nothing".to_owned() })
            }
        });
        match left {
            Some(outcome) => outcome,
            None => done.map(|()| AZK_OK).map_err(Failure::from),
        }
    }
}

/// Replaces the value of a key by what `callback` makes of it, and keeps the time that the record has. If
/// another commit changes the key meanwhile, the callback is called again with the newer value. It may use
/// the database, but must not change the key itself. Errors: AZK_STOPPED if the callback has ended the call;
/// AZK_INVALID if it is NULL, or has itself committed a change to the key; and as azk_table_put and
/// azk_table_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_update(
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    callback: azk_update_fn,
    user_data: *mut c_void,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let updater = Updater::new(c, callback, user_data)?;
        let key = c.bytes(key, key_len, "key")?;
        // No handle is held while the callback is called.
        let table: Table = shared(table)?.clone();
        updater.run(|decide| table.try_update(key, decide))
    })
}

/// As azk_table_update, within this transaction, of the value as it sees it. The callback is called once. It
/// must not use the transaction: while it runs, calls of its thread with transactions, cursors and lookups
/// give AZK_BUSY. Errors: AZK_STOPPED, AZK_INVALID if the callback is NULL, and as azk_write_put and
/// azk_write_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_update(
    write: *mut azk_write,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    callback: azk_update_fn,
    user_data: *mut c_void,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let updater = Updater::new(c, callback, user_data)?;
        let key = c.bytes(key, key_len, "key")?;
        // The callback may use tables, so no handle of one is held.
        let table: Table = shared(table)?.clone();
        let mut write = owned(write)?;
        let txn = write.changed()?;
        updater.run(|decide| txn.try_update(&table, key, decide))
    })
}
