//! What reading a file where it stands costs, beside reading it into a buffer: the figures behind the
//! engine's mapping.
//!
//! `cargo bench -p azekura --bench mapped [-- FILE]` writes a file of 1 GiB in pieces of 4 MiB, as the engine
//! writes its runs, and prints a line per figure. The figures are: warm reads at random; the first touch of a
//! page through a fresh mapping (with the check of its bytes); the same from the disk, with the bytes that it
//! had to read; durable writes of 4 KiB. The places are random, and drawn from one seed.

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<()> {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod linux {
    use rustix::fs::{Advice as FileAdvice, fadvise};
    use rustix::io::ReadWriteFlags;
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
    use std::ffi::c_void;
    use std::fs::{File, OpenOptions};
    use std::hint::black_box;
    use std::io::{self, IoSlice, Write};
    use std::os::unix::fs::FileExt;
    use std::path::{Path, PathBuf};
    use std::time::Instant;

    const FILE_BYTES: usize = 1 << 30;
    const PIECE_BYTES: usize = 4 << 20;
    const PAGE_BYTES: usize = 16 << 10;
    const WARM_READS: u64 = 1_000_000;
    const COLD_READS: u64 = 2_000;
    const DURABLE_WRITES: u64 = 2_000;

    struct Random(u64);

    impl Random {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((u128::from(self.0) * n as u128) >> 64) as usize
        }
    }

    /// A shared mapping of the whole file, read-only.
    struct Map {
        at: *mut c_void,
    }

    impl Map {
        fn new(file: &File) -> io::Result<Map> {
            // SAFETY: a new mapping at an address of the system's choice.
            let at = unsafe {
                mmap(std::ptr::null_mut(), FILE_BYTES, ProtFlags::READ, MapFlags::SHARED, file, 0)
            }?;
            Ok(Map { at })
        }

        fn advise(&self, offset: usize, len: usize, advice: Advice) -> io::Result<()> {
            // SAFETY: the range is inside the mapping, and none of these advices changes what it holds.
            Ok(unsafe { madvise(self.at.cast::<u8>().add(offset).cast(), len, advice) }?)
        }

        fn bytes(&self) -> &[u8] {
            // SAFETY: the file is as long as the mapping, and nobody writes to it while this is read.
            unsafe { std::slice::from_raw_parts(self.at.cast(), FILE_BYTES) }
        }
    }

    impl Drop for Map {
        fn drop(&mut self) {
            // SAFETY: nothing borrows the mapping any more.
            let _ = unsafe { munmap(self.at, FILE_BYTES) };
        }
    }

    fn line(what: &str, n: u64, started: Instant, more: &str) {
        println!("{what:<64} {:>9.0} ns  {more}", started.elapsed().as_nanos() as f64 / n as f64);
    }

    fn write_file(path: &Path) -> io::Result<File> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        let mut random = Random(7);
        let piece: Vec<u8> = (0..PIECE_BYTES).map(|_| random.below(256) as u8).collect();
        for _ in 0..FILE_BYTES / PIECE_BYTES {
            file.write_all(&piece)?;
        }
        file.sync_all()?;
        Ok(file)
    }

    /// Bytes that this process has had read from the disk.
    fn disk_bytes() -> u64 {
        let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
        let field = text.lines().find_map(|l| l.strip_prefix("read_bytes: "));
        field.and_then(|n| n.parse().ok()).unwrap_or(0)
    }

    fn warm(file: &File) -> io::Result<()> {
        for len in [1 << 10, 4 << 10, 16 << 10] {
            let (mut random, mut buf) = (Random(1), vec![0; len]);
            let started = Instant::now();
            for _ in 0..WARM_READS / 4 {
                file.read_exact_at(&mut buf, (random.below(FILE_BYTES / len) * len) as u64)?;
                black_box(&buf);
            }
            line(&format!("warm, pread of {len} bytes"), WARM_READS / 4, started, "");
        }
        let map = Map::new(file)?;
        let started = Instant::now();
        map.advise(0, FILE_BYTES, Advice::LinuxPopulateRead)?;
        line("populating the whole mapping", 1, started, "");
        let (mut random, mut sum) = (Random(1), 0u64);
        let started = Instant::now();
        for _ in 0..WARM_READS * 4 {
            sum += u64::from(map.bytes()[random.below(FILE_BYTES)]);
        }
        black_box(sum);
        line("warm, a byte at random in the mapping", WARM_READS * 4, started, &huge_pages());
        Ok(())
    }

    /// What of the mapping is mapped by huge entries.
    fn huge_pages() -> String {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let kib: u64 = text
            .lines()
            .filter_map(|l| l.strip_prefix("FilePmdMapped:"))
            .filter_map(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok())
            .sum();
        format!("{} MiB by huge entries", kib >> 10)
    }

    /// The first touch of each of some pages, and the check of its bytes.
    fn first_touch(file: &File, cold: bool) -> io::Result<()> {
        let temperature = if cold { "cold" } else { "warm" };
        let n = if cold { COLD_READS } else { 20_000 };
        let fresh = || -> io::Result<(Map, Instant, u64)> {
            if cold {
                fadvise(file, 0, None, FileAdvice::DontNeed)?;
            }
            let map = Map::new(file)?;
            Ok((map, Instant::now(), disk_bytes()))
        };
        let done = |what: &str, started: Instant, before: u64| {
            let read = (disk_bytes() - before) as f64 / n as f64 / 1024.0;
            line(
                &format!("{temperature}, first touch and check: {what}"),
                n,
                started,
                &format!("{read:.0} KiB read each"),
            );
        };
        let (_map, started, before) = fresh()?;
        let (mut random, mut buf) = (Random(3), vec![0; PAGE_BYTES]);
        for _ in 0..n {
            file.read_exact_at(&mut buf, (random.below(FILE_BYTES / PAGE_BYTES) * PAGE_BYTES) as u64)?;
            black_box(crc32c::crc32c(&buf));
        }
        done("pread into a buffer", started, before);
        for advice in [Advice::Normal, Advice::Random] {
            for around in [PAGE_BYTES, 64 << 10, 2 << 20] {
                let (map, started, before) = fresh()?;
                map.advise(0, FILE_BYTES, advice)?;
                let mut random = Random(3);
                for _ in 0..n {
                    let at = random.below(FILE_BYTES / PAGE_BYTES) * PAGE_BYTES;
                    map.advise(at / around * around, around, Advice::LinuxPopulateRead)?;
                    black_box(crc32c::crc32c(&map.bytes()[at..at + PAGE_BYTES]));
                }
                done(&format!("populate {} KiB, {advice:?}", around >> 10), started, before);
            }
        }
        let (map, started, before) = fresh()?;
        map.advise(0, FILE_BYTES, Advice::Random)?;
        let mut random = Random(3);
        for _ in 0..n {
            let at = random.below(FILE_BYTES / PAGE_BYTES) * PAGE_BYTES;
            file.read_exact_at(&mut buf, at as u64)?;
            black_box(crc32c::crc32c(&buf));
            black_box(map.bytes()[at]);
        }
        done("pread and check a copy, then a plain touch", started, before);
        Ok(())
    }

    fn durable(path: &Path, file: &File) -> io::Result<()> {
        let block = vec![7u8; 4096];
        let started = Instant::now();
        for i in 0..DURABLE_WRITES {
            rustix::io::pwritev2(file, &[IoSlice::new(&block)], i % 64 * 4096, ReadWriteFlags::DSYNC)?;
        }
        line("durable overwrite of 4 KiB", DURABLE_WRITES, started, "");
        let flags = rustix::fs::OFlags::DIRECT | rustix::fs::OFlags::WRONLY;
        let direct = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?);
        let mut room = vec![0u8; 8192];
        let skip = room.as_ptr().align_offset(4096);
        let aligned = &mut room[skip..skip + 4096];
        aligned.fill(7);
        let started = Instant::now();
        for i in 0..DURABLE_WRITES {
            rustix::io::pwritev2(&direct, &[IoSlice::new(aligned)], i % 64 * 4096, ReadWriteFlags::DSYNC)?;
        }
        line("the same past the page cache", DURABLE_WRITES, started, "");
        Ok(())
    }

    pub(super) fn main() -> io::Result<()> {
        let given = std::env::args().skip(1).find(|a| !a.starts_with('-')).map(PathBuf::from);
        let path = given
            .unwrap_or_else(|| std::env::temp_dir().join(format!("azekura-mapped-{}", std::process::id())));
        let file = write_file(&path)?;
        let done = warm(&file)
            .and_then(|()| first_touch(&file, false))
            .and_then(|()| first_touch(&file, true))
            .and_then(|()| durable(&path, &file));
        std::fs::remove_file(&path)?;
        done
    }
}
