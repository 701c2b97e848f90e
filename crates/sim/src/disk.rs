//! A disk that can lose power, fail calls, be full, and come back in any state that a real one may.
//!
//! Every file has two states: what a reader sees (`now`) and what is safe (`safe`). What was done since the
//! last sync waits in `ops`, in order: a write, a length, a hole. A sync makes it safe. A failed sync drops
//! it, as Linux does: it stays readable and never becomes safe. Names are the same: creations, renames and
//! removals wait until the directory is synced.
//!
//! A power cut ([`Disk::image`]) makes a new disk of the safe bytes and a [`Choice`]. For each waiting
//! operation the choice says whether it is there, is torn, is there without the new length, is a length
//! without data, or has a sector of garbage. It also says how many of the waiting names are there. A kill
//! ([`Disk::after_kill`]) keeps all operations waiting.
//!
//! [`Disk::record`] keeps a copy of the disk at every call that changes something (copies share unchanged
//! bytes). So one run of a workload gives all places at which the power could have gone. The **trace** is a
//! hash over all calls with all their arguments and bytes: two runs of one seed without threads must have the
//! same.

mod bytes;
mod cut;
mod handle;
mod showing;
mod shown;

use crate::rng::Rng;
use bytes::Bytes;
pub use cut::{Choice, Keep, Kept, Plan};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// Kinds of calls, for counting and failing them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// Reading.
    Read,
    /// Writing, durably or not.
    Write,
    /// Syncing a file or a directory.
    Sync,
    /// Giving a file another length.
    SetLen,
    /// Reserving space.
    Allocate,
    /// Giving space back.
    Punch,
    /// Creating, renaming or removing a name.
    Name,
}

/// How a call fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// With an error of the system, by its number. A write may have done a part of its work.
    Error(i32),
    /// It does only half of its work and says so, as calls may. The caller goes on.
    Short,
    /// An interruption before anything was done. The caller tries again.
    Interrupted,
}

/// A call that fails: the `nth` of its kind from now on, and all later ones if `forever`.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The kind of call.
    pub call: Call,
    /// Which call of that kind. 1 is the next one.
    pub nth: u64,
    /// Whether all later calls fail too (for interruptions and short calls: every other one).
    pub forever: bool,
    /// How it fails.
    pub effect: Effect,
}

/// A change of a file.
#[derive(Clone)]
enum Op {
    Write(u64, Arc<[u8]>),
    SetLen(u64),
    Zero(u64, u64),
    Grow(u64),
}

/// A change that waits for a sync.
#[derive(Clone)]
struct Waiting {
    op: Op,
    /// Whether it is safe already, and only keeps its place among the others.
    safe: bool,
    /// The file's length before it.
    len_before: u64,
}

#[derive(Clone, Default)]
struct Node {
    now: Bytes,
    safe: Bytes,
    ops: Vec<Waiting>,
    /// Where the last byte that was ever written ended.
    written: u64,
    exclusive: Option<u64>,
    shared: BTreeSet<u64>,
    /// Which checkpoints are pinned, by which handles, and how often.
    pins: BTreeMap<(u64, u64), u32>,
    /// What handles have acknowledged.
    acks: BTreeMap<u64, u64>,
}

type Names = BTreeMap<PathBuf, usize>;

/// What was known when a copy of the disk was made.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Numbers that the workload has left with [`Disk::mark`].
    pub numbers: [usize; 3],
    /// How many calls came before.
    pub calls: u64,
}

/// A copy of the disk at a call, with the call's own change waiting.
pub struct Moment {
    /// The copy.
    pub disk: Disk,
    /// What was known then.
    pub mark: Mark,
}

#[derive(Default)]
struct Inner {
    nodes: Vec<Node>,
    names: Names,
    safe_names: Names,
    /// The names after each change that waits for a sync of the directory.
    waiting_names: Vec<Names>,
    handles: u64,
    /// How many calls have changed something.
    calls: u64,
    /// How many of them have reserved space.
    reservations: u64,
    cut_at: u64,
    dead: bool,
    fault: Option<Fault>,
    faults_hit: u64,
    syncs_failed: u64,
    bytes_max: u64,
    /// Whether space cannot be reserved: then only what is written takes room.
    unreserving: bool,
    /// Whether files can be mapped.
    mapping: bool,
    /// How long a write takes.
    delay: std::time::Duration,
    trace: u64,
    random: Option<Rng>,
    numbers: [usize; 3],
    moments: Option<Vec<Moment>>,
    /// A moment is kept at one of this many calls, at random.
    moment_odds: (u64, Rng),
}

