//! What a state of a follower shows: a checkpoint, and what the log says beyond it (`follow.rs`).

use super::Engine;
use super::found::LogTail;
use super::state::State;
use crate::base::codec::u64_at;
use crate::base::error::Result;
use crate::base::limits::SUPERBLOCKS_BYTES;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{Instant, Mutex};
use crate::format::superblock::NUMBER_AT;
use crate::log::recovery::{Tail, mark_of};
use crate::run::PageSource;
use crate::storage::{FileMapping, Lease};
use std::sync::Arc;
use std::time::Duration;

/// The log has no end that could grow.
const NO_TAIL: u64 = 0;
/// A frame is being written at the log's end.
const TAIL_COMES: u64 = u64::MAX;
/// A frame that is written for so long does not come soon: its writer was stopped, or killed.
const STUCK_AFTER: Duration = Duration::from_millis(50);
/// How often is looked whether it has come. Each look reads what stands behind it.
const STUCK_LOOKS: Duration = Duration::from_millis(10);

/// What a follower has found in the file: a checkpoint, and what the log says beyond it.
pub(crate) struct Followed {
    /// An engine of which only its tables, memtables and values are used.
    pub(super) engine: Engine,
    /// The number of the superblock.
    pub(super) number: u64,
    /// Where the next frame of the log will come, and the mark of what stands there until then.
    tail_at: AtomicU64,
    tail_mark: AtomicU64,
    /// The newest commit before that place. A state that shows fewer is not the newest.
    tail_shows: AtomicU64,
    /// The time, in microseconds since `began`, from which on the tail is looked at whatever its mark. 0:
    /// never.
    look_again: AtomicU64,
    began: Instant,
    /// A frame that is being written, and since when.
    coming: Mutex<Option<(Tail, Instant)>>,
    mapping: Option<Arc<FileMapping>>,
    /// Whether the log may be read there: not if the pin may be revoked, and the file cut.
    is_tail_mapped: bool,
}

impl Followed {
    /// `pages` are those of the handle.
    pub(super) fn new(engine: Engine, number: u64, pages: &PageSource) -> Followed {
        let mapping = match pages {
            PageSource::Mapped { mapping, .. } => Some(mapping.clone()),
            PageSource::Cached(_) => None,
        };
        let [tail_at, tail_mark, tail_shows] = [NO_TAIL, 0, 0].map(AtomicU64::new);
        let (look_again, began, coming) = (AtomicU64::new(0), Instant::now(), Mutex::new(None));
        let is_tail_mapped = engine.store.watched.is_none();
        Followed {
            engine,
            number,
            tail_at,
            tail_mark,
            tail_shows,
            look_again,
            began,
            coming,
            mapping,
            is_tail_mapped,
        }
    }

    /// What a follower's state shows.
    #[inline(always)]
    pub(super) fn of(state: &State) -> Option<&Followed> {
        state.followed.as_deref().and_then(|followed| followed.downcast_ref())
    }

    /// As `of`, to be kept for further states.
    pub(super) fn shared(state: &State) -> Option<Arc<Followed>> {
        state.followed.clone().and_then(|followed| followed.downcast().ok())
    }

    /// Whether the file has nothing newer than a state of this that shows the commits up to `visible`. In
    /// doubt, or after an error, it has.
    #[inline(always)]
    pub(super) fn is_newest(&self, visible: u64) -> bool {
        let is_newest = self.words::<1>(NUMBER_AT).is_some_and(|number| number == [self.number]);
        is_newest && (self.tail_at.load(Ordering::Acquire) == NO_TAIL || self.is_log_at_its_end(visible))
    }

    fn is_log_at_its_end(&self, visible: u64) -> bool {
        let at = self.tail_at.load(Ordering::Acquire);
        // After that. While this thread waited, another one may have read the log on, for a later state.
        if self.tail_shows.load(Ordering::Acquire) != visible {
            return false;
        }
        let mark = || self.words(at).map(mark_of);
        let is_same = at != TAIL_COMES && mark() == Some(self.tail_mark.load(Ordering::Acquire));
        let again = self.look_again.load(Ordering::Acquire);
        is_same && (again == 0 || self.now() < again)
    }

    /// In microseconds since it began, and never 0.
    fn now(&self) -> u64 {
        let micros = Instant::now().saturating_duration_since(self.began).as_micros();
        u64::try_from(micros).unwrap_or(u64::MAX).max(1)
    }

    /// When a frame that is coming is to be looked at again. None: at each read.
    fn next_look(&self, tail: Tail) -> Option<u64> {
        let (mut coming, now) = (self.coming.lock(), Instant::now());
        let since = coming.filter(|coming| coming.0 == tail).map_or(now, |coming| coming.1);
        *coming = Some((tail, since));
        let is_stuck = now.saturating_duration_since(since) >= STUCK_AFTER;
        is_stuck.then(|| self.now() + u64::try_from(STUCK_LOOKS.as_micros()).unwrap_or(0))
    }

    /// Some numbers of the file: of the superblocks, or of the log as the pin keeps it. So they stand in a
    /// part of the file that is not cut off.
    #[inline(always)]
    fn words<const N: usize>(&self, at: u64) -> Option<[u64; N]> {
        let mapping = self.mapping.as_ref().filter(|_| self.is_tail_mapped || at < SUPERBLOCKS_BYTES);
        let Some(first) = mapping.and_then(|mapping| mapping.at(at, N * size_of::<u64>())) else {
            return self.read_words(at);
        };
        let first = first.cast::<u64>().as_ptr();
        let word = |n| {
            // SAFETY: the mapping has these bytes, at a multiple of eight as `at` is one. Other processes
            // change them through the system only, and this one never does.
            unsafe { std::sync::atomic::AtomicU64::from_ptr(first.add(n)) }.load(Ordering::Acquire)
        };
        Some(std::array::from_fn(|n| u64::from_le(word(n))))
    }

    #[cold]
    fn read_words<const N: usize>(&self, at: u64) -> Option<[u64; N]> {
        let mut bytes = vec![0; N * size_of::<u64>()];
        self.engine.store.file.read_at(&mut bytes, at).ok()?;
        Some(std::array::from_fn(|n| u64_at(&bytes, n * size_of::<u64>())))
    }

    /// Notes where the log ends, as far as its commits are in the engine.
    pub(super) fn note_tail(&self, tail: Option<&LogTail>) -> Result<()> {
        let place = tail.map(|tail| tail.place(self.engine.store.file.as_ref())).transpose()?;
        let (at, mark, again) = match place {
            None => (NO_TAIL, 0, 0),
            Some(None) => (TAIL_COMES, 0, 0),
            Some(Some(tail)) if !tail.is_coming => (tail.at, tail.mark, 0),
            Some(Some(tail)) => {
                self.next_look(tail).map_or((TAIL_COMES, 0, 0), |again| (tail.at, tail.mark, again))
            }
        };
        self.tail_shows.store(self.engine.state.load().visible(), Ordering::Release);
        self.look_again.store(again, Ordering::Release);
        self.tail_mark.store(mark, Ordering::Release);
        self.tail_at.store(at, Ordering::Release);
        Ok(())
    }

    /// The state that its engine has now.
    pub(super) fn state(self: Arc<Self>, pin: Option<Arc<Lease>>) -> State {
        let state = self.engine.state.load().copy();
        State { lease: pin, followed: Some(self), ..state }
    }
}
