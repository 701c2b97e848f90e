use super::serve::stream_mirror_on;
use super::*;
use crate::base::error::Error;
use crate::storage::{MemStorage, OpenMode, Storage};
use crate::{CopyOptions, Db, Durability, Freshness, Mirror, MirrorStatus, Options, TableKind};
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

const DB: &str = "db.azk";
const COPY: &str = "mirror.azk";

fn open(disk: &MemStorage) -> Db {
    let options = Options::new().threads(false).large_value_bytes(512).durability(Durability::Sync);
    Db::open_on(disk, DB, options).unwrap()
}

fn fill(db: &Db, tag: u8) {
    let table = db.table("t", TableKind::Ordered).unwrap();
    table
        .put_many((0..3000u32).map(|n| (n.to_be_bytes(), vec![tag; if n % 50 == 0 { 3000 } else { 20 }])))
        .unwrap();
}

type Served = JoinHandle<(crate::base::error::Result<()>, Vec<MirrorReport>)>;

/// A thread that answers, and the pipe to it.
fn serving(disk: &MemStorage) -> (Served, PipeReader, PipeWriter) {
    let ((mut questions, ask), (answers, mut answer)) = (io::pipe().unwrap(), io::pipe().unwrap());
    let disk = disk.clone();
    let thread = std::thread::spawn(move || {
        let mut told = Vec::new();
        let done = stream_mirror_on(&disk, Path::new(DB), &mut questions, &mut answer, &mut |r| told.push(r));
        (done, told)
    });
    (thread, answers, ask)
}

fn mirror(pipe: &MirrorPipe, disk: &MemStorage) -> Mirror {
    pipe.mirror_on(Arc::new(disk.clone()), Path::new(COPY), CopyOptions::default()).unwrap()
}

fn level(pipe: &MirrorPipe, mirror: &mut Mirror) -> MirrorStatus {
    mirror
        .run(|status| {
            pipe.tell(status);
            !status.is_level()
        })
        .unwrap();
    mirror.status()
}

fn value(disk: &MemStorage, key: u32) -> Option<Vec<u8>> {
    value_of(disk, "t", key)
}

fn value_of(disk: &MemStorage, table: &str, key: u32) -> Option<Vec<u8>> {
    let db = Db::open_on(disk, COPY, Options::new().freshness(Freshness::Log)).unwrap();
    assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
    db.open_table(table).unwrap().get(key.to_be_bytes()).unwrap()
}

#[test]
fn a_database_is_mirrored_through_a_pipe() {
    let (source, dest) = (MemStorage::default(), MemStorage::default());
    let db = open(&source);
    fill(&db, 1);
    db.flush().unwrap();
    let (thread, answers, ask) = serving(&source);
    let pipe = MirrorPipe::new(answers, ask).unwrap();
    let mut mirror = mirror(&pipe, &dest);
    let mut last = MirrorStatus::default();
    for tag in 2..6 {
        fill(&db, tag);
        db.compact().unwrap();
        last = level(&pipe, &mut mirror);
        assert_eq!((value(&dest, 50), value(&dest, 51)), (Some(vec![tag; 3000]), Some(vec![tag; 20])));
        assert!(!db.stats().pins.is_empty(), "the writer knows of it");
    }
    drop((mirror, pipe));
    let (done, told) = thread.join().unwrap();
    done.unwrap();
    let told = told.last().unwrap();
    assert_eq!((told.checkpoint, told.commit, told.level), (last.checkpoint, last.commit, true));
    assert_eq!((told.behind_commits, told.behind_bytes), (0, 0));
    db.flush().unwrap();
    assert!(db.stats().pins.is_empty());
}

/// What comes from the other end, but for some of its last bytes, or with one of them changed.
struct Spoiled {
    from: PipeReader,
    left: usize,
    flips: bool,
}

impl Read for Spoiled {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let most = buf.len().min(if self.flips { buf.len() } else { self.left });
        let n = self.from.read(&mut buf[..most])?;
        if self.flips && (1..=n).contains(&self.left) {
            buf[self.left - 1] ^= 0x20;
        }
        self.left = self.left.saturating_sub(n);
        Ok(n)
    }
}