/// The disk. Clones share it.
#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<Inner>>);

/// The error of every call to a dead disk.
fn cut() -> io::Error {
    io::Error::from_raw_os_error(5)
}

impl Op {
    fn apply(&self, to: &mut Bytes) {
        match self {
            Op::Write(at, bytes) => to.write(*at, bytes),
            Op::SetLen(len) => to.set_len(*len),
            Op::Zero(at, end) => to.zero(*at, *end),
            Op::Grow(end) => to.len = to.len.max(*end),
        }
    }

    /// The change's kind, place, length and bytes, for the trace.
    fn words(&self) -> (u64, u64, u64, &[u8]) {
        match self {
            Op::Write(at, bytes) => (1, *at, bytes.len() as u64, bytes),
            Op::SetLen(len) => (2, *len, 0, &[]),
            Op::Zero(at, end) => (3, *at, *end, &[]),
            Op::Grow(end) => (4, *end, 0, &[]),
        }
    }
}

impl Inner {
    /// Counts a call. Says whether it is the last one, which is then left half-done, or fails.
    fn enter(&mut self, call: Call) -> io::Result<bool> {
        if self.dead {
            return Err(cut());
        }
        if let Some(effect) = self.fault_of(call)
            && let Effect::Error(errno) = effect
        {
            return Err(io::Error::from_raw_os_error(errno));
        }
        if call == Call::Read {
            return Ok(false);
        }
        self.calls += 1;
        self.reservations += u64::from(call == Call::Allocate);
        self.note(&[call as u64]);
        self.dead = self.calls == self.cut_at;
        Ok(self.dead)
    }

    /// The effect of the fault on this call, if it is hit.
    fn fault_of(&mut self, call: Call) -> Option<Effect> {
        let fault = self.fault.as_mut().filter(|f| f.call == call)?;
        fault.nth = fault.nth.saturating_sub(1);
        if fault.nth > 0 {
            return None;
        }
        let effect = fault.effect;
        self.faults_hit += 1;
        // Callers that repeat a call must end sometime: these faults hit every other call.
        fault.nth = if matches!(effect, Effect::Error(_)) { 1 } else { 2 };
        if !fault.forever {
            self.fault = None;
        }
        Some(effect)
    }

    fn note(&mut self, words: &[u64]) {
        for word in words {
            self.trace = (self.trace ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        }
    }

    fn note_bytes(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(8) {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            self.note(&[u64::from_le_bytes(padded)]);
        }
    }

    /// Keeps a copy of the disk as it would be found if the power went at this moment.
    fn take_moment(&mut self) {
        let (odds, rng) = &mut self.moment_odds;
        if self.moments.is_none() || !rng.one_in(*odds) {
            return;
        }
        let disk = self.copy(|node| node);
        let mark = Mark { numbers: self.numbers, calls: self.calls };
        if let Some(moments) = &mut self.moments {
            moments.push(Moment { disk, mark });
        }
    }

    fn names_changed(&mut self) {
        let names = self.names.clone();
        self.waiting_names.push(names);
        self.take_moment();
    }

    fn copy(&self, change: impl FnMut(Node) -> Node) -> Disk {
        let fresh = |n: &Node| Node {
            exclusive: None,
            shared: BTreeSet::new(),
            pins: BTreeMap::new(),
            acks: BTreeMap::new(),
            ..n.clone()
        };
        let inner = Inner {
            nodes: self.nodes.iter().map(fresh).map(change).collect(),
            names: self.names.clone(),
            safe_names: self.safe_names.clone(),
            waiting_names: self.waiting_names.clone(),
            bytes_max: u64::MAX,
            mapping: self.mapping,
            random: self.random.clone(),
            ..Inner::default()
        };
        Disk(Arc::new(Mutex::new(inner)))
    }

    fn file(&self, path: &str) -> Option<&Node> {
        self.names.get(Path::new(path)).map(|&i| &self.nodes[i])
    }

    /// Changes a file without any call.
    fn change(&mut self, path: &str, change: impl FnOnce(&mut Bytes)) {
        if let Some(&i) = self.names.get(Path::new(path)) {
            let node = &mut self.nodes[i];
            change(&mut node.now);
            node.safe = node.now.clone();
            node.ops.clear();
        }
    }
}

impl Disk {
    /// An empty disk.
    pub fn new() -> Disk {
        let disk = Disk::default();
        disk.lock().bytes_max = u64::MAX;
        disk
    }

    /// An empty disk whose random numbers (ids of files, hash seeds) follow from a seed.
    pub fn seeded(seed: u64) -> Disk {
        let disk = Disk::new();
        disk.lock().random = Some(Rng(seed));
        disk
    }

