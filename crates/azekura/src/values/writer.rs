//! The writing side of value segments: the open segment, and the thread that writes full buffers. Before that
//! thread is there, a caller that waits for a buffer writes it. A write that finds no room on the disk is
//! tried again; callers that wait for it get an error meanwhile.

use super::{LargeValue, Segment, UnwrittenPart, ValuePointer};
use crate::base::checksum::crc;
use crate::base::codec::{u32_of, usize_of, usize_of64};
use crate::base::error::{Error, Result};
use crate::base::limits::{SEGMENT_BYTES, WRITEBACK_WINDOW_BYTES, align_up};
use crate::base::poison::Poison;
use crate::base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::base::sync::{Condvar, Instant, Mutex, MutexGuard, Rank, RwLock};
use crate::space::{Extent, Room};
use crate::storage::{BulkWrites, File, FileMapping};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A segment is closed at this size. Garbage is collected a segment at a time.
const VALUE_SEGMENT_BYTES: u64 = 64 << 20;
/// The size of the first segments: a few values make no large file.
const VALUE_SEGMENT_BYTES_MIN: u64 = 1 << 20;
/// A new segment is this part of all segments. So the dead and the unfilled bytes of one are little beside
/// the rest.
const SEGMENTS_AIMED_AT: u64 = 8;
/// On a nearly full disk, a new segment takes at most this part of the room that is left.
const TIGHT_SEGMENT_PART: u64 = 32;
/// The most full buffers that may wait for the writer. Beyond that, callers that fill buffers wait.
const QUEUE_PARTS_MAX: usize = 8;
/// A write that found no room is tried again after this time.
const RETRY: Duration = Duration::from_millis(100);

const WRITING: &str = "writing large values";

struct WriteJob {
    segment: Arc<Segment>,
    start: u64,
    bytes: Arc<Vec<u8>>,
    /// Its number in the order in which jobs came, from 1 on.
    number: u64,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<WriteJob>,
    /// How many jobs ever came.
    added: u64,
    /// The number of the job that is being written.
    busy: Option<u64>,
    /// Whether the disk had no room for the first job.
    full: bool,
    /// Whether the writer's thread is there and takes the jobs.
    has_writer: bool,
    stop: bool,
}

impl Queue {
    /// Whether a job up to number `goal` is still to be written. Jobs are written in their order.
    fn has_until(&self, goal: u64) -> bool {
        self.busy.into_iter().chain(self.jobs.front().map(|job| job.number)).any(|number| number <= goal)
    }
}

/// The error for callers that meet a full queue.
fn no_space() -> Error {
    Error::NoSpace { during: WRITING }
}

/// All value segments of a database.
pub(crate) struct ValueStore {
    file: Arc<dyn File>,
    pub(super) mapping: Option<Arc<FileMapping>>,
    bulk: Arc<BulkWrites>,
    room: Arc<Room>,
    poison: Arc<Poison>,
    open: Mutex<Option<Arc<Segment>>>,
    queue: Mutex<Queue>,
    /// Signalled when a job comes and when one is done.
    changed: Condvar,
    /// Whether the writer's thread has, or had, something to do.
    wants_writer: AtomicBool,
    registry: RwLock<HashMap<u32, Weak<Segment>>>,
    next_id: AtomicU32,
    /// Bytes handed to the file. Below, how many of these a sync has made durable.
    handed: AtomicU64,
    durable: AtomicU64,
}

impl ValueStore {
    pub(crate) fn new(
        file: Arc<dyn File>,
        mapping: Option<Arc<FileMapping>>,
        bulk: Arc<BulkWrites>,
        room: Arc<Room>,
        poison: Arc<Poison>,
        next_id: u32,
    ) -> ValueStore {
        ValueStore {
            file,
            mapping,
            bulk,
            room,
            poison,
            open: Mutex::ranked(Rank::ValuesOpen, None),
            queue: Mutex::ranked(Rank::ValuesQueue, Queue::default()),
            changed: Condvar::new(),
            wants_writer: AtomicBool::new(false),
            registry: RwLock::default(),
            next_id: AtomicU32::new(next_id),
            handed: AtomicU64::new(0),
            durable: AtomicU64::new(0),
        }
    }

    /// Registers a segment that recovery finds in the file.
    pub(crate) fn adopt(&self, id: u32, extents: Vec<Extent>, used: u64) -> Arc<Segment> {
        let (file, space, poison) = (self.file.clone(), self.room.space.clone(), self.poison.clone());
        let segment = Arc::new(Segment::new(id, file, space, poison, extents, used));
        self.registry.write().insert(id, Arc::downgrade(&segment));
        self.next_id.fetch_max(id + 1, Ordering::Relaxed);
        segment
    }

