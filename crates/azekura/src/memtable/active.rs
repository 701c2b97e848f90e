//! The active write buffer: a skip list in one arena, which takes small commits.
//!
//! It is a few MiB, so that it stays in the processor's caches, and it is never resized. When an insert does
//! not fit, the caller seals the list into a sorted chunk and starts another. There is one writer at a time
//! (the holder of the commit lock) and any number of readers, which take no lock and never wait.
//!
//! # Order
//!
//! Entries are versions. They are in byte order of their keys, then by sequence number from new to old. With
//! equal key and sequence number, the later insert comes first. The arena only grows, so "later" is a higher
//! offset: this order is total and needs no field of its own. The first entry of a key at or below a sequence
//! number is the version that a snapshot of that number sees.
//!
//! # Layout
//!
//! A node is named by its offset, a multiple of 8. Its links grow downwards from there, so that the place of
//! the key does not depend on the height:
//!
//! ```text
//!   link[height-1] … link[1] link[0] | seq u64 | meta u64 | key, at least 8 bytes | value
//!                                    ^ node
//!   meta = value bytes (32 bits) | key bytes (24 bits) << 32 | kind << 56
//! ```
//!
//! A key shorter than eight bytes is padded with zeros. The eight bytes at the key, as a big-endian number,
//! are its *head*. If two heads differ, they order the keys. If they are equal, the bytes after the eighth
//! do, then the lengths. ("a" and "a\0" have equal heads and nothing after them: the shorter comes first.)
//!
//! Two nodes are fixed. `NIL` ends every level. Its head is the largest number, so the usual comparison also
//! stops a search there. `HEAD` begins every level and is never compared.
//!
//! # Writing
//!
//! The writer keeps a *splice*: at each level two neighbours. At the lower levels these are the ones between
//! which the key of its last insert went. The next insert climbs from the bottom to the first level whose
//! neighbours enclose the new key, and searches down from there. So ascending and clustered keys cost O(1).
//! Where no level does, it begins at a *finger* (`fingers.rs`): a node near the place, by the key's head.
//! Readers do the same. Only where fingers are misled does a search go down all levels.
//!
//! Heights are drawn by a xorshift with a branching of 4. A budget limits the links to two per entry in the
//! long run (4/3 are expected), so that `fits` can promise room.
//!
//! A presence filter, of which a get reads one word, rejects absent keys before the search.
//!
//! # Memory ordering
//!
//! A node is written with plain stores, its links and filter bits with relaxed ones. Then `Release` stores to
//! its predecessors' links publish it, bottom level first. After that only its links are written again.
//! A reader gets an offset only by an `Acquire` load of a link or a finger. That load happens after the whole
//! node was written, including the links of all its levels: they are filled in before the first publishing
//! store, and the finger is stored after the last one.
//!
//! Filter bits have no such edge, so a reader may see them late. But a reader that looks for sequence number
//! s has learned of s from the caller's own `Release`/`Acquire` publication, which comes after the insert
//! returned. So it sees the bits and links of every entry up to s.
//!
//! The height of the list is only a hint where to begin, and so are fingers. A reader that sees an old height
//! misses only levels that a search can do without, and `HEAD` has links for all levels.

mod cursor;
mod entry;
mod fingers;
mod layout;
mod search;
mod writer;

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::UnsafeCell;
use std::ptr::NonNull;

use super::presence::Filter;
use crate::base::codec::{u32_of, usize_of, usize_of64};
use crate::base::hash::{filter_hash8, hash_bytes};
use crate::base::key::head_of;
use crate::base::sync::atomic::{AtomicUsize, Ordering};
use crate::base::sync::{Link, Links, SetAlone, Shadow};

pub(crate) use cursor::ActiveCursor;
pub(crate) use entry::{Entry, Node};
use fingers::Fingers;
use layout::{HEAD, HEIGHT_MAX, LINK_CREDIT_MAX, NIL};
use writer::Writer;

/// Bytes of a link.
const LINK_BYTES: usize = 4;
/// Nodes begin at multiples of this.
const NODE_ALIGN: usize = 8;
/// Offset of a node's sizes and kind.
const META_AT: usize = 8;
/// Offset of a node's key.
const KEY_AT: usize = 16;
/// A key takes at least as many bytes as its head.
const HEAD_BYTES: usize = 8;

/// Bytes of NIL, which has no links.
const NIL_BYTES: usize = KEY_AT + HEAD_BYTES;
/// Where entries begin.
const ENTRIES_AT: usize = 96;

const _: () = assert!(usize_of(HEAD) == NIL_BYTES + HEIGHT_MAX * LINK_BYTES);
const _: () =
    assert!(ENTRIES_AT == usize_of(HEAD) + KEY_AT + HEAD_BYTES && ENTRIES_AT.is_multiple_of(NODE_ALIGN));

