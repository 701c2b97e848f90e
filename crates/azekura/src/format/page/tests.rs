//! What pages do with records that are forged, or long.

use super::*;

/// A forged page may give a merge a key in the middle that is shorter than the prefix that the first and
/// the last key share.
#[test]
fn keys_out_of_order_stay_as_they_are() {
    let mut block = Block::default();
    let keys: [&[u8]; 5] = [b"a long prefix, one", b"b", b"", b"a long", b"a long prefix, two"];
    for key in keys {
        block.push(key, Tag::Put, b"value");
    }
    let mut out = Vec::new();
    let (n, _) = GeneralBuilder::new(16 << 10).build(&block, 0, &mut out);
    assert_eq!(n, keys.len());
    let guide = Guide::read(&out).unwrap();
    let mut found = Block::default();
    Page::new(&out, &guide).decode(&mut found).unwrap();
    for (i, key) in keys.into_iter().enumerate() {
        assert_eq!((found.general_key(i), found.value(i)), (key, &b"value"[..]), "{i}");
    }
}

/// A page of keys that share `prefix_len` bytes, and end with the numbers from 0 on.
fn of_long_prefix(prefix_len: usize, records: u64) -> (usize, Vec<u8>) {
    let (mut block, prefix) = (Block::default(), vec![b'p'; prefix_len]);
    for i in 0..records {
        block.push(&[&prefix[..], &i.to_be_bytes()].concat(), Tag::Put, b"");
    }
    let mut out = Vec::new();
    let (n, _) = GeneralBuilder::new(PAGE_BYTES).build(&block, 0, &mut out);
    (n, out)
}

/// Keys that differ in their numbers alone cost no bytes in a page. Whole, they would be 30 MB.
#[test]
fn a_page_has_few_records_if_they_are_long() {
    let (n, page) = of_long_prefix(10_000, 3_000);
    assert_eq!(n, UNPACKED_BYTES_MAX / 10_008);
    let (guide, mut found) = (Guide::read(&page).unwrap(), Block::default());
    Page::new(&page, &guide).decode(&mut found).unwrap();
    assert_eq!((found.len(), found.heap.len()), (n, n * 10_008));
    // One record is as long as it likes; many short ones are as many as there is room for.
    assert_eq!(of_long_prefix(60_000, 2).0, 1);
    assert!(of_long_prefix(16, 40_000).0 > 10_000);
}

/// A forged page says that it has 32,768 such records.
#[test]
fn a_page_that_unpacks_to_far_more_is_refused() {
    let (_, mut page) = of_long_prefix(10_000, 100);
    page[6..8].copy_from_slice(&32_768_u16.to_le_bytes());
    assert_eq!(Guide::read(&page).unwrap_err(), "a prefix too long for so many records");
}

/// A lookup asks the processor for the value of the record that it guesses, and not for the one before.
#[test]
fn the_lines_of_a_long_value_are_those_of_its_record() {
    let stride = 1000;
    let heads: Vec<u64> = (1..=15).map(|n| n << 60).collect();
    let values = vec![7; heads.len() * stride];
    let form = super::super::block::Fixed { stride: stride as u32, tag: Tag::Put };
    let mut page = vec![0; PAGE_BYTES];
    let (n, _) = build_fixed(&heads, &values, form, heads.len(), &mut page);
    assert_eq!(n, heads.len());
    let guide = Guide::read_marked(&page).unwrap();
    for place in 0..n {
        for (whole, expected) in [(true, stride), (false, 256)] {
            let (mut sent, start) = (Vec::new(), guide.heap_at() + place * stride);
            guide.lines_around(place, whole, |byte| sent.push(byte));
            // The lines of the heads come first.
            let value: Vec<usize> = sent.into_iter().skip_while(|&byte| byte != start).collect();
            assert!(!value.is_empty(), "record {place}");
            assert!(value.windows(2).all(|pair| pair[1] - pair[0] <= 64), "{value:?}");
            assert!(value[value.len() - 1] >= start + expected, "record {place}: {value:?}");
        }
    }
}

/// Also where keys are longer than 8 bytes: the prefix, the heads and the records around the guess.
#[test]
fn the_lines_of_a_general_page_are_those_that_a_search_reads() {
    let random = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8;
    for value_bytes in [44, 1000] {
        let mut block = Block::default();
        for n in 0..250_u64 {
            let key = [&b"p"[..], &((n << 50) + (random(n) >> 10)).to_be_bytes(), b"the rest"].concat();
            block.push(&key, Tag::Put, &vec![7; value_bytes]);
        }
        let mut bytes = Vec::new();
        let (n, _) = GeneralBuilder::new(PAGE_BYTES).build(&block, 0, &mut bytes);
        let guide = Guide::read_marked(&bytes).unwrap();
        assert!(guide.is_even() && n > 10);
        let (page, heads_bits) = (Page::new(&bytes, &guide), guide.heads().bytes(8));
        assert!(heads_bits > 40, "heads that are not on a line");
        for place in 0..n {
            let mut sent = Vec::new();
            guide.lines_around(place, true, |byte| sent.push(byte));
            let is_sent =
                |byte: usize| sent.iter().any(|at| (at - at % 64..at - at % 64 + 64).contains(&byte));
            let value = page.value(place).1.as_ptr() as usize - bytes.as_ptr() as usize;
            assert!(is_sent(HEADER_BYTES), "the prefix");
            assert!(is_sent(guide.heads_at() + place * heads_bits / 8), "head {place}: {sent:?}");
            assert!(is_sent(value) && is_sent(value + value_bytes - 1), "record {place}: {sent:?}");
            let next = value + value_bytes + 8;
            assert!(value_bytes > 64 || place + 1 == n || is_sent(next), "the one after {place}: {sent:?}");
        }
    }
}

/// Where lengths differ, the guess of where a record begins is in the page, and the lines are few.
#[test]
fn records_of_many_lengths_have_lines_in_the_page() {
    let mut block = Block::default();
    for n in 0..250_u64 {
        let key = [&b"p"[..], &(n << 50).to_be_bytes(), b"the rest"].concat();
        block.push(&key, Tag::Put, &vec![7; (n * n % 300) as usize]);
    }
    let mut bytes = Vec::new();
    let (n, _) = GeneralBuilder::new(PAGE_BYTES).build(&block, 0, &mut bytes);
    let guide = Guide::read_marked(&bytes).unwrap();
    assert!(guide.ends().bytes(8) > 0);
    for place in 0..n {
        let mut sent = Vec::new();
        guide.lines_around(place, true, |byte| sent.push(byte));
        assert!(sent.iter().all(|&byte| byte < PAGE_BYTES), "{place}: {sent:?}");
        assert!(sent.iter().any(|&byte| byte >= guide.heap_at()), "{place}: {sent:?}");
    }
}
