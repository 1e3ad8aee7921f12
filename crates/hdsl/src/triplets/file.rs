//! Files of triplets: lists, click logs, graded judgments and pairs.

use super::judgments::Judgments;
use super::pairs::Pairs;
use super::{Triplets, check_weight};
use crate::data::input::{Input, quote};
use crate::data::number::{parse_f64, parse_u64};
use crate::error::{Error, Parsed, Result};
use crate::named::named_enum;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

named_enum! {
/// What the lines of a file of triplets contain: `file`, `clicks`, `judgments`, `judgments-low` or `pairs`.
///
/// Rows are numbered from 0. Fields are separated by blanks or commas; `#` starts a comment.
#[non_exhaustive]
pub enum TripletFormat as "triplets" = "file" | "clicks" | "judgments" | "judgments-low" | "pairs" {
    /// `anchor near far [weight]`: a weight above 0, 1 if left out. A triplet on two lines counts twice.
    List,
    /// `query clicked skipped [count]`. Equal triplets become one, at the place of the first, whose weight is the sum
    /// of the counts.
    Clicks,
    /// `query document grade`. Every pair of documents with different grades for one query becomes a triplet (query,
    /// better, worse), so their number grows with the square of the documents per query. A document may be judged twice
    /// for a query only with the same grade. A higher grade is better.
    Judgments,
    /// The same lines where a lower grade is better.
    JudgmentsLow,
    /// `row row label [weight]`: label 1 for similar rows, -1 or 0 for dissimilar ones; see [`Pairs::triplets`].
    Pairs,
}
}

impl TripletFormat {
    /// The fields of a line.
    fn fields(self) -> &'static str {
        match self {
            Self::List => "`anchor near far [weight]`",
            Self::Clicks => "`query clicked skipped [count]`",
            Self::Judgments | Self::JudgmentsLow => "`query document grade`",
            Self::Pairs => "`row row label [weight]`",
        }
    }

    /// What an empty file would have contained.
    pub(super) fn expected(self) -> String {
        format!("lines of {}", self.fields())
    }
}

impl Triplets {
    /// Reads triplets of the rows below `n_rows`. Compressed files and `-` for standard input are fine.
    pub fn read(path: &Path, format: TripletFormat, n_rows: usize) -> Result<Self> {
        read(Input::open(path, &format.expected())?, format, n_rows)
    }

    /// [`Triplets::read`] from memory; messages call the file `name`.
    ///
    /// ```
    /// use hdsl::Triplets;
    /// use hdsl::triplets::TripletFormat;
    /// let parse = |text: &[u8], format| Triplets::parse("inline".as_ref(), text, format, 5);
    /// let list = parse(b"0 1 2\n0,1,3,2.5 # sure\n", TripletFormat::List)?;
    /// assert_eq!((list.get(1), list.weight(1)), ((0, 1, 3), 2.5));
    /// let clicks = parse(b"0 1 2\n0 3 2\n0 1 2 4\n", TripletFormat::Clicks)?;
    /// assert_eq!(clicks.weights(), Some(&[5.0, 1.0][..]));
    /// let judgments = parse(b"0 2 1\n0 3 4\n0 4 1\n1 2 3\n", TripletFormat::JudgmentsLow)?;
    /// let all: Vec<_> = judgments.iter().collect();
    /// assert_eq!(all, [(0, 2, 3), (0, 4, 3)]); // 2 and 4 tie; query 1 has one document only
    /// let error = parse(b"0 1 9\n", TripletFormat::List).unwrap_err();
    /// assert_eq!(error.to_string(), "inline:1: row `9` is missing, there are 5 rows, counted from 0");
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn parse(name: &Path, bytes: &[u8], format: TripletFormat, n_rows: usize) -> Result<Self> {
        read(Input::new(name, bytes, &format.expected())?, format, n_rows)
    }

    /// Writes a list that [`Triplets::read`] reads; weights only if there are any.
    ///
    /// ```
    /// let mut triplets = hdsl::Triplets::new();
    /// triplets.push(4, 0, 7);
    /// let mut out = Vec::new();
    /// triplets.write(&mut out)?;
    /// assert_eq!(out, b"4 0 7\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        for (t, (anchor, near, far)) in self.iter().enumerate() {
            match self.weights() {
                Some(weights) => writeln!(out, "{anchor} {near} {far} {}", weights[t])?,
                None => writeln!(out, "{anchor} {near} {far}")?,
            }
        }
        Ok(())
    }
}

