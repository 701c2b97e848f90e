//! The threads of the background. Each starts when there is first something for it to do, so a handle that
//! only reads has none.
//!
//! The log's thread is the first. It starts before anything is changed, or when the database is opened and
//! something is waiting. From then on it looks a few times a second what else there is to do (`watch.rs`).
//! Where that would take too long, the part that makes the work starts the thread. A freeze starts the flush,
//! a large value its writer, a flush the merges.
//!
//! If the system refuses a thread nothing is lost. An eventual commit becomes a durable one. A caller that
//! waits for a flush or for large values does the work. Merges wait. The next occasion asks again. Once
//! closing has begun to end the threads, none starts.
//!
//! Merging threads start no others: those would inherit their low priorities.

use super::compaction::pick::CLASSES;
use crate::base::error::{Error, Result};
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::sync::thread::{self, JoinHandle};
use std::sync::{OnceLock, Weak};

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Flush,
    /// Writes the log when the eventual delay has passed, and looks after the others.
    Log,
    /// Writes large values.
    Values,
    /// One for each class of merges. The last one does what idle time does, too.
    Merge(usize),
    /// Merges what keeps much that is dead, while writers wait for room or soon would.
    Sweep,
}

const ROLES: usize = 4 + CLASSES;

impl Role {
    fn index(self) -> usize {
        match self {
            Role::Flush => 0,
            Role::Log => 1,
            Role::Values => 2,
            Role::Merge(class) => 3 + class,
            Role::Sweep => 3 + CLASSES,
        }
    }

    /// For the message of a panic.
    pub(super) fn doing(self) -> &'static str {
        match self {
            Role::Flush => "looking after flushes",
            Role::Log => "looking after the log",
            Role::Values => "writing large values",
            Role::Merge(_) => "looking after merges",
            Role::Sweep => "making room",
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Role::Flush => "azekura-flush",
            Role::Log => "azekura-log",
            Role::Values => "azekura-values",
            Role::Merge(_) => "azekura-merge",
            Role::Sweep => "azekura-sweep",
        }
    }
}

/// What the threads work for: the engine. They know no more of it than this.
pub(super) trait Work: Send + Sync {
    /// What a thread does, from its start to its end.
    fn work_as(&self, role: Role);
}

/// The threads of an engine.
pub(super) struct Crew {
    engine: OnceLock<Weak<dyn Work>>,
    /// Which were started. Threads that are never started count as started.
    started: [AtomicBool; ROLES],
    hands: Mutex<Hands>,
    /// The system refuses to start one.
    #[cfg(test)]
    pub(super) refused: AtomicBool,
}

#[derive(Default)]
struct Hands {
    threads: Vec<JoinHandle<()>>,
    /// None starts any more.
    ended: bool,
}

impl Crew {
    /// `threads` and `merges`: whether there are any, and any that merge.
    pub(super) fn new(threads: bool, merges: bool) -> Crew {
        let never = |role: usize| !threads || !merges && role >= Role::Merge(0).index();
        Crew {
            engine: OnceLock::new(),
            started: std::array::from_fn(|role| AtomicBool::new(never(role))),
            hands: Mutex::default(),
            #[cfg(test)]
            refused: AtomicBool::new(false),
        }
    }

    /// The engine for which the threads work. REQUIRES: called before any starts.
    pub(super) fn belong_to(&self, engine: Weak<dyn Work>) {
        let _set_once = self.engine.set(engine);
    }

    /// Whether a thread was started, or never is.
    #[inline(always)]
    pub(super) fn has(&self, role: Role) -> bool {
        self.started[role.index()].load(Ordering::Relaxed)
    }

    /// Sees to it that a thread is there, if the options allow it and the engine is not being closed.
    ///
    /// # Errors
    /// What the system says if it starts none: the work is the caller's then, or waits for the next occasion.
    #[inline(always)]
    pub(super) fn need(&self, role: Role) -> Result<()> {
        if self.has(role) { Ok(()) } else { self.start(role) }
    }

    #[cold]
    fn start(&self, role: Role) -> Result<()> {
        let mut hands = self.hands.lock();
        let Some(engine) = self.engine.get().and_then(Weak::upgrade) else { return Ok(()) };
        if hands.ended || self.has(role) {
            return Ok(());
        }
        #[cfg(test)]
        if self.refused.load(Ordering::Relaxed) {
            return Err(Error::io("starting a thread", std::io::ErrorKind::WouldBlock.into()));
        }
        let builder = thread::Builder::new().name(role.name().into());
        let started =
            builder.spawn(move || engine.work_as(role)).map_err(|e| Error::io("starting a thread", e))?;
        hands.threads.push(started);
        self.started[role.index()].store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The threads that were started. None starts after this.
    pub(super) fn end(&self) -> Vec<JoinHandle<()>> {
        let mut hands = self.hands.lock();
        hands.ended = true;
        std::mem::take(&mut hands.threads)
    }
}
