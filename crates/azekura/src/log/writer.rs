//! The writing side of the log: the queue, the segments, and what makes frames durable.

mod ahead;
mod chain;
mod entries;
mod frames;
mod next;
mod slices;
mod vouch;

use crate::base::clock::Clock;
use crate::base::codec::Writer;
use crate::base::error::{Error, Result};
use crate::base::limits::ALIGN_BYTES;
use crate::base::poison::Poison;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{Condvar, Mutex, Rank};
use crate::format::frame::{begin_record, end_record};
use crate::memtable::chunk::Chunk;
use crate::space::{Extent, Room};
use crate::storage::{BulkWrites, File};
use crate::values::{Segment, ValueStore};
use entries::Entries;
pub(crate) use entries::Inserted;
use next::{Ahead, Mark};
use std::collections::VecDeque;
use std::sync::Arc;

/// The length of a chain's first segment: a database of a few records stays small.
const SEGMENT_BYTES_MIN: u64 = 64 << 10;
/// The length of a segment that keeps the file short.
const SHORT_SEGMENT_BYTES: u64 = 32 << 10;
/// The length to which later segments grow.
const SEGMENT_BYTES_MAX: u64 = 4 << 20;
/// A new segment takes at most this part of the room that is left.
const SEGMENT_ROOM_PART: u64 = 16;
/// A segment takes at most this part of a memtable.
const MEMTABLE_PART: u64 = 8;
/// The segments together take at most this part of the room that is left.
const LOG_ROOM_PART: u64 = 3;
/// A log that is shorter than this is not worth a flush.
const LOG_BYTES_LONG: u64 = 1 << 20;
/// Bytes of a jump, which stands twice.
const JUMP_BYTES: u64 = 2 * ALIGN_BYTES;
/// The most bytes that one frame carries.
const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// Small commits are gathered in pieces of about this size. A piece is dropped as a whole.
const PIECE_BYTES: usize = 256 << 10;

/// A write of this much or more is a bulk.
const BULK_BYTES: u64 = 1 << 20;

const NEW_SEGMENT: &str = "allocating a log segment";

/// How to prepare a new segment.
#[derive(Clone, Copy)]
enum Blank {
    /// Filled with zeros. A durable write to blocks that were written before takes about half the time, since
    /// the file system need not record that they are written.
    Written,
    /// Only reserved. A bulk is a few large writes, and zeros would double its bytes. (Where the file system
    /// cannot reserve, as `Written`.)
    Reserved,
}

/// A commit, or several small ones, that is not written yet.
struct Pending {
    last_seq: u64,
    body: Body,
    /// Whether it refers to large values, which must be durable first.
    large: bool,
}

enum Body {
    /// Records in the form of the log.
    Bytes(Vec<u8>),
    /// Small commits of one table, encoded only if they are written.
    Entries(Entries),
    /// A large commit. It is encoded only if it is written.
    Chunks(Vec<(u32, Arc<Chunk>)>),
}

#[derive(Default)]
struct Queue {
    pending: VecDeque<Pending>,
    /// Bytes of what waits.
    bytes: usize,
    /// Bytes of all that was ever queued.
    added: u64,
    /// The next commit begins a piece, so that it can be taken back alone.
    apart: bool,
}

struct LogSegment {
    extent: Extent,
    first_frame: u64,
    /// The newest commit with a part in the segment.
    last_seq: u64,
}

struct Io {
    chain: u64,
    segments: VecDeque<LogSegment>,
    /// The next segment. It is allocated before frames that might need it are written.
    spare: Option<Extent>,
    /// See `look_ahead`.
    mark: Mark,
    /// Where the next frame goes, in bytes from the start of the last segment.
    at: u64,
    next_frame: u64,
    /// Frames below this number are durable.
    durable_below: u64,
    /// Frames below this number are durable, and a frame in the file says so that is no jump.
    vouched_below: u64,
    /// The jumps of the group that is being written.
    jumps: Vec<Jump>,
}

/// A jump that was written: the offset of its second copy, its number, and the segment to which it leads.
struct Jump {
    twin_at: u64,
    number: u64,
    goal: Extent,
}

/// Whether the manifest names the chain, as it must before the chain's first frame is written.
pub(crate) enum LogStart {
    Ready,
    Unpublished,
}

