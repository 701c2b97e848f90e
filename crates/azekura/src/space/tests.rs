//! The allocator compared with one flag per `ALIGN_BYTES`, and its cost with many holes.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::*;

const UNIT: u64 = ALIGN_BYTES;
const START: u64 = 2 * UNIT;

fn units(offset: u64, len: u64) -> Extent {
    Extent { offset: offset * UNIT, len: len * UNIT }
}

fn empty() -> Space {
    Space::from_live(START, Vec::new()).unwrap()
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }
}

/// One flag per unit: taken or not.
struct Naive(Vec<bool>);

impl Naive {
    fn first_fit(&self, len: u64) -> Option<u64> {
        let len = usize::try_from(len).unwrap();
        let mut run = 0;
        for (unit, &taken) in self.0.iter().enumerate() {
            run = if taken { 0 } else { run + 1 };
            if run == len {
                return Some(u64::try_from(unit + 1 - len).unwrap());
            }
        }
        None
    }

    fn free_run_at(&self, unit: u64) -> u64 {
        let rest = &self.0[usize::try_from(unit).unwrap()..];
        u64::try_from(rest.iter().take_while(|&&taken| !taken).count()).unwrap()
    }

    fn set(&mut self, extent: Extent, taken: bool) {
        let first = usize::try_from(extent.offset / UNIT).unwrap();
        let end = usize::try_from(extent.end() / UNIT).unwrap();
        if self.0.len() < end {
            self.0.resize(end, false);
        }
        for unit in &mut self.0[first..end] {
            assert_ne!(*unit, taken);
            *unit = taken;
        }
        while self.0.last() == Some(&false) {
            self.0.pop();
        }
    }

    fn len(&self) -> u64 {
        u64::try_from(self.0.len()).unwrap()
    }

    fn holes(&self) -> Vec<Extent> {
        let mut holes = Vec::new();
        let mut unit = 0;
        while unit < self.len() {
            let len = self.free_run_at(unit);
            if len > 0 {
                holes.push(units(unit, len));
            }
            unit += len.max(1);
        }
        holes
    }
}

fn random_walk(seed: u64, steps: u32, len_max: u64, target: usize) {
    let mut random = Random(seed | 1);
    let mut naive = Naive(vec![true; 2]);
    let mut space = empty();
    let mut live: Vec<Extent> = Vec::new();
    for step in 0..steps {
        let grow = random.below(2 * u64::try_from(target).unwrap());
        let grows = live.is_empty() || grow > u64::try_from(live.len()).unwrap();
        let len = 1 + random.below(len_max);
        let pick = usize::try_from(random.below(1 << 30)).unwrap() % live.len().max(1);
        match (grows, random.below(4)) {
            (true, 0) => {
                let len_max = len + random.below(2 * len_max);
                let got = space.alloc_up_to(len * UNIT, len_max * UNIT);
                let expected = match naive.first_fit(len) {
                    Some(unit) => units(unit, naive.free_run_at(unit).min(len_max)),
                    None => units(naive.len(), len_max),
                };
                assert_eq!(got, expected, "seed {seed} step {step}");
                naive.set(got, true);
                live.push(got);
            }
            (true, 1) => {
                let limit = random.below(naive.len() + 2);
                let got = space.alloc_below(len * UNIT, limit * UNIT);
                let fit = naive.first_fit(len).filter(|unit| unit + len <= limit);
                let expected = fit.map(|unit| units(unit, len));
                assert_eq!(got, expected, "seed {seed} step {step}");
                if let Some(got) = got {
                    naive.set(got, true);
                    live.push(got);
                }
            }
            (true, _) => {
                let got = space.alloc(len * UNIT);
                let expected = naive.first_fit(len).unwrap_or(naive.len());
                assert_eq!(got, units(expected, len), "seed {seed} step {step}");
                naive.set(got, true);
                live.push(got);
            }
            (false, 0) => {
                let old = live[pick];
                let new_len = (1 + random.below(old.len / UNIT)) * UNIT;
                live[pick] = space.shrink(old, new_len);
                assert_eq!(live[pick].offset, old.offset);
                assert_eq!(live[pick].len, new_len);
                if new_len < old.len {
                    naive.set(between(live[pick].end(), old.end()), false);
                }
            }
            (false, _) => {
                let old = live.swap_remove(pick);
                space.free(old);
                naive.set(old, false);
            }
        }
        assert_eq!(space.end(), naive.len() * UNIT, "seed {seed} step {step}");
        if step % 64 == 0 {
            space.map.lock().holes.check();
            let holes = naive.holes();
            assert_eq!(space.free_extents(), holes, "seed {seed} step {step}");
            let bytes: u64 = holes.iter().map(|hole| hole.len).sum();
            assert_eq!(space.free_bytes(), bytes);
        }
        if step % 1024 == 0 {
            space = Space::from_live(START, live.clone()).unwrap();
            assert_eq!(space.free_extents(), naive.holes());
        }
    }
}

