//! Numbers as people read them, on pages and on the command line. The page's script follows the same rules.

pub use hdsl::format::thousands;

/// A share as a percentage with one decimal.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// `1 row`, `2 rows`, `2 classes`.
pub fn count(n: usize, noun: &str) -> String {
    let plural = match (n, noun.strip_suffix("ss")) {
        (1, _) => noun.to_owned(),
        (_, Some(stem)) => format!("{stem}sses"),
        _ => format!("{noun}s"),
    };
    format!("{} {plural}", thousands(n))
}

/// A number with at most four significant digits, without trailing zeros.
pub fn short(x: f64) -> String {
    if x == 0.0 {
        return "0".into();
    }
    let magnitude = x.abs();
    if !(1e-4..1e7).contains(&magnitude) {
        return format!("{x:.3e}");
    }
    let decimals = (3 - magnitude.log10().floor() as i32).clamp(0, 8) as usize;
    let text = format!("{x:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A whole number, in millions or billions if it is that large.
pub(crate) fn rough(n: f64) -> String {
    match n {
        n if n >= 1e9 => format!("{} billion", short(n / 1e9)),
        n if n >= 1e6 => format!("{} million", short(n / 1e6)),
        n => thousands(n as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (text, expected) in [
            (percent(0.0543), "5.4%"),
            (thousands(1_234_567), "1,234,567"),
            (count(1, "row"), "1 row"),
            (count(1, "class"), "1 class"),
            (count(2000, "class"), "2,000 classes"),
            (count(1000, "triplet"), "1,000 triplets"),
            (short(0.0), "0"),
            (short(0.123456), "0.1235"),
            (short(1234.0), "1234"),
            (short(100.0), "100"),
            (short(-2.5), "-2.5"),
            (short(1e-9), "1.000e-9"),
            (rough(0.0), "0"),
            (rough(45.0), "45"),
            (rough(12_497_500.0), "12.5 million"),
            (rough(4_999_950_000.0), "5 billion"),
        ] {
            assert_eq!(text, expected);
        }
    }
}
