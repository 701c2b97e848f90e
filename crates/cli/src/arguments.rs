//! Keys and values as arguments: taken as they are, or as hexadecimal digits with `--hex`. `-` means all of
//! standard input. At most one argument of a call can be `-`.

use crate::bytes::{Form, from_hex, shown};
use crate::failure::{Failure, Outcome};
use std::ffi::OsStr;
use std::io::Read;

/// The argument that is standard input.
const STDIN: &str = "-";

/// Refuses two arguments that are both `-`. It does so before anything is read, so that a terminal does not
/// wait for input in vain.
pub fn one_from_stdin(first: (&str, &OsStr), second: (&str, &OsStr)) -> Outcome {
    if first.1 == STDIN && second.1 == STDIN {
        let text = format!("{} and {} are both -: only one of them can be standard input", first.0, second.0);
        return Err(Failure::Usage(text));
    }
    Ok(())
}

/// The bytes of one argument, or all of standard input if it is `-`.
pub fn argument(text: &OsStr, form: Form) -> Outcome<Vec<u8>> {
    let raw = text.as_encoded_bytes();
    match form {
        _ if text == STDIN => stdin(form),
        Form::Text => Ok(raw.to_vec()),
        Form::Hex => {
            from_hex(raw).map_err(|reason| Failure::Usage(format!("{}: {reason}", shown(raw, Form::Text))))
        }
    }
}

/// All of standard input: byte for byte, or hexadecimal digits that may end with a line feed.
fn stdin(form: Form) -> Outcome<Vec<u8>> {
    let mut input = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut input)
        .map_err(|error| Failure::Usage(format!("reading standard input: {error}")))?;
    match form {
        Form::Text => Ok(input),
        Form::Hex => {
            from_hex(input.trim_ascii()).map_err(|reason| Failure::Usage(format!("standard input: {reason}")))
        }
    }
}