/// The log of an open database.
pub(crate) struct Log {
    file: Arc<dyn File>,
    bulk: Arc<BulkWrites>,
    room: Arc<Room>,
    poison: Arc<Poison>,
    values: Arc<ValueStore>,
    file_id: u64,
    /// Its time stands in the frames.
    pub(crate) clock: Arc<Clock>,
    io: Mutex<Io>,
    /// What the log's thread makes of the next segment.
    ahead: Mutex<Ahead>,
    /// Nothing is in making any more. Used with `ahead`.
    made: Condvar,
    /// Whether `prepare_segment` may have something to do.
    wants_segment: AtomicBool,
    /// Whether nobody has told the log's thread of that yet.
    untold: AtomicBool,
    /// Whether there is such a thread.
    has_maker: AtomicBool,
    /// Whether a manifest names the chain, so that frames may be written. Changed under `io` and read without
    /// it: a durable commit joins the waiting group while another group is being written.
    published: AtomicBool,
    /// Whether the disk had no room for what waits.
    full: AtomicBool,
    queue: Mutex<Queue>,
    /// Every commit up to this one is durable, by the log or by a flush.
    durable_seq: AtomicU64,
    /// Bytes of the chain's segments.
    file_bytes: AtomicU64,
    /// The part of `file_bytes` that a flush frees: all segments but the last, which stays in use.
    before_last_bytes: AtomicU64,
    /// The most bytes of a segment. One with a large commit may be longer.
    segment_bytes_max: u64,
    /// The most that the segments may take before commits wait for a flush. It is a part of the room that
    /// there was for the last segment.
    bytes_max: AtomicU64,
    /// The newest checkpoint's number, which frames carry.
    checkpoint: AtomicU64,
    /// Whether frames have become durable since the last frame that vouches for others. Changed under `io`.
    unvouched: AtomicBool,
}

impl Log {
    pub(crate) fn new(
        file: Arc<dyn File>,
        bulk: Arc<BulkWrites>,
        room: Arc<Room>,
        poison: Arc<Poison>,
        values: Arc<ValueStore>,
        (file_id, clock): (u64, Arc<Clock>),
        seq: u64,
    ) -> Log {
        let io = Io {
            chain: 0,
            segments: VecDeque::new(),
            spare: None,
            mark: Mark::now(0),
            at: 0,
            next_frame: 1,
            durable_below: 0,
            vouched_below: 0,
            jumps: Vec::new(),
        };
        Log {
            file,
            bulk,
            room,
            poison,
            values,
            file_id,
            clock,
            io: Mutex::ranked(Rank::LogIo, io),
            ahead: Mutex::ranked(Rank::Leaf, Ahead::default()),
            made: Condvar::new(),
            wants_segment: AtomicBool::new(false),
            untold: AtomicBool::new(false),
            has_maker: AtomicBool::new(false),
            published: AtomicBool::new(false),
            full: AtomicBool::new(false),
            queue: Mutex::ranked(Rank::LogQueue, Queue::default()),
            durable_seq: AtomicU64::new(seq),
            file_bytes: AtomicU64::new(0),
            before_last_bytes: AtomicU64::new(0),
            segment_bytes_max: SEGMENT_BYTES_MAX,
            bytes_max: AtomicU64::new(u64::MAX),
            checkpoint: AtomicU64::new(0),
            unvouched: AtomicBool::new(false),
        }
    }

