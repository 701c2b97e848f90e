//! The steps that workloads share: load, close, reopen, and verified reads.

use super::Case;
use crate::failure::{Failure, Result, abbreviated};
use crate::measure::batches::Batches;
use crate::measure::counters::{self, Io};
use crate::measure::{Measured, count};
use crate::peers::{Open, Peer, Reader, Store};
use crate::records::{KeyBuffer, Records, ScanSum, Shuffle};
use std::path::Path;
use std::time::Instant;

const MIB: f64 = 1024.0 * 1024.0;

/// One peer under one case.
pub struct Bench<'a> {
    /// The peer.
    pub peer: &'a dyn Peer,
    /// The case.
    pub case: &'a Case,
    /// The store's directory.
    pub dir: &'a Path,
    /// The records.
    pub records: Records,
    raw_bytes: u64,
    sum: ScanSum,
}

impl<'a> Bench<'a> {
    /// Prepares the records.
    pub fn new(peer: &'a dyn Peer, case: &'a Case, dir: &'a Path) -> Self {
        let records = Records::new(case.shape(), case.records, case.value_bytes);
        let (raw_bytes, sum) = records.totals();
        Self { peer, case, dir, records, raw_bytes, sum }
    }

    /// Opens the store.
    pub fn open(&self, create: bool, durable: bool) -> Result<Box<dyn Store>> {
        self.peer.open(&Open {
            dir: self.dir.to_owned(),
            budget_bytes: self.case.budget_bytes,
            records: self.case.records,
            raw_bytes: self.raw_bytes,
            create,
            durable,
            ascending: self.records.ascending(),
        })
    }

    /// Creates the store, puts every record, makes it durable and closes it.
    pub fn write(&self, into: &mut Measured) -> Result<()> {
        let before = Io::now();
        let store = self.open(true, false)?;

        let began = Instant::now();
        let batches = self.put_all(store.as_ref())?;
        let wrote = began.elapsed();
        let began = Instant::now();
        store.sync()?;
        store.close()?;
        let flushed = began.elapsed();

        let records = self.case.records;
        into.set("records", count(records));
        into.set_timed("write", records, wrote);
        into.set("flush_s", flushed.as_secs_f64());
        into.set("write_flush_per_s", count(records) / (wrote + flushed).as_secs_f64());
        into.set("write_mb_per_s", count(self.raw_bytes) / 1e6 / wrote.as_secs_f64());
        into.set("write_peak_rss_bytes", count(counters::peak_rss_bytes()));
        batches.report(into);
        self.report_sizes(Io::now().since(before), into);
        Ok(())
    }

    fn put_all(&self, store: &dyn Store) -> Result<Batches> {
        let mut writer = store.writer()?;
        let mut buffer = KeyBuffer::default();
        let batch = self.case.batch.max(1);
        let mut batches = Batches::new(self.case.records.div_ceil(batch));
        let mut start = 0;
        let mut before = Instant::now();
        while start < self.case.records {
            let end = self.case.records.min(start + batch);
            writer.begin()?;
            for index in start..end {
                writer.put(self.records.key(index, &mut buffer), self.records.value(index))?;
            }
            writer.commit()?;
            let now = Instant::now();
            batches.add(now - before, end - start);
            before = now;
            start = end;
        }
        Ok(batches)
    }

    fn report_sizes(&self, io: Io, into: &mut Measured) {
        let (records, raw) = (count(self.case.records), count(self.raw_bytes));
        let database = count(counters::directory_bytes(self.dir));
        let written = count(io.written_bytes());
        into.set("raw_bytes", raw);
        into.set("database_bytes", database);
        into.set("bytes_per_record", database / records);
        into.set("overhead_per_record", (database - raw) / records);
        into.set("file_per_raw", database / raw);
        into.set("written_bytes", written);
        into.set("written_by_calls_bytes", count(io.call_bytes));
        into.set("dirtied_bytes", count(io.dirtied_bytes));
        into.set("written_per_file", written / database);
        into.set("written_per_raw", written / raw);
        into.set("write_calls", count(io.write_calls));
        into.set("write_calls_per_mib", count(io.write_calls) / (written / MIB));
    }

