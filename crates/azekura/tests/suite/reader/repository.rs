//! Repositories of backups, by section 14 alone.

use super::page::{Doc, Node, little_endian, take};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128;

/// A file that ends with its digest.
fn sealed<'a>(doc: &'a Doc, name: &str, bytes: &'a [u8]) -> Node<'a> {
    let mut rest = bytes;
    let node = doc.sequence(name, &mut rest);
    assert!(rest.is_empty(), "bytes behind the {name}");
    assert_eq!(digest_of(&node), xxh3_128(&bytes[..bytes.len() - 16]), "the digest of the {name}");
    let versions = match name {
        "logged_point" => vec![doc.constant("point_log_version")],
        _ => ["plain_version", "format_version"].map(|name| doc.constant(name)).to_vec(),
    };
    assert!(versions.contains(&node.num("version")));
    let kind = name.trim_start_matches("logged_");
    assert_eq!(node.num("magic"), doc.constant(&format!("{kind}_magic")));
    node
}

/// A point, and whether it has a log.
fn point_of<'a>(doc: &'a Doc, bytes: &'a [u8]) -> (Node<'a>, bool) {
    let version = little_endian(&bytes[8..12]);
    let is_logged = version == doc.constant("point_log_version");
    (sealed(doc, if is_logged { "logged_point" } else { "point" }, bytes), is_logged)
}

fn digest_of(node: &Node<'_>) -> u128 {
    u128::from(node.num("digest_low")) | u128::from(node.num("digest_high")) << 64
}

/// The file of a point.
pub fn restored(doc: &Doc, repository: &Path, number: u64) -> Vec<u8> {
    let head = std::fs::read(repository.join("repository")).unwrap();
    let head = sealed(doc, "head", &head);
    let point = std::fs::read(repository.join(format!("points/{number}"))).unwrap();
    let (point, is_logged) = point_of(doc, &point);
    assert_eq!(point.num("number"), number);
    assert!(["file_id", "lineage"].iter().all(|id| point.num(id) == head.num(id)));
    let since_2020 = point.num("time_ms") > 1_577_836_800_000;
    assert!(since_2020, "no clock of ours is before 2020");
    let mut manifest = point.bytes("manifest");
    let node = doc.sequence("manifest", &mut manifest);
    assert_eq!(node.num("flushed") < point.num("commit"), is_logged);
    assert_eq!(node.list("logs").is_empty(), !is_logged);
    let version = point.num(if is_logged { "file_version" } else { "version" });
    if is_logged {
        assert!((node.num("flushed")..=point.num("commit")).contains(&point.num("first_commit")));
        assert!(point.num("tables") > 0);
        let marks: Vec<u64> = point.list("marks").iter().map(|mark| mark.num("commit")).collect();
        assert!(marks.is_sorted() && marks.len() != 1);
        let inside = point.num("first_commit")..=point.num("commit");
        assert!(marks.iter().all(|commit| inside.contains(commit)));
        let times = point.list("marks").iter().map(|mark| mark.num("time_ms"));
        assert!(times.min().is_none_or(|first| first == point.num("time_ms")));
    }

    let mut file = vec![0; 2 * doc.constant("superblock_bytes") as usize];
    for piece in point.list("pieces") {
        let part = match piece.num("part") {
            part if part == doc.constant("part_run") => "r",
            part if part == doc.constant("part_values") => "v",
            part if part == doc.constant("part_log") => "l",
            part => panic!("a part of kind {part}"),
        };
        let (id, index, digest) = (piece.num("id"), piece.num("index"), digest_of(piece));
        let name = format!("{:016x}-{part}{id}-{index}-{digest:032x}", head.num("lineage"));
        let bytes = std::fs::read(repository.join("chunks").join(name)).unwrap();
        assert_eq!((bytes.len() as u64, xxh3_128(&bytes)), (piece.num("bytes"), digest));
        assert!(bytes.len() as u64 <= doc.constant("piece_bytes_max"));
        let offset = piece.num("offset") as usize;
        assert!(offset >= file.len() && offset - file.len() < doc.constant("alignment") as usize);
        file.resize(offset, 0);
        file.extend(bytes);
    }
    file.resize(file.len().next_multiple_of(doc.constant("alignment") as usize), 0);
    let mut manifest = point.bytes("manifest");
    let block = superblock(doc, &point, version, file.len() as u64, manifest);
    file.extend(take(&mut manifest, point.num("manifest_bytes")));
    file.resize(file.len().next_multiple_of(doc.constant("alignment") as usize), 0);
    [0, block.len()].iter().for_each(|&at| file[at..at + block.len()].copy_from_slice(&block));
    file
}

fn superblock(doc: &Doc, point: &Node<'_>, version: u64, manifest_offset: u64, manifest: &[u8]) -> Vec<u8> {
    let mut block = vec![0; doc.constant("superblock_bytes") as usize];
    let mut put = |field: &str, bytes: &[u8]| {
        let at = doc.offset("superblock", field);
        block[at..at + bytes.len()].copy_from_slice(bytes);
    };
    put("magic", &doc.constant("superblock_magic").to_le_bytes());
    put("version", &(version as u32).to_le_bytes());
    put("file_id", &point.num("file_id").to_le_bytes());
    put("number", &point.num("checkpoint").max(2).to_le_bytes());
    put("hash_seed", &point.num("hash_seed").to_le_bytes());
    put("manifest_offset", &manifest_offset.to_le_bytes());
    put("manifest_bytes", &(manifest.len() as u32).to_le_bytes());
    put("manifest_checksum", &crc32c::crc32c(manifest).to_le_bytes());
    put("lineage", &77u64.to_le_bytes());
    let sum = crc32c::crc32c(&block[doc.offset("superblock", "version")..]);
    let at = doc.offset("superblock", "checksum");
    block[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    block
}
