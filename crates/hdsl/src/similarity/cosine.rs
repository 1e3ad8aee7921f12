//! Normalization of a similarity: dot or cosine.

use crate::data::{Preprocess, Preprocessor, Rows, SparseRow};
use crate::named::named_enum;
use crate::similarity::Similarity;
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

impl<S: ?Sized> Normalized<'_, S> {
    fn apply<'a>(&self, mapped: Cow<'a, Rows>) -> Cow<'a, Rows> {
        match self.normalization {
            Normalization::Dot => mapped,
            Normalization::Cosine => {
                Cow::Owned(Preprocessor::fit(Preprocess::Unit, &*mapped).apply(&*mapped))
            }
        }
    }
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
        self.apply(self.similarity.queries(rows))
    }

    fn items<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        self.apply(self.similarity.items(rows))
    }
}

/// A matrix of one row.
fn single(row: SparseRow<'_>) -> Rows {
    let mut rows = Rows::new(row.indices().last().map_or(0, |&last| last as usize + 1));
    rows.push(row);
    rows
}
