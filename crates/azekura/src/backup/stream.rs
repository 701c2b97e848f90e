//! A backup as a stream, for pipes: the pieces as they are read, then the point that names them.
//!
//! ```text
//! "AZKSTRM\0" | u32 version | then records:  u8 1 | piece (as in a point) | its bytes
//!                                            u8 2 | u64 length | point: the last one
//! ```
//!
//! A stream is restored as it comes. It is whole when its point has come, names just these pieces in this
//! order, and nothing follows.

use super::make::{now_ms, point_of};
use super::pace::{CopyOptions, Pace};
use super::pieces::read_pieces;
use super::repository::PointInfo;
use super::restore::RestoreReport;
use super::target::Target;
use crate::base::codec::{Reader, Writer, usize_of, usize_of64};
use crate::base::error::{Error, Result};
use crate::base::limits::SUPERBLOCKS_BYTES;
use crate::engine::{Engine, Progress};
use crate::format::point::{LOG_VERSION, PIECE_ENTRY_BYTES, Piece, Point};
use crate::format::superblock::PLAIN_VERSION;
use crate::storage::{OsStorage, Storage};
use std::io::{self, Read, Write};
use std::path::Path;

const MAGIC: &[u8; 8] = b"AZKSTRM\0";
const PIECE: u8 = 1;
const POINT: u8 = 2;
const WRITING: &str = "writing the backup";
const READING: &str = "reading the backup";
const WHAT: &str = "backup stream";

/// Writes a whole backup to `out`. Gives the point that it has.
pub(crate) fn backup_to(
    engine: &Engine,
    out: &mut dyn Write,
    options: CopyOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<PointInfo> {
    let mut pace = Pace::beside(engine, options)?;
    let failed = |e: io::Error| Error::io(WRITING, e);
    let capture = engine.capture()?;
    let time_ms = now_ms();
    let mut head = Writer::default();
    head.bytes.extend_from_slice(MAGIC);
    // The point in it says whether something expires.
    head.u32(if capture.manifest.logs.is_empty() { PLAIN_VERSION } else { LOG_VERSION });
    out.write_all(&head.bytes).map_err(failed)?;
    let take = |piece: &Piece, bytes: &[u8]| {
        let mut w = Writer::default();
        w.u8(PIECE);
        piece.encode(&mut w);
        out.write_all(&w.bytes).and_then(|()| out.write_all(bytes)).map_err(failed)
    };
    let pieces = read_pieces(&capture, |_, _, _| None, take, &mut pace, progress)?;
    let point = point_of(engine, &capture, pieces, time_ms);
    let bytes = point.encode();
    let mut w = Writer::default();
    w.u8(POINT);
    w.u64(bytes.len() as u64);
    w.bytes.extend_from_slice(&bytes);
    out.write_all(&w.bytes).and_then(|()| out.flush()).map_err(failed)?;
    Ok(PointInfo::of(&point))
}

/// What comes out of a pipe, and how much has come.
struct Input<'a> {
    from: &'a mut dyn Read,
    at: u64,
}

impl Input<'_> {
    fn bad(&self, detail: impl Into<String>) -> Error {
        Error::corrupt(WHAT, self.at, detail)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.from.read_exact(bytes).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => self.bad("it ends before its end: it was cut off"),
            _ => Error::io(READING, e),
        })?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn head(&mut self) -> Result<()> {
        let magic: [u8; 8] = self.array()?;
        if magic != *MAGIC {
            return Err(self.bad("it does not begin as a backup"));
        }
        let version = u32::from_le_bytes(self.array()?);
        if version > LOG_VERSION {
            return Err(Error::NewerVersion { found: version, supported: LOG_VERSION });
        }
        Ok(())
    }

    /// Reads the next piece into `buffer`.
    fn piece(&mut self, buffer: &mut Vec<u8>, end: u64) -> Result<Piece> {
        let at = self.at;
        let entry: [u8; PIECE_ENTRY_BYTES] = self.array()?;
        let piece = Piece::decode(&mut Reader::new(&entry, WHAT, at))?;
        if piece.offset < end {
            return Err(self.bad(format!("a piece at {}, where another one is", piece.offset)));
        }
        buffer.resize(usize_of(piece.bytes), 0);
        self.fill(buffer)?;
        piece.verify(buffer).map_err(|e| match e {
            Error::Corrupt { detail, .. } => Error::corrupt(WHAT, at, detail),
            other => other,
        })?;
        Ok(piece)
    }

    /// Reads the point. Nothing may follow it.
    fn point(&mut self) -> Result<Point> {
        let at = self.at;
        let len = u64::from_le_bytes(self.array()?);
        // A false length takes no more memory than the bytes that come.
        let mut bytes = Vec::new();
        let mut rest = self.from.take(len);
        rest.read_to_end(&mut bytes).map_err(|e| Error::io(READING, e))?;
        self.at += bytes.len() as u64;
        if bytes.len() != usize_of64(len) {
            return Err(self.bad("it ends before its end: it was cut off"));
        }
        let point = Point::decode(&bytes).map_err(|e| match e {
            Error::Corrupt { detail, .. } => Error::corrupt(WHAT, at, detail),
            other => other,
        })?;
        let mut more = Vec::new();
        self.from.take(1).read_to_end(&mut more).map_err(|e| Error::io(READING, e))?;
        if more.is_empty() { Ok(point) } else { Err(self.bad("something follows its end")) }
    }
}

/// Makes the database `out`, which must not be there, of a stream that
/// [`Db::backup_to`](crate::Db::backup_to) has written. As
/// [`Repository::restore`](crate::Repository::restore): `out` gets its name when it is whole and durable,
/// every byte is verified, and it has a lineage of its own. `progress` is called now and then. The total is
/// not known before the end.
///
/// # Errors
/// `Corrupt` if the stream is damaged, or ends too early; `Open` if `out` is there, `NoSpace`, `Io`.
pub fn restore_stream(
    from: &mut dyn Read,
    out: impl AsRef<Path>,
    progress: impl FnMut(Progress),
) -> Result<RestoreReport> {
    restore_stream_on(&OsStorage, from, out, progress)
}

/// As [`restore_stream`], on a disk of the caller's making: for simulators and tests.
///
/// # Errors
/// As [`restore_stream`].
pub fn restore_stream_on(
    storage: &dyn Storage,
    from: &mut dyn Read,
    out: impl AsRef<Path>,
    mut progress: impl FnMut(Progress),
) -> Result<RestoreReport> {
    let mut target = Target::create(storage, out.as_ref())?;
    let mut input = Input { from, at: 0 };
    input.head()?;
    let (mut pieces, mut buffer, mut bytes) = (Vec::new(), Vec::new(), 0);
    loop {
        match input.array::<1>()? {
            [PIECE] => {
                let end = pieces.last().map_or(SUPERBLOCKS_BYTES, Piece::end);
                let piece = input.piece(&mut buffer, end)?;
                target.put(&piece, &buffer)?;
                pieces.push(piece);
                bytes += u64::from(piece.bytes);
                progress(Progress { done: bytes, total: 0 });
            }
            [POINT] => break,
            [other] => return Err(input.bad(format!("a record of unknown kind {other}"))),
        }
    }
    let point = input.point()?;
    if point.pieces != pieces {
        return Err(input.bad("its point does not name the pieces that came"));
    }
    let point = target.finish(point, None)?;
    Ok(RestoreReport { point: PointInfo::of(&point), bytes })
}
