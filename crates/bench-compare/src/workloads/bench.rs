//! The steps that workloads share: load, close, reopen, and verified reads.
//!
//! A case may limit how long a phase takes. A load that is stopped has put fewer records. Everything after it
//! uses these: `loaded`, not what was asked for.

use crate::case::{Case, Workload};
use crate::counters::{self, Io};
use crate::failure::{Failure, Result, abbreviated};
use crate::measure::batches::Batches;
use crate::measure::{Deadline, LOAD, Measured, Watch, count};
use crate::peers::{Open, Peer, PeerPlace, Reader, Store};
use crate::records::{KeyBuffer, Records, ScanSum, Shuffle};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const MIB: f64 = 1024.0 * 1024.0;
/// The number of operations between two looks at the clock, and of the gets that a helper process is told at
/// once.
pub const STRIDE: u64 = 256;
/// The number of records between two looks at the clock within a transaction.
const LOOK_EVERY: u64 = 1024;

/// One peer in one case.
pub struct Bench<'a> {
    /// The peer.
    pub peer: &'a dyn Peer,
    /// The case.
    pub case: &'a Case,
    /// The store's directory.
    pub dir: &'a Path,
    /// The records.
    pub records: Records,
    /// How many of them were put. Less than all if the load was stopped.
    pub loaded: u64,
    raw_bytes: u64,
}

impl<'a> Bench<'a> {
    /// Prepares the records.
    pub fn new(peer: &'a dyn Peer, case: &'a Case, dir: &'a Path) -> Self {
        let records = Records::new(case.shape(), case.records, case.value_bytes);
        let raw_bytes = records.raw_bytes(case.records);
        Self { peer, case, dir, records, loaded: case.records, raw_bytes }
    }

    /// Opens the store.
    pub fn open(&self, create: bool, durable: bool) -> Result<Box<dyn Store>> {
        self.peer.open(&self.how(create, durable))
    }

    /// How the store is opened.
    pub fn how(&self, create: bool, durable: bool) -> Open {
        Open {
            dir: self.dir.to_owned(),
            budget_bytes: self.case.budget_bytes,
            records: self.case.records,
            raw_bytes: self.raw_bytes,
            create,
            durable,
            ascending: self.records.ascending(),
            indexed: self.case.workload == Workload::Index,
            lives: None,
            fed: false,
        }
    }

    /// The end of a phase that begins now.
    pub fn deadline(&self) -> Deadline {
        Deadline::after(self.case.phase_s)
    }

    /// Creates the store, puts every record, makes it durable and closes it.
    pub fn write(&mut self, into: &mut Measured) -> Result<()> {
        let before = Io::now();
        let store = self.open(true, false)?;

        let watch = Watch::start(store.as_ref());
        let (batches, loaded) = self.put_all(store.as_ref())?;
        let wrote = watch.elapsed();
        let watch = Instant::now();
        store.sync()?;
        store.close()?;
        let flushed = watch.elapsed();

        into.note_stopped(LOAD, loaded, self.case.records);
        self.loaded = loaded;
        if loaded < self.case.records {
            self.raw_bytes = self.records.raw_bytes(loaded);
        }
        into.set_count("records", loaded);
        into.set_timed("write", loaded, wrote);
        into.set("flush_s", flushed.as_secs_f64());
        into.set("write_flush_per_s", count(loaded) / (wrote + flushed).as_secs_f64());
        into.set("write_mb_per_s", count(self.raw_bytes) / 1e6 / wrote.as_secs_f64());
        into.set_count("write_peak_rss_bytes", counters::peak_rss_bytes());
        batches.report(into);
        if !matches!(self.case.workload, Workload::Lookup | Workload::Huge | Workload::Text | Workload::Index)
        {
            // The course of a load is recorded only where its batches are large.
            into.series.clear();
        }
        self.report_sizes(Io::now().since(before), into);
        Ok(())
    }

    /// Puts records, transaction by transaction, until all are there or the phase is over. Returns how many
    /// there are.
    fn put_all(&self, store: &dyn Store) -> Result<(Batches, u64)> {
        let mut writer = store.writer()?;
        let mut buffer = KeyBuffer::default();
        let batch = self.case.batch.max(1);
        let mut batches = Batches::new(self.case.records.div_ceil(batch));
        let deadline = self.deadline();
        let mut watch = Watch::start(store);
        let mut start = 0;
        while start < self.case.records {
            let end = self.case.records.min(start + batch);
            let mut index = start;
            writer.begin()?;
            while index < end {
                writer.put(self.records.key(index, &mut buffer), self.records.value(index))?;
                index += 1;
                if index.is_multiple_of(LOOK_EVERY) && deadline.passed() {
                    break;
                }
            }
            writer.commit()?;
            batches.add(watch.lap(), index - start);
            start = index;
            let look = batch > STRIDE || (start / batch).is_multiple_of(STRIDE / batch);
            if index < end || look && deadline.passed() {
                break;
            }
        }
        Ok((batches, start))
    }

