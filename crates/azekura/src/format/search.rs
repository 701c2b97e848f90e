//! Finds a number in a sorted column by interpolation, with a bounded fall-back.
//!
//! Where keys are evenly spread, as hashes are, a guess and one interpolation from its error (as in the
//! secant method) land a few places from the goal. Steps from there then bracket it. However the keys lie, at
//! most `8 + 2 * log2(n)` further probes are made.

/// The density of a column: places per unit of value, as a fraction of 2^64.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Density(u64);

impl Density {
    /// The density of `n` numbers from `first` to `last`.
    pub(crate) fn of(n: usize, first: u64, last: u64) -> Density {
        let span = last.saturating_sub(first).max(1);
        let whole = ((n.saturating_sub(1)) as u128) << 64;
        Density(u64::try_from(whole / u128::from(span)).unwrap_or(u64::MAX))
    }

    /// The number of places that corresponds to a distance.
    #[inline(always)]
    pub(crate) fn places(self, distance: u64) -> usize {
        ((u128::from(distance) * u128::from(self.0)) >> 64) as usize
    }
}

/// The first `i < n` with `at(i) >= wanted`, or `n`, searched from a guess. `places` converts a distance to
/// places. REQUIRES: `at` ascends, and `guess < n`.
#[inline(always)]
pub(crate) fn lower_bound_from(
    n: usize,
    wanted: u64,
    guess: usize,
    places: impl Fn(u64) -> usize,
    at: impl Fn(usize) -> u64,
) -> usize {
    let seen = at(guess);
    let i = if seen < wanted {
        guess.saturating_add(places(wanted - seen)).min(n - 1)
    } else {
        guess.saturating_sub(places(seen - wanted))
    };
    if at(i) < wanted { search_up(n, i, wanted, at) } else { search_down(i, wanted, at) }
}

/// So many places are tried one by one before the steps double.
const LINEAR: usize = 8;

/// REQUIRES: `at(i) < wanted`.
#[inline(always)]
fn search_up(n: usize, i: usize, wanted: u64, at: impl Fn(usize) -> u64) -> usize {
    let mut low = i + 1;
    let near = (low + LINEAR).min(n);
    while low < near {
        if at(low) >= wanted {
            return low;
        }
        low += 1;
    }
    let mut step = LINEAR;
    while low + step < n && at(low + step) < wanted {
        low += step;
        step *= 2;
    }
    bisect(low, (low + step).min(n), wanted, at)
}

/// REQUIRES: `at(i) >= wanted`.
#[inline(always)]
fn search_down(i: usize, wanted: u64, at: impl Fn(usize) -> u64) -> usize {
    let mut high = i;
    let near = high.saturating_sub(LINEAR);
    while high > near {
        if at(high - 1) < wanted {
            return high;
        }
        high -= 1;
    }
    let mut step = LINEAR;
    while high >= step && at(high - step) >= wanted {
        high -= step;
        step *= 2;
    }
    bisect((high + 1).saturating_sub(step), high, wanted, at)
}

/// The first place in `low..high` whose number is not below `wanted`, or `high`.
#[inline(always)]
pub(crate) fn bisect(mut low: usize, mut high: usize, wanted: u64, at: impl Fn(usize) -> u64) -> usize {
    while low < high {
        let middle = low + (high - low) / 2;
        if at(middle) < wanted { low = middle + 1 } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_standard_search() {
        let mut x = 3u64;
        for n in [1usize, 2, 3, 10, 1000] {
            for shift in [0, 20, 40, 58, 62] {
                let mut v: Vec<u64> = (0..n)
                    .map(|_| {
                        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                        x >> shift
                    })
                    .collect();
                v.push(0);
                v.push(u64::MAX);
                v.sort_unstable();
                for k in v.iter().flat_map(|&k| [k.saturating_sub(1), k, k.saturating_add(1)]) {
                    let density = Density::of(v.len(), v[0], v[v.len() - 1]);
                    for guess in [0, v.len() / 2, v.len() - 1] {
                        let got = lower_bound_from(v.len(), k, guess, |d| density.places(d), |i| v[i]);
                        assert_eq!(got, v.partition_point(|&y| y < k), "{k} in {v:?}");
                    }
                }
            }
        }
    }
}
