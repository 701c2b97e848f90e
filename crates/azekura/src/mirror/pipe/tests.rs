use super::*;
use crate::base::error::Error;
use crate::mirror::tests::{COPY, Contents, DB, contents, followed, open, options};
use crate::storage::{MemStorage, OpenMode, Storage};
use crate::{CopyOptions, Db, Freshness, Mirror, MirrorStatus, TableKind, promote_on};
use std::io::{PipeReader, PipeWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

fn fill(db: &Db, tag: u8) {
    let table = db.table("t", TableKind::Ordered).unwrap();
    table
        .put_many((0..3000u32).map(|n| (n.to_be_bytes(), vec![tag; if n % 50 == 0 { 3000 } else { 20 }])))
        .unwrap();
}

type Served = JoinHandle<(Result<()>, Vec<MirrorReport>)>;

/// A thread that answers, and the pipe to it.
fn serving(disk: &MemStorage) -> (Served, PipeReader, PipeWriter) {
    let ((mut questions, ask), (answers, mut answer)) = (io::pipe().unwrap(), io::pipe().unwrap());
    let disk = disk.clone();
    let thread = std::thread::spawn(move || {
        let mut told = Vec::new();
        let told_of = &mut |report: &MirrorReport| told.push(*report);
        let done = stream_mirror_on(&disk, Path::new(DB), &mut questions, &mut answer, told_of);
        (done, told)
    });
    (thread, answers, ask)
}

fn mirror(pipe: &MirrorPipe, disk: &MemStorage) -> Result<Mirror> {
    pipe.mirror_on(Arc::new(disk.clone()), COPY, CopyOptions::default())
}

fn level(mirror: &mut Mirror) -> Result<MirrorStatus> {
    let mut steps = 0;
    while mirror.step()? || !mirror.status().is_level() {
        steps += 1;
        assert!(steps < 100_000, "it does not end");
    }
    Ok(mirror.status())
}

/// Brings a mirror to what its source has, through a good pipe.
fn brought(source: &MemStorage, dest: &MemStorage) -> Result<MirrorStatus> {
    let (thread, answers, ask) = serving(source);
    let pipe = MirrorPipe::new(answers, ask).unwrap();
    let done = mirror(&pipe, dest).and_then(|mut mirror| level(&mut mirror));
    drop(pipe);
    thread.join().unwrap().0.unwrap();
    done
}

#[test]
fn a_mirror_behind_a_pipe_has_what_its_source_has() {
    let (source, dest) = (MemStorage::default(), MemStorage::default());
    let db = open(&source);
    let (thread, answers, ask) = serving(&source);
    let pipe = MirrorPipe::new(answers, ask).unwrap();
    let mut mirror = mirror(&pipe, &dest).unwrap();
    level(&mut mirror).unwrap();
    assert_eq!(followed(&dest), contents(&db), "an empty database");
    for round in 1..13u8 {
        fill(&db, round);
        let small = db.table("small", TableKind::Hash).unwrap();
        match round % 4 {
            0 => db.flush().unwrap(),
            1 => db.compact().unwrap(),
            2 => {
                small.put(b"round", [round; 8700]).unwrap();
                db.flush().unwrap();
                db.rename_table("small", "tiny").unwrap();
                db.drop_table("tiny").unwrap();
            }
            _ => drop(db.shrink(|_| {}).unwrap()),
        }
        level(&mut mirror).unwrap();
        db.flush().unwrap();
        level(&mut mirror).unwrap();
        assert_eq!(followed(&dest), contents(&db), "round {round}");
        assert!(!db.stats().pins.is_empty(), "the writer knows of it");
    }
    assert_eq!(mirror.status().built, 1, "pins keep what the mirror needs");
    let last = mirror.status();
    drop((mirror, pipe));
    let (done, told) = thread.join().unwrap();
    done.unwrap();
    let told = told.last().unwrap();
    assert_eq!((told.checkpoint, told.commit, told.level), (last.checkpoint, last.commit, true));
    assert_eq!((told.behind_commits, told.behind_bytes), (0, 0));
    db.flush().unwrap();
    assert!(db.stats().pins.is_empty(), "the pins went with the pipe");
}

#[test]
fn the_log_comes_commit_by_commit() {
    let (source, dest) = (MemStorage::default(), MemStorage::default());
    let db = open(&source);
    fill(&db, 1);
    db.flush().unwrap();
    let (_thread, answers, ask) = serving(&source);
    let pipe = MirrorPipe::new(answers, ask).unwrap();
    let mut mirror = mirror(&pipe, &dest).unwrap();
    level(&mut mirror).unwrap();
    let checkpoint = mirror.status().checkpoint;
    let table = db.open_table("t").unwrap();
    let copy = Db::open_on(&dest, COPY, options().freshness(Freshness::Log)).unwrap();
    let there = copy.open_table("t").unwrap();
    for n in 1..300u32 {
        table.put(b"n", n.to_be_bytes()).unwrap();
        if n % 7 == 0 {
            table.put(b"large", vec![(n % 256) as u8; 100_000]).unwrap();
        }
        while mirror.step().unwrap() {}
        // The last frame waits for one that vouches for it.
        let seen = there.get(b"n").unwrap().map_or(0, |n| u32::from_be_bytes(n[..].try_into().unwrap()));
        assert!(seen + 1 >= n, "{seen} of {n}");
        if n % 7 == 1 && n > 1 {
            assert_eq!(there.get(b"large").unwrap().unwrap(), vec![((n - 1) % 256) as u8; 100_000]);
        }
    }
    assert_eq!(mirror.status().checkpoint, checkpoint, "no checkpoint was needed");
}

/// One way of a pipe, in which something happens to a byte.
struct Spoiled<T> {
    way: T,
    /// The byte to which something happens.
    at: usize,
    done: usize,
    /// Whether it changes. Else nothing comes from it on.
    flips: bool,
}

impl<T> Spoiled<T> {
    fn flip(&mut self, bytes: &mut [u8]) {
        if self.flips && (self.done..self.done + bytes.len()).contains(&self.at) {
            bytes[self.at - self.done] ^= 0x20;
        }
        self.done += bytes.len();
    }

    fn most(&self, len: usize) -> usize {
        if self.flips { len } else { len.min(self.at.saturating_sub(self.done)) }
    }
}

impl Read for Spoiled<PipeReader> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let most = self.most(buf.len());
        let n = self.way.read(&mut buf[..most])?;
        self.flip(&mut buf[..n]);
        Ok(n)
    }
}