    fn report_sizes(&self, io: Io, into: &mut Measured) {
        let (records, raw) = (count(self.loaded), count(self.raw_bytes));
        let database = count(self.peer.file_bytes(self.dir));
        into.set("raw_bytes", raw);
        into.set("database_bytes", database);
        if self.loaded < self.case.records {
            // Some peers make room for all records at once. So a part of the records has no size of its own.
            return;
        }
        into.set("bytes_per_record", database / records);
        into.set("overhead_per_record", (database - raw) / records);
        into.set("file_per_raw", database / raw);
        // Calls to and from a helper process are not calls of the peer.
        let here = self.peer.about().place == PeerPlace::Here;
        let written = count(if here { io.written_bytes() } else { io.dirtied_bytes });
        if written > 0.0 {
            into.set("written_bytes", written);
            into.set("written_per_file", written / database);
            into.set("written_per_raw", written / raw);
        }
        if here {
            into.set_count("written_by_calls_bytes", io.call_bytes);
            into.set_count("dirtied_bytes", io.dirtied_bytes);
            into.set_count("write_calls", io.write_calls);
            into.set("write_calls_per_mib", count(io.write_calls) / (written / MIB));
        }
    }

    /// Adds what was read since the counters were read.
    pub fn report_reads(&self, before: Io, into: &mut Measured) {
        let io = Io::now().since(before);
        if self.peer.about().place == PeerPlace::Here {
            into.set_count("read_bytes", io.read_bytes());
            into.set_count("read_calls", io.read_calls);
        }
    }

    /// Opens the store again, and lets it settle if the case says so. If something is to be run before the
    /// reads, the store is closed meanwhile.
    pub fn reopen(&self, into: &mut Measured) -> Result<Box<dyn Store>> {
        let store = self.reopen_settled(into)?;
        let Some(command) = &self.case.before_reads else { return Ok(store) };
        store.close()?;
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env("PEER_PID", std::process::id().to_string());
        // This process answers through its standard output.
        shell.stdin(Stdio::null()).stdout(Stdio::null());
        let status = shell.status().map_err(Failure::io("running what comes before the reads"))?;
        if !status.success() {
            return Err(Failure::Usage(format!("--before-reads: `{command}` ended with {status}")));
        }
        self.open(false, false)
    }

    fn reopen_settled(&self, into: &mut Measured) -> Result<Box<dyn Store>> {
        let began = Instant::now();
        let store = self.open(false, false)?;
        into.set("reopen_s", began.elapsed().as_secs_f64());
        if self.case.settle {
            let began = Instant::now();
            if store.settle()? {
                into.set("settle_s", began.elapsed().as_secs_f64());
                let settled = self.peer.file_bytes(self.dir);
                into.set_count("settled_bytes", settled);
                into.set("settled_bytes_per_record", count(settled) / count(self.loaded));
            }
        }
        Ok(store)
    }

    /// Gets the record of an index and compares every byte.
    #[inline]
    pub fn get_present(&self, reader: &mut dyn Reader, index: u64, buffer: &mut KeyBuffer) -> Result<()> {
        let expected = self.records.value(index);
        let got = reader.get(self.records.key(index, buffer))?;
        if got == Some(expected) { Ok(()) } else { Err(self.wrong(index, expected, got)) }
    }

    /// The error for a wrong value.
    #[cold]
    pub fn wrong(&self, index: u64, expected: &[u8], got: Option<&[u8]>) -> Failure {
        Failure::WrongValue {
            peer: self.peer.about().name,
            index,
            expected: abbreviated(Some(expected)),
            got: abbreviated(got),
        }
    }

    /// Gets keys, one call each, and times it. Indices below `loaded` must have their values, all others must
    /// be absent.
    pub fn time_gets(
        &self,
        store: &dyn Store,
        name: &str,
        total: u64,
        index: impl Fn(u64) -> u64,
        into: &mut Measured,
    ) -> Result<()> {
        let mut reader = store.reader()?;
        let deadline = self.deadline();
        let watch = Watch::start(store);
        let mut done = 0;
        while done < total && (done == 0 || !deadline.passed()) {
            let end = total.min(done + STRIDE);
            self.get_some(reader.as_mut(), done..end, &index)?;
            done = end;
        }
        into.set_timed(name, done, watch.elapsed());
        into.note_stopped(name, done, total);
        Ok(())
    }

