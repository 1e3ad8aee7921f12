//! Graded judgments of rows: which documents answer which queries, and how well.

use super::Triplets;
use super::file::{TripletFormat, each_record, parse_row, wrong_count};
use crate::data::input::{Input, quote, reading_limit};
use crate::data::number::parse_f64;
use crate::error::{Error, Result};
use crate::format::thousands;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// Bytes of a triplet, and of the lists that sort triplets by anchor.
const TRIPLET_BYTES: u64 = 40;

/// What judgments say about one query.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JudgedQuery {
    /// The row of the query.
    pub query: u32,
    /// The rows of its documents with their grades, in the order of the file.
    pub grades: Vec<(u32, f64)>,
}

/// Lines `query document grade`, by query. Queries and documents are rows of the same data.
///
/// ```
/// use hdsl::triplets::{Judgments, TripletFormat};
/// let read = |text: &str, format| Judgments::parse("inline".as_ref(), text.as_bytes(), format, 5);
/// let judgments = read("0 2 1\n0 3 4\n0 4 -1\n", TripletFormat::Judgments)?;
/// let triplets: Vec<_> = judgments.triplets().iter().collect();
/// assert_eq!(triplets, [(0, 3, 2), (0, 2, 4), (0, 3, 4)]);
/// assert_eq!(judgments.gains(&judgments.queries()[0]), [(2, 1.0), (3, 4.0), (4, 0.0)]);
/// // Where lower grades are better, the gain is the highest grade plus 1 minus the grade.
/// let low = read("0 2 1\n0 3 4\n", TripletFormat::JudgmentsLow)?;
/// assert_eq!(low.gains(&low.queries()[0]), [(2, 4.0), (3, 1.0)]);
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Judgments {
    queries: Vec<JudgedQuery>,
    lower_is_better: bool,
    /// The highest grade of all, or 0.
    highest: f64,
}

impl Judgments {
    /// Reads judgments of the rows below `n_rows`; the format is one of the two of judgments.
    pub fn read(path: &Path, format: TripletFormat, n_rows: usize) -> Result<Self> {
        Self::of(Input::open(path, &format.expected())?, format, n_rows)
    }

    /// [`Judgments::read`] from memory; messages call the file `name`.
    pub fn parse(name: &Path, bytes: &[u8], format: TripletFormat, n_rows: usize) -> Result<Self> {
        Self::of(Input::new(name, bytes, &format.expected())?, format, n_rows)
    }

    pub(super) fn of(input: Input<'_>, format: TripletFormat, n_rows: usize) -> Result<Self> {
        let lower_is_better = match format {
            TripletFormat::Judgments => false,
            TripletFormat::JudgmentsLow => true,
            other => return Err(Error::param("format", other, "judgments or judgments-low")),
        };
        let path = input.path().to_owned();
        let mut queries: Vec<JudgedQuery> = Vec::new();
        // The place of each query, and the line of each of its documents.
        let mut places: HashMap<u32, usize> = HashMap::new();
        let mut lines: HashMap<(u32, u32), (u64, f64)> = HashMap::new();
        each_record(input, |line, fields| {
            let [query, document, grade] = *fields else {
                return Err(wrong_count(fields.len(), format));
            };
            let (query, document) = (parse_row(query, n_rows)?, parse_row(document, n_rows)?);
            let grade = parse_f64(grade)
                .filter(|number| number.is_finite())
                .ok_or_else(|| format!("grade {}, expected a finite number", quote(grade)))?;
            match lines.get(&(query, document)) {
                Some((first, before)) if *before != grade => {
                    return Err(format!(
                        "document {document} has grade {grade} for query {query}, \
                         but grade {before} on line {first}",
                    ));
                }
                Some(_) => return Ok(()),
                None => lines.insert((query, document), (line, grade)),
            };
            let place = *places.entry(query).or_insert(queries.len());
            if place == queries.len() {
                queries.push(JudgedQuery {
                    query,
                    grades: Vec::new(),
                });
            }
            queries[place].grades.push((document, grade));
            Ok(())
        })?;
        let grades = queries.iter().flat_map(|query| &query.grades);
        let highest = grades.map(|judged| judged.1).fold(0.0, f64::max);
        let judgments = Self {
            queries,
            lower_is_better,
            highest,
        };
        judgments.check_pairs(&path)?;
        Ok(judgments)
    }

    /// The queries, in the order of the file.
    pub fn queries(&self) -> &[JudgedQuery] {
        &self.queries
    }

    /// Every row that is a document of some query, by increasing number.
    pub fn documents(&self) -> Vec<u32> {
        let grades = self.queries.iter().flat_map(|query| &query.grades);
        let documents: BTreeSet<u32> = grades.map(|judged| judged.0).collect();
        documents.into_iter().collect()
    }

    /// The documents of a query with their gains. The gain is the grade, and 0 for grades below 0; where lower grades are
    /// better, it is the highest grade of all plus 1 minus the grade.
    pub fn gains(&self, query: &JudgedQuery) -> Vec<(u32, f64)> {
        let gain = |grade: f64| match self.lower_is_better {
            true => self.highest + 1.0 - grade,
            false => grade.max(0.0),
        };
        let grades = query.grades.iter();
        grades.map(|&(row, grade)| (row, gain(grade))).collect()
    }

    /// The number of pairs of documents with different grades for one query.
    fn n_pairs(&self) -> u64 {
        let pairs = |n: usize| n as u64 * (n as u64).saturating_sub(1) / 2;
        let of_query = |query: &JudgedQuery| {
            let mut grades: Vec<f64> = query.grades.iter().map(|judged| judged.1).collect();
            grades.sort_by(f64::total_cmp);
            let equal = grades.chunk_by(|a, b| a == b).map(|same| pairs(same.len()));
            pairs(grades.len()) - equal.sum::<u64>()
        };
        self.queries.iter().map(of_query).sum()
    }

    /// Refuses judgments whose triplets would be too many: they grow with the square of the documents of a query.
    fn check_pairs(&self, path: &Path) -> Result<()> {
        let n = self.n_pairs();
        let most = (reading_limit() / TRIPLET_BYTES).min(u64::from(u32::MAX));
        match n > most {
            true => Err(Error::file(
                path,
                format!(
                    "has {} pairs of documents with different grades, expected at most {} triplets within the limit on \
                     memory; judge fewer documents per query",
                    thousands(n as usize),
                    thousands(most as usize)
                ),
            )),
            false => Ok(()),
        }
    }

    /// Every pair of documents with different grades for one query, as a triplet (query, better, worse).
    pub fn triplets(&self) -> Triplets {
        let mut triplets = Triplets::new();
        for JudgedQuery { query, grades } in &self.queries {
            for (at, a) in grades.iter().enumerate() {
                for b in grades[at + 1..].iter().filter(|b| b.1 != a.1) {
                    let a_is_better = (a.1 > b.1) != self.lower_is_better;
                    let (better, worse) = if a_is_better { (a, b) } else { (b, a) };
                    triplets.push(*query, better.0, worse.0);
                }
            }
        }
        triplets
    }
}
