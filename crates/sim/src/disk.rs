//! A disk that can lose power, fail calls and be full: every write, sync, length change, hole, rename
//! goes through one lock, which keeps what a reader sees (`now`) apart from what is safe (`safe`).
//!
//! What is not synced waits in `ops`, in order. A power cut makes a new disk of the safe bytes and a
//! choice of the waiting operations; a kill keeps all of them waiting. A failed sync forgets its
//! operations: as Linux does, they stay readable and never become safe.
mod bytes;

use crate::rng::Rng;
use azekura::storage::{File, OpenMode, Storage};
use bytes::Bytes;
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

/// What of the waiting operations reaches the disk when the power goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keep {
    /// Nothing.
    None,
    /// All of it.
    All,
    /// The first so many, the next one torn.
    Prefix,
    /// Each block of this size for itself, by chance.
    Blocks(u64),
}

/// A call that fails: the `nth` of its kind from now on, and all later ones if `forever`.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The kind of call.
    pub call: Call,
    /// Which of them; 1 is the next.
    pub nth: u64,
    /// Whether all later ones fail too.
    pub forever: bool,
    /// With what.
    pub errno: i32,
}

#[derive(Clone)]
enum Op {
    Write(u64, Vec<u8>),
    SetLen(u64),
    Zero(u64, u64),
    Grow(u64),
}

#[derive(Clone, Default)]
struct Node {
    now: Bytes,
    safe: Bytes,
    /// Waiting operations; `true` = this one is safe already, it only keeps its place.
    ops: Vec<(Op, bool)>,
    exclusive: Option<u64>,
    shared: BTreeSet<u64>,
}

#[derive(Default)]
struct Inner {
    nodes: Vec<Node>,
    names: BTreeMap<PathBuf, usize>,
    safe_names: BTreeMap<PathBuf, usize>,
    handles: u64,
    /// Calls that change something, so far.
    calls: u64,
    cut_at: u64,
    dead: bool,
    fault: Option<Fault>,
    faults_hit: u64,
    bytes_max: u64,
    /// How long a write takes.
    delay: std::time::Duration,
}

/// The disk; clones share it.
#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<Inner>>);

impl Op {
    fn apply(&self, to: &mut Bytes) {
        match self {
            Op::Write(at, bytes) => to.write(*at, bytes),
            Op::SetLen(len) => to.set_len(*len),
            Op::Zero(at, end) => to.zero(*at, *end),
            Op::Grow(end) => to.len = to.len.max(*end),
        }
    }

    /// Applies blocks of a write by chance; other operations by chance as a whole.
    fn apply_some(&self, to: &mut Bytes, block: u64, rng: &mut Rng) {
        let Op::Write(at, bytes) = self else {
            if rng.below(2) == 0 {
                self.apply(to);
            }
            return;
        };
        let mut from = *at;
        let end = at + bytes.len() as u64;
        let odds = rng.below(4);
        while from < end {
            let to_here = (from / block * block + block).min(end);
            if rng.below(4) < odds {
                Op::Write(from, bytes[(from - at) as usize..(to_here - at) as usize].to_vec()).apply(to);
            }
            from = to_here;
        }
    }
}

impl Inner {
    /// Counts a call and says whether it fails, or is the last one (then it is left half-done).
    fn enter(&mut self, call: Call) -> io::Result<bool> {
        if self.dead {
            return Err(io::Error::from_raw_os_error(5));
        }
        if let Some(fault) = &mut self.fault
            && fault.call == call
        {
            fault.nth = fault.nth.saturating_sub(1);
            if fault.nth == 0 {
                let errno = fault.errno;
                self.faults_hit += 1;
                if fault.forever {
                    fault.nth = 1;
                } else {
                    self.fault = None;
                }
                return Err(io::Error::from_raw_os_error(errno));
            }
        }
        if call == Call::Read {
            return Ok(false);
        }
        self.calls += 1;
        self.dead = self.calls == self.cut_at;
        Ok(self.dead)
    }
}

const CUT: fn() -> io::Error = || io::Error::from_raw_os_error(5);