impl Write for Spoiled<PipeWriter> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let most = self.most(buf.len());
        if most == 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut bytes = buf[..most].to_vec();
        self.flip(&mut bytes);
        self.way.write_all(&bytes)?;
        Ok(most)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const NEVER: usize = usize::MAX;

/// Which byte of the questions and of the answers something happens to.
#[derive(Debug, Clone, Copy)]
struct Harm {
    question: usize,
    answer: usize,
    flips: bool,
}

/// Mirrors through a pipe to which something happens. Gives the numbers of bytes that went each way.
fn through(source: &MemStorage, dest: &MemStorage, harm: Harm) -> (Result<MirrorStatus>, [usize; 2]) {
    let (thread, answers, ask) = serving(source);
    let counts = Arc::new(Mutex::new([0; 2]));
    let answers = Spoiled { way: answers, at: harm.answer, done: 0, flips: harm.flips };
    let ask = Spoiled { way: ask, at: harm.question, done: 0, flips: harm.flips };
    let ways = (Counted(answers, counts.clone(), 1), Counted(ask, counts.clone(), 0));
    let done = MirrorPipe::new(ways.0, ways.1)
        .and_then(|pipe| mirror(&pipe, dest).and_then(|mut mirror| level(&mut mirror)));
    // The other end may have been spoken to in vain.
    let _ended = thread.join().unwrap();
    let counts = *counts.lock().unwrap();
    (done, counts)
}

/// Counts what goes one way.
struct Counted<T>(T, Arc<Mutex<[usize; 2]>>, usize);

impl<T: Read> Read for Counted<T> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.0.read(buf)?;
        self.1.lock().unwrap()[self.2] += n;
        Ok(n)
    }
}

