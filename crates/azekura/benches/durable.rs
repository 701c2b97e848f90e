//! What a durable commit of one thread costs beside the write that it cannot do without: the figures behind
//! how the log is written.
//!
//! `cargo bench -p azekura --bench durable [-- DIRECTORY [COMMITS]]` takes turns, in one directory, between a
//! commit of one small record and writes of 4 KiB that are durable when they return. These go over blocks
//! that were written before, through the system's memory and past it (`O_DIRECT`), into blocks that are only
//! reserved, and to the file's end. So each pair meets the disk in the same minute.

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod linux {
    use azekura::{Db, Options, TableKind};
    use rustix::fs::{FallocateFlags, OFlags, fallocate};
    use rustix::io::{ReadWriteFlags, pwritev2};
    use std::fs::{File, OpenOptions};
    use std::io::{self, IoSlice};
    use std::os::unix::fs::{FileExt, OpenOptionsExt};
    use std::path::{Path, PathBuf};
    use std::time::{Duration, Instant};

    const COMMITS: usize = 2_000;
    const BLOCK_BYTES: usize = 4096;
    const FILE_BYTES: usize = 16 << 20;

    /// A block at an address of which disks can read.
    #[repr(align(4096))]
    struct Block([u8; BLOCK_BYTES]);

    #[derive(Clone, Copy, PartialEq)]
    enum Way {
        Overwrite,
        Direct,
        Reserved,
        Append,
    }

    struct Raw {
        what: &'static str,
        way: Way,
        file: File,
        path: PathBuf,
        times: Vec<Duration>,
    }

    impl Raw {
        fn new(dir: &Path, what: &'static str, way: Way) -> io::Result<Raw> {
            let path = dir.join(format!("azekura-durable-{}-{}", way as u8, std::process::id()));
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
            match way {
                Way::Overwrite | Way::Direct => file.write_all_at(&vec![0; FILE_BYTES], 0)?,
                Way::Reserved => fallocate(&file, FallocateFlags::empty(), 0, FILE_BYTES as u64)?,
                Way::Append => {}
            }
            file.sync_all()?;
            let flags = if way == Way::Direct { OFlags::DIRECT.bits() } else { 0 };
            let file = OpenOptions::new().write(true).custom_flags(flags.cast_signed()).open(&path)?;
            Ok(Raw { what, way, file, path, times: Vec::new() })
        }

        fn write(&mut self, block: &Block, turn: usize) -> io::Result<()> {
            let at =
                if self.way == Way::Append { turn * BLOCK_BYTES } else { turn * BLOCK_BYTES % FILE_BYTES };
            let begun = Instant::now();
            let n = pwritev2(&self.file, &[IoSlice::new(&block.0)], at as u64, ReadWriteFlags::DSYNC)?;
            self.times.push(begun.elapsed());
            assert_eq!(n, BLOCK_BYTES);
            Ok(())
        }
    }

    impl Drop for Raw {
        fn drop(&mut self) {
            let _left_behind = std::fs::remove_file(&self.path);
        }
    }

    fn line(what: &str, times: &mut [Duration], least: f64) -> f64 {
        times.sort_unstable();
        let us = |part: usize| times[(times.len() - 1) * part / 100].as_nanos() as f64 / 1e3;
        let beside = if least > 0.0 { us(50) / least } else { 1.0 };
        println!(
            "{what:<40} median {:>7.1} us   p10 {:>7.1}   p99 {:>8.1}   {beside:.2}",
            us(50),
            us(10),
            us(99)
        );
        us(50)
    }

    pub(super) fn main() -> Result<(), Box<dyn std::error::Error>> {
        // cargo adds an option of its own.
        let mut args = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
        let dir = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
        let commits = args.next().map_or(Ok(COMMITS), |n| n.parse())?;
        let path = dir.join(format!("azekura-durable-{}.azk", std::process::id()));
        let db = Db::open(&path, Options::new())?;
        let table = db.table("records", TableKind::Ordered)?;
        let mut raw = [
            Raw::new(&dir, "raw: over blocks written before", Way::Overwrite)?,
            Raw::new(&dir, "raw: the same, O_DIRECT", Way::Direct)?,
            Raw::new(&dir, "raw: into reserved blocks", Way::Reserved)?,
            Raw::new(&dir, "raw: at the end", Way::Append)?,
        ];
        let block = Block([7; BLOCK_BYTES]);
        let mut times = Vec::new();
        for turn in 0..commits as u64 {
            // The order changes from turn to turn.
            for k in 0..=raw.len() {
                let k = (k + turn as usize) % (raw.len() + 1);
                if let Some(raw) = raw.get_mut(k) {
                    raw.write(&block, turn as usize)?;
                    continue;
                }
                let begun = Instant::now();
                table.put(&turn.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), &turn.to_le_bytes())?;
                times.push(begun.elapsed());
            }
        }
        let mut least = 0.0;
        for raw in &mut raw {
            let median = line(raw.what, &mut raw.times, least);
            least = if least > 0.0 { least } else { median };
        }
        line("a durable commit", &mut times, least);
        drop(table);
        db.close()?;
        Ok(std::fs::remove_file(&path)?)
    }
}