    /// A disk with one file.
    pub fn with_file(path: &str, bytes: &[u8]) -> Disk {
        let disk = Disk::new();
        {
            let mut d = disk.lock();
            let mut now = Bytes::default();
            now.write(0, bytes);
            d.nodes.push(Node { safe: now.clone(), now, ..Node::default() });
            d.names.insert(path.into(), 0);
            d.safe_names = d.names.clone();
        }
        disk
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// How many calls have changed something.
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// How many calls have reserved space. The engine reserves only log segments for a bulk.
    pub fn reservations(&self) -> u64 {
        self.lock().reservations
    }

    /// A hash over all calls that have changed something, with their arguments and bytes.
    pub fn trace(&self) -> u64 {
        self.lock().trace
    }

    /// Cuts the power in the middle of the `n`th call from now.
    pub fn cut_after(&self, n: u64) {
        let mut d = self.lock();
        d.cut_at = d.calls + n;
    }

    /// Whether the power is gone.
    pub fn is_dead(&self) -> bool {
        self.lock().dead
    }

    /// Makes every call fail, until the disk is killed or cut.
    pub fn stop(&self) {
        self.lock().dead = true;
    }

    /// Sets the next fault, or none.
    pub fn set_fault(&self, fault: Option<Fault>) {
        let mut d = self.lock();
        d.fault = fault;
        d.faults_hit = 0;
        d.syncs_failed = 0;
    }

    /// How many calls have failed since the fault was set.
    pub fn faults_hit(&self) -> u64 {
        self.lock().faults_hit
    }

    /// How many syncs of files have failed since the fault was set.
    pub fn syncs_failed(&self) -> u64 {
        self.lock().syncs_failed
    }

    /// Makes every write take this long.
    pub fn set_delay(&self, delay: std::time::Duration) {
        self.lock().delay = delay;
    }

    /// Limits the length of files.
    pub fn set_bytes_max(&self, bytes: u64) {
        self.lock().bytes_max = bytes;
    }

    /// Makes reserving space impossible, as on some file systems: files are only extended, and a write to a
    /// new place may find the disk full.
    pub fn set_unreserving(&self) {
        self.lock().unreserving = true;
    }

    /// Makes mappings possible: files opened later can be read in place.
    pub fn set_mapping(&self) {
        self.lock().mapping = true;
    }

    /// Keeps a copy of the disk at each further call that changes something, or at one of `odds` calls, at
    /// random by `seed`.
    pub fn record(&self, odds: u64, seed: u64) {
        let mut d = self.lock();
        d.moments = Some(Vec::new());
        d.moment_odds = (odds, Rng(seed));
    }

    /// The recorded moments, and the disk at this moment. Ends the recording.
    pub fn moments(&self) -> Vec<Moment> {
        let mut d = self.lock();
        d.calls += 1;
        d.moment_odds.0 = 1;
        d.take_moment();
        d.moments.take().unwrap_or_default()
    }

    /// Sets the numbers that later moments carry.
    pub fn mark(&self, numbers: [usize; 3]) {
        self.lock().numbers = numbers;
    }

    /// A file's contents as a reader sees them.
    pub fn bytes(&self, path: &str) -> Vec<u8> {
        let d = self.lock();
        let Some(node) = d.file(path) else { return Vec::new() };
        node.now.to_vec()
    }

    /// Overwrites a part of a file, both the safe and the visible bytes.
    pub fn patch(&self, path: &str, at: u64, bytes: &[u8]) {
        self.lock().change(path, |file| file.write(at, bytes));
    }

    /// Gives a file another length.
    pub fn cut_file(&self, path: &str, len: u64) {
        self.lock().change(path, |file| file.set_len(len));
    }

    /// Reads a part of a file. What is behind its end reads as zeros.
    pub fn peek(&self, path: &str, at: u64, len: usize) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(node) = self.lock().file(path) {
            let there = node.now.len.saturating_sub(at).min(len as u64);
            out = vec![0; usize::try_from(there).unwrap_or(0)];
            node.now.read(at, &mut out);
        }
        out.resize(len, 0);
        out
    }

    /// The length of a file, and the places of its blocks of 4 KiB that are not all zeros.
    pub fn used_blocks(&self, path: &str) -> (u64, Vec<u64>) {
        self.lock().file(path).map_or((0, Vec::new()), |node| (node.now.len, node.now.used_blocks()))
    }

    /// The disk after the process has died: nothing is lost, and nothing has become safe.
    pub fn after_kill(&self) -> Disk {
        self.lock().copy(|node| node)
    }
}
