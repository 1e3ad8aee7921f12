//! A line about progress that fits into the terminal.

use std::time::Duration;

/// The bar's columns at most, and at least where there is one.
const WIDEST: usize = 25;
const NARROWEST: usize = 8;

/// What is known about work in progress.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// What is being done.
    pub(super) prefix: String,
    /// The share that is done, from 0 to 1; without it there is no bar.
    pub(super) share: Option<f64>,
    /// How much is done, such as `120/1000`.
    pub(super) counts: String,
    /// How fast, such as `31/s`.
    pub(super) rate: Option<String>,
    /// How long it still takes.
    pub(super) left: Option<Duration>,
    /// Anything else; cut where there is no room.
    pub(super) message: String,
}

/// A line in three parts, the second of which is the bar, to be colored.
#[derive(Debug, PartialEq)]
pub(super) struct Fitted {
    pub(super) before: String,
    pub(super) bar: String,
    pub(super) after: String,
}

impl Line {
    /// The line in at most so many columns. A narrow terminal shortens the message first, then the bar; then the rate, the
    /// bar and the prefix are left out, in this order, and counts and time left remain.
    pub(super) fn fit(&self, columns: usize) -> Fitted {
        let prefix = match self.prefix.is_empty() {
            true => String::new(),
            false => format!("{} ", self.prefix),
        };
        let slow = self.figures(false);
        for (prefix, figures, bar) in [
            (prefix.as_str(), self.figures(true), NARROWEST),
            (&prefix, slow.clone(), NARROWEST),
            (&prefix, slow.clone(), 0),
            ("", slow.clone(), 0),
        ] {
            let bar = if self.share.is_some() { bar } else { 0 };
            let frame = if bar > 0 { "[] ".len() } else { 0 };
            let needed = width(prefix) + frame + bar + width(&figures);
            if needed <= columns {
                return self.fill(prefix, bar, &figures, columns - needed);
            }
        }
        Fitted {
            before: String::new(),
            bar: String::new(),
            after: cut(&slow, columns),
        }
    }

    /// The line with the message in the remaining columns, as far as there are any, and the bar in those that remain then.
    fn fill(&self, prefix: &str, bar: usize, figures: &str, room: usize) -> Fitted {
        let space = if figures.is_empty() { "" } else { "  " };
        let mut message = String::new();
        // A few letters say nothing.
        if !self.message.is_empty() && room >= width(space) + width(&self.message).min(12) {
            message = format!("{space}{}", cut(&self.message, room - width(space)));
        }
        let mut fitted = Fitted {
            before: prefix.to_owned(),
            bar: String::new(),
            after: format!("{figures}{message}"),
        };
        if let (Some(share), 1..) = (self.share, bar) {
            let bar = WIDEST.min(bar + room - width(&message));
            let filled = (share.clamp(0.0, 1.0) * bar as f64) as usize;
            // The head of the bar, unless it is full.
            let head = if filled < bar { ">" } else { "" };
            fitted.before.push('[');
            fitted.bar = format!("{:<bar$}", format!("{}{head}", "=".repeat(filled)));
            fitted.after = format!("] {}", fitted.after);
        }
        fitted
    }

    /// Counts, rate and time left.
    fn figures(&self, with_rate: bool) -> String {
        let rate = self.rate.clone().filter(|_| with_rate);
        let left = self.left.map(|left| format!("{} left", clock(left)));
        let pace: Vec<String> = rate.into_iter().chain(left).collect();
        let parts = [self.counts.clone(), pace.join(", ")];
        let parts: Vec<String> = parts.into_iter().filter(|p| !p.is_empty()).collect();
        parts.join("  ")
    }
}

/// Columns of a text: one per character, which holds for all that is printed here except some names of files.
fn width(text: &str) -> usize {
    text.chars().count()
}

/// A text in at most so many columns.
fn cut(text: &str, columns: usize) -> String {
    match width(text) <= columns {
        true => text.to_owned(),
        false if columns == 0 => String::new(),
        false => text.chars().take(columns - 1).chain(['…']).collect(),
    }
}

