//! Numbers as people read them in messages.

/// A whole number with commas between thousands.
///
/// ```
/// assert_eq!(hdsl::format::thousands(1_234_567), "1,234,567");
/// ```
pub fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of bytes to two or three digits, in decimal units.
///
/// ```
/// assert_eq!(hdsl::format::bytes(9_951), "10 kB");
/// ```
pub fn bytes(n: u64) -> String {
    let mut number = n as f64;
    let mut units = ["bytes", "kB", "MB", "GB", "TB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    for next in units {
        if number < 999.5 {
            break;
        }
        (number, unit) = (number / 1000.0, next);
    }
    match unit {
        "bytes" => format!("{number} {unit}"),
        _ if number < 9.95 => format!("{number:.1} {unit}"),
        _ => format!("{number:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_short_and_right() {
        for (n, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1_000, "1.0 kB"),
            (9_949, "9.9 kB"),
            (9_951, "10 kB"),
            (999_400, "999 kB"),
            (999_600, "1.0 MB"),
            (5_000_000_000_000_000, "5000 TB"),
        ] {
            assert_eq!(bytes(n), text);
        }
    }
}
