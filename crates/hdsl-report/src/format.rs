//! Numbers as people read them, on pages and on the command line. The page's script has the same rules, so that no number
//! is told in two ways.

pub use hdsl::format::thousands;

/// A share as a percentage with one decimal.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// `1 row`, `2 rows`, `2 classes`.
pub fn count(n: usize, what: &str) -> String {
    let plural = match (n, what.strip_suffix("ss")) {
        (1, _) => what.to_owned(),
        (_, Some(stem)) => format!("{stem}sses"),
        _ => format!("{what}s"),
    };
    format!("{} {plural}", thousands(n))
}

/// A number in at most four significant digits, without a tail of zeros.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(percent(0.0543), "5.4%");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(count(1, "row"), "1 row");
        assert_eq!(count(1, "class"), "1 class");
        assert_eq!(count(2000, "class"), "2,000 classes");
        assert_eq!(count(1000, "triplet"), "1,000 triplets");
        assert_eq!(short(0.0), "0");
        assert_eq!(short(0.123456), "0.1235");
        assert_eq!(short(1234.0), "1234");
        assert_eq!(short(100.0), "100");
        assert_eq!(short(-2.5), "-2.5");
        assert_eq!(short(1e-9), "1.000e-9");
    }
}
