//! Times of day, read from arguments and written for people: always UTC.
//!
//! Arguments: `2026-03-01`, `2026-03-01T10:30`, `2026-03-01T10:30:59`, with a blank instead of the `T` and a
//! `Z` behind, or not.

use std::time::{Duration, SystemTime};

const DAY_S: u64 = 86_400;

/// `2026-03-01 10:30:59 UTC`, rounded up: who asks for what there was at that time gets it.
pub fn utc(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs() + u64::from(since.subsec_nanos() > 0);
    let (year, month, day) = date_of(seconds / DAY_S);
    let second = seconds % DAY_S;
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{:02} UTC", second % 60)
}

/// Reads a time. A day stands for its beginning.
pub fn parse(text: &str) -> Result<SystemTime, String> {
    let wrong = || format!("{text:?} is no time (try 2026-03-01T10:30)");
    let plain = text.trim().trim_end_matches(" UTC").trim_end_matches('Z');
    let (date, clock) = plain.split_once(['T', ' ']).unwrap_or((plain, "00:00"));
    let date = numbers(date, '-').filter(|d| d.len() == 3).ok_or_else(wrong)?;
    let clock = numbers(clock, ':').filter(|c| (2..=3).contains(&c.len())).ok_or_else(wrong)?;
    let (year, month, day) = (date[0], date[1], date[2]);
    let (hour, minute, second) = (clock[0], clock[1], clock.get(2).copied().unwrap_or(0));
    let is_day = (1970..10_000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day);
    if !is_day || hour > 23 || minute > 59 || second > 59 {
        return Err(wrong());
    }
    let years: u64 = (1970..year).map(days_in).sum();
    let days = years + (1..month).map(|m| days_of(year, m)).sum::<u64>() + day - 1;
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(days * DAY_S + hour * 3600 + minute * 60 + second))
}

/// What stands before the time at which a record expires, in a line of an export.
pub const EXPIRES: &[u8] = b"expires=";

/// The same of one that does not, in a table whose records expire if nothing else is said.
pub const NEVER: &[u8] = b"expires=never";

/// Appends the time at which a record expires: in milliseconds since 1970, so that all of it is kept.
pub fn write_expires(time: SystemTime, out: &mut Vec<u8>) {
    let ms = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    out.extend_from_slice(EXPIRES);
    out.extend_from_slice(ms.to_string().as_bytes());
}

/// Reads what `write_expires` has written, or `NEVER`, which is the last millisecond that there can be.
pub fn read_expires(field: &[u8]) -> Result<SystemTime, String> {
    if field == NEVER {
        return Ok(SystemTime::UNIX_EPOCH + Duration::from_millis(u64::MAX));
    }
    let wrong = || format!("{:?} does not say when the record expires", String::from_utf8_lossy(field));
    let number = field.strip_prefix(EXPIRES).filter(|digits| digits.iter().all(u8::is_ascii_digit));
    let text = number.and_then(|digits| std::str::from_utf8(digits).ok()).ok_or_else(wrong)?;
    let ms = text.parse().map_err(|_| wrong())?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(ms)).ok_or_else(wrong)
}

/// Numbers of digits alone, between separators.
fn numbers(text: &str, separator: char) -> Option<Vec<u64>> {
    let number = |part: &str| part.chars().all(|c| c.is_ascii_digit()).then(|| part.parse().ok()).flatten();
    text.split(separator).map(number).collect()
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_in(year: u64) -> u64 {
    365 + u64::from(is_leap(year))
}

fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Year, month and day of a day, counted from the first of 1970.
fn date_of(mut days: u64) -> (u64, u64, u64) {
    let mut year = 1970;
    // The time comes from a file, so it may be any number. Years of five digits are not counted.
    while days >= days_in(year) && year < 9999 {
        days -= days_in(year);
        year += 1;
    }
    let mut month = 1;
    while days >= days_of(year, month) && month < 12 {
        days -= days_of(year, month);
        month += 1;
    }
    (year, month, days.min(30) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_at_which_a_record_expires_is_read_as_it_was_written() {
        for ms in [0, 1, 1_764_155_555_123, 1 << 45] {
            let (time, mut field) = (SystemTime::UNIX_EPOCH + Duration::from_millis(ms), Vec::new());
            write_expires(time, &mut field);
            assert_eq!(field, format!("expires={ms}").into_bytes());
            assert_eq!(read_expires(&field), Ok(time));
        }
        let wrong = ["", "5", "expires", "expires=", "expires=-1", "expires=+1", "expires=1s", "Expires=1"];
        for field in wrong.map(str::to_owned).into_iter().chain([format!("expires={}0", u64::MAX)]) {
            assert!(read_expires(field.as_bytes()).is_err(), "{field:?}");
        }
    }

    #[test]
    fn times_come_back() {
        for (text, written) in [
            ("1970-01-01", "1970-01-01 00:00:00 UTC"),
            ("2000-02-29T23:59:59Z", "2000-02-29 23:59:59 UTC"),
            ("2026-12-31 10:30", "2026-12-31 10:30:00 UTC"),
            ("2027-01-01 00:00:01 UTC", "2027-01-01 00:00:01 UTC"),
        ] {
            assert_eq!(utc(parse(text).unwrap()), written);
        }
        let point = parse("2026-12-31T23:59:59").unwrap() + Duration::from_millis(1);
        assert_eq!(utc(point), "2027-01-01 00:00:00 UTC");
        assert!(parse(&utc(point)).unwrap() >= point, "it is found by the time that is shown");
        assert_eq!(
            parse("2026-11-22T14:13:20").unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs(),
            1_795_356_800
        );
        for bad in [
            "",
            "2026",
            "2026-02-29",
            "2026-13-01",
            "2026-01-00",
            "2026-01-01T24:00",
            "2026-01-01T10",
            "1969-12-31",
            "-1-1-1",
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        // A time that no clock has.
        assert!(
            utc(SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(u32::MAX) << 20)).starts_with("9999-")
        );
    }
}