#[test]
fn agrees_with_a_naive_map() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = u64::from(now.subsec_nanos()) << 20 | 0x5EED;
    println!("seed {seed}");
    for round in 0..8 {
        random_walk(seed + round, 3000, 1 + 3 * round, 300);
    }
    // Enough holes to split and join blocks.
    random_walk(seed, 12_000, 3, 4000);
}

#[test]
fn live_extents_leave_the_holes_between_them() {
    let space = Space::from_live(START, vec![units(9, 1), units(2, 3), units(5, 2)]).unwrap();
    assert_eq!(space.end(), 10 * UNIT);
    assert_eq!(space.free_extents(), vec![units(7, 2)]);
    assert_eq!(space.free_bytes(), 2 * UNIT);
    assert_eq!(empty().end(), START);
}

#[test]
fn live_extents_that_cannot_be_are_named() {
    let reject = |live: Vec<Extent>| Space::from_live(START, live).err();
    let overlap = Some((units(4, 3), units(6, 2)));
    assert_eq!(reject(vec![units(6, 2), units(4, 3)]), overlap);
    let twice = Some((units(4, 1), units(4, 1)));
    assert_eq!(reject(vec![units(4, 1), units(4, 1)]), twice);
    let wrong = |offset, len| {
        let bad = Extent { offset, len };
        assert_eq!(reject(vec![units(3, 1), bad]), Some((bad, bad)));
    };
    wrong(8 * UNIT, 0);
    wrong(8 * UNIT, 1);
    wrong(8 * UNIT + 1, UNIT);
    wrong(UNIT, UNIT);
    wrong(0, UNIT);
    wrong(8 * UNIT, UNIT * (u64::MAX / UNIT));
    wrong(UNIT * (u64::MAX / UNIT), UNIT);
    wrong(1 << 63, UNIT);
}

#[test]
fn freeing_joins_both_neighbours_and_drops_the_tail() {
    let space = empty();
    let taken: Vec<Extent> = (0..5).map(|_| space.alloc(UNIT)).collect();
    space.free(taken[1]);
    space.free(taken[3]);
    space.free(taken[2]);
    assert_eq!(space.free_extents(), vec![units(3, 3)]);
    space.free(taken[4]);
    assert_eq!(space.end(), 3 * UNIT);
    assert_eq!(space.free_bytes(), 0);
    space.free(taken[0]);
    assert_eq!(space.end(), START);
}

#[test]
fn freeing_what_is_free_changes_nothing_else() {
    let space = empty();
    let taken: Vec<Extent> = (0..8).map(|_| space.alloc(UNIT)).collect();
    space.free(taken[2]);
    space.free(taken[4]);
    assert!(!space.map.lock().free_allocated_part(taken[2]));
    assert_eq!(space.free_extents(), vec![taken[2], taken[4]]);
    // Over both holes and the taken extents around them.
    assert!(!space.map.lock().free_allocated_part(units(3, 5)));
    assert_eq!(space.free_extents(), vec![units(3, 5)]);
    // Past the end, below the start, misaligned, empty.
    assert!(!space.map.lock().free_allocated_part(units(100, 5)));
    assert!(!space.map.lock().free_allocated_part(units(0, 3)));
    for (offset, len) in [(START + 1, UNIT), (START, 5), (START, 0), (START, u64::MAX)] {
        assert!(!space.map.lock().free_allocated_part(Extent { offset, len }));
    }
    assert_eq!(space.free_extents(), vec![units(3, 5)]);
    assert_eq!(space.end(), 10 * UNIT);
    // Over the tail: the taken part of it is freed.
    assert!(!space.map.lock().free_allocated_part(units(9, 50)));
    assert_eq!(space.end(), 9 * UNIT);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "was not wholly allocated")]
fn freeing_twice_panics_in_debug_builds() {
    let space = empty();
    let taken = space.alloc(UNIT);
    let _above = space.alloc(UNIT);
    space.free(taken);
    space.free(taken);
}