/// Wherever the pipe is cut, or a byte changes in it, there is an error, and mirroring goes on with the next one.
#[test]
fn a_pipe_that_is_cut_loses_nothing() {
    let source = MemStorage::default();
    let db = open(&source);
    fill(&db, 1);
    db.flush().unwrap();
    for flips in [false, true] {
        let dest = MemStorage::default();
        let mut left = 5;
        let mut cuts = 0;
        loop {
            let (thread, answers, ask) = serving(&source);
            let spoiled = Spoiled { from: answers, left, flips };
            let done = MirrorPipe::new(spoiled, ask).map(|pipe| {
                let storage = Arc::new(dest.clone());
                let opened = pipe.mirror_on(storage, Path::new(COPY), CopyOptions::default());
                let done = opened.and_then(|mut mirror| {
                    mirror.run(|status| !status.is_level())?;
                    Ok(mirror.status())
                });
                (done, pipe.cut())
            });
            // The other end may have been spoken to in vain.
            let _ended = thread.join().unwrap();
            if dest.exists(Path::new(COPY)).unwrap() {
                assert_eq!(value(&dest, 50), Some(vec![1; 3000]));
            }
            match done {
                Ok((Ok(_), None)) => break,
                // A length, or a pin, that was read otherwise is no matter of the pipe alone.
                Ok((Err(_), None)) if flips => {}
                Ok((Err(_), cut)) => assert!(cut.is_some()),
                Ok((Ok(_), cut)) => panic!("it is level, though the pipe was cut: {cut:?}"),
                Err(e) => assert!(matches!(e, Error::Corrupt { .. } | Error::NewerVersion { .. }), "{e}"),
            }
            cuts += 1;
            left += 1 + left / 3;
        }
        assert!(cuts > 10, "{cuts} cuts");
    }
}

/// Bytes that come through a pipe, counted, up to a limit.
struct Counted {
    from: PipeReader,
    left: usize,
    count: Arc<AtomicUsize>,
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let most = buf.len().min(self.left);
        let n = self.from.read(&mut buf[..most])?;
        self.left -= n;
        self.count.fetch_add(n, Ordering::Relaxed);
        Ok(n)
    }
}

/// A mirror that is built, for the first time or anew, gets only what it has not got in the right place.
#[test]
fn what_is_here_is_not_sent_again() {
    let (source, dest) = (MemStorage::default(), MemStorage::default());
    let db = open(&source);
    let table = db.table("many", TableKind::Ordered).unwrap();
    let fill = |from: u32, to: u32, tag: u8| {
        table
            .put_many(
                (from..to).map(|n| (n.to_be_bytes(), [n.to_be_bytes().repeat(4), vec![tag; 84]].concat())),
            )
            .unwrap();
    };
    fill(0, 80_000, 1);
    db.flush().unwrap();
    let through = |left: usize| {
        let (thread, answers, ask) = serving(&source);
        let count = Arc::new(AtomicUsize::new(0));
        let done =
            MirrorPipe::new(Counted { from: answers, left, count: count.clone() }, ask).and_then(|pipe| {
                let mut mirror =
                    pipe.mirror_on(Arc::new(dest.clone()), Path::new(COPY), CopyOptions::default())?;
                mirror.run(|status| !status.is_level())?;
                Ok(mirror.status().built)
            });
        let _ended = thread.join().unwrap();
        (done, count.load(Ordering::Relaxed))
    };
    let (done, first) = through(5 << 20);
    assert!(done.is_err() && first == 5 << 20, "{first}");
    let (done, rest) = through(usize::MAX);
    assert_eq!(done.unwrap(), 1);
    let whole = usize::try_from(db.stats().file_bytes).unwrap();
    assert!(rest + (3 << 20) < whole, "{rest} of {whole}");
    assert_eq!(value_of(&dest, "many", 5), Some([5u32.to_be_bytes().repeat(4), vec![1; 84]].concat()));
    // Nothing keeps what the mirror has, and part of it goes.
    for tag in 2..6 {
        fill(0, 20_000, tag);
        db.compact().unwrap();
    }
    let (done, anew) = through(usize::MAX);
    let whole = usize::try_from(db.stats().file_bytes).unwrap();
    assert!(anew < whole, "{anew} of {whole}, {done:?}");
    assert_eq!(value_of(&dest, "many", 5), Some([5u32.to_be_bytes().repeat(4), vec![5; 84]].concat()));
}

