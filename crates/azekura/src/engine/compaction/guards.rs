//! Turns as values. When they are dropped, also by a panic, what they stand for has ended. A `Turn` is a
//! merge, a `Look` a look at the runs of a state. `Paused` holds merges back.

use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::engine::background::Background;
use std::cell::Cell;
use std::time::Duration;

/// Waits end at a signal. This is for those that are missed.
const WAIT: Duration = Duration::from_millis(50);

impl Background {
    /// Holds merges back until the result is dropped, and waits for those under way.
    pub(in crate::engine) fn pause_merges(&self) -> Paused<'_> {
        Paused::new(self, &self.holding_back)
    }

    /// Looks at the runs of a state for long, unless merges are held back. `look` is told when somebody wants
    /// to hold them back, and ends then.
    pub(in crate::engine) fn look_at_runs<T>(&self, look: impl FnOnce(&dyn Fn() -> bool) -> T) -> Option<T> {
        let _look = Look::begin(self)?;
        Some(look(&|| !self.are_merges_paused() && !self.stopping()))
    }

    /// Does a merge whose inputs are taken. Others may pick them again when it has ended, also by a panic.
    pub(in crate::engine) fn in_turn<T>(&self, class: usize, merge: impl FnOnce() -> T) -> T {
        let _turn = Turn { background: self, class };
        merge()
    }
}

/// The turn of a merge that has begun.
struct Turn<'a> {
    background: &'a Background,
    class: usize,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.background.lock().turns.end(self.class);
        self.background.notify();
    }
}

/// A long look at the runs of a state. Whoever holds merges back waits until it has ended, for what is looked
/// at is not free.
struct Look<'a>(&'a Background);

impl<'a> Look<'a> {
    /// Nothing if somebody holds merges back.
    fn begin(background: &'a Background) -> Option<Look<'a>> {
        let turns = &mut background.lock().turns;
        if turns.paused > 0 {
            return None;
        }
        turns.looks += 1;
        Some(Look(background))
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        let is_awaited = {
            let turns = &mut self.0.lock().turns;
            turns.looks -= 1;
            turns.are_paused()
        };
        // Looks are many and short. Nobody else waits for their end.
        if is_awaited {
            self.0.notify();
        }
    }
}

/// Merges are held back while this lives, and nobody else reorders the runs.
pub(in crate::engine) struct Paused<'a> {
    background: &'a Background,
    holding_back: &'a AtomicU64,
    /// Somebody else may reorder the runs while this one has stepped aside.
    has_turn: Cell<bool>,
}

impl<'a> Paused<'a> {
    /// Holds back new merges, and waits for those under way, for those who look at runs, and for others who
    /// do the same. `holding_back` counts those who do, for readers without the lock.
    fn new(background: &'a Background, holding_back: &'a AtomicU64) -> Paused<'a> {
        let mut work = background.lock();
        work.turns.paused += 1;
        holding_back.fetch_add(1, Ordering::Relaxed);
        while work.turns.running > 0 || work.turns.looks > 0 || work.turns.reordering {
            background.wait(&mut work, WAIT);
        }
        work.turns.reordering = true;
        Paused { background, holding_back, has_turn: Cell::new(true) }
    }

    /// Calls out. Merges stay held back, but others may reorder the runs meanwhile: `f` may be the caller's
    /// code. It may want to compact or to close, or wait for a thread that does. Nothing that was known of
    /// the runs before holds afterwards.
    pub(in crate::engine) fn step_aside(&self, f: impl FnOnce()) {
        self.has_turn.set(false);
        self.end_turn();
        f();
        let mut work = self.background.lock();
        while work.turns.reordering {
            self.background.wait(&mut work, WAIT);
        }
        work.turns.reordering = true;
        self.has_turn.set(true);
    }

    fn end_turn(&self) {
        self.background.lock().turns.reordering = false;
        self.background.notify();
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        if self.has_turn.get() {
            self.end_turn();
        }
        self.holding_back.fetch_sub(1, Ordering::Relaxed);
        self.background.lock().turns.paused -= 1;
        self.background.notify();
    }
}