/// The arena's alignment, which is what allocators give anyway.
const ARENA_ALIGN: usize = 16;
/// The largest arena: offsets have 32 bits.
const ARENA_BYTES_MAX: usize = 1 << 31;

/// The longest key that the meta field can hold. It is not `KEY_BYTES_MAX`, since a hash table's sort key is
/// eight bytes longer than the user's key.
const KEY_BYTES_LIMIT: usize = (1 << 24) - 1;

/// The system gives an arena its memory in pieces of this size, when they are touched.
const MEMORY_PAGE_BYTES: usize = 4096;

/// The most bytes that an entry takes beyond its key and value: sequence number and sizes, the padding of a
/// short key, the first link and one more for the budget, alignment.
const ENTRY_OVERHEAD_MAX: usize = KEY_AT + HEAD_BYTES + 2 * LINK_BYTES + NODE_ALIGN - 1;

/// One filter word for this many bytes of arena: the filter is 1/16 of it. So the smallest records, of 8 + 8
/// bytes, get 20 bits each, and nearly no absent key passes.
const ARENA_BYTES_PER_FILTER_WORD: usize = 128;

/// The hash of a key for `Active::may_contain`.
#[inline(always)]
pub(crate) fn key_hash(key: &[u8]) -> u64 {
    match key.as_array::<8>() {
        Some(b) => filter_hash8(u64::from_be_bytes(*b)),
        None => hash_bytes(key, 0),
    }
}

/// The bytes of a key behind its head.
#[inline(always)]
fn after_head(key: &[u8]) -> &[u8] {
    &key[key.len().min(HEAD_BYTES)..]
}

/// A place in the list's order. It stands before every entry of `key` that is older than `seq`, and before
/// those of `seq` itself whose offset is not above `offset`.
struct SearchKey<'a> {
    head: u64,
    key: &'a [u8],
    seq: u64,
    offset: u32,
}

impl<'a> SearchKey<'a> {
    /// The place before all entries of `key` at or below `seq`.
    #[inline(always)]
    fn new(key: &'a [u8], seq: u64) -> SearchKey<'a> {
        SearchKey { head: head_of(key), key, seq, offset: u32::MAX }
    }
}

/// What only the writer changes. It has cache lines of its own, so that readers do not miss because of it.
#[repr(align(128))]
struct WriterSide {
    used_bytes: AtomicUsize,
    len: AtomicUsize,
    /// Touched only inside `insert`.
    writer: UnsafeCell<Writer>,
}

/// A fixed-size ordered buffer of versions.
pub(crate) struct Active {
    arena: NonNull<u8>,
    arena_bytes: usize,
    /// The level with which a search begins, plus one.
    height: AtomicUsize,
    filter: Filter,
    fingers: Fingers,
    side: WriterSide,
    /// For model checkers: the arena's links, and a watch on its other bytes. Empty otherwise.
    links: Links,
    shadow: Shadow,
}

// SAFETY: only this type owns and reaches the arena. Links, counters and filter words are atomics. The other
// bytes of a node are written before it is published and never after. Only `insert` touches `writer`, and its
// caller lets one call run at a time.
unsafe impl Send for Active {}
// SAFETY: as above.
unsafe impl Sync for Active {}

impl Active {
    /// An empty buffer of `capacity_bytes`, at most 2 GiB. Its memory is touched only when it is written.
    pub(crate) fn new(capacity_bytes: usize) -> Active {
        assert!(capacity_bytes <= ARENA_BYTES_MAX, "an arena of {capacity_bytes} bytes is over 2 GiB");
        let arena_bytes = capacity_bytes.max(ENTRIES_AT).next_multiple_of(NODE_ALIGN);
        let layout = Active::layout(arena_bytes);
        // SAFETY: the layout's size is not zero.
        let Some(arena) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        // SAFETY: the arena has ENTRIES_AT bytes, NIL's head is among them, and nobody else has it yet.
        unsafe {
            arena.write_bytes(0, ENTRIES_AT);
            arena.add(KEY_AT).cast::<u64>().write(u64::MAX);
        }
        Active {
            arena,
            arena_bytes,
            height: AtomicUsize::new(1),
            filter: Filter::new(arena_bytes / ARENA_BYTES_PER_FILTER_WORD),
            fingers: Fingers::new(arena_bytes),
            side: WriterSide {
                used_bytes: AtomicUsize::new(ENTRIES_AT),
                len: AtomicUsize::new(0),
                writer: UnsafeCell::new(Writer::new()),
            },
            links: Links::new(arena_bytes),
            shadow: Shadow::new(arena_bytes),
        }
    }

    fn layout(arena_bytes: usize) -> Layout {
        Layout::from_size_align(arena_bytes, ARENA_ALIGN).expect("the size was bounded by `new`")
    }