impl<T: Write> Write for Counted<T> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.0.write(buf)?;
        self.1.lock().unwrap()[self.2] += n;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A small database with a run, large values and a log, and what it had after each commit.
fn small(disk: &MemStorage) -> (Db, Vec<Contents>) {
    let db = open(disk);
    let table = db.table("t", TableKind::Ordered).unwrap();
    let mut states = vec![contents(&db)];
    let mut put = |key: &[u8], value: Vec<u8>| {
        table.put(key, value).unwrap();
        states.push(contents(&db));
    };
    put(b"large", vec![7; 8700]);
    db.flush().unwrap();
    (0..3u32).for_each(|n| put(&n.to_be_bytes(), vec![7; 30]));
    put(b"large too", vec![8; 8700]);
    put(b"last", b"one".to_vec());
    (db, states)
}

/// Whatever happens to any byte, there is an error or nothing has happened, the mirror is whole, and the next
/// pipe brings all of it.
fn harmed(flips: bool, is_there: bool) {
    let source = MemStorage::default();
    let (db, mut states) = small(&source);
    let start = MemStorage::default();
    if is_there {
        brought(&source, &start).unwrap();
        db.open_table("t").unwrap().put(b"later", vec![9; 8700]).unwrap();
        states.push(contents(&db));
        db.flush().unwrap();
    }
    let good = Harm { question: NEVER, answer: NEVER, flips };
    let dest = copied(&start);
    let (done, [asked, answered]) = through(&source, &dest, good);
    done.unwrap();
    // But for the last commit, of which no later one says that it is durable.
    let whole = followed(&dest);
    assert!(whole == states[states.len() - if is_there { 1 } else { 2 }]);
    let questions = (0..asked).map(|question| Harm { question, ..good });
    // Most of the answers is what was read: of that not each byte.
    let answers = (0..answered).filter(|at| *at < 100 || at % 61 == 0).map(|answer| Harm { answer, ..good });
    let (mut failed, mut all) = (0, 0);
    for harm in questions.chain(answers) {
        let dest = copied(&start);
        all += 1;
        failed += u32::from(through(&source, &dest, harm).0.is_err());
        if dest.exists(Path::new(COPY)).unwrap() {
            assert!(states.contains(&followed(&dest)), "{harm:?}");
        }
        brought(&source, &dest).unwrap_or_else(|e| panic!("{harm:?}: {e}"));
        assert!(followed(&dest) == whole, "{harm:?}");
    }
    assert!(all > 500 && failed > all / 2, "{failed} of {all}");
}

/// The same files once more.
fn copied(disk: &MemStorage) -> MemStorage {
    let copy = MemStorage::default();
    if disk.exists(Path::new(COPY)).unwrap() {
        let from = disk.open(Path::new(COPY), OpenMode::ReadOnly).unwrap();
        let mut bytes = vec![0; usize::try_from(from.len().unwrap()).unwrap()];
        from.read_at(&mut bytes, 0).unwrap();
        let to = copy.open(Path::new(COPY), OpenMode::CreateNew).unwrap();
        to.write_at(&bytes, 0).unwrap();
    }
    copy
}

#[test]
fn a_pipe_that_is_cut_at_any_byte_loses_nothing() {
    harmed(false, false);
}

#[test]
fn a_pipe_that_is_cut_under_a_mirror_loses_nothing() {
    harmed(false, true);
}

#[test]
fn a_byte_that_changes_on_its_way_is_an_error() {
    harmed(true, true);
}