    /// All segments that somebody holds, by id: runs of the engine that do the same write the same bytes.
    pub(crate) fn segments(&self) -> Vec<Arc<Segment>> {
        let mut registry = self.registry.write();
        registry.retain(|_, s| s.strong_count() > 0);
        let mut all: Vec<Arc<Segment>> = registry.values().filter_map(Weak::upgrade).collect();
        all.sort_unstable_by_key(|s| s.id);
        all
    }

    /// The segment of a reference.
    pub(super) fn segment_of(&self, at: ValuePointer) -> Result<Arc<Segment>> {
        self.segment(at.segment).ok_or_else(|| {
            Error::corrupt("value reference", 0, format!("there is no value segment {}", at.segment))
        })
    }

    /// A large value, in place or read into memory.
    pub(crate) fn read(&self, reference: &[u8]) -> Result<LargeValue> {
        let at = ValuePointer::decode(reference)?;
        if let Some(value) = self.standing(at)? {
            return Ok(value);
        }
        let segment = self.segment_of(at)?;
        // The length is checked against the segment before memory is taken for it.
        segment.check(at)?;
        let mut value = vec![0; usize_of(at.len)];
        segment.read(at, &mut value)?;
        let range = 0..value.len();
        Ok(LargeValue::copied(Arc::new(value), range))
    }

    /// Segments to which nothing is added any more.
    pub(crate) fn closed_segments(&self) -> Vec<Arc<Segment>> {
        let open = self.open.lock().clone();
        let mut all = self.segments();
        all.retain(|s| open.as_ref().is_none_or(|o| !Arc::ptr_eq(o, s)));
        all
    }

    /// The closed segments that may be moved: nothing of them waits to be written.
    pub(crate) fn whole_segments(&self) -> Vec<Arc<Segment>> {
        let mut all = self.closed_segments();
        all.retain(|s| s.is_whole());
        all
    }

    /// The segment of this id, if somebody holds it.
    pub(crate) fn segment(&self, id: u32) -> Option<Arc<Segment>> {
        self.registry.read().get(&id).and_then(Weak::upgrade)
    }

    /// Stores a value. The reference can be used at once. The bytes are durable after `sync`.
    pub(crate) fn append(&self, value: &[u8]) -> Result<(ValuePointer, Arc<Segment>)> {
        let crc = crc(0, value);
        let len = value.len() as u64;
        let mut open = self.open.lock();
        {
            let queue = self.queue.lock();
            if queue.full && queue.jobs.len() >= QUEUE_PARTS_MAX {
                return Err(no_space());
            }
        }
        let segment = match &*open {
            Some(s) if s.used() + len <= s.bytes() => s.clone(),
            _ => {
                if let Some(old) = open.take() {
                    // Nobody will wait for its tail, so the writer's thread must write it.
                    self.wants_writer.store(true, Ordering::Relaxed);
                    self.close_segment(&old)?;
                }
                open.insert(self.new_segment(len)?).clone()
            }
        };
        let offset = segment.used();
        self.fill(&segment, value)?;
        let offset = u32::try_from(offset).expect("a segment with a second value is below 4 GiB");
        Ok((ValuePointer { segment: segment.id, offset, len: u32_of(value.len()), crc }, segment))
    }

    fn new_segment(&self, len: u64) -> Result<Arc<Segment>> {
        self.room.look();
        let all: u64 = self.segments().iter().map(|s| s.bytes()).sum();
        let mut size = (all / SEGMENTS_AIMED_AT).min(VALUE_SEGMENT_BYTES);
        let mut least = if len > VALUE_SEGMENT_BYTES { len } else { len.max(VALUE_SEGMENT_BYTES_MIN) };
        if self.room.is_tight() {
            // As small as possible: before a segment is freed, its live values are written again.
            (least, size) = (len, size.min(self.room.bytes() / TIGHT_SEGMENT_PART));
        }
        let least = align_up(least);
        let extent = self.room.take(least, least.max(align_up(size)), WRITING)?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        Ok(self.adopt(id, vec![extent], 0))
    }