/// Steps per second and the time that the remaining steps take at this rate, which therefore agree.
pub(super) fn pace(done: u64, of: u64, per_second: f64) -> (Option<String>, Option<Duration>) {
    if !(per_second.is_finite() && per_second > 0.0) {
        return (None, None);
    }
    let digits = match per_second {
        10.0.. => 0,
        1.0.. => 1,
        _ => 3,
    };
    let rate = format!("{per_second:.digits$}/s");
    let seconds = of.saturating_sub(done) as f64 / per_second;
    (Some(rate), Duration::try_from_secs_f64(seconds).ok())
}

/// Seconds, minutes and seconds, or hours, minutes and seconds.
pub(super) fn clock(time: Duration) -> String {
    // Rounded up, so that 0 means that nothing is left.
    let seconds = time.as_secs() + u64::from(time.subsec_millis() > 0);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!(
            "{}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn training() -> Line {
        let (rate, left) = pace(400, 1000, 25.0);
        Line {
            prefix: "training".into(),
            share: Some(0.4),
            counts: "400/1000".into(),
            rate,
            left,
            message: "objective 0.05724, 16 features, best error 5.2%".into(),
        }
    }

    fn text(line: &Line, columns: usize) -> String {
        let Fitted { before, bar, after } = line.fit(columns);
        format!("{before}{bar}{after}")
    }

    #[test]
    fn lines_use_the_terminal() {
        for (columns, wanted) in [
            (
                120,
                "training [==========>              ] 400/1000  25/s, 24 s left  objective 0.05724, 16 features, best error 5.2%",
            ),
            (
                80,
                "training [===>    ] 400/1000  25/s, 24 s left  objective 0.05724, 16 features, …",
            ),
            (45, "training [===>    ] 400/1000  25/s, 24 s left"),
            (39, "training [===>    ] 400/1000  24 s left"),
            (30, "training 400/1000  24 s left"),
            (20, "400/1000  24 s left"),
            (12, "400/1000  2…"),
        ] {
            assert_eq!(text(&training(), columns), wanted);
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut lines = vec![training(), Line::default()];
        let long = "x".repeat(200);
        for share in [None, Some(0.0), Some(0.5), Some(1.0), Some(7.0)] {
            for (prefix, message) in [("", ""), (&long, ""), ("", &long), (&long, &long)] {
                lines.push(Line {
                    prefix: prefix.to_owned(),
                    share,
                    message: message.to_owned(),
                    ..training()
                });
            }
        }
        for line in &lines {
            for columns in 0..300 {
                let shown = text(line, columns).chars().count();
                assert!(shown <= columns, "{line:?} takes {shown} of {columns}");
            }
        }
    }

    #[test]
    fn rate_and_time_left_agree() {
        for (done, of, per_second) in [(0, 10, 0.05), (3, 7, 2.0), (999, 1000, 1234.5), (5, 5, 1.0)]
        {
            let (rate, left) = pace(done, of, per_second);
            let rate: f64 = rate
                .expect("a rate")
                .trim_end_matches("/s")
                .parse()
                .expect("a number");
            let expected = (of - done) as f64 / rate;
            let left = left.expect("a time").as_secs_f64();
            assert!(
                (left - expected).abs() <= 0.05 * expected,
                "{left} for {expected}"
            );
        }
        assert_eq!(pace(5, 10, 0.0), (None, None));
        assert_eq!(pace(5, 10, f64::NAN), (None, None));
    }

    #[test]
    fn times_are_rounded_up() {
        for (seconds, wanted) in [
            (0.0, "0 s"),
            (0.2, "1 s"),
            (59.0, "59 s"),
            (59.5, "1:00"),
            (61.0, "1:01"),
            (3_725.0, "1:02:05"),
        ] {
            assert_eq!(clock(Duration::from_secs_f64(seconds)), wanted);
        }
    }
}