impl Disk {
    /// An empty disk.
    pub fn new() -> Disk {
        let disk = Disk::default();
        disk.lock().bytes_max = u64::MAX;
        disk
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Calls so far that changed something.
    pub fn calls(&self) -> u64 {
        self.lock().calls
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

    /// From now on every call fails, until the disk is killed or cut.
    pub fn stop(&self) {
        self.lock().dead = true;
    }

    /// Sets the fault to come, or none.
    pub fn set_fault(&self, fault: Option<Fault>) {
        let mut d = self.lock();
        d.fault = fault;
        d.faults_hit = 0;
    }

    /// How many calls have failed since the fault was set.
    pub fn faults_hit(&self) -> u64 {
        self.lock().faults_hit
    }

    /// From now on every write takes so long.
    pub fn set_delay(&self, delay: std::time::Duration) {
        self.lock().delay = delay;
    }

    /// No file may grow beyond this.
    pub fn set_bytes_max(&self, bytes: u64) {
        self.lock().bytes_max = bytes;
    }

    /// What a reader sees of a file.
    pub fn bytes(&self, path: &str) -> Vec<u8> {
        let d = self.lock();
        let Some(&i) = d.names.get(Path::new(path)) else { return Vec::new() };
        let mut out = vec![0; d.nodes[i].now.len as usize];
        d.nodes[i].now.read(0, &mut out);
        out
    }

    /// Overwrites a part of a file, for the disk and for readers.
    pub fn patch(&self, path: &str, at: u64, bytes: &[u8]) {
        let mut d = self.lock();
        let i = d.names[Path::new(path)];
        d.nodes[i].now.write(at, bytes);
        d.nodes[i].safe = d.nodes[i].now.clone();
        d.nodes[i].ops.clear();
    }

    /// Reads a part of a file; what is behind its end reads as zeros.
    pub fn peek(&self, path: &str, at: u64, len: usize) -> Vec<u8> {
        let d = self.lock();
        let file = &d.nodes[d.names[Path::new(path)]].now;
        let mut out = vec![0; len.min(file.len.saturating_sub(at) as usize)];
        file.read(at, &mut out);
        out.resize(len, 0);
        out
    }

    /// Gives a file another length.
    pub fn cut_file(&self, path: &str, len: u64) {
        let mut d = self.lock();
        let i = d.names[Path::new(path)];
        d.nodes[i].now.set_len(len);
        d.nodes[i].safe = d.nodes[i].now.clone();
    }

    /// The length of a file, and where its blocks of 4 KiB are that are not all zeros.
    pub fn used_blocks(&self, path: &str) -> (u64, Vec<u64>) {
        let d = self.lock();
        let file = &d.nodes[d.names[Path::new(path)]].now;
        (file.len, file.used_blocks())
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
            d.safe_names.insert(path.into(), 0);
        }
        disk
    }

    /// The disk after the process has died: nothing is lost, nothing is safer than it was.
    pub fn after_kill(&self) -> Disk {
        self.copy(|node| node)
    }

    /// The disk after the power has gone.
    pub fn after_cut(&self, keep: Keep, rng: &mut Rng) -> Disk {
        let mut chance = Rng(rng.number());
        let disk = self.copy(|mut node| {
            let optional = node.ops.iter().filter(|(_, safe)| !safe).count() as u64;
            let first = match keep {
                Keep::All => u64::MAX,
                Keep::Prefix => rng.below(optional + 1),
                _ => 0,
            };
            let mut passed = 0;
            for (op, safe) in std::mem::take(&mut node.ops) {
                if safe {
                    op.apply(&mut node.safe);
                    continue;
                }
                match keep {
                    _ if passed < first => op.apply(&mut node.safe),
                    Keep::Prefix if passed == first => op.apply_some(&mut node.safe, 512, rng),
                    Keep::Blocks(block) => op.apply_some(&mut node.safe, block, rng),
                    _ => {}
                }
                passed += 1;
            }
            node.now = node.safe.clone();
            node
        });
        {
            let mut d = disk.lock();
            // Unsynced names are all there or all gone.
            if keep == Keep::None || (keep != Keep::All && chance.below(2) == 0) {
                d.names = d.safe_names.clone();
            }
            d.safe_names = d.names.clone();
        }
        disk
    }

    fn copy(&self, mut change: impl FnMut(Node) -> Node) -> Disk {
        let d = self.lock();
        let fresh = |n: &Node| Node { exclusive: None, shared: BTreeSet::new(), ..n.clone() };
        let nodes = d.nodes.iter().map(|n| change(fresh(n)));
        let inner = Inner {
            nodes: nodes.collect(),
            names: d.names.clone(),
            safe_names: d.safe_names.clone(),
            bytes_max: u64::MAX,
            ..Inner::default()
        };
        Disk(Arc::new(Mutex::new(inner)))
    }
}

impl Storage for Disk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut d = self.lock();
        if d.dead {
            return Err(CUT());
        }
        let node = match (d.names.get(path).copied(), mode) {
            (Some(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(node), _) => node,
            (None, OpenMode::CreateNew) => {
                if d.enter(Call::Name)? {
                    return Err(CUT());
                }
                d.nodes.push(Node::default());
                let node = d.nodes.len() - 1;
                d.names.insert(path.into(), node);
                node
            }
            (None, _) => return Err(io::ErrorKind::NotFound.into()),
        };
        d.handles += 1;
        Ok(Arc::new(Handle { disk: self.clone(), node, id: d.handles }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.lock().names.contains_key(path))
    }

    fn rename(&self, from: &Path, to: &Path, replace: bool) -> io::Result<()> {
        let mut d = self.lock();
        let dead = d.enter(Call::Name)?;
        if !replace && d.names.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let node = d.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        d.names.insert(to.into(), node);
        if dead { Err(CUT()) } else { Ok(()) }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut d = self.lock();
        let dead = d.enter(Call::Name)?;
        d.names.remove(path).ok_or(io::ErrorKind::NotFound)?;
        if dead { Err(CUT()) } else { Ok(()) }
    }

    fn sync_dir_of(&self, _: &Path) -> io::Result<()> {
        let mut d = self.lock();
        if d.enter(Call::Sync)? {
            return Err(CUT());
        }
        d.safe_names = d.names.clone();
        Ok(())
    }
}

struct Handle {
    disk: Disk,
    node: usize,
    id: u64,
}

impl Handle {
    fn change(&self, call: Call, op: Op, durable: bool) -> io::Result<()> {
        let delay = self.disk.lock().delay;
        if !delay.is_zero() {
            std::thread::sleep(delay);
        }
        let mut d = self.disk.lock();
        let end = match &op {
            Op::Write(at, bytes) => at + bytes.len() as u64,
            Op::Grow(end) | Op::SetLen(end) => *end,
            Op::Zero(..) => 0,
        };
        let full = end > d.bytes_max.max(d.nodes[self.node].now.len);
        let entered = if full && !d.dead { Err(io::Error::from_raw_os_error(28)) } else { d.enter(call) };
        let dead = d.dead;
        let node = &mut d.nodes[self.node];
        match entered {
            Err(e) => {
                // A write that fails may have done a part of its work.
                if let (Op::Write(at, bytes), false) = (&op, dead) {
                    let half = bytes.len() / 2;
                    if at + half as u64 <= node.now.len {
                        let op = Op::Write(*at, bytes[..half].to_vec());
                        op.apply(&mut node.now);
                        node.ops.push((op, false));
                    }
                }
                Err(e)
            }
            Ok(dead) => {
                op.apply(&mut node.now);
                node.ops.push((op, durable && !dead));
                if dead { Err(CUT()) } else { Ok(()) }
            }
        }
    }
}

impl File for Handle {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let mut d = self.disk.lock();
        d.enter(Call::Read)?;
        let there = d.nodes[self.node].now.read(offset, buf);
        if there { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.change(Call::Write, Op::Write(offset, buf.to_vec()), false)
    }

