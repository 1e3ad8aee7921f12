//! Samples of rows and points where all of them would make the page too large.

/// At most `most` of the indices below `n`, evenly spaced, in increasing order.
pub(crate) fn spaced(n: usize, most: usize) -> Vec<u32> {
    match n <= most {
        true => (0..n as u32).collect(),
        false => (0..most)
            .map(|at| (at as u128 * n as u128 / most as u128) as u32)
            .collect(),
    }
}

/// At most `most` elements of a list, evenly spaced, in order.
pub(crate) fn thinned<T: Copy>(list: &[T], most: usize) -> Vec<T> {
    spaced(list.len(), most)
        .into_iter()
        .map(|at| list[at as usize])
        .collect()
}

/// A number rounded to `digits` significant digits, to make the file smaller.
pub(crate) fn rounded(x: f64, digits: i32) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return if x.is_finite() { 0.0 } else { x };
    }
    let places = digits - 1 - x.abs().log10().floor() as i32;
    // The power of ten would overflow; such values are not rounded.
    if !(-300..=300).contains(&places) {
        return x;
    }
    let factor = 10f64.powi(places);
    (x * factor).round() / factor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_in_order_without_repeats() {
        assert_eq!(spaced(3, 5), [0, 1, 2]);
        assert_eq!(spaced(10, 4), [0, 2, 5, 7]);
        for (n, most) in [(1, 1), (1000, 7), (8, 7), (20_000, 3000)] {
            let sample = spaced(n, most);
            assert_eq!(sample.len(), most);
            assert!(
                sample.windows(2).all(|w| w[0] < w[1]) && (*sample.last().unwrap() as usize) < n
            );
        }
        assert_eq!(thinned(&['a', 'b', 'c', 'd'], 2), ['a', 'c']);
        assert!(thinned::<u8>(&[], 2).is_empty());
    }

    #[test]
    fn rounding_keeps_significant_digits() {
        assert_eq!(rounded(123_456.0, 3), 123_000.0);
        assert_eq!(rounded(-0.000123456, 3), -0.000123);
        assert_eq!(rounded(0.0, 3), 0.0);
        assert_eq!(rounded(1e-305, 4), 1e-305);
    }
}