/// A writer was killed between its superblocks, on the other machine.
#[test]
fn a_writer_that_is_gone_is_noticed_through_a_pipe() {
    let (source, dest) = (MemStorage::default(), MemStorage::default());
    let db = open(&source);
    fill(&db, 1);
    db.flush().unwrap();
    let file = source.open(Path::new(DB), OpenMode::ReadWrite).unwrap();
    let mut second = vec![0; 4096];
    file.read_at(&mut second, 4096).unwrap();
    fill(&db, 2);
    db.close().unwrap();
    file.write_at(&second, 4096).unwrap();
    let (thread, answers, ask) = serving(&source);
    let pipe = MirrorPipe::new(answers, ask).unwrap();
    let mut mirror = mirror(&pipe, &dest);
    level(&pipe, &mut mirror);
    drop((mirror, pipe));
    thread.join().unwrap().0.unwrap();
    assert_eq!(value(&dest, 51), Some(vec![2; 20]));
    open(&source).close().unwrap();
}

/// A source that says anything does no harm.
#[test]
fn what_comes_is_not_believed() {
    let no_source: [&[u8]; 3] = [b"", b"ssh: connect to host", b"AZKMIRR\0\x02\0\0\0"];
    for bytes in no_source {
        let (from, mut to) = io::pipe().unwrap();
        to.write_all(bytes).unwrap();
        drop(to);
        assert!(MirrorPipe::new(from, io::sink()).is_err(), "{bytes:?}");
    }
    // An error whose text is too long, and an answer that is none.
    for bytes in [&[1, 1, 0xff, 0xff][..], &[9]] {
        let (from, mut to) = io::pipe().unwrap();
        to.write_all(b"AZKMIRR\0\x01\0\0\0").unwrap();
        to.write_all(bytes).unwrap();
        let pipe = MirrorPipe::new(from, io::sink()).unwrap();
        let refused = Storage::open(&pipe, Path::new(DB), OpenMode::ReadOnly).map(drop);
        assert!(refused.is_err() && pipe.cut().is_some(), "{bytes:?}");
    }
}

/// A mirror that asks anything is answered, or told that it is none.
#[test]
fn what_is_asked_is_not_believed() {
    let disk = MemStorage::default();
    open(&disk).close().unwrap();
    let ask = |questions: &[Question]| {
        let bytes: Vec<u8> = questions.iter().flat_map(|q| q.encode()).collect();
        let mut answers = Vec::new();
        let done = stream_mirror_on(&disk, Path::new(DB), &mut &bytes[..], &mut answers, &mut |_| {});
        (done, answers)
    };
    let of = |what, file, a, b| Question { what, file, a, b };
    let (done, answers) =
        ask(&[of(READ, 7, 0, 1), of(OPEN, 7, 0, 0), of(READ, 7, 0, u64::MAX), of(READ, 7, 1 << 60, 9)]);
    done.unwrap();
    let text = String::from_utf8_lossy(&answers);
    assert!(text.contains("no such file") && text.contains("too long a read"), "{text}");
    let (done, _) = ask(&[of(99, 0, 0, 0)]);
    assert!(matches!(done, Err(Error::Corrupt { .. })), "{done:?}");
    let many: Vec<Question> = (0..100).map(|file| of(OPEN, file, 0, 0)).collect();
    let (done, answers) = ask(&many);
    done.unwrap();
    assert!(String::from_utf8_lossy(&answers).contains("too many files"));
    let pins: Vec<Question> =
        std::iter::once(of(OPEN, 1, 0, 0)).chain((0..5000).map(|n| of(PIN, 1, n, 0))).collect();
    let (done, answers) = ask(&pins);
    done.unwrap();
    assert!(String::from_utf8_lossy(&answers).contains("too many pins"));
    // A question that is cut off.
    let bytes = of(OPEN, 1, 0, 0).encode();
    let done = stream_mirror_on(&disk, Path::new(DB), &mut &bytes[..9], &mut Vec::new(), &mut |_| {});
    assert!(matches!(done, Err(Error::Corrupt { .. })), "{done:?}");
}
