//! No false negatives, few false positives, and the layout of pages.

use super::*;
use crate::base::codec::u32_of;
use crate::base::hash::{filter_hash8, hash_bytes, mix};

fn contains(pages: &[[u8; PAGE_BYTES]], blocks: u64, hash: u64) -> bool {
    let (page, line) = block_place(block_of(hash, blocks));
    let (page, at) = (u64::from(page), line * BLOCK_BYTES);
    block_contains(pages[usize_of64(page)][at..].first_chunk().unwrap(), hash)
}

/// Adds `hash(0 … keys)`, and returns how many percent of `hash(keys … 2 keys)` pass.
fn false_positive_percent(keys: u64, hash: impl Fn(u64) -> u64) -> f64 {
    let mut builder = FilterBuilder::new(keys);
    let hashes: Vec<u64> = (0..keys).map(&hash).collect();
    builder.add_all(&hashes);
    let mut filter = builder.finish_pages();
    let blocks = filter.blocks();
    let pages = filter.pages_mut();
    assert!(hashes.iter().all(|&h| contains(pages, blocks, h)), "an added key is missing");
    let passed = (keys..2 * keys).filter(|&i| contains(pages, blocks, hash(i))).count();
    let percent = 100.0 * passed as f64 / keys as f64;
    println!("{percent:.3} % of {keys} absent keys pass");
    percent
}

#[test]
fn absent_keys_seldom_pass_and_added_ones_always() {
    let keys = 1_000_000;
    assert!(false_positive_percent(keys, mix) < 1.3);
    assert!(false_positive_percent(keys, filter_hash8) < 1.3);
    assert!(false_positive_percent(keys, |i| filter_hash8(i << 32)) < 1.3);
    assert!(false_positive_percent(keys, |i| filter_hash8(i << 42 | 7)) < 1.3);
    assert!(false_positive_percent(keys, |i| filter_hash8(i * 1_000)) < 1.3);
    assert!(false_positive_percent(keys, |i| hash_bytes(&i.to_be_bytes(), 0)) < 1.3);
    assert!(false_positive_percent(20_000_000, mix) < 1.3);
}

#[test]
fn small_filters_work() {
    for keys in [0, 1, 2, 51, 52, 100, 13_000, 13_056, 13_057] {
        let mut builder = FilterBuilder::new(keys);
        assert_eq!(builder.blocks, (keys * 10).div_ceil(512).max(1));
        (0..keys).for_each(|i| builder.add_all(&[mix(i)]));
        let mut filter = builder.finish_pages();
        let blocks = filter.blocks();
        assert_eq!(filter.pages_mut().len(), usize_of64(blocks.div_ceil(255)));
        assert!((0..keys).all(|i| contains(filter.pages_mut(), blocks, mix(i))));
    }
    let mut empty = FilterBuilder::new(0).finish_pages();
    assert!((0..1_000).all(|i| !contains(empty.pages_mut(), 1, mix(i))));
}

#[test]
fn blocks_rise_with_the_hash() {
    for blocks in [1, 2, 3, 255, 256, 1_000_003, 1 << 40] {
        assert_eq!(block_of(0, blocks), 0);
        assert_eq!(block_of(u64::MAX, blocks), blocks - 1);
        let mut last = 0;
        for step in 0..10_000u64 {
            let block = block_of(step * (u64::MAX / 10_000), blocks);
            assert!(block >= last && block < blocks);
            last = block;
        }
    }
}

#[test]
fn blocks_stand_behind_the_headers_of_pages() {
    for (block, place) in [(0, (0, 1)), (1, (0, 2)), (254, (0, 255)), (255, (1, 1)), (510, (2, 1))] {
        assert_eq!(block_place(block), place);
    }
    for block in 0..10_000 {
        assert_eq!(block_place(block), (u32_of(usize_of64(block / 255)), 1 + usize_of64(block % 255)));
    }
    let keys = 40_000;
    let mut builder = FilterBuilder::new(keys);
    (0..keys).for_each(|i| builder.add_all(&[mix(i)]));
    let mut filter = builder.finish_pages();
    assert_eq!(filter.blocks(), 782);
    let pages = filter.pages_mut();
    assert_eq!(pages.len(), 4);
    assert!(pages.as_ptr().addr().is_multiple_of(4_096));
    for page in pages.iter() {
        assert_eq!(page[..64], [0; 64]);
        assert!(page[64..1_024].iter().any(|&b| b != 0));
    }
    let (_, last) = block_place(781);
    assert!(pages[3][(last + 1) * BLOCK_BYTES..].iter().all(|&b| b == 0));
}

#[test]
fn the_bytes_are_those_of_the_format() {
    let mut builder = FilterBuilder::new(1);
    builder.add_all(&[0x0123_4567_89ab_cdef]);
    let mut filter = builder.finish_pages();
    let block = &filter.pages_mut()[0][64..128];
    let bits: Vec<usize> = (0..512).filter(|i| block[i / 8] >> (i % 8) & 1 == 1).collect();
    let mut expected = positions(0x0123_4567_89ab_cdef).to_vec();
    expected.sort_unstable();
    assert_eq!(bits, expected);
    assert_eq!(bits, GOLDEN);
}

/// The bits of hash 0x0123456789abcdef. Changing them changes the file's format.
const GOLDEN: [usize; 6] = [98, 220, 288, 298, 328, 370];