/// A mirror that is built, for the first time or anew, gets only what it has not got in the right place.
#[test]
fn what_is_here_is_not_sent_again() {
    let (source, dest) = (MemStorage::default(), MemStorage::default());
    let db = open(&source);
    let fill = |table: &str, tag: u8| {
        let table = db.table(table, TableKind::Ordered).unwrap();
        let value = |n: u32| [n.wrapping_mul(0x9e37_79b1).to_be_bytes().repeat(4), vec![tag; 84]].concat();
        table.put_many((0..40_000u32).map(|n| (n.to_be_bytes(), value(n)))).unwrap();
        db.flush().unwrap();
    };
    fill("few", 1);
    fill("many", 1);
    let harm = Harm { question: NEVER, answer: 4 << 20, flips: false };
    let (done, [_, first]) = through(&source, &dest, harm);
    assert!(done.is_err() && first == 4 << 20, "{first}");
    let (done, [_, rest]) = through(&source, &dest, Harm { answer: NEVER, ..harm });
    assert_eq!(done.unwrap().built, 1);
    let whole = usize::try_from(db.stats().file_bytes).unwrap();
    assert!(rest + (2 << 20) < whole, "{rest} of {whole}");
    assert!(followed(&dest) == contents(&db));
    // Nothing keeps what the mirror has, and other things come to a part of it.
    db.drop_table("few").unwrap();
    fill("other", 3);
    fill("another", 4);
    let (done, [_, anew]) = through(&source, &dest, Harm { answer: NEVER, ..harm });
    assert_eq!(done.unwrap().built, 1);
    let whole = usize::try_from(db.stats().file_bytes).unwrap();
    assert!(anew + (2 << 20) < whole, "{anew} of {whole}");
    assert!(followed(&dest) == contents(&db));
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
    brought(&source, &dest).unwrap();
    let db = open(&source);
    assert_eq!(followed(&dest), contents(&db));
    db.close().unwrap();
}

#[test]
fn another_database_is_refused() {
    let (source, other, dest) = (MemStorage::default(), MemStorage::default(), MemStorage::default());
    let db = open(&source);
    fill(&db, 1);
    db.close().unwrap();
    brought(&source, &dest).unwrap();
    let another = open(&other);
    fill(&another, 2);
    another.close().unwrap();
    let refused = brought(&other, &dest).unwrap_err();
    assert!(
        matches!(&refused, Error::Invalid { detail } if detail.contains("another database")),
        "{refused}"
    );
    assert_eq!(followed(&dest), contents(&open(&source)));
    promote_on(&dest, COPY).unwrap();
    let refused = brought(&source, &dest).unwrap_err();
    assert!(matches!(refused, Error::Open { .. }), "{refused}");
    // And the other way round: what was promoted has another lineage than its mirror.
    let again = copied(&dest);
    again.rename(Path::new(COPY), Path::new(DB), false).unwrap();
    let old = MemStorage::default();
    brought(&source, &old).unwrap();
    let refused = brought(&again, &old).unwrap_err();
    assert!(matches!(&refused, Error::Invalid { detail } if detail.contains("another life")), "{refused}");
}

/// A mirror that has all is sent next to nothing.
#[test]
fn a_mirror_that_rests_is_sent_little() {
    let (source, dest) = (MemStorage::default(), MemStorage::default());
    let db = open(&source);
    fill(&db, 1);
    db.flush().unwrap();
    db.open_table("t").unwrap().put(b"last", b"1").unwrap();
    let (thread, answers, ask) = serving(&source);
    let counts = Arc::new(Mutex::new([0; 2]));
    let pipe = MirrorPipe::new(Counted(answers, counts.clone(), 1), ask).unwrap();
    let mut mirror = mirror(&pipe, &dest).unwrap();
    level(&mut mirror).unwrap();
    while mirror.step().unwrap() {}
    let before = counts.lock().unwrap()[1];
    let mut asked = 0;
    mirror
        .run(|_| {
            asked += 1;
            asked < 40
        })
        .unwrap();
    let sent = counts.lock().unwrap()[1] - before;
    assert!(sent < 40 * 100, "{sent} bytes");
    db.open_table("t").unwrap().put(b"last", b"2").unwrap();
    db.open_table("t").unwrap().put(b"very last", b"3").unwrap();
    assert!(mirror.step().unwrap(), "and what comes is seen");
    drop((mirror, pipe));
    thread.join().unwrap().0.unwrap();
}

/// While a mirror rests the other end waits for it, and what comes is there soon.
#[test]
fn a_look_ends_when_something_comes() {
    let (source, dest) = (MemStorage::default(), MemStorage::default());
    let db = open(&source);
    fill(&db, 1);
    db.flush().unwrap();
    let (thread, answers, ask) = serving(&source);
    let pipe = MirrorPipe::new(answers, ask).unwrap();
    let mut mirror = mirror(&pipe, &dest).unwrap();
    level(&mut mirror).unwrap();
    let began = Instant::now();
    let mut asked = 0;
    mirror
        .run(|_| {
            asked += 1;
            asked < 10
        })
        .unwrap();
    assert!(
        began.elapsed() >= Duration::from_millis(50),
        "nothing comes, and it asked in vain: {:?}",
        began.elapsed()
    );
    drop((mirror, pipe));
    thread.join().unwrap().0.unwrap();
}

