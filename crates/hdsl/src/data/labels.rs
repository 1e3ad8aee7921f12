//! Class labels: any words, stored as small codes beside the list of distinct names.

use super::interner::Interner;
use crate::error::{Error, Result};
use crate::sort::sort_by;

/// One class label per row. Names are in a fixed order (numbers by value, then words by letters), so that codes do
/// not depend on which class happens to come first in a file.
///
/// ```
/// use hdsl::Labels;
/// let labels = Labels::from_names(["10", "+2", "10"]);
/// assert_eq!(labels.names(), ["2", "10"]);
/// assert_eq!(labels.codes(), [1, 0, 1]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    names: Vec<String>,
    codes: Vec<u32>,
}

impl Labels {
    /// Labels by name, one per row. `+1`, `1` and `1.0` are the same class.
    pub fn from_names<S: AsRef<str>>(labels: impl IntoIterator<Item = S>) -> Self {
        let mut distinct = Interner::default();
        let number = |label: S| distinct.intern(label.as_ref());
        let codes = labels.into_iter().map(number).collect();
        Self::from_numbers(codes, &distinct)
    }

    fn from_numbers(codes: Vec<u32>, distinct: &Interner) -> Self {
        let spellings: Vec<String> = distinct.iter().map(canonical).collect();
        let by_name = |a: &String, b: &String| order(a).total_cmp(&order(b)).then_with(|| a.cmp(b));
        let mut names = spellings.clone();
        sort_by(&mut names, by_name);
        names.dedup();
        let code = |name| names.partition_point(|other| by_name(other, name).is_lt()) as u32;
        let code_of: Vec<u32> = spellings.iter().map(code).collect();
        let codes = codes.iter().map(|&number| code_of[number as usize]);
        Self {
            codes: codes.collect(),
            names,
        }
    }

    /// Labels by code, each an index into `names`.
    pub fn from_codes(names: Vec<String>, codes: Vec<u32>) -> Result<Self> {
        let n = names.len();
        if let Some(code) = codes.iter().find(|&&code| code as usize >= n) {
            return Err(Error::data(format!(
                "label code {code}, but there are {n} names"
            )));
        }
        Ok(Self { names, codes })
    }

    /// The distinct classes.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// One class per row, an index into [`Labels::names`].
    pub fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// The class name of one row.
    pub fn name(&self, row: usize) -> &str {
        &self.names[self.codes[row] as usize]
    }

    /// How many rows are labeled.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there is no row at all.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// How many rows each class has.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.names.len()];
        for &code in &self.codes {
            counts[code as usize] += 1;
        }
        counts
    }

    /// The labels of some rows, in the order asked for; the list of names stays as it is.
    pub fn select(&self, which: &[u32]) -> Self {
        Self {
            names: self.names.clone(),
            codes: which.iter().map(|&r| self.codes[r as usize]).collect(),
        }
    }

    /// Adds other labels behind these, matched by name; new names come after those there are.
    ///
    /// ```
    /// use hdsl::Labels;
    /// let mut labels = Labels::from_names(["a", "b"]);
    /// labels.append(&Labels::from_names(["c", "b"]));
    /// assert_eq!((labels.name(2), labels.codes()), ("c", &[0, 1, 2, 1][..]));
    /// ```
    pub fn append(&mut self, others: &Labels) {
        let mut codes = Vec::with_capacity(others.names.len());
        for name in &others.names {
            let known = self.names.iter().position(|mine| mine == name);
            codes.push(known.unwrap_or_else(|| {
                self.names.push(name.clone());
                self.names.len() - 1
            }) as u32);
        }
        self.codes
            .extend(others.codes.iter().map(|&code| codes[code as usize]));
    }
}

/// `+1`, `1` and `1.0` become `1`; words stay.
fn canonical(label: &str) -> String {
    match label.parse::<f64>() {
        Ok(number) if number.is_finite() && number.fract() == 0.0 && number.abs() < 1e15 => {
            format!("{}", number as i64)
        }
        _ => label.to_owned(),
    }
}

/// Numbers come in the order of their values, before words.
fn order(name: &str) -> f64 {
    let number = name.parse().ok().filter(|number: &f64| number.is_finite());
    number.unwrap_or(f64::INFINITY)
}
