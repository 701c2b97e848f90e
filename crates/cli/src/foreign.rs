//! What a file that is no database seems to be, by its first bytes.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use crate::bytes;

/// How many bytes at the start of a file are looked at.
const HEAD_BYTES: u64 = 4096;

/// The marks of some kinds of files: the place of the mark in the file, the mark, and the kind.
const MARKS: [(usize, &[u8], &str); 19] = [
    (0, b"SQLite format 3\0", "an SQLite database"),
    (16, &[0xde, 0xc0, 0xef, 0xbe], "an LMDB database"),
    (0, b"redb\x1a\x0a\xa9\x0d\x0a", "a redb database"),
    (0, b"KC\n\0", "a Kyoto Cabinet database"),
    (0, b"ToKyO CaBiNeT\n", "a Tokyo Cabinet database"),
    (12, &[0x62, 0x31, 0x05, 0x00], "a Berkeley DB database"),
    (12, &[0x61, 0x15, 0x06, 0x00], "a Berkeley DB database"),
    (0, &[0xce, 0x9a, 0x57, 0x13], "a GDBM database"),
    (0, &[0xcf, 0x9a, 0x57, 0x13], "a GDBM database"),
    (0, &[0x1f, 0x8b], "gzip data"),
    (0, &[0x28, 0xb5, 0x2f, 0xfd], "zstd data"),
    (0, b"\xfd7zXZ\0", "xz data"),
    (0, b"BZh", "bzip2 data"),
    (0, b"PK\x03\x04", "a ZIP archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"\x7fELF", "a program"),
    (0, b"\x89PNG", "a picture"),
    (0, &[0xff, 0xd8, 0xff], "a picture"),
    (0, b"%PDF-", "a PDF document"),
];

/// The message for a file that is no database.
pub fn no_database(path: &Path) -> String {
    let path_text = bytes::harmless(&path.display().to_string());
    format!("{path_text} is no Azekura database: it seems to be {}", kind(path))
}

/// What a file seems to be.
fn kind(path: &Path) -> &'static str {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return kind_of_folder(path),
        Ok(metadata) if !metadata.is_file() => return "a pipe or a device",
        _ => {}
    }
    let mut head = Vec::new();
    match File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head)) {
        Ok(_) => kind_of_bytes(&head),
        Err(_) => "something that cannot be read",
    }
}

fn kind_of_folder(path: &Path) -> &'static str {
    let has = |name: &str| path.join(name).exists();
    match () {
        () if has("data.mdb") => "the directory of an LMDB database",
        () if has("CURRENT") && has("IDENTITY") => "the directory of a RocksDB database",
        () if has("CURRENT") => "the directory of a LevelDB database",
        () => "a directory",
    }
}

fn kind_of_bytes(head: &[u8]) -> &'static str {
    let marked =
        |&&(at, mark, _): &&(usize, &[u8], &str)| head.get(at..).is_some_and(|rest| rest.starts_with(mark));
    match MARKS.iter().find(marked) {
        Some((_, _, kind)) => kind,
        None if head.is_empty() => "an empty file",
        None if head.iter().all(|&byte| byte == 0) => "zeros, at least at its start",
        None if is_text(head) => "text",
        None => "data of a kind that is not known here",
    }
}

/// Whether bytes are UTF-8 text, without unusual control characters. The last character may be cut.
fn is_text(head: &[u8]) -> bool {
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !valid.is_empty() && valid.chars().all(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r' | '\x0c'))
}
