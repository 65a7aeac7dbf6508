//! Fields of a line: split and turned into numbers without copying.

/// The fields of a line, one after the other.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
}

impl<'a> Fields<'a> {
    /// Between commas.
    pub fn commas(line: &'a [u8]) -> Fields<'a> {
        Fields { rest: Some(line), separator: b',' }
    }

    /// Between runs of white space.
    pub fn words(line: &'a [u8]) -> Fields<'a> {
        Fields { rest: Some(line), separator: b' ' }
    }

    /// The next field, or what is missing.
    ///
    /// # Errors
    /// There is none.
    #[inline]
    pub fn text(&mut self, what: &str) -> Result<&'a [u8], String> {
        self.next().ok_or_else(|| format!("{what} is missing"))
    }

    /// The next field as a number.
    ///
    /// # Errors
    /// There is none, or it is no whole number of 64 bits.
    #[inline]
    pub fn number(&mut self, what: &str) -> Result<u64, String> {
        let field = self.text(what)?;
        number(field).ok_or_else(|| unexpected(what, field, "a whole number below 2^64"))
    }

    /// The next field as a number of 32 bits.
    ///
    /// # Errors
    /// There is none, or it is no such number.
    #[inline]
    pub fn small(&mut self, what: &str) -> Result<u32, String> {
        let number = self.number(what)?;
        u32::try_from(number).map_err(|_| format!("{what} is {number}; expected a whole number below 2^32"))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        if self.separator == b' ' {
            let start = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
            let rest = &rest[start..];
            let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
            self.rest = Some(&rest[end..]);
            return Some(&rest[..end]);
        }
        // Fields are short: to look at each byte is faster than to call for help.
        match rest.iter().position(|byte| *byte == self.separator) {
            Some(at) => {
                self.rest = Some(&rest[at + 1..]);
                Some(rest[..at].trim_ascii())
            }
            None => {
                self.rest = None;
                Some(rest.trim_ascii())
            }
        }
    }
}

/// A whole number in decimal digits.
#[inline]
pub fn number(field: &[u8]) -> Option<u64> {
    if field.is_empty() || field.len() > 20 {
        return None;
    }
    let mut value: u64 = 0;
    if field.len() < 20 {
        // Nineteen digits always fit.
        for byte in field {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + u64::from(digit);
        }
        return Some(value);
    }
    for byte in field {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// Seconds with up to nine decimals, as nanoseconds; further decimals are cut off.
#[inline]
pub fn seconds(field: &[u8]) -> Option<u64> {
    let point = field.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = match point {
        Some(at) => (&field[..at], &field[at + 1..]),
        None => (field, &field[..0]),
    };
    let nanos = number(whole)?.checked_mul(1_000_000_000)?;
    if point.is_some() && fraction.is_empty() || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut part = 0;
    for at in 0..9 {
        part = part * 10 + fraction.get(at).map_or(0, |byte| u64::from(byte - b'0'));
    }
    nanos.checked_add(part)
}

/// Says what stands there and what was expected.
#[cold]
pub fn unexpected(what: &str, field: &[u8], expected: &str) -> String {
    format!("{what} is '{}'; expected {expected}", shown(field))
}

/// A field as it can be shown: not more than a few characters of it.
pub fn shown(field: &[u8]) -> String {
    const MOST: usize = 40;
    let mut text: String = String::from_utf8_lossy(&field[..field.len().min(MOST)]).escape_debug().collect();
    if field.len() > MOST {
        text.push('…');
    }
    text
}

/// A time in units of so many nanoseconds.
///
/// # Errors
/// It does not fit 64 bits of nanoseconds.
#[inline]
pub fn nanos(what: &str, value: u64, unit: u64) -> Result<u64, String> {
    value
        .checked_mul(unit)
        .ok_or_else(|| format!("{what} is {value}; expected a time that is below 2^64 nanoseconds (584 years)"))
}

/// An address or length in sectors of 512 bytes.
///
/// # Errors
/// It does not fit 64 bits of bytes.
#[inline]
pub fn sectors(what: &str, value: u64) -> Result<u64, String> {
    value
        .checked_mul(512)
        .ok_or_else(|| format!("{what} is {value}; expected sectors of 512 bytes, below 2^55 of them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_split() {
        let fields: Vec<&[u8]> = Fields::commas(b"1, two,,4").collect();
        assert_eq!(fields, [b"1".as_slice(), b"two", b"", b"4"]);
        let fields: Vec<&[u8]> = Fields::words(b"  8,0   3 \t x ").collect();
        assert_eq!(fields, [b"8,0".as_slice(), b"3", b"x"]);
        assert_eq!(Fields::words(b"   ").count(), 0);
    }

    #[test]
    fn numbers_end_where_they_end() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for bad in [b"18446744073709551616".as_slice(), b"", b"-1", b"1.5", b"0x10", b"999999999999999999999", b"1 "] {
            assert_eq!(number(bad), None, "{}", shown(bad));
        }
        assert_eq!(seconds(b"1538323200"), Some(1_538_323_200_000_000_000));
        assert_eq!(seconds(b"0.000000001"), Some(1));
        assert_eq!(seconds(b"2.5"), Some(2_500_000_000));
        assert_eq!(seconds(b"2.1234567899"), Some(2_123_456_789));
        for bad in [b"1.".as_slice(), b".5", b"1.x", b"18446744074", b"1.0.0", b"-0.1"] {
            assert_eq!(seconds(bad), None, "{}", shown(bad));
        }
    }

    #[test]
    fn what_stands_there_is_shown_within_bounds() {
        let text = unexpected("offset", &[b'x'; 5000], "a number");
        assert!(text.len() < 200 && text.contains('…'), "{text}");
        assert!(unexpected("offset", b"\x00\xff", "a number").contains("\\0"));
        assert!(nanos("time", u64::MAX, 100).is_err() && sectors("LBN", 1 << 55).is_err());
    }
}
