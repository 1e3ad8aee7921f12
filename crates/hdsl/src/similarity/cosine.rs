//! Normalization of a similarity: dot or cosine.

use crate::data::{Preprocess, Preprocessor, Rows, SparseRow};
use crate::error::Result;
use crate::named::named_enum;
use crate::similarity::{BilinearModel, Explanation, Similarity};
use std::borrow::Cow;

named_enum! {
/// Whether scores are divided by the lengths of the rows: `dot` (no) or `cosine` (S(x, z) / √(S(x, x) S(z, z)), see
/// [`Normalized`](super::Normalized)).
pub enum Normalization as "normalization" = "dot" | "cosine", default Dot {
    /// S(x, z).
    Dot,
    /// S(x, z) / √(S(x, x) S(z, z)).
    Cosine,
}
}

impl Normalization {
    /// A similarity with this normalization.
    ///
    /// ```
    /// use hdsl::{Dot, Normalization, Similarity, SparseRow};
    /// let (a, b) = (SparseRow::new(&[0, 1], &[3.0, 4.0]), SparseRow::new(&[0], &[2.0]));
    /// assert_eq!(Normalization::Dot.of(&Dot).score(a, b), 6.0);
    /// assert_eq!(Normalization::Cosine.of(&Dot).score(a, b), 0.6);
    /// ```
    pub fn of<S: Similarity + ?Sized>(self, similarity: &S) -> Normalized<'_, S> {
        Normalized {
            normalization: self,
            similarity,
        }
    }

    /// Mapped rows, each divided by its length if this is `cosine`.
    pub(crate) fn apply(self, mapped: Cow<'_, Rows>) -> Cow<'_, Rows> {
        match self {
            Self::Dot => mapped,
            Self::Cosine => {
                let unit = Preprocessor::fit(Preprocess::Unit, &*mapped);
                Cow::Owned(unit.apply_in_place(mapped.into_owned()))
            }
        }
    }
}

/// A similarity with a [`Normalization`]; [`Normalization::of`] makes it.
///
/// Under `cosine` each mapped row is divided by its length, and 0 stays 0. Where queries and items are mapped alike, as
/// for the dot product and the learned similarity, the length of a mapped row is √S(x, x), hence the score is
/// S(x, z) / √(S(x, x) S(z, z)), or 0 if either is 0. Where they differ, as for OASIS, S(x, x) may be below 0 and has no
/// root; then it is the cosine between the query and the item, each mapped its own way.
///
/// ```
/// use hdsl::{Atom, BilinearModel, Normalization, Similarity, SparseRow};
/// let model = BilinearModel::new(3, 5.0, vec![(Atom::plus(0, 2)?, 0.5), (Atom::minus(0, 1)?, 0.5)])?;
/// let (a, b) = (SparseRow::new(&[0], &[2.0]), SparseRow::new(&[2], &[7.0]));
/// let expected = model.score(a, b) / (model.score(a, a) * model.score(b, b)).sqrt();
/// let cosine = Normalization::Cosine.of(&model);
/// assert!((cosine.score(a, b) - expected).abs() < 1e-12);
/// assert_eq!(cosine.score(a, SparseRow::new(&[], &[])), 0.0);
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Debug)]
pub struct Normalized<'a, S: ?Sized> {
    normalization: Normalization,
    similarity: &'a S,
}

impl Normalized<'_, BilinearModel> {
    /// The scores of many pairs of rows, see [`BilinearModel::score_many`].
    ///
    /// ```
    /// use hdsl::{Atom, BilinearModel, Normalization, Rows};
    /// let model = BilinearModel::new(2, 3.0, vec![(Atom::plus(0, 1)?, 1.0)])?.with_base(1.0)?;
    /// let rows = Rows::from_parts(2, vec![0, 1, 2, 2], vec![0, 1], vec![5.0, 7.0])?;
    /// let scores = Normalization::Cosine.of(&model).score_many(&rows, &rows, &[(0, 1), (1, 1), (1, 2)])?;
    /// assert_eq!(scores, [0.75, 1.0, 0.0]); // 3 / √(1 + 3)², whatever the lengths of the rows; row 2 is empty
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn score_many(&self, a: &Rows, b: &Rows, pairs: &[(u32, u32)]) -> Result<Vec<f64>> {
        let mut scores = self.similarity.score_many(a, b, pairs)?;
        if self.normalization == Normalization::Cosine {
            let (a, b) = (self.lengths(a)?, self.lengths(b)?);
            for (score, &(p, q)) in scores.iter_mut().zip(pairs) {
                *score = quotient(*score, a[p as usize] * b[q as usize]);
            }
        }
        Ok(scores)
    }

    /// √S(x, x) of all rows.
    fn lengths(&self, rows: &Rows) -> Result<Vec<f64>> {
        let diagonal: Vec<(u32, u32)> = (0..rows.n_rows() as u32).map(|row| (row, row)).collect();
        let mut lengths = self.similarity.score_many(rows, rows, &diagonal)?;
        lengths.iter_mut().for_each(|score| *score = score.sqrt());
        Ok(lengths)
    }

    /// The contributions to the score of two rows, see [`BilinearModel::explain_pair`]. Under `cosine` every contribution
    /// is divided by √(S(a, a) S(b, b)), so that they add up to the cosine.
    pub fn explain_pair(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> Explanation {
        let mut explanation = self.similarity.explain_pair(a, b);
        if self.normalization == Normalization::Cosine {
            let length = |row| self.similarity.score(row, row).sqrt();
            explanation.divide_by(length(a) * length(b), quotient);
        }
        explanation
    }
}

/// A score over the lengths of its rows; 0 if a length is 0.
fn quotient(score: f64, lengths: f64) -> f64 {
    if lengths > 0.0 { score / lengths } else { 0.0 }
}

impl<S: Similarity + ?Sized> Similarity for Normalized<'_, S> {
    fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        match self.normalization {
            Normalization::Dot => self.similarity.score(a, b),
            Normalization::Cosine => {
                let (a, b) = (single(a), single(b));
                self.queries(&a).row(0).dot(self.items(&b).row(0))
            }
        }
    }

    fn queries<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        self.normalization.apply(self.similarity.queries(rows))
    }

    fn items<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        self.normalization.apply(self.similarity.items(rows))
    }
}

/// A matrix of one row.
fn single(row: SparseRow<'_>) -> Rows {
    let mut rows = Rows::new(row.indices().last().map_or(0, |&last| last as usize + 1));
    rows.push(row);
    rows
}
