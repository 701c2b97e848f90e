//! The pipes of a command that was started. Nobody waits longer for them than he wants to.
//!
//! The command may have started others, which hold its pipes and go on when it is ended. So each pipe has a
//! thread of its own, which may wait for them. Who uses the pipe waits for that thread, and gives up when the
//! time is over or the command was ended. The thread ends when the pipe does, or something comes that nobody
//! wants.

use std::io::{self, Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::running::Running;

/// How often is looked whether waiting is to end.
const LOOKS: Duration = Duration::from_millis(20);
/// The same where the pipe is full: nothing tells when it is not.
const ROOM_LOOKS: Duration = Duration::from_millis(1);
/// What is read or written at once is no longer, and so many pieces wait for who uses them.
const PIECE_BYTES: usize = 64 << 10;
const PIECES: usize = 16;

/// Gives a command to the shell. Who reads or writes its pipes waits no longer than `timeout`, also if others
/// hold them that it has started.
pub fn start(command: &str, timeout: Duration) -> io::Result<(Arc<Running>, Output, Input)> {
    let (running, from, to) = Running::start(command, timeout)?;
    let (from, to) = (Output::new(from, running.clone()), Input::new(to, running.clone()));
    Ok((running, from, to))
}

/// What a command says on standard output.
pub struct Output {
    pieces: Receiver<io::Result<Vec<u8>>>,
    /// The last piece, and how much of it was read.
    piece: Vec<u8>,
    read: usize,
    running: Arc<Running>,
}

impl Output {
    fn new(mut from: ChildStdout, running: Arc<Running>) -> Output {
        let (tell, pieces) = sync_channel(PIECES);
        std::thread::spawn(move || {
            let mut bytes = vec![0; PIECE_BYTES];
            loop {
                let piece = match from.read(&mut bytes) {
                    Ok(0) => return,
                    Ok(n) => Ok(bytes[..n].to_vec()),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Err(e) => Err(e),
                };
                let is_over = piece.is_err();
                if tell.send(piece).is_err() || is_over {
                    return;
                }
            }
        });
        Output { pieces, piece: Vec::new(), read: 0, running }
    }

    /// The next piece. None at the end.
    fn hear(&self) -> io::Result<Option<Vec<u8>>> {
        let since = Instant::now();
        loop {
            match self.pieces.recv_timeout(LOOKS) {
                Ok(piece) => return piece.map(Some),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => self.running.may_wait(since)?,
            }
        }
    }
}

impl Read for Output {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.read == self.piece.len() {
            let Some(piece) = self.hear()? else { return Ok(0) };
            (self.piece, self.read) = (piece, 0);
        }
        let n = (&self.piece[self.read..]).read(buf)?;
        self.read += n;
        Ok(n)
    }
}

/// What a command hears on standard input. It ends when this is dropped and the command has heard all.
pub struct Input {
    pieces: SyncSender<Vec<u8>>,
    running: Arc<Running>,
}

impl Input {
    fn new(mut to: ChildStdin, running: Arc<Running>) -> Input {
        let (pieces, heard) = sync_channel::<Vec<u8>>(PIECES);
        std::thread::spawn(move || {
            for piece in heard {
                // Who writes next hears that nobody listens any more.
                if to.write_all(&piece).is_err() {
                    return;
                }
            }
        });
        Input { pieces, running }
    }
}

impl Write for Input {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let since = Instant::now();
        let n = buf.len().min(PIECE_BYTES);
        let mut piece = buf[..n].to_vec();
        loop {
            piece = match self.pieces.try_send(piece) {
                Ok(()) => return Ok(n),
                Err(TrySendError::Disconnected(_)) => return Err(io::ErrorKind::BrokenPipe.into()),
                Err(TrySendError::Full(piece)) => piece,
            };
            self.running.may_wait(since)?;
            sleep(ROOM_LOOKS);
        }
    }

    /// What was written is on its way.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the shell has started holds the pipes, and lives on when the shell is ended.
    const HELD: &str = "sleep 20 | cat";
    const LONG: Duration = Duration::from_secs(1000);

    fn refused<T>(done: io::Result<T>, began: Instant, why: &str) {
        let refused = done.map(drop).unwrap_err();
        assert_eq!((refused.kind(), refused.to_string().as_str()), (io::ErrorKind::TimedOut, why));
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    }

    #[test]
    fn what_a_command_says_and_hears_goes_through() {
        let (running, mut from, mut to) = start("cat", LONG).unwrap();
        let bytes: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
        let sent = bytes.clone();
        let sending = std::thread::spawn(move || to.write_all(&sent));
        let mut heard = Vec::new();
        from.read_to_end(&mut heard).unwrap();
        sending.join().unwrap().unwrap();
        assert!(heard == bytes);
        assert!(running.end().contains('0'), "it has ended by itself");
    }

    #[test]
    fn nobody_waits_longer_for_an_answer_than_was_said() {
        let began = Instant::now();
        let (running, mut from, _to) = start(HELD, Duration::from_secs(1)).unwrap();
        refused(from.read(&mut [0; 9]), began, "nothing goes through the pipe");
        assert!(began.elapsed() >= Duration::from_secs(1));
        assert!(running.end().contains("it did not answer for too long"));
    }

    #[test]
    fn nobody_waits_longer_for_room_than_was_said() {
        let began = Instant::now();
        let (_running, _from, mut to) = start("sleep 20; true", Duration::from_secs(1)).unwrap();
        refused(to.write_all(&vec![7; 4 << 20]), began, "nothing goes through the pipe");
    }

    #[test]
    fn nobody_waits_for_what_was_ended() {
        let began = Instant::now();
        let (running, mut from, _to) = start(HELD, LONG).unwrap();
        std::thread::spawn(move || {
            sleep(Duration::from_millis(100));
            running.kill();
        });
        refused(from.read(&mut [0; 9]), began, "it was ended");
    }
}
