//! A database object: who may use its file, and who waits for whom.
//!
//! Locks, in the order in which they are taken: `turn`, `gate`, a stripe, the transaction, a cursor's place.
//!
//! - `gate` is shared by calls for one record or one step, and taken alone by calls for all of them.
//! - A stripe belongs to the keys of one hash. A call that changes a record holds it from the look to the
//!   write.
//! - `turn` says whose transaction is under way. Only its beginning waits for it: while one is under way, the
//!   writes of all threads go to it.
//!
//! Nobody else has the file, so no commit meets another's change.

use crate::access::Access;
use crate::codes::{KCEINVALID, KCELOGIC};
use crate::errors::{Failure, NOT_OPENED, NOT_WRITER, Outcome, failure};
use crate::open::Open;
use crate::standing::CursorPlace;
use azekura::{Durability, WriteTxn};
use std::cell::RefCell;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{
    Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};
use std::thread::{self, ThreadId};

const STRIPES: usize = 64;

/// A database object.
pub(crate) struct Store {
    /// Its number, never 0.
    pub(crate) id: u64,
    gate: RwLock<Option<Open>>,
    turn: Mutex<Option<ThreadId>>,
    turned: Condvar,
    stripes: [Mutex<()>; STRIPES],
    /// Changes with every write, so that cursors know that they must look again.
    version: AtomicU64,
    /// Where cursors stand. Closing takes them away, for what they hold of the file would keep it locked.
    places: Mutex<Vec<Weak<Mutex<CursorPlace>>>>,
}