    /// Adds a version. It comes before an earlier insert of the same key and sequence number. None: it does
    /// not fit, and nothing has changed.
    ///
    /// # Safety
    ///
    /// REQUIRES: no other call of `insert` on this buffer runs at the same time, and the last one happened
    /// before this one (the caller holds the commit lock). There is no condition on readers.
    pub(crate) unsafe fn insert(&self, key: &[u8], seq: u64, kind: u8, value: &[u8]) -> Option<Node> {
        assert!(key.len() <= KEY_BYTES_LIMIT, "a key of {} bytes reached the memtable", key.len());
        // SAFETY: by the caller's promise no other call has the writer.
        let writer = unsafe { &mut *self.side.writer.get() };
        let height = writer.draw_height();
        let used_bytes = self.side.used_bytes.load(Ordering::Relaxed);
        let start = (used_bytes + height * LINK_BYTES).next_multiple_of(NODE_ALIGN);
        let end = start + KEY_AT + key.len().max(HEAD_BYTES) + value.len();
        if end > self.arena_bytes {
            return None;
        }
        writer.link_credit = (writer.link_credit + 2 - height).min(LINK_CREDIT_MAX);
        let node = u32_of(start);
        // SAFETY: [start - links, end) is within the arena, above everything in use and not published.
        // `start` is a multiple of 8.
        unsafe { self.write_node(node, key, seq, kind, value) };
        self.find_splice(writer, &SearchKey::new(key, seq), height);
        for level in 0..height {
            self.link(node, level).store(writer.after[level], Ordering::Relaxed);
        }
        self.filter.add(key_hash(key));
        for level in 0..height {
            self.link(writer.before[level], level).store(node, Ordering::Release);
            writer.before[level] = node;
        }
        self.note_finger(node, height, writer.after[0]);
        if height > self.height.load(Ordering::Relaxed) {
            self.height.store(height, Ordering::Relaxed);
        }
        self.side.used_bytes.store(end, Ordering::Relaxed);
        let len = self.side.len.load(Ordering::Relaxed) + 1;
        self.side.len.store(len, Ordering::Relaxed);
        if len == self.fingers.fine_from() {
            self.refine();
        }
        Some(Node(node))
    }

    /// The entry that an insert has added.
    ///
    /// # Safety
    ///
    /// REQUIRES: `insert` of this buffer gave `node`, not before the last `reset`, and that happened before
    /// this call.
    #[inline]
    pub(crate) unsafe fn inserted(&self, node: Node) -> Entry<'_> {
        // SAFETY: the caller's promise: the node is published, and it is neither of the fixed ones.
        unsafe { self.entry_of(node.0) }
    }