    /// Opens the store again, and lets it settle if the case says so.
    pub fn reopen(&self, into: &mut Measured) -> Result<Box<dyn Store>> {
        let began = Instant::now();
        let store = self.open(false, false)?;
        into.set("reopen_s", began.elapsed().as_secs_f64());
        if self.case.settle {
            let began = Instant::now();
            if store.settle()? {
                into.set("settle_s", began.elapsed().as_secs_f64());
                into.set("settled_bytes", count(counters::directory_bytes(self.dir)));
                let per_record = count(counters::directory_bytes(self.dir)) / count(self.case.records);
                into.set("settled_bytes_per_record", per_record);
            }
        }
        Ok(store)
    }

    /// Gets the record of an index, and compares every byte.
    #[inline]
    pub fn get_present(&self, reader: &mut dyn Reader, index: u64, buffer: &mut KeyBuffer) -> Result<()> {
        let expected = self.records.value(index);
        let got = reader.get(self.records.key(index, buffer))?;
        if got == Some(expected) { Ok(()) } else { Err(self.wrong(index, expected, got)) }
    }

    /// What to say of a wrong value.
    #[cold]
    pub fn wrong(&self, index: u64, expected: &[u8], got: Option<&[u8]>) -> Failure {
        Failure::WrongValue {
            peer: self.peer.about().name,
            index,
            expected: abbreviated(Some(expected)),
            got: abbreviated(got),
        }
    }

    /// Gets every record in order.
    pub fn read_in_order(&self, store: &dyn Store, into: &mut Measured) -> Result<()> {
        let mut buffer = KeyBuffer::default();
        let mut reader = store.reader()?;
        let began = Instant::now();
        for index in 0..self.case.records {
            self.get_present(reader.as_mut(), index, &mut buffer)?;
        }
        let took = began.elapsed();
        into.set_timed("read", self.case.records, took);
        into.set("read_mb_per_s", count(self.raw_bytes) / 1e6 / took.as_secs_f64());
        Ok(())
    }

    /// Visits every record once, and compares their number and sum.
    pub fn scan(&self, store: &dyn Store, into: &mut Measured) -> Result<()> {
        let mut reader = store.reader()?;
        let began = Instant::now();
        let seen = reader.scan()?;
        let took = began.elapsed();
        if seen != self.sum {
            return Err(Failure::WrongScan {
                peer: self.peer.about().name,
                records: self.sum.records,
                sum: self.sum.sum,
                got_records: seen.records,
                got_sum: seen.sum,
            });
        }
        into.set_timed("scan", self.case.records, took);
        Ok(())
    }

    /// How many random gets of each kind to do.
    pub fn gets(&self) -> u64 {
        self.case.gets.min(self.case.records)
    }

    /// Gets distinct records at random.
    pub fn read_present(&self, store: &dyn Store, into: &mut Measured) -> Result<()> {
        let order = Shuffle::new(self.case.records);
        let mut buffer = KeyBuffer::default();
        let mut reader = store.reader()?;
        let began = Instant::now();
        for position in 0..self.gets() {
            self.get_present(reader.as_mut(), order.at(position), &mut buffer)?;
        }
        into.set_timed("present_gets", self.gets(), began.elapsed());
        Ok(())
    }

    /// Gets keys that were never put.
    pub fn read_absent(&self, store: &dyn Store, into: &mut Measured) -> Result<()> {
        let mut buffer = KeyBuffer::default();
        let mut reader = store.reader()?;
        let began = Instant::now();
        for position in 0..self.gets() {
            let index = self.case.records + position;
            if reader.get(self.records.key(index, &mut buffer))?.is_some() {
                return Err(Failure::Unexpected { peer: self.peer.about().name, index });
            }
        }
        into.set_timed("absent_gets", self.gets(), began.elapsed());
        Ok(())
    }
}
