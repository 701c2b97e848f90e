//! Which file a call is about, for its message.
//!
//! A handle has the number of its database's file (`slots`), and so has what is made by a call that uses it.
//! A call notes the number of the handle that it used last in its thread's seat. The names are looked up only
//! where a call fails. Of many files the names of the last [`KEPT`] that were opened are known.

use crate::seat;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

/// So many names are kept.
const KEPT: usize = 1024;

/// The names, by number.
struct Names {
    /// In the order of their numbers, which have no gaps.
    names: VecDeque<String>,
    /// The number of the first. 0 is no file.
    first: u32,
}

impl Names {
    /// The number of a file, which is given if it has none.
    fn number(&mut self, name: String) -> u32 {
        let known = self.names.iter().position(|known| *known == name);
        let place = known.unwrap_or_else(|| {
            if self.names.len() == KEPT {
                self.names.pop_front();
                self.first = self.first.checked_add(1).unwrap_or(1);
            }
            self.names.push_back(name);
            self.names.len() - 1
        });
        u32::try_from(place).ok().and_then(|place| self.first.checked_add(place)).unwrap_or(0)
    }

    fn name(&self, number: u32) -> Option<String> {
        let place = number.checked_sub(self.first).filter(|_| number > 0)?;
        self.names.get(usize::try_from(place).ok()?).cloned()
    }
}

/// None in a forked child whose parent held the lock: it may never be free again.
fn names() -> Option<MutexGuard<'static, Names>> {
    static NAMES: Mutex<Names> = Mutex::new(Names { names: VecDeque::new(), first: 1 });
    static PROCESS: OnceLock<u32> = OnceLock::new();
    let process = *PROCESS.get_or_init(std::process::id);
    match NAMES.try_lock() {
        Ok(names) => Some(names),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) if std::process::id() != process => None,
        Err(TryLockError::WouldBlock) => Some(NAMES.lock().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// This call has opened a file. The handle that it makes is of that.
pub(crate) fn opened(path: &Path) {
    let number = names().map_or(0, |mut names| names.number(path.to_string_lossy().into_owned()));
    seat::mine().file.store(number, Ordering::Relaxed);
}

/// This call is about no file of a handle.
pub(crate) fn none() {
    seat::mine().file.store(0, Ordering::Relaxed);
}

/// The name of the file that this call is about.
pub(crate) fn name() -> Option<String> {
    match seat::mine().file.load(Ordering::Relaxed) {
        0 => None,
        number => names()?.name(number),
    }
}

/// Calls a callback, which may use handles of other files.
#[inline(always)]
pub(crate) fn within<T>(callback: impl FnOnce() -> T) -> T {
    let seat = seat::mine();
    let file = seat.file.load(Ordering::Relaxed);
    let out = callback();
    seat.file.store(file, Ordering::Relaxed);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_names_are_known_by_their_numbers() {
        let mut names = Names { names: VecDeque::new(), first: 1 };
        let first = names.number("0".to_owned());
        assert_eq!((first, names.number("0".to_owned()), names.name(0)), (1, 1, None));
        let numbers: Vec<u32> = (1..=KEPT).map(|n| names.number(n.to_string())).collect();
        assert_eq!(names.name(first), None);
        for (n, number) in (1..=KEPT).zip(&numbers) {
            assert_eq!(names.name(*number), Some(n.to_string()));
        }
        assert_eq!((names.names.len(), names.name(u32::MAX)), (KEPT, None));
        // Opened again it is another file.
        assert_ne!(names.number("0".to_owned()), first);
        // Numbers begin anew when they have ended, and what was known before is not mistaken for it.
        let mut old = Names { names: VecDeque::new(), first: u32::MAX };
        assert_eq!((old.number("a".to_owned()), old.number("b".to_owned())), (u32::MAX, 0));
    }
}
