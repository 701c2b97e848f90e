//! The cache's behaviour, also under contention, and the cost of a hit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::{Duration, Instant};

use super::*;
use crate::base::codec::u32_of;
use crate::base::limits::PAGE_BYTES;

fn cache(frames: usize) -> Arc<Cache> {
    Cache::new(frames * PAGE_BYTES).unwrap()
}

/// Fills a page by the numbers of its run and of itself. Each word differs from its neighbours, and from the
/// same word of other pages.
fn fill(buf: &mut [u8], run: u32, page: u32) {
    let mut word = u64::from(run) << 32 | u64::from(page);
    for chunk in buf.as_chunks_mut::<8>().0 {
        word = word.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
        *chunk = word.to_le_bytes();
    }
}

fn check(bytes: &[u8], run: u32, page: u32) {
    let mut expected = [0; PAGE_BYTES];
    fill(&mut expected, run, page);
    assert!(bytes == expected, "wrong bytes for page {page} of run {run}");
}

fn get(slots: &PageSlots, run: u32, page: u32) -> PageRef<'_> {
    let load = |buf: &mut [u8], _: &mut Guide| {
        fill(buf, run, page);
        Ok(())
    };
    slots.get(page, load).unwrap()
}

fn never(_: &mut [u8], _: &mut Guide) -> Result<()> {
    panic!("loaded what should be cached")
}

#[test]
fn a_page_is_loaded_once_and_then_found() {
    let cache = cache(4);
    let slots = PageSlots::new(Arc::clone(&cache), 10);
    assert!(slots.get_cached(3).is_none());
    slots.prefetch(3, 0);
    check(&get(&slots, 1, 3), 1, 3);
    check(&slots.get(3, never).unwrap(), 1, 3);
    check(&slots.get_cached(3).unwrap(), 1, 3);
    slots.prefetch(3, usize::MAX);
    let stats = cache.stats();
    assert_eq!((stats.misses, stats.evictions), (1, 0));
    assert_eq!(stats.bytes, PAGE_BYTES as u64);
}

#[test]
fn a_page_out_of_range_is_an_error() {
    let slots = PageSlots::new(cache(1), 10);
    assert!(slots.get_cached(10).is_none());
    slots.prefetch(u32::MAX, 0);
    for page in [10, u32::MAX] {
        let result = slots.get(page, never);
        assert!(matches!(result, Err(Error::Invalid { .. })));
    }
    let none = PageSlots::new(cache(0), 0);
    assert!(none.get(0, never).is_err());
}

#[test]
fn a_failed_load_gives_its_frame_back() {
    let cache = cache(1);
    let slots = PageSlots::new(Arc::clone(&cache), 10);
    let result = slots.get(0, |_, _| Err(Error::ReadOnly));
    assert!(matches!(result, Err(Error::ReadOnly)));
    assert_eq!(cache.stats().bytes, 0);
    let panicked = catch_unwind(AssertUnwindSafe(|| slots.get(0, never).is_ok()));
    assert!(panicked.is_err());
    assert_eq!(cache.stats().bytes, 0);
    check(&get(&slots, 1, 0), 1, 0);
    check(&slots.get(0, never).unwrap(), 1, 0);
}

#[test]
fn pages_read_again_outlive_a_scan() {
    let cache = cache(8);
    let slots = PageSlots::new(Arc::clone(&cache), 100);
    for page in 0..100 {
        check(&get(&slots, 1, page), 1, page);
        if page > 0 {
            check(&slots.get(0, never).unwrap(), 1, 0);
        }
    }
    let stats = cache.stats();
    assert_eq!((stats.misses, stats.evictions), (100, 92));
    assert_eq!(stats.bytes, 8 * PAGE_BYTES as u64);
}

#[test]
fn pages_come_to_the_heap_when_every_frame_is_pinned() {
    let cache = cache(3);
    let slots = PageSlots::new(Arc::clone(&cache), 20);
    let held: Vec<PageRef<'_>> = (0..20).map(|page| get(&slots, 1, page)).collect();
    for (page, bytes) in (0..).zip(&held) {
        check(bytes, 1, page);
        assert_eq!(bytes.as_ptr().addr() % 4096, 0);
        assert_eq!(slots.get_cached(page).is_some(), page < 3);
    }
    drop(held);
    check(&get(&slots, 1, 19), 1, 19);
    assert!(slots.get_cached(19).is_some());
}

#[test]
fn a_pinned_page_stays_while_all_others_change() {
    let cache = cache(2);
    let slots = PageSlots::new(cache, 50);
    let held = get(&slots, 1, 0);
    for page in 1..50 {
        check(&get(&slots, 1, page), 1, page);
    }
    check(&held, 1, 0);
    check(&slots.get(0, never).unwrap(), 1, 0);
}

#[test]
fn dropping_a_run_frees_its_frames_at_once() {
    let cache = cache(300);
    let kept = PageSlots::new(Arc::clone(&cache), 1);
    drop(get(&kept, 9, 0));
    for run in 0..3 {
        let slots = PageSlots::new(Arc::clone(&cache), 1000);
        for page in (0..1000).step_by(4) {
            drop(get(&slots, run, page));
        }
        assert_eq!(cache.stats().bytes, 251 * PAGE_BYTES as u64);
        drop(slots);
        assert_eq!(cache.stats().bytes, PAGE_BYTES as u64);
    }
    assert_eq!(cache.stats().evictions, 0);
    check(&kept.get(0, never).unwrap(), 9, 0);
}