/// What is no source of a mirror is an error that says what came.
#[test]
fn a_source_that_says_anything_is_not_believed() {
    let no_source: [(&[u8], &str); 5] = [
        (b"", "before it said anything"),
        (b"ssh: connect to host", "it begins with \"ssh: connect to\""),
        (b"no\n", "it begins with \"no\""),
        (b"AZKMIRR\0\x02\0\0\0", "not whole"),
        (b"AZKMIRR\0\x02\0\0\0....", "not whole"),
    ];
    for (bytes, text) in no_source {
        let (from, mut to) = io::pipe().unwrap();
        to.write_all(bytes).unwrap();
        drop(to);
        let refused = MirrorPipe::new(from, io::sink()).map(drop).unwrap_err();
        assert!(refused.to_string().contains(text), "{refused}");
    }
    let mut newer = hello();
    newer[8] = 3;
    let sum = crc(0, &newer[..12]);
    newer[12..].copy_from_slice(&sum.to_le_bytes());
    let refused = MirrorPipe::new(&newer.to_vec().leak()[..], io::sink()).map(drop).unwrap_err();
    assert!(matches!(&refused, Error::Invalid { detail } if detail.contains("version 3")), "{refused}");
    // A false length, a false checksum, and answers that are none.
    let answer = |body: &[u8], n: u32| {
        let head = [u32::try_from(body.len()).unwrap().to_le_bytes(), crc(n, body).to_le_bytes()].concat();
        [&head[..], &crc(n, &head).to_le_bytes(), body].concat()
    };
    let long = [u32::MAX.to_le_bytes(), [0; 4]].concat();
    let long = [&long[..], &crc(1, &long).to_le_bytes()].concat();
    let wrong =
        [long, vec![0; 40], answer(&[0, 0], 2), answer(&[9], 1), answer(&[0, 1, 5], 1), answer(&[], 1)];
    for bytes in wrong {
        let all = [&hello()[..], &bytes].concat();
        let pipe = MirrorPipe::new(&all.leak()[..], io::sink()).unwrap();
        let refused = Storage::open(&pipe, Path::new(DB), OpenMode::ReadOnly).map(drop);
        assert!(refused.is_err() && pipe.cut().is_some(), "{bytes:?}");
    }
    // An error of the other end is told as what it is.
    let all = [&hello()[..], &answer(&[1, 2, b'g', b'o', b'n', b'e', 7], 1)].concat();
    let pipe = MirrorPipe::new(&all.leak()[..], io::sink()).unwrap();
    let refused = Storage::open(&pipe, Path::new(DB), OpenMode::ReadOnly).map(drop).unwrap_err();
    assert_eq!(
        (refused.kind(), refused.to_string().as_str()),
        (io::ErrorKind::NotFound, "at the source: gone")
    );
}

