//! Large vectors that are used again: a transaction fills them, its chunk holds them, and they come back when
//! the chunk is flushed.
//!
//! Allocators hand out the memory of flushed chunks in smaller pieces. For the next large vector they ask the
//! system for more, so a process would come to take several times what is alive. And each page that is fresh
//! from the system costs a fault.

use crate::base::process::Process;
use crate::base::sync::Mutex;
use crate::format::block::Block;
use std::sync::Arc;

/// Smaller vectors are left to the allocator.
const BYTES_MIN: usize = 64 << 10;

/// Vectors that wait to be used again.
pub(crate) struct Pool {
    idle: Mutex<Idle>,
    bytes_max: usize,
    process: Process,
}

#[derive(Default)]
struct Idle {
    heads: Vec<Vec<u64>>,
    heaps: Vec<Vec<u8>>,
    bytes: usize,
}

impl Pool {
    /// A pool that keeps at most this many bytes.
    pub(crate) fn new(bytes_max: usize) -> Arc<Pool> {
        Arc::new(Pool { idle: Mutex::default(), bytes_max, process: Process::current() })
    }

    /// Takes a block's vectors. The block is empty afterwards.
    pub(crate) fn give(&self, block: &mut Block) {
        let (heads, heap) = (std::mem::take(&mut block.heads), std::mem::take(&mut block.heap));
        if !self.process.is_current() {
            // The thread that held the lock at the fork does not exist in this process, and cannot release
            // it.
            return;
        }
        let mut idle = self.idle.lock();
        let size = heads.capacity() * 8;
        if size >= BYTES_MIN && idle.bytes + size <= self.bytes_max {
            idle.bytes += size;
            idle.heads.push(heads);
        }
        let size = heap.capacity();
        if size >= BYTES_MIN && idle.bytes + size <= self.bytes_max {
            idle.bytes += size;
            idle.heaps.push(heap);
        }
    }

    /// Gives all idle vectors back to the allocator.
    pub(crate) fn clear(&self) {
        *self.idle.lock() = Idle::default();
    }

    /// Makes room for this many heads and heap bytes in all. It uses idle vectors of about that size if there
    /// are some: the block will be kept.
    pub(crate) fn reserve(&self, block: &mut Block, heads: usize, heap_bytes: usize) {
        self.make_room(block, heads, heap_bytes, 4);
    }

    /// As `reserve`, with idle vectors of any larger size: the block will grow, and be given back soon.
    pub(crate) fn grow(&self, block: &mut Block, heads: usize, heap_bytes: usize) {
        self.make_room(block, heads, heap_bytes, usize::MAX);
    }

    fn make_room(&self, block: &mut Block, heads: usize, heap_bytes: usize, slack: usize) {
        let mut idle = self.idle.lock();
        let Idle { heads: idle_heads, heaps: idle_heaps, bytes } = &mut *idle;
        if block.heads.capacity() < heads {
            *bytes -= replace(&mut block.heads, heads, slack, idle_heads) * 8;
        }
        if block.heap.capacity() < heap_bytes {
            *bytes -= replace(&mut block.heap, heap_bytes, slack, idle_heaps);
        }
    }
}

/// Moves a vector's contents to an idle one of at least `n` places, or grows the vector. Returns the capacity
/// that was taken from the idle ones.
fn replace<T: Copy>(v: &mut Vec<T>, n: usize, slack: usize, idle: &mut Vec<Vec<T>>) -> usize {
    let fits = |v: &Vec<T>| v.capacity() >= n && v.capacity() / slack <= n;
    if n * size_of::<T>() >= BYTES_MIN / 2
        && let Some(i) = (0..idle.len()).filter(|&i| fits(&idle[i])).min_by_key(|&i| idle[i].capacity())
    {
        let mut found = idle.swap_remove(i);
        found.clear();
        found.extend_from_slice(v);
        *v = found;
        return v.capacity();
    }
    v.reserve_exact(n - v.len());
    0
}
