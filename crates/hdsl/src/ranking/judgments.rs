//! Which documents answer which queries, and how well.

use crate::data::input::{Input, quote};
use crate::data::number::parse_f64;
use crate::error::{Error, Parsed, Result};
use crate::sort::sort_by_key;
use std::collections::HashMap;
use std::path::Path;

const WANT: &str = "lines `query document grade` or `query 0 document grade`";

/// How judgments name queries or documents.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Ids {
    /// By row number, counted from 0, of so many rows.
    Rows(usize),
    /// By position, counted from 1, of so many.
    Positions(usize),
    /// By name.
    Names(HashMap<String, u32>),
}

impl Ids {
    /// The names of rows, in their order.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Names(names.into_iter().map(str::to_owned).zip(0..).collect())
    }

    fn find(&self, id: &[u8]) -> Option<u32> {
        let text = std::str::from_utf8(id).ok()?;
        let within = |row: u32, n: usize| ((row as usize) < n).then_some(row);
        match self {
            Self::Rows(n) => within(text.parse().ok()?, *n),
            Self::Positions(n) => within(text.parse::<u32>().ok()?.checked_sub(1)?, *n),
            Self::Names(names) => names.get(text).copied(),
        }
    }

    fn parse(&self, what: &str, id: &[u8]) -> Parsed<u32> {
        self.find(id).ok_or_else(|| {
            let wanted = match self {
                Self::Rows(n) => format!("a row from 0 to {}", n.saturating_sub(1)),
                Self::Positions(n) => format!("a position from 1 to {n}"),
                Self::Names(names) => format!("the id of one of the {} there are", names.len()),
            };
            format!("{what} {} is unknown, expected {wanted}", quote(id))
        })
    }

    fn len(&self) -> usize {
        match self {
            Self::Rows(n) | Self::Positions(n) => *n,
            Self::Names(names) => names.len(),
        }
    }
}

/// What the judgments say about one query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// Judged documents with their gains, by increasing document. A gain of 0 is a wrong answer.
    pub gains: Vec<(u32, f64)>,
    /// Documents that are in no ranking for this query, by increasing number.
    pub left_out: Vec<u32>,
}

impl Judged {
    /// The gain of a document; none if it was not judged.
    pub fn gain(&self, document: u32) -> Option<f64> {
        let at = self
            .gains
            .binary_search_by_key(&document, |judged| judged.0);
        at.ok().map(|at| self.gains[at].1)
    }

    /// Whether a document is in no ranking for this query.
    pub fn is_left_out(&self, document: u32) -> bool {
        self.left_out.binary_search(&document).is_ok()
    }

    /// Documents of a gain above 0, with their gains.
    pub fn answers(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.gains.iter().copied().filter(|judged| judged.1 > 0.0)
    }
}

/// The judgments of a test collection, by query.
///
/// A document of a grade below 0 is in no ranking for that query. The gain of others is their grade, or, where lower grades
/// are better, the highest grade of all plus 1 minus their own. A document that no judgment names is a wrong answer.
///
/// ```
/// use hdsl::ranking::{Ids, Judgments};
/// let read = |text: &str, low| {
///     Judgments::parse("qrels".as_ref(), text.as_bytes(), &Ids::Rows(2), &Ids::named(["a", "b", "c"]), low)
/// };
/// // The four fields of TREC, whose second is not used.
/// let judgments = read("0 0 a 2\n0 0 c 0\n1 0 b 1\n", false)?;
/// assert_eq!(judgments.of(0).gains, [(0, 2.0), (2, 0.0)]);
/// // Three fields, and 1 is the best grade.
/// let judgments = read("0 a 1\n0 b 4\n0 c -1\n", true)?;
/// assert_eq!(judgments.of(0).gains, [(0, 4.0), (1, 1.0)]);
/// assert_eq!(judgments.of(0).left_out, [2]);
/// assert_eq!(judgments.queries(), [0]); // nothing answers query 1
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Judgments {
    by_query: Vec<Judged>,
}

impl Judgments {
    /// Reads lines `query document grade` or `query 0 document grade`; text after `#` and a header `query-id ...` are
    /// ignored.
    pub fn read(
        path: &Path,
        queries: &Ids,
        documents: &Ids,
        lower_is_better: bool,
    ) -> Result<Self> {
        read(
            Input::open(path, WANT)?,
            queries,
            documents,
            lower_is_better,
        )
    }

    /// Reads judgments from memory. `name` stands for a path in errors.
    pub fn parse(
        name: &Path,
        bytes: &[u8],
        queries: &Ids,
        documents: &Ids,
        lower_is_better: bool,
    ) -> Result<Self> {
        read(
            Input::new(name, bytes, WANT)?,
            queries,
            documents,
            lower_is_better,
        )
    }

    /// How many queries there are, judged or not.
    pub fn n_queries(&self) -> usize {
        self.by_query.len()
    }

