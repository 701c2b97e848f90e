//! The disk as the engine sees it: names and open files.
//! The storage trait has no short or interrupted calls: an implementation must go on after them. So the calls
//! here, which a fault may cut short or interrupt, go through the loops that the engine's own storage uses
//! for system calls (`azekura::storage::write_fully` and its kin).

use super::{Call, Disk, Effect, Inner, Node, Op, Waiting, cut};
use azekura::storage::{
    DiskRoom, File, FileMapping, OpenMode, Storage, read_fully, uninterrupted, write_fully,
};
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

const ENOSPC: i32 = 28;

impl Storage for Disk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut d = self.lock();
        if d.dead {
            return Err(cut());
        }
        let node = match (d.names.get(path).copied(), mode) {
            (Some(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(node), _) => node,
            (None, OpenMode::CreateNew) => {
                let dead = d.enter(Call::Name)?;
                d.nodes.push(Node::default());
                let node = d.nodes.len() - 1;
                d.names.insert(path.into(), node);
                d.names_changed();
                if dead {
                    return Err(cut());
                }
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
        d.names_changed();
        if dead { Err(cut()) } else { Ok(()) }
    }

    fn exchange(&self, a: &Path, b: &Path) -> io::Result<()> {
        let mut d = self.lock();
        let dead = d.enter(Call::Name)?;
        let find = |path: &Path| d.names.get(path).copied().ok_or(io::ErrorKind::NotFound);
        let (of_a, of_b) = (find(a)?, find(b)?);
        d.names.insert(a.into(), of_b);
        d.names.insert(b.into(), of_a);
        d.names_changed();
        if dead { Err(cut()) } else { Ok(()) }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut d = self.lock();
        let dead = d.enter(Call::Name)?;
        d.names.remove(path).ok_or(io::ErrorKind::NotFound)?;
        d.names_changed();
        if dead { Err(cut()) } else { Ok(()) }
    }

    fn sync_dir_of(&self, _: &Path) -> io::Result<()> {
        uninterrupted(|| {
            let mut d = self.lock();
            d.interrupt(Call::Sync)?;
            let dead = d.enter(Call::Sync)?;
            d.take_moment();
            if dead {
                return Err(cut());
            }
            d.safe_names = d.names.clone();
            d.waiting_names.clear();
            Ok(())
        })
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn names_in(&self, dir: &Path) -> io::Result<Vec<String>> {
        let d = self.lock();
        if d.dead {
            return Err(cut());
        }
        let inside = d.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    fn random(&self) -> io::Result<u64> {
        if let Some(rng) = &mut self.lock().random {
            return Ok(rng.number());
        }
        azekura::storage::OsStorage.random()
    }
}

impl Inner {
    /// Fails with an interruption, if the fault is one and hits a call of this kind.
    fn interrupt(&mut self, call: Call) -> io::Result<()> {
        let interrupts = self.fault.is_some_and(|f| f.effect == Effect::Interrupted);
        if !self.dead && interrupts && self.fault_of(call).is_some() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(())
    }

    /// How many of `len` bytes one call handles.
    fn part_of(&mut self, call: Call, len: usize) -> io::Result<usize> {
        self.interrupt(call)?;
        let short = self.fault.is_some_and(|f| f.effect == Effect::Short);
        if !self.dead && short && self.fault_of(call).is_some() {
            return Ok(len.div_ceil(2));
        }
        Ok(len)
    }

    /// Makes a change that waits for a sync.
    fn apply(&mut self, node: usize, op: Op, durable: bool) {
        let (kind, at, len, bytes) = op.words();
        self.note(&[node as u64, kind, at, len, u64::from(durable)]);
        self.note_bytes(bytes);
        let len_before = self.nodes[node].now.len;
        op.apply(&mut self.nodes[node].now);
        self.nodes[node].ops.push(Waiting { op, safe: false, len_before });
    }

    /// Makes a change, or fails. `durable`: the change is safe when this succeeds.
    fn change_node(&mut self, node: usize, call: Call, op: Op, durable: bool) -> io::Result<()> {
        let sparse = self.unreserving;
        let end = match &op {
            Op::Write(at, bytes) => at + bytes.len() as u64,
            Op::Grow(_) | Op::SetLen(_) if sparse => 0,
            Op::Grow(end) | Op::SetLen(end) => *end,
            Op::Zero(..) => 0,
        };
        let has_room = if sparse { self.nodes[node].written } else { self.nodes[node].now.len };
        let full = end > self.bytes_max.max(has_room);
        let entered =
            if full && !self.dead { Err(io::Error::from_raw_os_error(ENOSPC)) } else { self.enter(call) };
        let was_dead = self.dead && entered.is_err();
        let len_before = self.nodes[node].now.len;
        match entered {
            Err(e) => {
                // A write that fails may have done a part of its work.
                if let (Op::Write(at, bytes), false) = (&op, was_dead) {
                    let half = bytes.len() / 2;
                    if at + half as u64 <= len_before {
                        let op = Op::Write(*at, bytes[..half].into());
                        op.apply(&mut self.nodes[node].now);
                        self.nodes[node].ops.push(Waiting { op, safe: false, len_before });
                    }
                    self.syncs_failed += u64::from(durable);
                }
                Err(e)
            }
            Ok(dead) => {
                if let Op::Write(..) = op {
                    self.nodes[node].written = self.nodes[node].written.max(end);
                }
                self.apply(node, op, durable);
                self.take_moment();
                if dead {
                    return Err(cut());
                }
                if let Some(last) = self.nodes[node].ops.last_mut() {
                    last.safe = durable;
                }
                Ok(())
            }
        }
    }
}

/// An open file.
struct Handle {
    disk: Disk,
    node: usize,
    id: u64,
}

impl Handle {
    fn wait(&self) {
        let delay = self.disk.lock().delay;
        if !delay.is_zero() {
            std::thread::sleep(delay);
        }
    }

    fn write(&self, buf: &[u8], offset: u64, durable: bool) -> io::Result<()> {
        self.wait();
        write_fully(buf, offset, |bytes, at| {
            let mut d = self.disk.lock();
            let n = d.part_of(Call::Write, bytes.len())?;
            d.change_node(self.node, Call::Write, Op::Write(at, bytes[..n].into()), durable)?;
            Ok(n)
        })
    }

    fn change(&self, call: Call, op: &Op) -> io::Result<()> {
        uninterrupted(|| {
            let mut d = self.disk.lock();
            d.interrupt(call)?;
            d.change_node(self.node, call, op.clone(), false)
        })
    }

    fn sync_once(&self) -> io::Result<()> {
        let mut d = self.disk.lock();
        d.interrupt(Call::Sync)?;
        let was_dead = d.dead;
        let entered = d.enter(Call::Sync);
        if entered.is_ok() {
            d.take_moment();
        }
        let node = &mut d.nodes[self.node];
        match entered {
            Ok(false) => {
                for waiting in std::mem::take(&mut node.ops) {
                    waiting.op.apply(&mut node.safe);
                }
                Ok(())
            }
            Ok(true) => Err(cut()),
            Err(e) => {
                if !was_dead {
                    node.ops.retain(|waiting| waiting.safe);
                    d.syncs_failed += 1;
                }
                Err(e)
            }
        }
    }
}

impl File for Handle {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        read_fully(buf, offset, |out, at| {
            let mut d = self.disk.lock();
            let n = d.part_of(Call::Read, out.len())?;
            d.enter(Call::Read)?;
            let there = d.nodes[self.node].now.read(at, &mut out[..n]);
            if there { Ok(n) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
        })
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.write(buf, offset, false)
    }

    fn write_durable_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.write(buf, offset, true)
    }

    fn write_back(&self, _: u64, _: u64) {}

    fn wait_written(&self, _: u64, _: u64) {}

    /// The bytes become zeros, or not if the power is cut before the next sync. So whoever needs them all the
    /// same is found. A hint does not fail, and nothing is cut there.
    fn forget(&self, offset: u64, len: u64) {
        let mut d = self.disk.lock();
        if !d.dead {
            d.apply(self.node, Op::Zero(offset, offset + len), false);
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        uninterrupted(|| self.sync_once())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.lock().nodes[self.node].now.len)
    }

    fn identity(&self) -> io::Result<Option<[u64; 2]>> {
        Ok(Some([0, self.node as u64]))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(Call::SetLen, &Op::SetLen(len))
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<bool> {
        self.change(Call::Allocate, &Op::Grow(offset + len))?;
        Ok(!self.disk.lock().unreserving)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.change(Call::Punch, &Op::Zero(offset, offset + len))
    }

    fn disk_room(&self) -> io::Result<Option<DiskRoom>> {
        let d = self.disk.lock();
        let node = &d.nodes[self.node];
        let taken_bytes = if d.unreserving { node.written } else { node.now.len };
        let free_bytes = d.bytes_max.saturating_sub(taken_bytes);
        Ok((d.bytes_max < u64::MAX).then_some(DiskRoom { len: taken_bytes, taken_bytes, free_bytes }))
    }

    fn try_lock(&self, exclusive: bool) -> io::Result<bool> {
        let mut d = self.disk.lock();
        let node = &mut d.nodes[self.node];
        node.shared.remove(&self.id);
        if node.exclusive == Some(self.id) {
            node.exclusive = None;
        }
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

    fn unlock(&self) -> io::Result<()> {
        let mut d = self.disk.lock();
        let node = &mut d.nodes[self.node];
        node.shared.remove(&self.id);
        if node.exclusive == Some(self.id) {
            node.exclusive = None;
        }
        Ok(())
    }

    fn pin(&self, number: u64) -> io::Result<()> {
        let mut d = self.disk.lock();
        *d.nodes[self.node].pins.entry((number, self.id)).or_insert(0) += 1;
        Ok(())
    }

    fn unpin(&self, number: u64) {
        let mut d = self.disk.lock();
        let pins = &mut d.nodes[self.node].pins;
        if let Some(count) = pins.get_mut(&(number, self.id)) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&(number, self.id));
            }
        }
    }

    fn pins(&self) -> io::Result<Vec<RangeInclusive<u64>>> {
        let d = self.disk.lock();
        let pins = d.nodes[self.node].pins.keys();
        Ok(pins.filter(|pin| pin.1 != self.id).map(|pin| pin.0..=pin.0).collect())
    }

    fn acknowledge(&self, commit: Option<u64>) -> io::Result<()> {
        let mut d = self.disk.lock();
        let acks = &mut d.nodes[self.node].acks;
        match commit {
            Some(commit) => {
                let newest = acks.entry(self.id).or_insert(commit);
                *newest = commit.max(*newest);
            }
            None => drop(acks.remove(&self.id)),
        }
        Ok(())
    }

    fn acknowledged(&self) -> io::Result<Option<u64>> {
        let d = self.disk.lock();
        let acks = d.nodes[self.node].acks.iter();
        Ok(acks.filter(|ack| *ack.0 != self.id).map(|ack| *ack.1).min())
    }

    fn mapping(&self) -> Option<Arc<FileMapping>> {
        let mut d = self.disk.lock();
        let shown = d.mapping.then(|| d.nodes[self.node].now.show());
        drop(d);
        let file =
            shown.map(|shown| shown.unwrap_or_else(|e| panic!("a mapped file of the simulated disk: {e}")));
        file.map(|file| Arc::new(FileMapping::new(file)))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // This cannot fail.
        let _given_up = self.unlock();
        let mut d = self.disk.lock();
        let node = &mut d.nodes[self.node];
        node.pins.retain(|pin, _| pin.1 != self.id);
        node.acks.remove(&self.id);
    }
}
