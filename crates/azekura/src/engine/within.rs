//! What a thread commits from within a closure that the engine has called.
//!
//! The engine calls the closure again if its transaction met another commit. If the closure makes that commit
//! itself, it would be called for ever.

use super::Engine;
use std::cell::RefCell;
use std::ops::Range;

/// A closure under way: the engine that has called it, and what this thread has committed there meanwhile.
struct Within {
    engine: *const Engine,
    commits: Vec<Range<u64>>,
}

thread_local! {
    static WITHIN: RefCell<Vec<Within>> = const { RefCell::new(Vec::new()) };
}

/// Ends what `watch` began, also by a panic.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        WITHIN.with_borrow_mut(|all| all.pop());
    }
}

/// Calls `f`, and gives what this thread has committed meanwhile, as ranges of sequence numbers.
pub(crate) fn watch<T>(engine: &Engine, f: impl FnOnce() -> T) -> (T, Vec<Range<u64>>) {
    WITHIN.with_borrow_mut(|all| all.push(Within { engine, commits: Vec::new() }));
    let end = End;
    let out = f();
    let commits = WITHIN.with_borrow_mut(|all| all.last_mut().map(|w| std::mem::take(&mut w.commits)));
    drop(end);
    (out, commits.unwrap_or_default())
}

/// This thread has committed.
#[inline]
pub(super) fn note(engine: &Engine, seq: u64) {
    WITHIN.with_borrow_mut(|all| {
        for within in all.iter_mut().filter(|w| std::ptr::eq(w.engine, engine)) {
            match within.commits.last_mut() {
                Some(last) if last.end == seq => last.end = seq + 1,
                _ => within.commits.push(seq..seq + 1),
            }
        }
    });
}