#[test]
fn an_extended_page_lives_with_its_run() {
    let slots = Arc::new(PageSlots::new(cache(1), 2));
    // SAFETY: `slots` is dropped after `page`.
    let page: PageRef<'static> = unsafe { get(&slots, 1, 0).extend() };
    let moved = Arc::clone(&slots);
    let thread = std::thread::spawn(move || {
        check(&page, 1, 0);
        check(&get(&moved, 1, 1), 1, 1);
        drop(page);
    });
    thread.join().unwrap();
    check(&get(&slots, 1, 1), 1, 1);
    assert!(slots.get_cached(1).is_some() && slots.get_cached(0).is_none());
}

#[test]
fn a_load_may_use_the_cache_itself() {
    let slots = PageSlots::new(cache(4), 2);
    let load = |buf: &mut [u8], _: &mut Guide| {
        buf.copy_from_slice(&get(&slots, 1, 1));
        Ok(())
    };
    check(&slots.get(0, load).unwrap(), 1, 1);
}

#[test]
fn the_second_to_publish_uses_the_first_ones_frame() {
    let cache = cache(4);
    let slots = PageSlots::new(Arc::clone(&cache), 1);
    let load = |buf: &mut [u8], _: &mut Guide| {
        drop(get(&slots, 1, 0));
        fill(buf, 1, 0);
        Ok(())
    };
    let page = slots.get(0, load).unwrap();
    let first = slots.get_cached(0).unwrap();
    assert_eq!(page.as_ptr(), first.as_ptr());
    assert_eq!((cache.stats().misses, cache.stats().bytes), (2, PAGE_BYTES as u64));
}

/// xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let high = u32::try_from(self.0 >> 33).unwrap();
        high % limit
    }
}

const THREADS: u32 = 4;
const PAGES: u32 = 200;

/// Random gets from one run, with up to three pins held. Checks every byte, also before a pin is dropped.
fn hammer(slots: &PageSlots, run: u32, rounds: u32, seed: u64) {
    let mut random = Random(seed);
    let mut held: Vec<(u32, PageRef<'_>)> = Vec::new();
    for _ in 0..rounds {
        // Often the same few pages, so that hits, evictions and double loads all occur.
        let pages = if random.below(2) == 0 { 10 } else { PAGES };
        let page = random.below(pages);
        slots.prefetch(random.below(PAGES), 100);
        let fails = random.below(50) == 0;
        let load = |buf: &mut [u8], _: &mut Guide| {
            fill(buf, run, if fails { page + 1 } else { page });
            if fails { Err(Error::ReadOnly) } else { Ok(()) }
        };
        if let Ok(bytes) = slots.get(page, load) {
            check(&bytes, run, page);
            held.push((page, bytes));
        }
        while held.len() > usize_of(random.below(4)) {
            let (page, bytes) = held.swap_remove(usize_of(random.below(u32_of(held.len()))));
            check(&bytes, run, page);
        }
    }
}

#[test]
fn every_byte_is_right_under_contention() {
    for frames in [1, 8, 16] {
        let cache = cache(frames);
        let slots = PageSlots::new(Arc::clone(&cache), PAGES);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let slots = &slots;
                scope.spawn(move || hammer(slots, 1, 20_000, 0x1234_5678 + u64::from(thread)));
            }
        });
        drop(slots);
        let stats = cache.stats();
        assert_eq!(stats.bytes, 0);
        assert_eq!(cache.slow.clock.lock().free.len(), frames);
    }
}

#[test]
fn runs_come_and_go_under_contention() {
    let cache = cache(8);
    let lasting = PageSlots::new(Arc::clone(&cache), PAGES);
    let done = AtomicBool::new(false);
    let runs = AtomicU32::new(2);
    std::thread::scope(|scope| {
        for thread in 1..THREADS {
            let (cache, runs, done) = (&cache, &runs, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let run = runs.fetch_add(1, Ordering::Relaxed);
                    let slots = PageSlots::new(Arc::clone(cache), PAGES);
                    hammer(&slots, run, 50, u64::from(run * THREADS + thread));
                }
            });
        }
        hammer(&lasting, 1, 30_000, 99);
        done.store(true, Ordering::Relaxed);
    });
    drop(lasting);
    assert_eq!(cache.stats().bytes, 0);
}

/// The least time of several tries, in nanoseconds per get.
fn ns_per_get(gets: u32, mut run: impl FnMut()) -> f64 {
    let mut least = Duration::MAX;
    for _ in 0..7 {
        let started = Instant::now();
        run();
        least = least.min(started.elapsed());
    }
    least.as_secs_f64() * 1e9 / f64::from(gets)
}

#[test]
fn cost_of_a_hit() {
    const GETS: u32 = 1_000_000;
    for pages in [1u32, 16, 512, 16_384] {
        let cache = cache(usize_of(pages));
        let slots = PageSlots::new(cache, pages);
        for page in 0..pages {
            drop(get(&slots, 1, page));
        }
        let mut random = Random(7);
        let order: Vec<u32> = (0..GETS).map(|_| random.below(pages)).collect();
        let slots = std::hint::black_box(&slots);
        let ns = ns_per_get(GETS, || {
            for &page in &order {
                let held = slots.get(page, never).unwrap();
                std::hint::black_box(held.as_ptr());
            }
        });
        println!("hit (get and drop) among {pages} cached pages: {ns:.1} ns");
    }
}