fn read(input: Input<'_>, format: TripletFormat, n_rows: usize) -> Result<Triplets> {
    let path = input.path().to_owned();
    let none = "has no triplets, only blank lines and comments";
    let unequal = "has no query with two documents of different grades";
    let (triplets, reason) = match format {
        TripletFormat::List => (read_list(input, format, n_rows)?, none),
        TripletFormat::Clicks => (merge_equal(&read_list(input, format, n_rows)?), none),
        TripletFormat::Judgments | TripletFormat::JudgmentsLow => {
            (Judgments::of(input, format, n_rows)?.triplets(), unequal)
        }
        TripletFormat::Pairs => {
            let pairs = Pairs::of(input, n_rows)?;
            let alone = match pairs.pairs().is_empty() {
                true => "has no pairs, only blank lines and comments",
                false => {
                    "has no pair of dissimilar rows, and no other row to compare similar rows with"
                }
            };
            (pairs.triplets(), alone)
        }
    };
    match triplets.is_empty() {
        true => Err(Error::File {
            path,
            reason: reason.to_owned(),
        }),
        false => Ok(triplets),
    }
}

/// Lines of three rows and perhaps a number.
fn read_list(input: Input<'_>, format: TripletFormat, n_rows: usize) -> Result<Triplets> {
    let mut triplets = Triplets::new();
    each_record(input, |_, fields| {
        let (rows, number) = match *fields {
            [anchor, near, far] => ([anchor, near, far], None),
            [anchor, near, far, number] => ([anchor, near, far], Some(number)),
            _ => return Err(wrong_count(fields.len(), format)),
        };
        let row = |token| parse_row(token, n_rows);
        let [anchor, near, far] = [row(rows[0])?, row(rows[1])?, row(rows[2])?];
        if near == far {
            return Err(format!(
                "row `{near}` is both the nearer and the farther one, expected two different rows"
            ));
        }
        let weight = number.map_or(Ok(1.0), |token| parse_weight(token, format))?;
        triplets.push_weighted(anchor, near, far, weight);
        Ok(())
    })?;
    Ok(triplets)
}

/// The weight of a list, or the count of a click log.
fn parse_weight(token: &[u8], format: TripletFormat) -> Parsed<f64> {
    if format == TripletFormat::Clicks {
        let count = parse_u64(token).filter(|count| *count > 0);
        let want = "a whole number above 0";
        let count = count.ok_or_else(|| format!("count {}, expected {want}", quote(token)))?;
        return Ok(count as f64);
    }
    let weight = parse_f64(token).unwrap_or(f64::NAN);
    check_weight(weight)
        .map(|()| weight)
        .map_err(|want| format!("weight {}, expected {want}", quote(token)))
}

/// Each different triplet once, at its first place, with the sum of the weights.
fn merge_equal(list: &Triplets) -> Triplets {
    let mut places = HashMap::new();
    let mut merged: Vec<((u32, u32, u32), f64)> = Vec::new();
    for (t, rows) in list.iter().enumerate() {
        let place = *places.entry(rows).or_insert(merged.len());
        match merged.get_mut(place) {
            Some((_, total)) => *total += list.weight(t),
            None => merged.push((rows, list.weight(t))),
        }
    }
    let mut triplets = Triplets::new();
    for ((anchor, near, far), weight) in merged {
        triplets.push_weighted(anchor, near, far, weight);
    }
    triplets
}

/// Calls `each` with the line number and fields of every line that has any.
pub(super) fn each_record(
    input: Input<'_>,
    mut each: impl FnMut(u64, &[&[u8]]) -> Parsed<()>,
) -> Result<()> {
    input.each_line(|number, line| {
        let line = match memchr::memchr(b'#', line) {
            Some(at) => &line[..at],
            None => line,
        };
        let fields: Vec<&[u8]> = line
            .split(|b| b.is_ascii_whitespace() || *b == b',')
            .filter(|field| !field.is_empty())
            .collect();
        if fields.is_empty() {
            return Ok(());
        }
        each(number, &fields)
    })
}

/// The message about a line with too few or too many fields.
pub(super) fn wrong_count(n: usize, format: TripletFormat) -> String {
    let fields = if n == 1 { "field" } else { "fields" };
    format!("{n} {fields}, expected {}", format.fields())
}

/// The number of a row that exists.
pub(super) fn parse_row(token: &[u8], n_rows: usize) -> Parsed<u32> {
    match parse_u64(token) {
        Some(row) if row < n_rows as u64 && row <= u64::from(u32::MAX) => Ok(row as u32),
        _ if token.iter().all(u8::is_ascii_digit) => Err(format!(
            "row {} is missing, there are {n_rows} rows, counted from 0",
            quote(token)
        )),
        _ => Err(format!(
            "row {} is not a whole number, expected one from 0 to {}",
            quote(token),
            n_rows.saturating_sub(1)
        )),
    }
}