/// A mirror that asks anything is answered, or told that it is none.
#[test]
fn a_mirror_that_asks_anything_is_not_believed() {
    let disk = MemStorage::default();
    open(&disk).close().unwrap();
    let stream = |bytes: &[u8]| {
        let mut answers = Vec::new();
        let done = stream_mirror_on(&disk, Path::new(DB), &mut &bytes[..], &mut answers, &mut |_| {});
        (done, String::from_utf8_lossy(&answers).into_owned())
    };
    let ask = |questions: &[Question]| {
        let bytes = (1..).zip(questions).flat_map(|(n, question)| question.encode(n));
        stream(&hello().into_iter().chain(bytes).collect::<Vec<_>>())
    };
    let of = |what, file, a, b| Question::new(what, file).with([a, b]);
    let (done, text) = ask(&[
        of(READ, 7, 0, 1),
        of(OPEN, 7, 0, 0),
        of(READ, 7, 0, u64::MAX),
        of(READ, 7, u64::MAX, 9),
        of(READ, 7, 1 << 60, 9),
        of(DIGEST, 7, 0, 1 << 40),
        of(LOOK, 7, u64::MAX, 0),
        of(LOOK, 7, 4096, 0),
        of(PIN, 7, u64::MAX, 0),
        of(UNPIN, 7, 9, 0),
        of(UNPIN, 8, 9, 0),
        of(CLOSE, 8, 0, 0),
        of(LENGTH, 8, 0, 0),
    ]);
    done.unwrap();
    assert!(text.contains("no such file") && text.contains("too long a read"), "{text}");
    let (done, _) = ask(&[of(99, 0, 0, 0)]);
    assert!(matches!(done, Err(Error::Corrupt { .. })), "{done:?}");
    let many: Vec<Question> = (0..100).map(|file| of(OPEN, file, 0, 0)).collect();
    let (done, text) = ask(&many);
    done.unwrap();
    assert!(text.contains("too many files"));
    let pins: Vec<Question> =
        std::iter::once(of(OPEN, 1, 0, 0)).chain((0..5000).map(|n| of(PIN, 1, n, 0))).collect();
    let (done, text) = ask(&pins);
    done.unwrap();
    assert!(text.contains("too many pins"));
    let (done, _) = stream(b"");
    done.unwrap();
    for bytes in
        [&b"GET / HTTP/1.1\r\n"[..], b"?\n", &[&hello()[..], &of(OPEN, 1, 0, 0).encode(1)[..9]].concat()]
    {
        let (done, _) = stream(bytes);
        assert!(matches!(done, Err(Error::Corrupt { .. })), "{done:?}");
    }
    // A question twice.
    let twice = [&hello()[..], &of(OPEN, 1, 0, 0).encode(1), &of(OPEN, 1, 0, 0).encode(1)].concat();
    let (done, _) = stream(&twice);
    assert!(matches!(&done, Err(Error::Corrupt { detail, .. }) if detail.contains("question 2")), "{done:?}");
}

/// The source of a mirror is asked in few messages, since each may have a long way.
#[test]
fn few_questions_are_asked() {
    let (source, dest) = (MemStorage::default(), MemStorage::default());
    let (db, _) = small(&source);
    brought(&source, &dest).unwrap();
    let (thread, answers, ask) = serving(&source);
    let count = Arc::new(AtomicUsize::new(0));
    let pipe = MirrorPipe::new(answers, Asked(ask, count.clone())).unwrap();
    let mut mirror = mirror(&pipe, &dest).unwrap();
    level(&mut mirror).unwrap();
    let table = db.open_table("t").unwrap();
    let before = count.load(Ordering::Relaxed);
    for n in 0..50u32 {
        table.put(b"n", n.to_be_bytes()).unwrap();
        table.put(b"m", n.to_be_bytes()).unwrap();
        assert!(mirror.step().unwrap());
    }
    let asked = count.load(Ordering::Relaxed) - before;
    // A look, and what the mirror has. The frames come with the look, but for those behind a jump.
    assert!(asked <= 130, "{asked} messages for 50 steps");
    drop((mirror, pipe));
    thread.join().unwrap().0.unwrap();
}

/// A low rate makes short steps, and what is asked early is no more than fits into the pipe.
#[test]
fn a_low_rate_does_not_fill_the_pipe_with_questions() {
    let (source, dest) = (MemStorage::default(), MemStorage::default());
    let db = open(&source);
    let table = db.table("t", TableKind::Ordered).unwrap();
    // One run, of more than what is asked for early.
    let noise = |n: u32| (0..75).flat_map(move |i| (n * 75 + i).wrapping_mul(0x9e37_79b1).to_be_bytes());
    table.put_many((0..50_000u32).map(|n| (n.to_be_bytes(), noise(n).collect::<Vec<_>>()))).unwrap();
    db.flush().unwrap();
    let (_thread, answers, ask) = serving(&source);
    let pipe = MirrorPipe::new(answers, ask).unwrap();
    let (done, ends) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let slowly = CopyOptions { bytes_per_second: Some(80_000) };
        let mut mirror = pipe.mirror_on(Arc::new(dest), COPY, slowly).unwrap();
        mirror.run(|status| status.copied_bytes < 100_000).unwrap();
        done.send(mirror.status().copied_bytes).unwrap();
    });
    let copied = ends.recv_timeout(Duration::from_secs(30)).expect("both ends wait for each other");
    assert!(copied >= 100_000, "{copied}");
}

