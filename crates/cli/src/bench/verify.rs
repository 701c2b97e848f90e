//! Reading, with every byte compared.
//!
//! All gets go through [`get`], so there is one place that decides how a value is fetched: in place, without
//! a copy.

use azekura::{ReadTxn, Table};

use super::data::{Dataset, KeyBuf};
use crate::failure::{Failure, Outcome};

/// Gets a record that must be there, and compares its value.
#[inline]
pub fn get(txn: &ReadTxn, table: &Table, data: &Dataset, index: u64, key: &mut KeyBuf) -> Outcome {
    match txn.get_with(table, data.key(index, key), |value| value == data.value(index))? {
        Some(true) => Ok(()),
        Some(false) => Err(wrong_value(index)),
        None => Err(missing(index)),
    }
}

/// Gets a key that must not be there.
#[inline]
pub fn get_absent(txn: &ReadTxn, table: &Table, data: &Dataset, number: u64, key: &mut KeyBuf) -> Outcome {
    match txn.get_with(table, data.absent_key(number, key), |_| ())? {
        None => Ok(()),
        Some(()) => Err(Failure::Corrupt(format!("absent key {number} was found"))),
    }
}

/// Scans the whole table and compares every key and value. The number of records and the sum of their indexes
/// prove that each record is there once.
pub fn scan(txn: &ReadTxn, table: &Table, data: &Dataset, records: u64) -> Outcome {
    let mut cursor = txn.cursor(table)?;
    let (mut count, mut sum) = (0u64, 0u64);
    while let Some((key, value)) = cursor.next()? {
        let index = data.record_of(key).filter(|&index| index < records);
        let index = index.ok_or_else(|| unknown_key(key))?;
        if value.bytes()? != data.value(index) {
            return Err(wrong_value(index));
        }
        count += 1;
        sum = sum.wrapping_add(index);
    }
    check_all_seen(count, sum, records)
}

/// Fails unless `count` and `sum` fit the indexes below `records`.
pub fn check_all_seen(count: u64, sum: u64, records: u64) -> Outcome {
    let twice = u128::from(records) * u128::from(records.saturating_sub(1));
    let expected = u64::try_from((twice / 2) & u128::from(u64::MAX)).unwrap_or(0);
    if count == records && sum == expected {
        return Ok(());
    }
    Err(Failure::Corrupt(format!("the scan saw {count} records, {records} were written")))
}

/// The failure for a wrong value.
pub fn wrong_value(index: u64) -> Failure {
    Failure::Corrupt(format!("record {index} has a wrong value"))
}

/// The failure for a missing record.
pub fn missing(index: u64) -> Failure {
    Failure::Corrupt(format!("record {index} is missing"))
}

/// The failure for a key that was never written.
pub fn unknown_key(key: &[u8]) -> Failure {
    let mut shown = Vec::new();
    crate::bytes::to_hex(key, &mut shown);
    Failure::Corrupt(format!("the scan saw a key never written: {}", String::from_utf8_lossy(&shown)))
}

#[cfg(test)]
mod tests {
    use super::check_all_seen;

    #[test]
    fn counting_notices_missing_and_double_records() {
        assert!(check_all_seen(5, 10, 5).is_ok());
        assert!(check_all_seen(4, 6, 5).is_err());
        assert!(check_all_seen(5, 9, 5).is_err());
        assert!(check_all_seen(0, 0, 0).is_ok());
    }
}