    /// Sets the largest segment to a small part of a memtable of `memtable_bytes`.
    pub(crate) fn beside(self, memtable_bytes: u64) -> Log {
        let segment_bytes_max = (memtable_bytes / MEMTABLE_PART).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX);
        Log { segment_bytes_max, ..self }
    }

    /// About how many bytes wait to be written.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.queue.lock().bytes
    }

    /// Bytes that were ever queued.
    pub(crate) fn added_bytes(&self) -> u64 {
        self.queue.lock().added
    }

    /// Bytes that wait to be written, of those that were queued after the first `from`.
    pub(crate) fn queued_bytes_from(&self, from: u64) -> u64 {
        let queue = self.queue.lock();
        (queue.added - from).min(queue.bytes as u64)
    }

    /// Bytes that log segments take of the file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes.load(Ordering::Relaxed)
    }

    /// How many of these bytes a flush would free. The last segment does not count: if a commit made it long,
    /// every later commit would cause a flush.
    pub(crate) fn needless_bytes(&self) -> u64 {
        self.before_last_bytes.load(Ordering::Relaxed)
    }

    fn note_length(&self, io: &Io) {
        let all: u64 = io.segments.iter().map(|s| s.extent.len).sum();
        let last = io.segments.back().map_or(0, |s| s.extent.len);
        self.file_bytes.store(all, Ordering::Relaxed);
        self.before_last_bytes.store(all - last, Ordering::Relaxed);
    }

    /// Whether the log takes so much of the disk's room that a flush must shorten it.
    #[inline(always)]
    pub(crate) fn is_long(&self) -> bool {
        self.file_bytes() >= self.bytes_max.load(Ordering::Relaxed)
    }

    pub(crate) fn durable_seq(&self) -> u64 {
        self.durable_seq.load(Ordering::Acquire)
    }

    /// Queues a small commit. REQUIRES: the commit lock, so that sequence numbers ascend.
    pub(crate) fn add_small(&self, seq: u64, large: bool, parts: usize, write: impl FnOnce(&mut Writer)) {
        let mut queue = self.queue.lock();
        let apart = std::mem::take(&mut queue.apart);
        let fresh = match queue.pending.back() {
            Some(Pending { body: Body::Bytes(b), .. }) => apart || b.len() >= PIECE_BYTES,
            _ => true,
        };
        if fresh {
            // A piece that follows a full one will be filled too, so it gets all its memory at once.
            let room = match queue.pending.back() {
                Some(Pending { body: Body::Bytes(_), .. }) => PIECE_BYTES + PIECE_BYTES / 4,
                Some(_) => 0,
                None => 4096,
            };
            let body = Body::Bytes(Vec::with_capacity(room));
            queue.pending.push_back(Pending { last_seq: seq, body, large: false });
        }
        let Some(Pending { last_seq, body: Body::Bytes(bytes), large: any_large }) = queue.pending.back_mut()
        else {
            return;
        };
        *last_seq = seq;
        *any_large |= large;
        let mut w = Writer { bytes: std::mem::take(bytes) };
        let before = w.bytes.len();
        let start = begin_record(&mut w, seq, parts);
        write(&mut w);
        end_record(&mut w, start);
        let grown = w.bytes.len() - before;
        *bytes = w.bytes;
        queue.bytes += grown;
        queue.added += grown as u64;
    }

    /// How many bytes of memory the copied commits that wait have been given.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn copies_capacity(&self) -> usize {
        let of = |pending: &Pending| match &pending.body {
            Body::Bytes(bytes) => bytes.capacity(),
            _ => 0,
        };
        self.queue.lock().pending.iter().map(of).sum()
    }

    /// Queues a small commit of one table by reference to what was inserted into the table's active buffer,
    /// with the one record that it tells the feed. REQUIRES: as `add_small`.
    ///
    /// # Safety
    ///
    /// REQUIRES: inserts into the buffers gave the nodes, after the last `reset`.
    pub(crate) unsafe fn add_inserted(&self, seq: u64, own: Inserted<'_>, told: Option<Inserted<'_>>) {
        let mut queue = self.queue.lock();
        let apart = std::mem::take(&mut queue.apart);
        let same_piece = match queue.pending.back() {
            Some(Pending { body: Body::Entries(e), .. }) => {
                !apart && e.are_in(&own, told.as_ref()) && e.bytes() < PIECE_BYTES
            }
            _ => false,
        };
        if !same_piece {
            let body = Body::Entries(Entries::new(&own, told.as_ref()));
            queue.pending.push_back(Pending { last_seq: seq, body, large: false });
        }
        let Some(Pending { last_seq, body: Body::Entries(entries), .. }) = queue.pending.back_mut() else {
            return;
        };
        *last_seq = seq;
        // SAFETY: the caller's promise.
        let grown = unsafe { entries.add(&own, told.as_ref()) };
        queue.bytes += grown;
        queue.added += grown as u64;
    }

    /// Queues a large commit by reference to its chunks. REQUIRES: the commit lock.
    pub(crate) fn add_chunks(&self, seq: u64, chunks: Vec<(u32, Arc<Chunk>)>) {
        let bytes: usize = chunks.iter().map(|(_, c)| c.bytes()).sum();
        let large = chunks.iter().any(|(_, c)| !c.segments.is_empty());
        let mut queue = self.queue.lock();
        queue.bytes += bytes;
        queue.added += bytes as u64;
        queue.pending.push_back(Pending { last_seq: seq, body: Body::Chunks(chunks), large });
    }

    /// The next commit, and those after it, may have to be taken back. REQUIRES: the commit lock.
    pub(crate) fn begin_group(&self) {
        self.queue.lock().apart = true;
    }

    /// Takes the commits from `seq` on out of the queue, after there was no room for them. `seq` is the first
    /// of a group. Returns the newest durable commit: if there was room after all, some of the group are
    /// durable. REQUIRES: the commit lock, held since `begin_group`.
    pub(crate) fn rollback_from(&self, seq: u64) -> u64 {
        // So that nobody writes them meanwhile.
        let _io = self.io.lock();
        let mut queue = self.queue.lock();
        while queue.pending.back().is_some_and(|p| p.last_seq >= seq) {
            if let Some(p) = queue.pending.pop_back() {
                queue.bytes -= p.bytes().min(queue.bytes);
            }
        }
        if queue.pending.is_empty() {
            self.full.store(false, Ordering::Release);
        }
        self.durable_seq()
    }

    /// Whether commits wait because the disk has no room for them.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// Whether frames can be written, or a checkpoint must publish the chain first.
    pub(crate) fn start(&self) -> LogStart {
        if self.published.load(Ordering::Acquire) { LogStart::Ready } else { LogStart::Unpublished }
    }

    /// A flush has made every commit up to `seq` durable. Drops those that still wait.
    pub(crate) fn flushed(&self, seq: u64) {
        let mut queue = self.queue.lock();
        while queue.pending.front().is_some_and(|p| p.last_seq <= seq) {
            if let Some(p) = queue.pending.pop_front() {
                queue.bytes -= p.bytes().min(queue.bytes);
            }
        }
        if queue.pending.is_empty() {
            self.full.store(false, Ordering::Release);
        }
        drop(queue);
        self.durable_seq.fetch_max(seq, Ordering::AcqRel);
    }

    /// Recovery has read this commit from an older chain, so it is durable.
    pub(crate) fn recovered(&self, seq: u64) {
        self.durable_seq.fetch_max(seq, Ordering::AcqRel);
    }

    /// Writes the waiting commits up to `goal`, and syncs. REQUIRES: `start` returned `Ready`; every commit
    /// in the queue was applied, or the caller will apply it.
    ///
    /// Room is made before anything is written. If the disk has none, all commits go on waiting and nothing
    /// else is wrong. Every other failure poisons the handle.
    pub(crate) fn write(&self, goal: u64) -> Result<()> {
        let mut io = self.io.lock();
        // After the lock: its last holder may have failed to write what this caller waits for.
        self.poison.check()?;
        let armed = self.poison.armed("writing the log");
        let done = self.write_queue(&mut io, goal);
        armed.disarm();
        done
    }
}

