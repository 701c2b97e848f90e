//! Where a cursor stands: at a record, or nowhere.
//!
//! A place knows the key of its record. It also has a cursor of the engine beside it, which sees the records
//! as they were when it was made. Once anything was written another one is made, and goes to the key. If the
//! record is gone by then, the place is the next one.

use crate::access::Access;
use crate::codes::{KCENOIMPL, KCENOREC};
use crate::errors::{Failure, NO_RECORD, NOT_WRITER, Outcome, failure};
use crate::name::Back;
use crate::standing::{CursorPlace, Walk};
use crate::store::Store;
use crate::visitor::Visitor;
use azekura::TableKind;

/// Values of so many bytes are copied at each step. Larger ones are read when they are asked for.
const VALUE_COPIED_MAX: usize = 4096;

const NO_WAY_BACK: Failure = failure(KCENOIMPL, c"not implemented: cursors of this kind do not go back");

/// Where to go.
#[derive(Clone, Copy)]
pub(crate) enum Jump<'a> {
    First,
    Last,
    /// To a key, or the first one above it.
    Key(&'a [u8]),
    /// To a key, or the last one below it.
    BackKey(&'a [u8]),
}

impl CursorPlace {
    /// Goes somewhere. If there is no record, the place is nowhere.
    pub(crate) fn jump(&mut self, store: &Store, access: &Access<'_>, to: Jump<'_>) -> Outcome<()> {
        let kind = access.open.kind;
        let back = matches!(to, Jump::Last | Jump::BackKey(_));
        if back && kind.back == Back::Never {
            return Err(NO_WAY_BACK);
        }
        *self = CursorPlace { back: back && kind.back == Back::Turns, ..CursorPlace::default() };
        let version = store.version();
        let mut cursor = access.cursor()?;
        let is_ordered = kind.table == TableKind::Ordered;
        let mut forward = true;
        match to {
            Jump::First => {}
            Jump::Last => {
                cursor.seek_last();
                forward = false;
            }
            Jump::Key(key) => cursor.seek_place(key),
            Jump::BackKey(key) => {
                cursor.seek_place(key);
                let is_there = cursor.next()?.is_some_and(|(found, _)| found == key);
                cursor.seek_place(key);
                forward = is_there || !is_ordered;
            }
        }
        let exact = match to {
            Jump::Key(key) | Jump::BackKey(key) if !is_ordered => Some(key),
            _ => None,
        };
        self.walk = Some(Walk { cursor, version, behind: !forward });
        self.take(access, forward)?;
        if exact.is_some_and(|key| self.at.as_ref().is_some_and(|at| at.key != key)) {
            self.at = None;
            return Err(NO_RECORD);
        }
        Ok(())
    }

    /// Takes the next record of the engine's cursor in a direction.
    fn take(&mut self, access: &Access<'_>, forward: bool) -> Outcome<()> {
        let (Some(walk), mut record) = (&mut self.walk, self.at.take().unwrap_or_default()) else {
            return Err(NO_RECORD);
        };
        let found = if forward { walk.cursor.next()? } else { walk.cursor.prev()? };
        let (key, value) = found.ok_or(NO_RECORD)?;
        record.key.clear();
        record.key.extend_from_slice(key);
        record.opening = access.open.opening;
        if value.len() <= VALUE_COPIED_MAX {
            let bytes = value.bytes()?;
            let copy = record.value.get_or_insert_default();
            copy.clear();
            copy.extend_from_slice(bytes);
        } else {
            record.value = None;
        }
        walk.behind = forward;
        self.at = Some(record);
        Ok(())
    }

    /// Makes sure that the record is as it is now.
    fn settle(&mut self, store: &Store, access: &Access<'_>) -> Outcome<()> {
        if let Some(failure) = self.failed.take() {
            return Err(failure);
        }
        let version = store.version();
        let at = self.at.as_ref().filter(|at| at.opening == access.open.opening).ok_or(NO_RECORD)?;
        if self.walk.as_ref().is_some_and(|walk| walk.version == version) {
            return Ok(());
        }
        let mut cursor = access.cursor()?;
        cursor.seek_place(&at.key);
        self.walk = Some(Walk { cursor, version, behind: false });
        self.take(access, true)
    }

    /// The key and value of the record, by `f`. With `steps` the place is the next one then, or nowhere.
    pub(crate) fn get<T>(
        &mut self,
        store: &Store,
        access: &Access<'_>,
        steps: bool,
        f: impl FnOnce(&[u8], &[u8]) -> Outcome<T>,
    ) -> Outcome<T> {
        self.settle(store, access)?;
        let at = self.at.as_ref().ok_or(NO_RECORD)?;
        let got = match &at.value {
            Some(value) => f(&at.key, value)?,
            None => access.get_with(&at.key, |value| f(&at.key, value))?.ok_or(NO_RECORD)??,
        };
        if steps {
            self.go_on(store, access);
        }
        Ok(got)
    }

    /// The key of the record, by `f`; else as `get`.
    pub(crate) fn key<T>(
        &mut self,
        store: &Store,
        access: &Access<'_>,
        steps: bool,
        f: impl FnOnce(&[u8]) -> Outcome<T>,
    ) -> Outcome<T> {
        self.settle(store, access)?;
        let got = f(&self.at.as_ref().ok_or(NO_RECORD)?.key)?;
        if steps {
            self.go_on(store, access);
        }
        Ok(got)
    }

    /// Goes to the next or the previous record. If there is none, the place is nowhere.
    pub(crate) fn step(&mut self, store: &Store, access: &Access<'_>, forward: bool) -> Outcome<()> {
        let kind = access.open.kind;
        if !forward && kind.back == Back::Never {
            return Err(NO_WAY_BACK);
        }
        self.back = !forward && kind.back == Back::Turns;
        self.settle(store, access)?;
        self.go(access, forward)
    }

    /// From a record that is as it is now.
    fn go(&mut self, access: &Access<'_>, forward: bool) -> Outcome<()> {
        if let Some(walk) = self.walk.as_mut().filter(|walk| walk.behind != forward) {
            // It stands on this side of the record.
            if forward {
                walk.cursor.next()?
            } else {
                walk.cursor.prev()?
            };
        }
        self.take(access, forward)
    }

    /// Steps after a call that has succeeded, whether there is a next record or not.
    fn go_on(&mut self, store: &Store, access: &Access<'_>) {
        let gone = self.settle(store, access).and_then(|()| self.go(access, !self.back));
        self.keep(gone);
    }

    /// Goes on from a record that was removed.
    fn leave(&mut self, store: &Store, access: &Access<'_>) {
        let (version, forward) = (store.version(), !self.back);
        let gone = access.cursor().and_then(|mut cursor| {
            cursor.seek_place(&self.at.as_ref().ok_or(NO_RECORD)?.key);
            self.walk = Some(Walk { cursor, version, behind: !forward });
            self.take(access, forward)
        });
        self.keep(gone);
    }

    fn keep(&mut self, gone: Outcome<()>) {
        self.failed = gone.err().filter(|failure| failure.code != KCENOREC);
    }

    /// Visits the record, and does what the visitor wants. With `steps` the place is the next one then;
    /// without it too if the record was removed.
    pub(crate) fn visit(
        &mut self,
        store: &Store,
        access: &mut Access<'_>,
        visitor: Visitor,
        (writes, steps): (bool, bool),
    ) -> Outcome<()> {
        if writes && !access.open.writer {
            return Err(NOT_WRITER);
        }
        self.settle(store, access)?;
        let key = self.at.as_ref().ok_or(NO_RECORD)?.key.clone();
        let value = access.get(&key)?.ok_or(NO_RECORD)?;
        let removed = store.within(|| visitor.apply(access, &key, Some(&value), writes))?;
        access.tell(store);
        if removed {
            self.leave(store, access);
        } else if steps {
            self.go_on(store, access);
        }
        Ok(())
    }

    /// Sets the value of the record.
    pub(crate) fn set(
        &mut self,
        store: &Store,
        access: &mut Access<'_>,
        value: &[u8],
        steps: bool,
    ) -> Outcome<()> {
        self.settle(store, access)?;
        access.put(&self.at.as_ref().ok_or(NO_RECORD)?.key, value)?;
        access.tell(store);
        if steps {
            self.go_on(store, access);
        }
        Ok(())
    }

    /// Removes the record, after `f` has seen its key and value.
    pub(crate) fn remove<T>(
        &mut self,
        store: &Store,
        access: &mut Access<'_>,
        f: impl FnOnce(&[u8], &[u8]) -> Outcome<T>,
    ) -> Outcome<T> {
        if !access.open.writer {
            return Err(NOT_WRITER);
        }
        let got = self.get(store, access, false, f)?;
        access.remove(&self.at.as_ref().ok_or(NO_RECORD)?.key)?;
        access.tell(store);
        self.leave(store, access);
        Ok(got)
    }
}