    /// What is known about a query.
    ///
    /// # Panics
    /// If there are not so many queries.
    pub fn of(&self, query: u32) -> &Judged {
        &self.by_query[query as usize]
    }

    /// The queries that some document answers, by increasing number.
    pub fn queries(&self) -> Vec<u32> {
        let numbered = (0..).zip(&self.by_query);
        numbered
            .filter(|(_, judged)| judged.answers().next().is_some())
            .map(|(query, _)| query)
            .collect()
    }
}

fn read(input: Input<'_>, queries: &Ids, documents: &Ids, low: bool) -> Result<Judgments> {
    let path = input.path().to_owned();
    // Grade and line, by query and document.
    let mut grades: Vec<HashMap<u32, (f64, u64)>> = vec![HashMap::new(); queries.len()];
    input.each_line(|number, line| {
        let line = memchr::memchr(b'#', line).map_or(line, |at| &line[..at]);
        let blank = |b: &u8| b.is_ascii_whitespace() || *b == b',';
        let fields: Vec<&[u8]> = line.split(blank).filter(|f| !f.is_empty()).collect();
        let [query, document, grade] = match *fields {
            [] => return Ok(()),
            [b"query-id", ..] if number == 1 => return Ok(()),
            [query, document, grade] => [query, document, grade],
            [query, _, document, grade] => [query, document, grade],
            _ => return Err(format!("{} fields, expected {WANT}", fields.len())),
        };
        let row = queries.parse("query", query)?;
        let column = documents.parse("document", document)?;
        let value = parse_f64(grade)
            .filter(|grade| grade.is_finite())
            .ok_or_else(|| format!("grade {}, expected a finite number", quote(grade)))?;
        match grades[row as usize].insert(column, (value, number)) {
            Some((before, line)) if before != value => Err(format!(
                "document {} has grade {value} for query {}, but grade {before} on line {line}",
                quote(document),
                quote(query)
            )),
            _ => Ok(()),
        }
    })?;
    let highest = grades.iter().flat_map(HashMap::values).map(|g| g.0);
    let highest = highest.fold(0.0, f64::max);
    let gain = |grade: f64| if low { highest + 1.0 - grade } else { grade };
    let judged = |grades: HashMap<u32, (f64, u64)>| {
        let mut judged = Judged::default();
        let mut grades: Vec<(u32, f64)> = grades.into_iter().map(|(d, g)| (d, g.0)).collect();
        sort_by_key(&mut grades, |g| g.0);
        for (document, grade) in grades {
            match grade < 0.0 {
                true => judged.left_out.push(document),
                false => judged.gains.push((document, gain(grade))),
            }
        }
        judged
    };
    let judgments = Judgments {
        by_query: grades.into_iter().map(judged).collect(),
    };
    match judgments.queries().is_empty() {
        true => Err(Error::file(&path, "has no query with an answer")),
        false => Ok(judgments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_judgments_are_named_by_line_and_value() {
        let error = |text: &str| {
            let documents = Ids::named(["a", "b"]);
            let read = Judgments::parse(
                "q".as_ref(),
                text.as_bytes(),
                &Ids::Positions(3),
                &documents,
                false,
            );
            read.unwrap_err().to_string()
        };
        assert_eq!(
            error("1 a 1\n4 a 1"),
            "q:2: query `4` is unknown, expected a position from 1 to 3"
        );
        assert_eq!(
            error("0 a 1"),
            "q:1: query `0` is unknown, expected a position from 1 to 3"
        );
        assert_eq!(
            error("1 c 1"),
            "q:1: document `c` is unknown, expected the id of one of the 2 there are"
        );
        assert_eq!(error("1 a x"), "q:1: grade `x`, expected a finite number");
        assert_eq!(
            error("1 a nan"),
            "q:1: grade `nan`, expected a finite number"
        );
        assert_eq!(
            error("1 a"),
            "q:1: 2 fields, expected lines `query document grade` or `query 0 document grade`"
        );
        assert_eq!(
            error("# c\n1 a 1\n1 a 2"),
            "q:3: document `a` has grade 2 for query `1`, but grade 1 on line 2"
        );
        assert_eq!(error("1 a 0\n2 b -1"), "q: has no query with an answer");
    }

    #[test]
    fn a_header_is_skipped_and_repeated_lines_are_one() {
        let text = "query-id\tcorpus-id\tscore\n2\ta\t1\n2\ta\t1\n";
        let documents = Ids::named(["a"]);
        let read = Judgments::parse(
            "q".as_ref(),
            text.as_bytes(),
            &Ids::Positions(2),
            &documents,
            false,
        );
        let judgments = read.unwrap();
        assert_eq!(
            (judgments.queries(), judgments.of(1).gain(0)),
            (vec![1], Some(1.0))
        );
        assert_eq!(judgments.of(0).gain(0), None);
    }
}