    /// Copies a value to the tail, and enqueues the tail each time that it is full.
    fn fill(&self, segment: &Arc<Segment>, value: &[u8]) -> Result<()> {
        let mut rest = value;
        while !rest.is_empty() {
            let full = {
                let mut tail = segment.tail.lock();
                if tail.1.capacity() == 0 {
                    let left = segment.bytes() - tail.0;
                    tail.1.reserve_exact(SEGMENT_BYTES.min(usize_of64(left)));
                }
                let n = rest.len().min(SEGMENT_BYTES - tail.1.len());
                tail.1.extend_from_slice(&rest[..n]);
                segment.used.fetch_add(n as u64, Ordering::AcqRel);
                rest = &rest[n..];
                (tail.1.len() == SEGMENT_BYTES).then(|| self.tail_to_part(segment, &mut tail))
            };
            if let Some(job) = full {
                self.wants_writer.store(true, Ordering::Relaxed);
                self.enqueue(job)?;
            }
        }
        Ok(())
    }

    /// Makes the tail a part, where readers find it from then on.
    fn tail_to_part(&self, segment: &Arc<Segment>, tail: &mut (u64, Vec<u8>)) -> WriteJob {
        let start = tail.0;
        let bytes = Arc::new(std::mem::take(&mut tail.1));
        tail.0 += bytes.len() as u64;
        segment.parts.lock().push(UnwrittenPart { start, bytes: bytes.clone() });
        WriteJob { segment: segment.clone(), start, bytes, number: 0 }
    }

    /// Hands a job to the writer, and waits while too many jobs wait. The job is never lost, since others may
    /// have values in it.
    fn enqueue(&self, job: WriteJob) -> Result<()> {
        let mut queue = self.queue.lock();
        queue.added += 1;
        let number = queue.added;
        queue.jobs.push_back(WriteJob { number, ..job });
        self.changed.notify_all();
        while queue.jobs.len() > QUEUE_PARTS_MAX {
            self.write_or_wait(&mut queue)?;
        }
        Ok(())
    }

    /// Enqueues the tail, padded to whole blocks, so that these blocks are never written again.
    fn hand_tail(&self, segment: &Arc<Segment>) -> Result<()> {
        let job = {
            let mut tail = segment.tail.lock();
            if tail.1.is_empty() {
                return Ok(());
            }
            let padded = usize_of64(align_up(tail.1.len() as u64));
            let pad = padded - tail.1.len();
            tail.1.resize(padded, 0);
            segment.used.fetch_add(pad as u64, Ordering::AcqRel);
            self.tail_to_part(segment, &mut tail)
        };
        self.enqueue(job)
    }

    fn close_segment(&self, segment: &Arc<Segment>) -> Result<()> {
        let handed = self.hand_tail(segment);
        // Also if there is no room to write the tail: it waits, and nothing is added behind it.
        segment.cut();
        handed
    }

    /// Closes the open segment, which frees the rest of its extent.
    pub(crate) fn close_open(&self) -> Result<()> {
        let mut open = self.open.lock();
        match open.take() {
            Some(segment) => self.close_segment(&segment),
            None => Ok(()),
        }
    }

    /// Closes the open segment if one of its extents ends at offset `end`, and says whether it did.
    pub(crate) fn close_at(&self, end: u64) -> Result<bool> {
        let mut open = self.open.lock();
        let ends_there = |s: &mut Arc<Segment>| s.place().extents().iter().any(|e| e.end() == end);
        match open.take_if(ends_there) {
            Some(segment) => self.close_segment(&segment).map(|()| true),
            None => Ok(false),
        }
    }