    fn write_durable_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.change(Call::Write, Op::Write(offset, buf.to_vec()), true)
    }

    fn write_back(&self, _: u64, _: u64) {}

    fn wait_written(&self, _: u64, _: u64) {}

    fn sync_data(&self) -> io::Result<()> {
        let mut d = self.disk.lock();
        let entered = d.enter(Call::Sync);
        let dead = d.dead;
        let node = &mut d.nodes[self.node];
        match entered {
            Ok(false) => {
                for (op, _) in std::mem::take(&mut node.ops) {
                    op.apply(&mut node.safe);
                }
                Ok(())
            }
            Ok(true) => Err(CUT()),
            Err(e) => {
                if !dead {
                    node.ops.retain(|(_, safe)| *safe);
                }
                Err(e)
            }
        }
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.lock().nodes[self.node].now.len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(Call::SetLen, Op::SetLen(len), false)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.change(Call::Allocate, Op::Grow(offset + len), false)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.change(Call::Punch, Op::Zero(offset, offset + len), false)
    }

    fn try_lock(&self, exclusive: bool) -> io::Result<bool> {
        let mut d = self.disk.lock();
        let node = &mut d.nodes[self.node];
        node.shared.remove(&self.id);
        if node.exclusive.is_some() || (exclusive && !node.shared.is_empty()) {
            return Ok(false);
        }
        if exclusive {
            node.exclusive = Some(self.id);
        } else {
            node.shared.insert(self.id);
        }
        Ok(true)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut d = self.disk.lock();
        let node = &mut d.nodes[self.node];
        node.shared.remove(&self.id);
        if node.exclusive == Some(self.id) {
            node.exclusive = None;
        }
    }
}
