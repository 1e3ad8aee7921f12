//! Numbers from bytes.

/// 10^0 to 10^15: powers of ten that an `f64` holds exactly.
const TENS: [f64; 16] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

/// The number these bytes spell; `None` if they spell none.
///
/// It may be infinite or not a number: the caller decides whether to accept that.
pub(crate) fn parse_f64(token: &[u8]) -> Option<f64> {
    std::str::from_utf8(token).ok()?.parse().ok()
}

/// The whole number these bytes spell in plain digits; `None` if they do not, or if it is above 2^64 - 1.
pub(crate) fn parse_u64(token: &[u8]) -> Option<u64> {
    if !token.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(token).ok()?.parse().ok()
}

/// An `index:value` in its usual shape (up to nine digits, a colon, a sign or none, up to fifteen digits with or without a
/// point, all followed by a blank) at the start of some text, with its length. Other shapes, which may be valid, too, are
/// `None`.
///
/// One pass over the bytes: most of the reading time is spent here.
#[inline]
pub(super) fn usual_entry(text: &[u8]) -> Option<(u32, f64, usize)> {
    let (index, at) = digits(text, 0, 0);
    if at == 0 || at > 9 || text.get(at) != Some(&b':') {
        return None;
    }
    let negative = text.get(at + 1) == Some(&b'-');
    let from = at + 1 + usize::from(negative);
    let (mut mantissa, mut at) = digits(text, from, 0);
    let mut n_digits = at - from;
    let mut decimals = 0;
    if text.get(at) == Some(&b'.') {
        let point = at + 1;
        (mantissa, at) = digits(text, point, mantissa);
        decimals = at - point;
        n_digits += decimals;
    }
    if !(1..=15).contains(&n_digits) || !matches!(text.get(at), None | Some(b' ' | b'\t')) {
        return None;
    }
    // Numerator and denominator are exact, so that the quotient is rounded once, correctly (Clinger 1990).
    let value = mantissa as f64 / TENS[decimals];
    Some((index as u32, if negative { -value } else { value }, at))
}

/// Continues a number with the digits from a place in some text. Gives the place after the last digit, too.
#[inline]
fn digits(text: &[u8], mut at: usize, mut number: u64) -> (u64, usize) {
    while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0'))
        && digit < 10
    {
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    (number, at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
    }
}