    /// Makes every value stored so far durable. `NoSpace` does not poison the handle: the values go on
    /// waiting.
    pub(crate) fn sync(&self) -> Result<()> {
        {
            let open = self.open.lock();
            if let Some(segment) = &*open {
                self.hand_tail(segment)?;
            }
        }
        let mut queue = self.queue.lock();
        // Later jobs are not waited for: the wait might never end.
        let goal = queue.added;
        while queue.has_until(goal) {
            self.write_or_wait(&mut queue)?;
        }
        drop(queue);
        self.poison.check()?;
        let handed = self.handed.load(Ordering::Acquire);
        if self.durable.load(Ordering::Acquire) < handed {
            let sync = || self.file.sync_data().map_err(|e| Error::io("syncing value segments", e));
            self.poison.guard_sync(sync)?;
            self.durable.fetch_max(handed, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Waits until the writer's thread has done a job. Does one itself if there is no such thread.
    fn write_or_wait(&self, queue: &mut MutexGuard<'_, Queue>) -> Result<()> {
        self.poison.check()?;
        let alone = !queue.has_writer && queue.busy.is_none();
        if alone {
            self.write_next(queue);
        }
        if queue.full {
            return Err(no_space());
        }
        if !alone {
            self.changed.wait(queue);
        }
        Ok(())
    }

    /// Bytes that wait to be written, without those of the open buffer.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.queue.lock().jobs.iter().map(|job| job.bytes.len() as u64).sum()
    }

    /// Does one job, in place of the missing writer's thread.
    fn write_next(&self, queue: &mut MutexGuard<'_, Queue>) {
        let Some(job) = queue.jobs.pop_front() else { return };
        queue.busy = Some(job.number);
        let written = MutexGuard::unlocked(queue, || self.write(&job, &mut VecDeque::new()));
        self.end_job(queue, job, written);
    }

    /// Ends a job that was written. One that found no room is put back in front.
    fn end_job(&self, queue: &mut MutexGuard<'_, Queue>, job: WriteJob, written: bool) {
        queue.busy = None;
        queue.full = !written;
        if !written {
            // The writer's thread must try again.
            self.wants_writer.store(true, Ordering::Relaxed);
            queue.jobs.push_front(job);
            self.forget_needless(queue);
        }
        self.changed.notify_all();
    }

    /// Drops the first job and all others of its segment, if nobody else holds the segment any more. For
    /// example, a merge has moved values there and then found no room for the rest. Otherwise other jobs
    /// would wait behind it.
    fn forget_needless(&self, queue: &mut Queue) {
        let Some(segment) = queue.jobs.front().map(|j| j.segment.clone()) else { return };
        let jobs = queue.jobs.iter().filter(|j| Arc::ptr_eq(&j.segment, &segment)).count();
        if Arc::strong_count(&segment) == jobs + 1 {
            queue.jobs.retain(|j| !Arc::ptr_eq(&j.segment, &segment));
            queue.full = false;
        }
    }

    /// Whether the writer's thread has, or had, something to do.
    #[inline(always)]
    pub(crate) fn wants_writer(&self) -> bool {
        self.wants_writer.load(Ordering::Relaxed)
    }

    /// The body of the writer's thread. It returns after `stop`.
    pub(crate) fn run(&self) {
        let mut queue = self.queue.lock();
        queue.has_writer = true;
        self.write_all(&mut queue);
        queue.has_writer = false;
        self.changed.notify_all();
    }

    fn write_all(&self, queue: &mut MutexGuard<'_, Queue>) {
        let mut unsettled = VecDeque::new();
        loop {
            // Before this thread came, a caller may have begun to do a job.
            let job = if queue.busy.is_some() { None } else { queue.jobs.pop_front() };
            let Some(job) = job else {
                if queue.stop && queue.busy.is_none() {
                    return;
                }
                self.changed.wait(queue);
                continue;
            };
            queue.busy = Some(job.number);
            // A panic poisons the handle, and those who wait for the job get the error.
            let write =
                || self.poison.catch(WRITING, || Ok(self.write(&job, &mut unsettled))).unwrap_or(true);
            let written = MutexGuard::unlocked(queue, write);
            self.end_job(queue, job, written);
            if !written {
                if queue.stop {
                    return;
                }
                self.pause(queue);
            }
        }
    }

    /// Waits before a job is tried again, unless the thread is to end.
    fn pause(&self, queue: &mut MutexGuard<'_, Queue>) {
        let until = Instant::now() + RETRY;
        while !queue.stop && !self.changed.wait_until(queue, until).timed_out() {}
    }

    /// Writes a job. False if the disk has no room for it. Every other failure poisons the handle.
    fn write(&self, job: &WriteJob, unsettled: &mut VecDeque<Extent>) -> bool {
        if self.poison.check().is_err() {
            return true;
        }
        // Until this is written the segment is not moved, only cut at its end, and it is in one piece.
        let (offset, len) = (job.segment.place().offset_of(job.start), job.bytes.len() as u64);
        let write = || self.bulk.write_at(&job.bytes, offset).map_err(|e| Error::io(WRITING, e));
        let done = self.poison.catch(WRITING, write);
        if matches!(done, Err(Error::NoSpace { .. })) {
            return false;
        }
        if self.poison.guard(done).is_err() {
            return true;
        }
        job.segment.written.store(job.start + len, Ordering::Release);
        job.segment.parts.lock().retain(|p| p.start != job.start);
        self.handed.fetch_add(len, Ordering::AcqRel);
        self.file.write_back(offset, len);
        unsettled.push_back(Extent { offset, len });
        while unsettled.iter().map(|e| e.len).sum::<u64>() > WRITEBACK_WINDOW_BYTES {
            if let Some(old) = unsettled.pop_front() {
                self.file.wait_written(old.offset, old.len);
            }
        }
        true
    }

    /// Ends the writer's thread once it has nothing left to write.
    pub(crate) fn stop(&self) {
        self.queue.lock().stop = true;
        self.changed.notify_all();
    }
}
