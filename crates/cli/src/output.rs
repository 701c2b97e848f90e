//! Standard output: buffered, without panics, and quiet when the reader has gone.

use std::io::{self, BufWriter, StdoutLock, Write};

use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::style::Paint;

/// Bytes gathered before they are written: scans print millions of short lines.
const BUFFER_BYTES: usize = 64 << 10;

/// Standard output, locked until the command ends. [`Output::finish`] must be called, or an error of the last
/// write is lost.
pub struct Output {
    stream: BufWriter<StdoutLock<'static>>,
}

impl Output {
    /// Locks standard output.
    pub fn new() -> Output {
        Output { stream: BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock()) }
    }

    /// Writes bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Outcome {
        self.stream.write_all(bytes).map_err(|error| Failure::stdout(&error))
    }

    /// Writes text and a line feed.
    pub fn line(&mut self, text: &str) -> Outcome {
        self.bytes(text.as_bytes())?;
        self.bytes(b"\n")
    }

    /// Writes a value as one line of JSON.
    pub fn json(&mut self, value: &impl Serialize) -> Outcome {
        serde_json::to_writer(&mut self.stream, value).map_err(|error| Failure::stdout(&error.into()))?;
        self.bytes(b"\n")
    }

    /// Writes labelled figures. All labels get the width of the widest.
    pub fn labelled(&mut self, rows: &[(&str, String)]) -> Outcome {
        let paint = Paint::stdout();
        let width = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
        for (label, value) in rows {
            self.line(&format!("{}  {value}", paint.dim(&format!("{label:width$}"))))?;
        }
        Ok(())
    }

    /// Writes everything to the reader now, for output that appears as the work goes on.
    pub fn flush(&mut self) -> Outcome {
        self.stream.flush().map_err(|error| Failure::stdout(&error))
    }

    /// Ends the output.
    pub fn finish(mut self) -> Outcome {
        self.flush()
    }
}

/// Writes one line and ends.
pub fn print_line(text: &str) -> Outcome {
    let mut output = Output::new();
    output.line(text)?;
    output.finish()
}

/// Writes one line of JSON and ends.
pub fn print_json(value: &impl Serialize) -> Outcome {
    let mut output = Output::new();
    output.json(value)?;
    output.finish()
}

/// Writes labelled figures and ends.
pub fn print_labelled(rows: &[(&str, String)]) -> Outcome {
    let mut output = Output::new();
    output.labelled(rows)?;
    output.finish()
}