/// The value segments of a commit's part, in the form of its record. If a segment has several extents, the
/// first one is enough: a checkpoint knows them all, and the manifest counts.
pub(crate) fn segment_list(segments: &[Arc<Segment>]) -> Vec<(u32, Extent)> {
    segments.iter().map(|s| (s.id, s.place().extents()[0])).collect()
}

impl Pending {
    fn bytes(&self) -> usize {
        match &self.body {
            Body::Bytes(b) => b.len(),
            Body::Entries(e) => e.bytes(),
            Body::Chunks(chunks) => chunks.iter().map(|(_, c)| c.bytes()).sum(),
        }
    }

    /// About how many bytes its records take in the log; at least as many as they do.
    fn written_bytes_max(&self) -> u64 {
        match &self.body {
            Body::Bytes(b) => b.len() as u64,
            Body::Entries(e) => e.bytes() as u64,
            Body::Chunks(chunks) => {
                chunks.iter().map(|(_, c)| part_bytes_max(c)).sum::<u64>() + RECORD_BYTES_MAX
            }
        }
    }
}

/// What a record takes beside its parts, at most.
const RECORD_BYTES_MAX: u64 = 64;
/// What a part takes beside its records, at most. Below, what a row takes beside its key and value.
const PART_BYTES_MAX: u64 = 64;
const ROW_BYTES: u64 = 9;

fn part_bytes_max(chunk: &Chunk) -> u64 {
    let row_bytes = if chunk.fixed().is_some() { 0 } else { ROW_BYTES };
    let rows = chunk.block.len() as u64 * row_bytes + chunk.block.bytes() as u64;
    let ranges: usize =
        chunk.ranges.iter().map(|r| r.start.len() + r.end.as_ref().map_or(0, Vec::len) + 16).sum();
    rows + ranges as u64 + chunk.segments.len() as u64 * 20 + PART_BYTES_MAX
}

fn no_segment() -> Error {
    Error::Invalid { detail: "the log has no segment".into() }
}
