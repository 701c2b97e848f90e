//! Which points pruning keeps: a pure function of their times.

use crate::base::error::{Error, Result};
use std::collections::BTreeSet;
use std::str::FromStr;
use std::time::SystemTime;

const HOUR_S: u64 = 3600;
const DAY_S: u64 = 24 * HOUR_S;
/// Days before the first Monday, counted from the first day of 1970, which was a Thursday.
const DAYS_TO_MONDAY: u64 = 4;

/// Which points [`Repository::prune`](crate::Repository::prune) keeps: `7d,4w` keeps the newest point of each
/// of the seven newest days that have one, and of each of the four newest weeks. There are also `h`, `m`
/// (months) and `y`. A number without a letter is that many of the newest points. Days are those of UTC, and
/// weeks begin on Mondays. The newest point is kept in any case.
///
/// ```
/// let keep: azekura::Keep = "3,7d,4w,12m".parse()?;
/// assert!("7x".parse::<azekura::Keep>().is_err());
/// # let _ = keep;
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep(Vec<(u64, Unit)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Points,
    Hours,
    Days,
    Weeks,
    Months,
    Years,
}

impl FromStr for Keep {
    type Err = Error;

    fn from_str(text: &str) -> Result<Keep> {
        let rules = text.split(',').map(|rule| rule_of(rule.trim()).ok_or_else(|| refused(text, rule)));
        Ok(Keep(rules.collect::<Result<_>>()?))
    }
}

fn refused(text: &str, rule: &str) -> Error {
    let detail = format!("{rule:?} in {text:?} says of no points that they are kept (try 7d,4w,12m)");
    Error::Invalid { detail }
}

fn rule_of(rule: &str) -> Option<(u64, Unit)> {
    let end = rule.find(|c: char| !c.is_ascii_digit()).unwrap_or(rule.len());
    let unit = match &rule[end..] {
        "" => Unit::Points,
        "h" => Unit::Hours,
        "d" => Unit::Days,
        "w" => Unit::Weeks,
        "m" => Unit::Months,
        "y" => Unit::Years,
        _ => return None,
    };
    let count = rule[..end].parse().ok().filter(|&count| count > 0)?;
    Some((count, unit))
}

impl Keep {
    /// The numbers of the points that are kept. `points`: all points, by number and time.
    pub(super) fn of(&self, points: &[(u64, SystemTime)]) -> BTreeSet<u64> {
        let mut newest_first: Vec<(u64, u64)> = points.iter().map(|&(n, time)| (seconds(time), n)).collect();
        newest_first.sort_unstable();
        newest_first.reverse();
        let mut kept: BTreeSet<u64> = points.iter().map(|p| p.0).max().into_iter().collect();
        for &(count, unit) in &self.0 {
            let mut periods = BTreeSet::new();
            for &(time, number) in &newest_first {
                let is_full = periods.len() as u64 == count;
                if !is_full && periods.insert(unit.period(time, number)) {
                    kept.insert(number);
                }
            }
        }
        kept
    }
}

impl Unit {
    /// The number of the period in which a time lies.
    fn period(self, time_s: u64, number: u64) -> u64 {
        let days = time_s / DAY_S;
        match self {
            Unit::Points => number,
            Unit::Hours => time_s / HOUR_S,
            Unit::Days => days,
            // Week 0 is shorter, and ends before the first Monday.
            Unit::Weeks => (days + 7 - DAYS_TO_MONDAY) / 7,
            Unit::Months => month(days),
            Unit::Years => month(days) / 12,
        }
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The month of a day, both counted from the beginning of 1970.
fn month(mut days: u64) -> u64 {
    /// Days of 400 years, after which the calendar repeats.
    const CYCLE: u64 = 146_097;
    let mut year = 1970 + days / CYCLE * 400;
    days %= CYCLE;
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut months = 0;
    for len in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < len {
            break;
        }
        days -= len;
        months += 1;
    }
    (year - 1970) * 12 + months
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn months_begin_where_the_calendar_says() {
        // 1 January 1970, 31 January, 1 February; 29 February 2000, 1 March; 31 December 2026, 1 January
        // 2027.
        let of = |days| (1970 + month(days) / 12, 1 + month(days) % 12);
        assert_eq!([of(0), of(30), of(31)], [(1970, 1), (1970, 1), (1970, 2)]);
        assert_eq!([of(11_016), of(11_017)], [(2000, 2), (2000, 3)]);
        assert_eq!([of(20_818), of(20_819)], [(2026, 12), (2027, 1)]);
        assert_eq!(of(146_097 + 31), (2370, 2));
    }

    #[test]
    fn the_newest_of_each_period_is_kept() {
        // Two points a day for 60 days, from Thursday, 1 January 1970 on: 2n and 2n + 1 are of day n.
        let time = |n: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(n * DAY_S / 2);
        let points: Vec<(u64, SystemTime)> = (0..120).map(|n| (n, time(n))).collect();
        let kept = |rule: &str| rule.parse::<Keep>().unwrap().of(&points).into_iter().collect::<Vec<_>>();
        assert_eq!(kept("1"), [119]);
        assert_eq!(kept("3"), [117, 118, 119]);
        assert_eq!(kept("2d"), [117, 119]);
        // Day 59 is a Sunday; the Sunday before it is day 52.
        assert_eq!(kept("3w"), [91, 105, 119]);
        // The last of January is day 30; 1970 has 28 days in February, until day 58.
        assert_eq!(kept("3m"), [61, 117, 119]);
        assert_eq!(kept("1,2m"), [117, 119]);
        assert_eq!(kept("9y"), [119]);
        assert_eq!(kept("24h").len(), 24);
        assert_eq!(kept("1000d").len(), 60);
        for bad in ["", "d", "0d", "7x", "7d,", "-1", "7 d w"] {
            assert!(bad.parse::<Keep>().is_err(), "{bad:?}");
        }
    }
}
