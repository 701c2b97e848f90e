//! What can go wrong in a measurement.

use std::io;

/// The result of everything that can fail here.
pub type Result<T> = std::result::Result<T, Failure>;

/// A failure, described in one line.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A peer's call failed.
    #[error("{peer}: {message}")]
    Peer {
        /// Which peer.
        peer: &'static str,
        /// The call and the library's message.
        message: String,
    },
    /// A peer returned something other than what was put.
    #[error("{peer} returned a wrong value for record {index}: expected {expected}, got {got}")]
    WrongValue {
        /// Which peer.
        peer: &'static str,
        /// The record's index.
        index: u64,
        /// What was put, abbreviated.
        expected: String,
        /// What came, abbreviated.
        got: String,
    },
    /// A peer found a key that was never put.
    #[error("{peer} found the absent key of index {index}")]
    Unexpected {
        /// Which peer.
        peer: &'static str,
        /// The index of the key.
        index: u64,
    },
    /// A scan saw other records than those put.
    #[error("{peer}: a scan saw {got_records} records (sum {got_sum:#x}), not {records} ({sum:#x})")]
    WrongScan {
        /// Which peer.
        peer: &'static str,
        /// Records put.
        records: u64,
        /// Their sum.
        sum: u64,
        /// Records seen.
        got_records: u64,
        /// Their sum.
        got_sum: u64,
    },
    /// The operating system reported an error.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// The error.
        source: io::Error,
    },
    /// The request makes no sense.
    #[error("{0}")]
    Usage(String),
}

impl Failure {
    /// Wraps an error of the operating system.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }

    /// Wraps an error of a peer.
    pub fn peer(peer: &'static str, call: &str, message: &dyn std::fmt::Display) -> Self {
        Self::Peer { peer, message: format!("{call}: {message}") }
    }
}

/// The first bytes in hexadecimal, and the number of all bytes.
pub fn abbreviated(bytes: Option<&[u8]>) -> String {
    const SHOWN: usize = 12;
    match bytes {
        None => "nothing".to_owned(),
        Some(bytes) => {
            let start: String = bytes.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
            let dots = if bytes.len() > SHOWN { "…" } else { "" };
            format!("{} bytes {start}{dots}", bytes.len())
        }
    }
}
