//! Numbers of sixteen bytes: the whole part, and the rest in parts of 10^15, both with their sign and in
//! big-endian order.

/// Parts of one.
const UNIT: i64 = 1_000_000_000_000_000;

/// A number, in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fixed(i128);

impl Fixed {
    /// The nearest number towards zero. None if it has no place in sixteen bytes.
    pub(crate) fn of(number: f64) -> Option<Fixed> {
        // The bound is a power of two, so it is exact.
        if number.is_nan() || number.abs() >= 2f64.powi(63) {
            return None;
        }
        let rest = (number.fract() * UNIT as f64) as i64;
        Some(Fixed(i128::from(number.trunc() as i64) * i128::from(UNIT) + i128::from(rest)))
    }

    /// The number in a value.
    pub(crate) fn read(value: &[u8]) -> Option<Fixed> {
        let bytes: &[u8; 16] = value.try_into().ok()?;
        let (whole, rest) = bytes.split_at(8);
        let number = |half: &[u8]| half.try_into().map(i64::from_be_bytes).ok();
        Some(Fixed(i128::from(number(whole)?) * i128::from(UNIT) + i128::from(number(rest)?)))
    }

    /// The sum, if it has a place in sixteen bytes.
    pub(crate) fn plus(self, other: Fixed) -> Option<Fixed> {
        let sum = Fixed(self.0.checked_add(other.0)?);
        sum.halves().map(|_| sum)
    }

    fn halves(self) -> Option<(i64, i64)> {
        let unit = i128::from(UNIT);
        Some((i64::try_from(self.0 / unit).ok()?, i64::try_from(self.0 % unit).ok()?))
    }

    /// The sixteen bytes.
    pub(crate) fn bytes(self) -> Option<[u8; 16]> {
        let (whole, rest) = self.halves()?;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&whole.to_be_bytes());
        bytes[8..].copy_from_slice(&rest.to_be_bytes());
        Some(bytes)
    }

    /// The number.
    pub(crate) fn number(self) -> f64 {
        let (whole, rest) = self.halves().unwrap_or((i64::MAX, 0));
        whole as f64 + rest as f64 / UNIT as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in [0.0, 1.5, -1.25, 0.125, -0.5, 4_294_967_296.75, -9e18] {
            let fixed = Fixed::of(number).expect("it has a place");
            let bytes = fixed.bytes().expect("it has a place");
            assert_eq!(Fixed::read(&bytes), Some(fixed));
            assert_eq!(fixed.number(), number);
        }
        assert_eq!(
            Fixed::of(-1.25).and_then(Fixed::bytes).map(|b| b[8..14].to_vec()),
            Some(vec![0xff, 0xff, 0x1c, 0xa0, 0x56, 0xce])
        );
    }

    #[test]
    fn what_has_no_place_is_refused() {
        for number in [f64::NAN, f64::INFINITY, -f64::INFINITY, 1e19] {
            assert_eq!(Fixed::of(number), None);
        }
        let most = Fixed::of(9.2e18).expect("it has a place");
        assert_eq!(most.plus(most), None);
        assert_eq!(Fixed::read(&[0; 15]), None);
    }
}