thread_local! {
    /// The databases whose callbacks this thread is in.
    static WITHIN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Takes a mark of `within` back, also after a panic.
struct Within;

impl Drop for Within {
    fn drop(&mut self) {
        let _ending = WITHIN.try_with(|within| within.borrow_mut().pop());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    /// A database that is not open.
    pub(crate) fn new() -> Store {
        static IDS: AtomicU64 = AtomicU64::new(1);
        Store {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            gate: RwLock::new(None),
            turn: Mutex::new(None),
            turned: Condvar::new(),
            stripes: [const { Mutex::new(()) }; STRIPES],
            version: AtomicU64::new(0),
            places: Mutex::default(),
        }
    }

    /// Runs a callback of the caller.
    pub(crate) fn within<T>(&self, f: impl FnOnce() -> T) -> T {
        let _ending = WITHIN.try_with(|within| within.borrow_mut().push(self.id));
        let _mark = Within;
        f()
    }

    /// A callback that uses its database would wait for itself, or take it away from the call that it is in.
    pub(crate) fn refuse_within(&self) -> Outcome<()> {
        let is_within = |within: &RefCell<Vec<u64>>| within.borrow().contains(&self.id);
        if WITHIN.try_with(is_within).unwrap_or(false) {
            return Err(failure(KCELOGIC, c"a callback has called its own database"));
        }
        Ok(())
    }

    fn shared(&self) -> Outcome<RwLockReadGuard<'_, Option<Open>>> {
        self.refuse_within()?;
        Ok(self.gate.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn alone(&self) -> Outcome<RwLockWriteGuard<'_, Option<Open>>> {
        self.refuse_within()?;
        Ok(self.gate.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// The number that changes with every write.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// To be called after every write, also one that failed, and before its lock is let go of.
    pub(crate) fn changed(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Reads.
    pub(crate) fn look<T>(&self, f: impl FnOnce(&mut Access<'_>) -> Outcome<T>) -> Outcome<T> {
        let gate = self.shared()?;
        let open = gate.as_ref().ok_or(NOT_OPENED)?;
        let mut outer = open.outer();
        f(&mut Access::new(open, outer.as_deref_mut()))
    }

    /// The lock of a record, against changes of it.
    fn stripe(&self, key: &[u8]) -> MutexGuard<'_, ()> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        let stripes = u64::try_from(STRIPES).unwrap_or(u64::MAX);
        lock(&self.stripes[usize::try_from(hash % stripes).unwrap_or(0)])
    }

    /// Reads the record of a key, which nobody changes meanwhile.
    pub(crate) fn hold<T>(&self, key: &[u8], f: impl FnOnce(&mut Access<'_>) -> Outcome<T>) -> Outcome<T> {
        let gate = self.shared()?;
        let open = gate.as_ref().ok_or(NOT_OPENED)?;
        let _stripe = self.stripe(key);
        let mut outer = open.outer();
        f(&mut Access::new(open, outer.as_deref_mut()))
    }

    /// Changes the record of a key.
    pub(crate) fn write<T>(&self, key: &[u8], f: impl FnOnce(&mut Access<'_>) -> Outcome<T>) -> Outcome<T> {
        let gate = self.shared()?;
        let open = gate.as_ref().ok_or(NOT_OPENED)?;
        if !open.writer {
            return Err(NOT_WRITER);
        }
        let _stripe = self.stripe(key);
        let mut outer = open.outer();
        let mut access = Access::new(open, outer.as_deref_mut());
        let done = f(&mut access);
        access.tell(self);
        done
    }

    /// Reads or changes any records while everybody else waits.
    pub(crate) fn all<T>(&self, writes: bool, f: impl FnOnce(&mut Access<'_>) -> Outcome<T>) -> Outcome<T> {
        let gate = self.alone()?;
        let open = open_for(&gate, writes)?;
        let mut outer = open.outer();
        let mut access = Access::new(open, outer.as_deref_mut());
        let done = f(&mut access);
        access.tell(self);
        done
    }

    /// As `all`, to change many records. If `atomic`, all changes are made or none, also in the transaction
    /// under way.
    pub(crate) fn many<T>(&self, atomic: bool, f: impl FnOnce(&mut Access<'_>) -> Outcome<T>) -> Outcome<T> {
        let gate = self.alone()?;
        let open = open_for(&gate, true)?;
        let mut outer = open.outer();
        let before = outer.as_deref_mut().filter(|_| atomic).map(WriteTxn::savepoint);
        let mut access = Access::batch(open, outer.as_deref_mut(), atomic);
        let done = f(&mut access);
        access.tell(self);
        let done = done.and_then(|done| access.finish().map(|()| done));
        if let (Err(_), Some(before), Some(txn)) = (&done, before, outer.as_deref_mut()) {
            txn.rollback_to(&before)?;
        }
        done
    }

    /// The place of a new cursor.
    pub(crate) fn place(&self) -> Arc<Mutex<CursorPlace>> {
        let place = Arc::new(Mutex::default());
        let mut places = lock(&self.places);
        // Now and then, so that it costs each cursor little.
        if places.len().is_power_of_two() {
            places.retain(|place| place.strong_count() > 0);
        }
        places.push(Arc::downgrade(&place));
        place
    }

    /// Opens the database by `f`.
    pub(crate) fn open(&self, f: impl FnOnce() -> Outcome<Open>) -> Outcome<()> {
        let mut gate = self.alone()?;
        if gate.is_some() {
            return Err(failure(KCEINVALID, c"already opened"));
        }
        *gate = Some(f()?);
        self.changed();
        Ok(())
    }

    /// Closes the database. A transaction under way is rolled back. A database that cannot be closed without
    /// a loss stays open.
    pub(crate) fn close(&self) -> Outcome<()> {
        let mut gate = self.alone()?;
        let open = gate.as_mut().ok_or(NOT_OPENED)?;
        open.txn = None;
        self.turn_over();
        self.changed();
        for place in lock(&self.places).iter().filter_map(Weak::upgrade) {
            *lock(&place) = CursorPlace::default();
        }
        match open.db.try_close() {
            Err(error @ azekura::Error::NotDurable { .. }) => Err(error.into()),
            closed => {
                *gate = None;
                Ok(closed?)
            }
        }
    }

    fn turn_over(&self) {
        *lock(&self.turn) = None;
        self.turned.notify_all();
    }

    /// Begins a transaction. If one is under way, it waits for its end or fails.
    pub(crate) fn begin(&self, hard: bool, waits: bool) -> Outcome<()> {
        open_for(&*self.shared()?, true)?;
        let me = thread::current().id();
        let mut turn = lock(&self.turn);
        while let Some(owner) = *turn {
            if !waits {
                return Err(failure(KCELOGIC, c"another transaction is under way"));
            }
            if owner == me {
                return Err(failure(KCELOGIC, c"this thread has begun a transaction already"));
            }
            turn = self.turned.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        *turn = Some(me);
        drop(turn);
        let begun = self.begin_now(hard);
        if begun.is_err() {
            self.turn_over();
        }
        begun
    }

    fn begin_now(&self, hard: bool) -> Outcome<()> {
        let mut gate = self.alone()?;
        let open = gate.as_mut().ok_or(NOT_OPENED)?;
        if !open.writer {
            return Err(NOT_WRITER);
        }
        let txn = open.begin(hard.then_some(Durability::Sync));
        open.txn = Some(Mutex::new(txn));
        Ok(())
    }

    /// Ends the transaction.
    pub(crate) fn end(&self, commits: bool) -> Outcome<()> {
        let mut gate = self.alone()?;
        let open = gate.as_mut().ok_or(NOT_OPENED)?;
        let Some(txn) = open.txn.take() else {
            return Err(failure(KCEINVALID, c"not in transaction"));
        };
        let txn = txn.into_inner().unwrap_or_else(PoisonError::into_inner);
        let ended: Result<(), Failure> = if commits {
            txn.commit().map_err(Failure::from)
        } else {
            txn.rollback();
            Ok(())
        };
        self.changed();
        self.turn_over();
        ended
    }
}

impl Access<'_> {
    /// Tells cursors of what was written.
    pub(crate) fn tell(&mut self, store: &Store) {
        if std::mem::take(&mut self.untold) {
            store.changed();
        }
    }
}

fn open_for(gate: &Option<Open>, writes: bool) -> Outcome<&Open> {
    match gate {
        Some(open) if writes && !open.writer => Err(NOT_WRITER),
        Some(open) => Ok(open),
        None => Err(NOT_OPENED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::{KCOCREATE, KCOWRITER};

    #[test]
    fn cursors_are_told_of_writes_and_of_nothing_else() {
        let store = Store::new();
        store.open(|| crate::files::open(b"%", KCOWRITER | KCOCREATE)).expect("it opens");
        let opened = store.version();
        store.all(false, |access| access.count()).expect("it counts");
        store.write(b"k", |access| access.get(b"k")).expect("it reads");
        assert_eq!(store.version(), opened);
        store.write(b"k", |access| access.put(b"k", b"v")).expect("it writes");
        let written = store.version();
        assert_ne!(written, opened);
        store.all(true, |access| access.clear()).expect("it clears");
        assert_ne!(store.version(), written);
    }
}
