//! Numbers from bytes, fast for the short ones that data files are full of.

/// 10^0 to 10^22: the powers of ten that an `f64` holds exactly.
const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// The number these bytes spell, rounded exactly as [`str::parse`] rounds; `None` if they spell none.
///
/// May be infinite or not a number: the caller says whether that will do.
pub(crate) fn parse_f64(token: &[u8]) -> Option<f64> {
    match short_decimal(token) {
        Some(number) => Some(number),
        None => std::str::from_utf8(token).ok()?.parse().ok(),
    }
}

/// An `index:value` in its usual shape (up to nine digits, a colon, up to fifteen digits with or without a point, all
/// followed by a blank) at the start of some text, with its length. `None` only means that it takes a closer look.
///
/// One pass over the bytes: this is where reading spends its time.
#[inline]
pub(crate) fn usual_entry(text: &[u8]) -> Option<(u32, f64, usize)> {
    let mut at = 0;
    let mut index = 0u32;
    while let Some(digit) = digit_at(text, at) {
        index = index.wrapping_mul(10).wrapping_add(digit as u32);
        at += 1;
    }
    if at == 0 || at > 9 || text.get(at) != Some(&b':') {
        return None;
    }
    at += 1;
    let from = at;
    let mut mantissa = 0u64;
    while let Some(digit) = digit_at(text, at) {
        mantissa = mantissa.wrapping_mul(10).wrapping_add(digit);
        at += 1;
    }
    let mut n_digits = at - from;
    let mut behind = 0;
    if text.get(at) == Some(&b'.') {
        at += 1;
        let point = at;
        while let Some(digit) = digit_at(text, at) {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(digit);
            at += 1;
        }
        behind = at - point;
        n_digits += behind;
    }
    let usual = (1..=15).contains(&n_digits) && matches!(text.get(at), None | Some(b' ' | b'\t'));
    // Both are exact, so that the quotient is rounded once, as in `short_decimal`.
    usual.then(|| (index, mantissa as f64 / TENS[behind], at))
}

/// At most 15 digits and a small power of ten: both are exact in `f64`, so that their product or quotient is
/// rounded once, correctly (Clinger 1990).
fn short_decimal(token: &[u8]) -> Option<f64> {
    let (negative, digits) = match token {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let mut at = 0;
    let mut mantissa = 0u64;
    while let Some(digit) = digit_at(digits, at) {
        mantissa = mantissa.wrapping_mul(10).wrapping_add(digit);
        at += 1;
    }
    let mut n_digits = at;
    let mut exponent = 0i64;
    if digits.get(at) == Some(&b'.') {
        at += 1;
        let point = at;
        while let Some(digit) = digit_at(digits, at) {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(digit);
            at += 1;
        }
        exponent = -((at - point) as i64);
        n_digits += at - point;
    }
    if n_digits == 0 || n_digits > 15 {
        return None;
    }
    if let Some(b'e' | b'E') = digits.get(at) {
        at += 1;
        let down = match digits.get(at) {
            Some(b'-') => true,
            Some(b'+') => false,
            _ => {
                at -= 1;
                false
            }
        };
        at += 1;
        let first = at;
        let mut power = 0i64;
        while let Some(digit) = digit_at(digits, at) {
            power = power.wrapping_mul(10).wrapping_add(digit as i64);
            at += 1;
        }
        if at == first || at - first > 3 {
            return None;
        }
        exponent += if down { -power } else { power };
    }
    if at != digits.len() {
        return None;
    }
    let power = *TENS.get(exponent.unsigned_abs() as usize)?;
    let size = if exponent < 0 {
        mantissa as f64 / power
    } else {
        mantissa as f64 * power
    };
    Some(if negative { -size } else { size })
}

fn digit_at(bytes: &[u8], at: usize) -> Option<u64> {
    let digit = bytes.get(at)?.wrapping_sub(b'0');
    (digit < 10).then_some(u64::from(digit))
}

/// The whole number these bytes spell in plain digits; `None` if they do not, or if it is above 2^64 - 1.
pub(crate) fn parse_u64(token: &[u8]) -> Option<u64> {
    if token.is_empty() {
        return None;
    }
    let mut number = 0u64;
    for byte in token {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn same_as_std(text: &str) {
        let fast = parse_f64(text.as_bytes());
        let std = text.parse::<f64>().ok();
        assert_eq!(fast.map(f64::to_bits), std.map(f64::to_bits), "{text:?}");
    }

    #[test]
    fn odd_spellings_work_like_std() {
        for text in [
            "",
            "-",
            "+",
            ".",
            "-.",
            "1.",
            ".5",
            "-.5",
            "+1",
            "1e",
            "1e+",
            "1e-",
            "e5",
            "1e5",
            "1E5",
            "1e+5",
            "1e-5",
            "1e22",
            "1e23",
            "1e-22",
            "1e-23",
            "1e999",
            "1e-999",
            "1e0000005",
            "0",
            "-0",
            "00000000000000000000001",
            "0.000000000000000000000001",
            "9007199254740993",
            "123456789012345",
            "1234567890123456",
            "0x10",
            "1_0",
            "1 ",
            " 1",
            "inf",
            "-Infinity",
            "nan",
            "++1",
            "1.2.3",
            "1e5.5",
            "1-2",
            "5e-324",
            "1.7976931348623157e308",
            "2.4703282292062328e-324",
        ] {
            same_as_std(text);
        }
    }

    #[test]
    fn whole_numbers_are_plain_digits() {
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        for bad in ["", "+1", "-1", "18446744073709551616", "1.0", "1e3", " 1"] {
            assert_eq!(parse_u64(bad.as_bytes()), None, "{bad:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn usual_entries_like_their_parts(
            text in r"[0-9]{0,11}:?[-+]?[0-9]{0,16}(\.[0-9]{0,16})?[e\t ]?[0-9:]{0,2}",
        ) {
            if let Some((index, value, length)) = usual_entry(text.as_bytes()) {
                let token = text.split([' ', '\t']).next().unwrap();
                prop_assert_eq!(token.len(), length);
                let (left, right) = token.split_once(':').unwrap();
                prop_assert_eq!(Some(u64::from(index)), parse_u64(left.as_bytes()));
                prop_assert_eq!(value.to_bits(), right.parse::<f64>().unwrap().to_bits());
            }
        }

        #[test]
        fn random_decimals_work_like_std(text in r"[-+]?[0-9]{0,18}(\.[0-9]{0,18})?([eE][-+]?[0-9]{0,4})?") {
            same_as_std(&text);
        }

        #[test]
        fn written_floats_work_like_std(bits in any::<u64>()) {
            let number = f64::from_bits(bits);
            same_as_std(&format!("{number}"));
            same_as_std(&format!("{number:e}"));
            same_as_std(&format!("{number:.6}"));
        }
    }
}
