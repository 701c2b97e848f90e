//! A transaction that several threads may hold. One uses it at a time; the others wait.
//!
//! The lock is taken and released while the thread is detached from the interpreter. So its holder never
//! waits for a thread that waits for the lock. In a forked child the holder may not exist, so the child gets
//! an error instead of waiting forever.

use crate::errors::{Failure, in_file};
use azekura::{Db, Error, Result};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A value that stays until one thread takes it.
pub struct Shared<T> {
    held: Mutex<Option<T>>,
    /// Whose it is, for what errors say.
    db: Option<Db>,
    process: u32,
}

impl<T> Shared<T> {
    /// Holds `value`.
    pub fn new(value: T) -> Shared<T> {
        Shared { held: Mutex::new(Some(value)), db: None, process: std::process::id() }
    }

    /// Holds what is of a database.
    pub fn of(db: &Db, value: T) -> Shared<T> {
        Shared { db: Some(db.clone()), ..Shared::new(value) }
    }

    /// Uses the value. REQUIRES: the thread is detached.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> Result<R>) -> std::result::Result<R, Failure> {
        let mut held = self.lock().map_err(|error| self.failure(error))?;
        let value = held.as_mut().ok_or(Failure::Over)?;
        f(value).map_err(|error| self.failure(error))
    }

    /// Takes the value out. Other threads then get `Over`. REQUIRES: the thread is detached.
    pub fn take(&self) -> std::result::Result<T, Failure> {
        self.lock().map_err(|error| self.failure(error))?.take().ok_or(Failure::Over)
    }

    fn failure(&self, error: Error) -> Failure {
        match &self.db {
            Some(db) => in_file(db)(error),
            None => error.into(),
        }
    }

    fn lock(&self) -> Result<MutexGuard<'_, Option<T>>> {
        match self.held.try_lock() {
            Ok(held) => Ok(held),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if std::process::id() != self.process => Err(Error::Forked),
            Err(TryLockError::WouldBlock) => Ok(self.held.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}