/// Counts questions.
struct Asked(PipeWriter, Arc<AtomicUsize>);

impl Write for Asked {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.write_all(buf).map(|()| buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What the source has moved within its file is copied there too. A mirror that was opened since it came asks
/// for digests, and believes its file as far as these say so.
#[test]
fn what_was_moved_is_not_sent_again() {
    for is_anew in [false, true] {
        let (source, dest) = (MemStorage::default(), MemStorage::default());
        let db = open(&source);
        let noise = |n: u32| (0..25).flat_map(move |i| (n * 25 + i).wrapping_mul(0x9e37_79b9).to_be_bytes());
        let fill = |name: &str| {
            let table = db.table(name, TableKind::Ordered).unwrap();
            table.put_many((0..20_000u32).map(|n| (n.to_be_bytes(), noise(n).collect::<Vec<_>>()))).unwrap();
            db.flush().unwrap();
        };
        fill("first");
        fill("second");
        if is_anew {
            brought(&source, &dest).unwrap();
        }
        let (thread, answers, ask) = serving(&source);
        let counts = Arc::new(Mutex::new([0; 2]));
        let pipe = MirrorPipe::new(Counted(answers, counts.clone(), 1), ask).unwrap();
        let mut mirror = mirror(&pipe, &dest).unwrap();
        level(&mut mirror).unwrap();
        let (before, status) = (counts.lock().unwrap()[1], mirror.status());
        db.drop_table("first").unwrap();
        for _ in 0..3 {
            fill("small");
            db.drop_table("small").unwrap();
            db.flush().unwrap();
            level(&mut mirror).unwrap();
        }
        db.shrink(|_| {}).unwrap();
        let (small, copied) = (counts.lock().unwrap()[1], mirror.status().copied_bytes);
        level(&mut mirror).unwrap();
        let (sent, now) = (counts.lock().unwrap()[1] - small, mirror.status());
        assert!(now.moved_bytes - status.moved_bytes > 1_500_000, "{now:?}");
        assert!(sent < 200_000 && small > before, "{sent} bytes");
        let counted = usize::try_from(now.copied_bytes - copied).unwrap();
        assert!(counted <= sent, "{counted} of {sent}");
        assert!(followed(&dest) == contents(&db));
        drop((mirror, pipe));
        thread.join().unwrap().0.unwrap();
    }
}

/// A commit of a small record goes over as little more than that, however much of it the log repeats.
#[test]
fn the_log_is_packed_on_its_way() {
    let (source, dest) = (MemStorage::default(), MemStorage::default());
    let db = Db::open_on(&source, DB, options().durability(crate::Durability::Eventual)).unwrap();
    let table = db.table("t", TableKind::Ordered).unwrap();
    db.flush().unwrap();
    let (thread, answers, ask) = serving(&source);
    let counts = Arc::new(Mutex::new([0; 2]));
    let pipe = MirrorPipe::new(Counted(answers, counts.clone(), 1), ask).unwrap();
    let mut mirror = mirror(&pipe, &dest).unwrap();
    level(&mut mirror).unwrap();
    let before = counts.lock().unwrap()[1];
    let noise = |n: u64| (n ^ n << 31 ^ 0x1234).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for n in 0..20_000u64 {
        table.put(noise(n).to_be_bytes(), noise(!n).to_be_bytes()).unwrap();
    }
    db.sync().unwrap();
    table.put(b"last", b"one").unwrap();
    db.sync().unwrap();
    level(&mut mirror).unwrap();
    let sent = counts.lock().unwrap()[1] - before;
    assert!((20_000 * 16..20_000 * 24).contains(&sent), "{sent} bytes");
    assert!(followed(&dest) == contents(&db));
    drop((mirror, pipe));
    thread.join().unwrap().0.unwrap();
}
