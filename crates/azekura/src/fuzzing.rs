//! Doors for fuzzers, in builds with `--cfg fuzzing` (or `azekura_canary`) only. They lead to the readers of
//! single parts of the file, which otherwise lie behind checksums and behind each other. None of them may
//! panic, hang, or allocate more than a small multiple of what it is given, whatever that is.

use crate::base::codec::{usize_of, usize_of64};
use crate::base::key::SortKey;
use crate::base::limits::{PAGE_BYTES, SMALL_PAGE_BYTES};
use crate::format::block::{Block, Tag};
use crate::format::frame::{Frame, read_record};
use crate::format::guide::Guide;
use crate::format::manifest::{LogChain, Manifest};
use crate::format::operand::check_stored;
use crate::format::page::{Page, units_of};
use crate::format::superblock::{self, ManifestAt, Parsed, Superblock};
use crate::log::recovery::replay;
use crate::run::meta::Meta;
use crate::space::Extent;
use crate::storage::{MemStorage, OpenMode, Storage};
use std::path::Path;

/// Where the log begins in the file of [`log`].
const LOG_AT: u64 = 8192;

/// At most about so many records of a page are looked up. A page of 65,535 would take as long as hundreds of
/// others.
const LOOKUPS: usize = 256;

/// Reads a page of a run in every way: header, all records, lookups of its own keys and of others.
pub fn page(bytes: &[u8]) {
    let mut whole = bytes.to_vec();
    whole.resize(bytes.len().clamp(1, 4 * PAGE_BYTES).next_multiple_of(SMALL_PAGE_BYTES), 0);
    let _units = units_of(&whole[..64], SMALL_PAGE_BYTES);
    let Ok(guide) = Guide::read_marked(&whole) else { return };
    let page = Page::new(&whole, &guide);
    let lower_bound = |key: &[u8]| {
        let key = SortKey::new(key);
        page.lower_bound(key, page.guess(key).min(page.len() - 1))
    };
    let mut block = Block::new(None);
    let decoded = page.decode(&mut block).is_ok();
    let mut tmp = [0; 8];
    for i in 0..page.len() {
        let content = page.content(i);
        let operand = (content.tag == Tag::Operand).then(|| check_stored(content.value).is_ok());
        std::hint::black_box((content.value.len(), content.expiry, operand));
        if decoded && i.is_multiple_of(page.len().div_ceil(LOOKUPS)) {
            let key = block.key(i, &mut tmp).to_vec();
            let (at, _found) = lower_bound(&key);
            assert!(at <= page.len(), "a place beyond the page's end");
            std::hint::black_box(page.key_is(i, SortKey::new(&key)));
        }
    }
    for key in [
        &b""[..],
        b"\0",
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        b"some key of a dozen",
        &bytes[bytes.len() / 2..],
    ] {
        let (at, _found) = lower_bound(&key[..key.len().min(1 << 16)]);
        assert!(at <= page.len(), "a place beyond the page's end");
    }
}

/// Reads a manifest; what can be read must be written as it was.
pub fn manifest(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::decode(bytes, 0) {
        let again = manifest.encode();
        assert_eq!(Manifest::decode(&again, 0).ok(), Some(manifest));
    }
}

/// Reads the small parts: a superblock, the meta block of a run, one record of the log.
pub fn parts(bytes: &[u8]) {
    let mut superblock = bytes.to_vec();
    superblock.resize(superblock::BYTES, 0);
    let _superblock = Superblock::parse(&superblock);
    let _record = read_record(bytes, 0);
    if let Ok(meta) = Meta::decode(bytes, 0, 0, 1000) {
        for key in [&b""[..], b"a key in the middle", &[0xff; 20], bytes] {
            assert!(meta.page_of(SortKey::new(key)).is_none_or(|page| page < meta.pages()));
        }
    }
}

/// Replays a log: the bytes are its first segment and what follows it in the file.
pub fn log(bytes: &[u8]) {
    let storage = MemStorage::default();
    let Ok(file) = storage.open(Path::new("log"), OpenMode::CreateNew) else { return };
    if file.write_at(bytes, LOG_AT).is_err() {
        return;
    }
    // A reader of a log knows the ids of its file and chain.
    let Some(first) = Frame::parse(bytes) else { return };
    let first_extent = Extent { offset: LOG_AT, len: (bytes.len() as u64).next_multiple_of(4096) };
    let (first_frame, end_frame) = (first.number, u64::MAX);
    let chain =
        LogChain { chain: first.chain, first: first_extent, first_frame, end_frame, durable_below: 0 };
    let mut before = 0;
    let replayed = replay(file.as_ref(), first.file_id, u64::MAX, &chain, |seq, _at, parts| {
        before = before.max(seq);
        std::hint::black_box(parts.len());
        Ok(())
    });
    if let Ok(recovered) = replayed {
        assert!(recovered.end_frame >= first.number);
    }
}

/// The manifest in the file of a database, for fuzzers to begin with.
pub fn manifest_of(file: &[u8]) -> Option<Vec<u8>> {
    match Superblock::parse(file.get(..superblock::BYTES)?) {
        Ok(Parsed::Valid(Superblock { manifest: ManifestAt::Inline(bytes), .. })) => Some(bytes),
        Ok(Parsed::Valid(Superblock { manifest: ManifestAt::Extent { offset, len, .. }, .. })) => {
            file.get(usize_of64(offset)..)?.get(..usize_of(len)).map(<[u8]>::to_vec)
        }
        _ => None,
    }
}