#[test]
fn what_is_taken_and_free_is_told_of_one_moment() {
    let space = empty();
    let taken: Vec<Extent> = (0..100).map(|_| space.alloc(UNIT)).collect();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let (taken, free) = space.taken_and_free();
                assert!(taken + free <= START + 100 * UNIT && taken >= START, "{taken} taken, {free} free");
            }
        });
        for _ in 0..200 {
            // All but the last, which ends the file; and with it the holes go, all at once.
            taken.iter().for_each(|&extent| space.free(extent));
            (0..100).for_each(|n| assert_eq!(space.alloc(UNIT), taken[n]));
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn cost_of_many_holes() {
    const HOLES: u64 = 100_000;
    const OPS: u32 = 100_000;
    // Holes of one unit, and one hole of three at a random place: a plain scan would look at half of them.
    let live = (0..HOLES).map(|i| units(2 + 2 * i, 1)).collect();
    let space = Space::from_live(START, live).unwrap();
    space.alloc(8 * UNIT);
    let mut random = Random(42);
    let started = Instant::now();
    for _ in 0..OPS {
        // Between the first live unit and the last one, which stay.
        let unit = 2 + 2 * (1 + random.below(HOLES - 2));
        space.free(units(unit, 1));
        let taken = space.alloc(3 * UNIT);
        assert_eq!(taken.offset, (unit - 1) * UNIT);
        space.free(taken);
        assert_eq!(space.alloc_below(3 * UNIT, taken.end()), Some(taken));
        space.free(units(unit - 1, 1));
        space.free(units(unit + 1, 1));
    }
    let ns = started.elapsed().as_nanos() / u128::from(OPS) / 6;
    println!("{ns} ns per operation with {HOLES} holes");
    assert_eq!(space.free_extents().len(), usize::try_from(HOLES - 1).unwrap());
}

#[test]
fn what_is_kept_for_readers_of_this_process_is_taken_but_not_used() {
    let space = Space::from_live(START, Vec::new()).unwrap();
    let first = space.taken_bytes();
    let (old, parts, other) = (space.alloc(4 * UNIT), space.alloc(2 * UNIT), space.alloc(UNIT));
    space.take_least();
    space.note_needless(&[old, parts], &[]);
    let figures = || (space.needless_bytes(), space.taken_bytes() - first, space.used_bytes() - first);
    assert_eq!(figures(), (6 * UNIT, 7 * UNIT, UNIT), "writers need not wait for it");
    assert_eq!(space.take_least(), first + UNIT);
    space.note_needless(&[old], &[old, parts]);
    assert_eq!(figures(), (4 * UNIT, 7 * UNIT, 3 * UNIT), "some of it lives on elsewhere");
    space.pins_found(7, Some(&[7..=7]), Instant::now());
    space.pins_found(8, Some(&[7..=7]), Instant::now());
    space.free_needless(&[old]);
    assert_eq!(figures(), (0, 7 * UNIT, 3 * UNIT), "now a follower's pin keeps it");
    space.pins_found(8, Some(&[]), Instant::now());
    assert_eq!(figures(), (0, 3 * UNIT, 3 * UNIT));
    space.free(parts);
    space.free(other);
}

#[test]
fn what_only_pins_keep_is_taken_but_not_used() {
    let space = Space::from_live(START, Vec::new()).unwrap();
    let (first, now) = (space.taken_bytes(), Instant::now());
    let (old, other) = (space.alloc(4 * UNIT), space.alloc(UNIT));
    space.pins_found(7, Some(&[7..=7]), now);
    space.pins_found(8, Some(&[7..=7]), now);
    space.take_least();
    space.free(old);
    assert_eq!((space.kept_bytes(), space.taken_bytes()), (4 * UNIT, first + 5 * UNIT));
    assert_eq!(space.used_bytes(), first + UNIT, "writers need not wait for it");
    assert_eq!(space.take_least(), first + UNIT);
    space.pins_found(8, Some(&[]), now);
    assert_eq!(
        (space.kept_bytes(), space.taken_bytes(), space.used_bytes()),
        (0, first + UNIT, first + UNIT)
    );
    space.free(other);
}

#[test]
fn what_is_free_of_a_range_comes_in_pieces() {
    let space = Space::from_live(START, vec![units(4, 2), units(20, 4)]).unwrap();
    let free = |offset: u64, len: u64| {
        let mut pieces = Vec::new();
        space.with_free(units(offset, len), 8 * UNIT, |piece| {
            pieces.push(piece);
            true
        });
        pieces
    };
    // Holes are 2 and 3, and 6 to 19. Behind 23 all is free.
    let all = [units(2, 2), units(6, 2), units(8, 8), units(16, 4), units(24, 8), units(32, 1)];
    assert_eq!(free(0, 33), all);
    let mut asked = 0;
    space.with_free(units(0, 33), 8 * UNIT, |_| {
        asked += 1;
        asked < 2
    });
    assert_eq!(asked, 2, "no more was wanted");
    assert_eq!(free(7, 2), [units(7, 1), units(8, 1)]);
    assert_eq!(free(40, 4), [units(40, 4)]);
    assert!(
        free(4, 2).is_empty() && free(20, 4).is_empty() && free(0, 2).is_empty() && free(9, 0).is_empty()
    );
}
