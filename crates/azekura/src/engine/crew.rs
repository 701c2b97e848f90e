//! The threads of the background. Each starts when there is first something for it to do, so a handle that
//! only reads has none.
//!
//! The log's thread is the first. It starts before anything is changed, or when the database is opened and
//! something is waiting. From then on it looks a few times a second what else there is to do (`keep_watch`).
//! Where that would take too long, the one who makes the work starts the thread: a freeze starts the flush, a
//! large value its writer, a flush the merges.
//!
//! If the system refuses a thread nothing is lost. An eventual commit becomes a durable one. A caller that
//! waits for a flush or for large values does the work. Merges wait. The next occasion asks again. Once
//! closing has begun to end the threads, none starts.
//!
//! Merging threads start no others: those would inherit their low priorities.

use super::Engine;
use super::background::LOOK;
use super::compaction::pick::{CLASSES, is_due};
use super::relocate::is_loose_for_idle_time;
use crate::base::error::{Error, Result};
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::sync::thread::{self, JoinHandle};
use crate::base::sync::{Instant, Mutex};
use std::sync::{Arc, OnceLock, Weak};

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
    fn doing(self) -> &'static str {
        match self {
            Role::Flush => "looking after flushes",
            Role::Log => "looking after the log",
            Role::Values => "writing large values",
            Role::Merge(_) => "looking after merges",
            Role::Sweep => "making room",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Role::Flush => "azekura-flush",
            Role::Log => "azekura-log",
            Role::Values => "azekura-values",
            Role::Merge(_) => "azekura-merge",
            Role::Sweep => "azekura-sweep",
        }
    }
}

/// The threads of an engine.
pub(super) struct Crew {
    engine: OnceLock<Weak<Engine>>,
    /// Which were started. Those that never are count as started.
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
    pub(super) fn belong_to(&self, engine: &Arc<Engine>) {
        let _set_once = self.engine.set(Arc::downgrade(engine));
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
    fn end(&self) -> Vec<JoinHandle<()>> {
        let mut hands = self.hands.lock();
        hands.ended = true;
        std::mem::take(&mut hands.threads)
    }
}

impl Engine {
    /// Called before anything is changed: the background looks after it from now on. False if the system
    /// refuses the thread.
    #[inline(always)]
    pub(super) fn look_after(&self) -> bool {
        self.background.crew.has(Role::Log) || self.begin_to_look_after()
    }

    #[cold]
    fn begin_to_look_after(&self) -> bool {
        // Nobody has looked since the file was opened.
        self.room.look();
        self.background.crew.need(Role::Log).is_ok()
    }

    /// Starts the background at once if the file leaves something to do: it was not closed, or holds what
    /// idle time would merge, move or cut. Nothing is read to learn that. In doubt there is something.
    pub(super) fn look_after_what_waits(&self) -> Result<()> {
        if self.background.crew.has(Role::Log) || !self.something_waits()? {
            return Ok(());
        }
        // If it is refused, the first commit asks again.
        let _later = self.background.crew.need(Role::Log);
        Ok(())
    }

    fn something_waits(&self) -> Result<bool> {
        if !self.checkpointer.is_clean() || self.room.is_tight() {
            return Ok(true);
        }
        if !self.config.background_merges {
            return Ok(false);
        }
        let several = self.state.load().tables.with_runs().any(|t| t.levels.len() > 1);
        // Of tables with one level each, all that is looked at here is in memory.
        if several || is_loose_for_idle_time(&self.space) {
            return Ok(true);
        }
        let survey = self.survey();
        if survey.log_is_long(self.log.file_bytes()) || !survey.excess().is_empty() {
            return Ok(true);
        }
        if (0..CLASSES).any(|class| is_due(&self.state.load(), class, &self.sizes(), true)) {
            return Ok(true);
        }
        let bytes = self.file.len().map_err(|e| Error::io("reading the file's length", e))?;
        Ok(bytes > self.space.end())
    }

    /// What the log's thread does beside the log. It has looked at the disk at `looked`.
    pub(super) fn keep_watch(&self, looked: &mut Instant) {
        if looked.elapsed() >= LOOK {
            self.room.look();
            self.look_at_pins();
            *looked = Instant::now();
        }
        // What the system refuses is asked for again the next time. The thread that flushes comes first, for
        // idle time flushes too and must not start it.
        if self.background.crew.need(Role::Flush).is_ok() {
            let _later = self.background.crew.need(Role::Merge(CLASSES - 1));
        }
        if self.values.wants_writer() {
            let _later = self.background.crew.need(Role::Values);
        }
        self.start_merges();
    }

    /// Frees what only pins kept that are gone. Without a checkpoint nobody else looks. It waits for none: that
    /// looks itself, and the log's thread has commits that are due.
    fn look_at_pins(&self) {
        if self.space.kept_bytes() > 0
            && let Some(newest) = self.checkpointer.try_lock()
        {
            self.checkpointer.find_pins(&newest);
        }
    }

    /// Starts those that have a merge to do.
    pub(super) fn start_merges(&self) {
        for class in 0..CLASSES {
            let has_job = |_: &dyn Fn() -> bool| is_due(&self.state.load(), class, &self.sizes(), false);
            if !self.background.crew.has(Role::Merge(class))
                && self.background.look_at_runs(has_job) == Some(true)
            {
                let _later = self.background.crew.need(Role::Merge(class));
            }
        }
    }

    /// Ends the threads: they finish the step they are at.
    pub(super) fn stop_threads(&self) {
        self.background.stop();
        self.values.stop();
        self.background.wake();
        for thread in self.background.crew.end() {
            // A thread that panicked has already said so on standard error.
            let _panicked = thread.join();
        }
    }

    /// A panic here would leave work undone for which everybody relies on the thread, so it poisons the handle.
    fn work_as(&self, role: Role) {
        let armed = self.poison.armed(role.doing());
        match role {
            Role::Flush => self.flush_loop(),
            Role::Log => self.log_loop(),
            Role::Values => self.values.run(),
            Role::Merge(class) => self.merge_loop(class),
            Role::Sweep => self.sweep_loop(),
        }
        armed.disarm();
    }
}