    /// Gets a few keys. A helper process is told all of them at once.
    pub fn get_some(
        &self,
        reader: &mut dyn Reader,
        positions: std::ops::Range<u64>,
        index: impl Fn(u64) -> u64,
    ) -> Result<()> {
        if !matches!(self.peer.about().place, PeerPlace::Helper(_)) {
            let mut buffer = KeyBuffer::default();
            for position in positions {
                let index = index(position);
                if index < self.loaded {
                    self.get_present(reader, index, &mut buffer)?;
                } else if reader.get(self.records.key(index, &mut buffer))?.is_some() {
                    return Err(Failure::Unexpected { peer: self.peer.about().name, index });
                }
            }
            return Ok(());
        }
        let indices: Vec<u64> = positions.map(index).collect();
        self.check_many(&indices, |keys, each| reader.get_each(keys, each).map(|()| true)).map(|_| ())
    }

    /// Gets the keys of indices by one call for many, and checks every answer. Returns `false` if there is no
    /// such call.
    pub fn check_many(
        &self,
        indices: &[u64],
        get: impl FnOnce(&[&[u8]], crate::peers::Each<'_>) -> Result<bool>,
    ) -> Result<bool> {
        let mut buffers = vec![KeyBuffer::default(); indices.len()];
        for (index, buffer) in indices.iter().zip(&mut buffers) {
            self.records.key(*index, buffer);
        }
        let keys: Vec<&[u8]> = buffers.iter().map(KeyBuffer::bytes).collect();
        let (mut wrong, mut answers): (Option<Failure>, usize) = (None, 0);
        let supported = get(&keys, &mut |at, got| {
            answers += 1;
            let index = indices[at];
            if index >= self.loaded {
                if got.is_some() {
                    wrong = Some(Failure::Unexpected { peer: self.peer.about().name, index });
                }
            } else if got != Some(self.records.value(index)) {
                wrong = Some(self.wrong(index, self.records.value(index), got));
            }
        })?;
        match wrong {
            Some(wrong) => Err(wrong),
            None if supported && answers != indices.len() => {
                let text = format!("{answers} answers for {} keys", indices.len());
                Err(Failure::peer(self.peer.about().name, "getting many", &text))
            }
            None => Ok(supported),
        }
    }

    /// Gets every record in order.
    pub fn read_in_order(&self, store: &dyn Store, into: &mut Measured) -> Result<()> {
        self.time_gets(store, "read", self.loaded, |position| position, into)?;
        if let Some(rate) = into.get("read_per_s") {
            into.set("read_mb_per_s", rate * count(self.raw_bytes) / count(self.loaded) / 1e6);
        }
        Ok(())
    }

    /// Visits every record once, and compares the number and sum.
    pub fn scan(&self, store: &dyn Store, into: &mut Measured) -> Result<()> {
        let expected = self.records.sum(self.loaded);
        let mut reader = store.reader()?;
        let watch = Watch::start(store);
        let seen = reader.scan()?;
        let took = watch.elapsed();
        self.check_scan(expected, seen)?;
        into.set_timed("scan", self.loaded, took);
        Ok(())
    }

    /// Compares the result of a scan with what is expected.
    pub fn check_scan(&self, expected: ScanSum, seen: ScanSum) -> Result<()> {
        if seen == expected {
            return Ok(());
        }
        Err(Failure::WrongScan {
            peer: self.peer.about().name,
            records: expected.records,
            sum: expected.sum,
            got_records: seen.records,
            got_sum: seen.sum,
        })
    }

    /// How many random gets of each kind to do.
    pub fn gets(&self) -> u64 {
        self.case.gets.min(self.loaded)
    }

    /// Gets distinct records at random.
    pub fn read_present(&self, store: &dyn Store, into: &mut Measured) -> Result<()> {
        let order = Shuffle::new(self.loaded);
        self.time_gets(store, "present_gets", self.gets(), |position| order.at(position), into)
    }

    /// Gets keys that were never put.
    pub fn read_absent(&self, store: &dyn Store, into: &mut Measured) -> Result<()> {
        self.time_gets(store, "absent_gets", self.gets(), |position| self.case.records + position, into)
    }

    /// Adds the most memory that was used so far.
    pub fn report_memory(&self, into: &mut Measured) {
        let peak = count(counters::peak_rss_bytes());
        into.set("peak_rss_bytes", peak);
        into.set("peak_rss_per_budget", peak / count(self.case.budget_bytes));
    }
}
