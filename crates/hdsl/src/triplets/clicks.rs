//! Triplets from click logs: what was clicked is more similar to the query than what was passed over.

use crate::data::input::{Input, quote};
use crate::data::number::parse_u64;
use crate::error::{Error, Result};
use crate::triplets::Triplets;
use crate::triplets::list::{each_record, parse_rows, wrong_count};
use std::collections::HashMap;
use std::path::Path;

const WANT: &str = "lines of `query clicked skipped [count]`";

/// Reads lines of `query clicked skipped [count]`, row numbers counted from 0 into one set of rows.
///
/// The same three rows on several lines become one triplet, at the place of the first, whose weight is the sum
/// of the counts. Fields, comments and compression are as in [`read_triplets`](crate::triplets::read_triplets).
pub fn read_clicks(path: &Path, n_rows: usize) -> Result<Triplets> {
    read(Input::open(path, WANT)?, n_rows)
}

/// [`read_clicks`] from memory; `name` serves for messages.
///
/// ```
/// use hdsl::triplets::parse_clicks;
/// let triplets = parse_clicks("inline".as_ref(), b"0 1 2\n0 3 2\n0 1 2 4\n", 4)?;
/// assert_eq!(triplets.len(), 2);
/// assert_eq!(triplets.weights(), Some(&[5.0, 1.0][..]));
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn parse_clicks(name: &Path, bytes: &[u8], n_rows: usize) -> Result<Triplets> {
    read(Input::from_bytes(name, bytes, WANT)?, n_rows)
}

fn read(input: Input<'_>, n_rows: usize) -> Result<Triplets> {
    let path = input.path().to_owned();
    let mut places = HashMap::new();
    let mut counted: Vec<((u32, u32, u32), u64)> = Vec::new();
    each_record(input, |_, fields| {
        let (rows, count) = match *fields {
            [query, clicked, skipped] => (parse_rows(query, clicked, skipped, n_rows)?, 1),
            [query, clicked, skipped, count] => (
                parse_rows(query, clicked, skipped, n_rows)?,
                parse_u64(count).filter(|&n| n > 0).ok_or_else(|| {
                    format!("count {}, expected a whole number above 0", quote(count))
                })?,
            ),
            _ => return Err(wrong_count(fields.len(), "`query clicked skipped [count]`")),
        };
        let place = *places.entry(rows).or_insert(counted.len());
        match counted.get_mut(place) {
            Some((_, total)) => *total = total.saturating_add(count),
            None => counted.push((rows, count)),
        }
        Ok(())
    })?;
    if counted.is_empty() {
        return Err(Error::File {
            path,
            reason: "has no clicks, only blank lines and comments".to_owned(),
        });
    }
    let mut triplets = Triplets::new();
    for ((query, clicked, skipped), count) in counted {
        triplets.push_weighted(query, clicked, skipped, count as f64);
    }
    Ok(triplets)
}