    /// The newest version of `key` at or below `seq`.
    #[inline]
    pub(crate) fn get(&self, key: &[u8], seq: u64) -> Option<Entry<'_>> {
        if !self.may_contain(key_hash(key)) {
            return None;
        }
        let entry = self.entry(self.search(&SearchKey::new(key, seq)).1)?;
        (entry.key == key).then_some(entry)
    }

    /// Whether a key of this `key_hash` may have been inserted. False is certain.
    #[inline(always)]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        self.filter.may_contain(hash)
    }

    /// How many versions were inserted.
    pub(crate) fn len(&self) -> usize {
        self.side.len.load(Ordering::Relaxed)
    }

    /// Whether nothing was inserted.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes of the arena are taken.
    pub(crate) fn used_bytes(&self) -> usize {
        self.side.used_bytes.load(Ordering::Relaxed)
    }

    /// The memory that it takes: the touched part of the arena, and the filter.
    pub(crate) fn memory_bytes(&self) -> usize {
        let touched = self.used_bytes().next_multiple_of(MEMORY_PAGE_BYTES).min(self.arena_bytes);
        touched + self.filter.bytes() + self.fingers.bytes()
    }

    /// The size of the arena.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.arena_bytes
    }

    /// Whether `entries` more entries are sure to fit, whose keys and values have `payload_bytes` in all.
    pub(crate) fn fits(&self, entries: usize, payload_bytes: usize) -> bool {
        let need = entries
            .saturating_mul(ENTRY_OVERHEAD_MAX)
            .saturating_add(payload_bytes)
            .saturating_add(LINK_CREDIT_MAX * LINK_BYTES);
        need <= self.arena_bytes - self.used_bytes()
    }

    /// Empties the buffer for another use. Fresh memory would cost a page fault per 4 KiB.
    pub(crate) fn reset(&mut self) {
        // SAFETY: the range is within the arena, and `&mut self` says that nobody else uses it. HEAD becomes
        // zero, as in `new`.
        unsafe { self.arena.add(NIL_BYTES).write_bytes(0, ENTRIES_AT - NIL_BYTES) };
        // All of it will be written again, whoever has read it.
        self.shadow.write(NIL_BYTES..self.used_bytes());
        self.links.clear();
        self.side.used_bytes.set_alone(ENTRIES_AT);
        self.side.len.set_alone(0);
        *self.side.writer.get_mut() = Writer::new();
        self.height.set_alone(1);
        self.filter.clear();
        self.fingers.reset();
    }

    /// Writes a node, without its links.
    ///
    /// # Safety
    ///
    /// REQUIRES: `node` is a multiple of 8, its bytes are within the arena, and nobody reads them.
    #[inline(always)]
    unsafe fn write_node(&self, node: u32, key: &[u8], seq: u64, kind: u8, value: &[u8]) {
        let meta =
            u64::from(u32_of(value.len())) | u64::from(u32_of(key.len())) << 32 | u64::from(kind) << 56;
        let value_at = KEY_AT + key.len().max(HEAD_BYTES);
        self.shadow.write(usize_of(node)..usize_of(node) + value_at + value.len());
        // SAFETY: the caller's promise. The arena is 16-aligned, so the node's two words are aligned. `key`
        // and `value` are not in the bytes of a node that was not published.
        unsafe {
            let at = self.arena.add(usize_of(node));
            at.cast::<u64>().write(seq);
            at.add(META_AT).cast::<u64>().write(meta);
            if key.len() < HEAD_BYTES {
                at.add(KEY_AT).cast::<u64>().write(0);
            }
            at.add(KEY_AT).copy_from_nonoverlapping(NonNull::from(key).cast(), key.len());
            at.add(value_at).copy_from_nonoverlapping(NonNull::from(value).cast(), value.len());
        }
    }

    /// A node's link at one level. `node` is `HEAD`, or is published (or about to be) with that level.
    #[inline(always)]
    fn link(&self, node: u32, level: usize) -> &Link {
        let at = usize_of(node) - (level + 1) * LINK_BYTES;
        debug_assert!(node >= HEAD && level < HEIGHT_MAX && at < self.arena_bytes);
        // SAFETY: `insert` made every offset in the list, with room for its links below it (`HEAD`: see the
        // constants). A node is only asked for levels at which it was found. Links are multiples of 4, live
        // as long as `self`, and are never accessed in another way.
        unsafe { self.links.at(self.arena, at) }
    }

    /// A node's head. `node` is `NIL` or is published.
    #[inline(always)]
    fn head(&self, node: u32) -> u64 {
        let at = usize_of(node) + KEY_AT;
        self.shadow.read(at..at + HEAD_BYTES);
        // SAFETY: every node has 8 bytes at its key, within the arena and aligned to 8. Those of a published
        // node are never written again. The load of the link that led here was an `Acquire` (or this is the
        // writer, which wrote them).
        u64::from_be(unsafe { self.arena.add(at).cast::<u64>().read() })
    }

    /// The entry of a published node. None for `NIL`.
    #[inline(always)]
    fn entry(&self, node: u32) -> Option<Entry<'_>> {
        // SAFETY: the node is published, and it is not NIL. Nobody asks for HEAD.
        (node != NIL).then(|| unsafe { self.entry_of(node) })
    }

    /// The entry of a node.
    ///
    /// # Safety
    ///
    /// REQUIRES: the node is published, and is neither `NIL` nor `HEAD`.
    #[inline(always)]
    unsafe fn entry_of(&self, node: u32) -> Entry<'_> {
        // SAFETY: as in `head`. `insert` has found the sizes in `meta` to fit. The bytes that they cover are
        // not written again while `self` lives, which the result borrows.
        unsafe {
            self.shadow.read(usize_of(node)..usize_of(node) + KEY_AT);
            let at = self.arena.add(usize_of(node));
            let seq = at.cast::<u64>().read();
            let meta = at.add(META_AT).cast::<u64>().read();
            let key_bytes = usize_of64(meta >> 32) & KEY_BYTES_LIMIT;
            let value_bytes = usize_of64(meta & u64::from(u32::MAX));
            let key = NonNull::slice_from_raw_parts(at.add(KEY_AT), key_bytes).as_ref();
            let value_at = KEY_AT + key_bytes.max(HEAD_BYTES);
            self.shadow.read(usize_of(node)..usize_of(node) + value_at + value_bytes);
            let value = NonNull::slice_from_raw_parts(at.add(value_at), value_bytes).as_ref();
            Entry { key, seq, kind: meta.to_be_bytes()[0], value }
        }
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        // SAFETY: `new` allocated the arena with this layout, and every borrow of it has ended.
        unsafe { dealloc(self.arena.as_ptr(), Active::layout(self.arena_bytes)) }
    }
}

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
