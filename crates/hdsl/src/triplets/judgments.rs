//! Triplets from graded judgments: of two documents judged for a query, the better one is more similar to it.

use crate::data::input::{Input, quote};
use crate::data::number::parse_f64;
use crate::error::{Error, Result};
use crate::triplets::Triplets;
use crate::triplets::list::{each_record, parse_row, wrong_count};
use std::collections::HashMap;
use std::path::Path;

const WANT: &str = "lines of `query document grade`";

/// Which grades are good ones. Collections disagree, and no file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GradeOrder {
    /// 3 beats 1.
    HigherIsBetter,
    /// 1 beats 3.
    LowerIsBetter,
}

/// A document and its grade.
struct Judged {
    document: u32,
    grade: f64,
}

/// Reads lines of `query document grade`; every pair of documents with different grades for one query becomes a
/// triplet (query, better, worse) of weight 1.
///
/// Row numbers count from 0 into one set of rows that holds queries and documents; grades are any finite numbers.
/// A document may be judged twice for a query only with the same grade. The number of triplets grows with the
/// square of the documents judged for a query. Fields, comments and compression are as in
/// [`read_triplets`](crate::triplets::read_triplets).
pub fn read_judgments(path: &Path, n_rows: usize, order: GradeOrder) -> Result<Triplets> {
    read(Input::open(path, WANT)?, n_rows, order)
}

/// [`read_judgments`] from memory; `name` serves for messages.
///
/// ```
/// use hdsl::triplets::{GradeOrder, parse_judgments};
/// let lines = b"0 2 1\n0 3 4\n0 4 1\n1 2 3\n";
/// let triplets = parse_judgments("inline".as_ref(), lines, 5, GradeOrder::LowerIsBetter)?;
/// let all: Vec<_> = (0..triplets.len()).map(|t| triplets.get(t)).collect();
/// assert_eq!(all, [(0, 2, 3), (0, 4, 3)]); // 2 and 4 tie; query 1 has one document only
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn parse_judgments(
    name: &Path,
    bytes: &[u8],
    n_rows: usize,
    order: GradeOrder,
) -> Result<Triplets> {
    read(Input::from_bytes(name, bytes, WANT)?, n_rows, order)
}

fn read(input: Input<'_>, n_rows: usize, order: GradeOrder) -> Result<Triplets> {
    let path = input.path().to_owned();
    let mut queries: Vec<(u32, Vec<Judged>)> = Vec::new();
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut seen: HashMap<(u32, u32), (f64, u64)> = HashMap::new();
    each_record(input, |line, fields| {
        let [query, document, grade] = *fields else {
            return Err(wrong_count(fields.len(), "`query document grade`"));
        };
        let (query, document) = (parse_row(query, n_rows)?, parse_row(document, n_rows)?);
        let grade = match parse_f64(grade) {
            Some(number) if number.is_finite() => number,
            _ => return Err(format!("grade {}, expected a finite number", quote(grade))),
        };
        match seen.get(&(query, document)) {
            Some(&(before, _)) if before == grade => return Ok(()),
            Some((before, first)) => {
                return Err(format!(
                    "document {document} has grade {grade} for query {query}, \
                     but grade {before} on line {first}"
                ));
            }
            None => seen.insert((query, document), (grade, line)),
        };
        let place = *places.entry(query).or_insert_with(|| {
            queries.push((query, Vec::new()));
            queries.len() - 1
        });
        queries[place].1.push(Judged { document, grade });
        Ok(())
    })?;
    let mut triplets = Triplets::new();
    for (query, judged) in queries {
        for (at, a) in judged.iter().enumerate() {
            for b in &judged[at + 1..] {
                if a.grade == b.grade {
                    continue;
                }
                let (better, worse) = match order {
                    GradeOrder::HigherIsBetter if a.grade > b.grade => (a, b),
                    GradeOrder::LowerIsBetter if a.grade < b.grade => (a, b),
                    _ => (b, a),
                };
                triplets.push(query, better.document, worse.document);
            }
        }
    }
    if triplets.is_empty() {
        return Err(Error::File {
            path,
            reason: "has no query with two documents of different grades".to_owned(),
        });
    }
    Ok(triplets)
}
