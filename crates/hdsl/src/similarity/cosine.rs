//! The cosine form of a similarity.

use crate::data::{Preprocess, Preprocessor, Rows, SparseRow};
use crate::named::named_enum;
use crate::similarity::Similarity;
use std::borrow::Cow;

named_enum! {
/// The form in which a similarity ranks: `dot` (as it is) or `cosine` (S(x, z) / √(S(x, x) S(z, z)), see
/// [`Cosine`](super::Cosine)).
#[derive(Default)]
pub enum Normalization as "normalization" {
    /// S(x, z).
    #[default]
    Dot = "dot",
    /// S(x, z) / √(S(x, x) S(z, z)).
    Cosine = "cosine",
}
}

impl Normalization {
    /// A similarity in this form.
    ///
    /// ```
    /// use hdsl::{Dot, Normalization, Similarity, SparseRow};
    /// let (a, b) = (SparseRow::new(&[0, 1], &[3.0, 4.0]), SparseRow::new(&[0], &[2.0]));
    /// assert_eq!(Normalization::Dot.of(&Dot).score(a, b), 6.0);
    /// assert_eq!(Normalization::Cosine.of(&Dot).score(a, b), 0.6);
    /// ```
    pub fn of<S: Similarity + ?Sized>(self, similarity: &S) -> Normalized<'_, S> {
        Normalized::new(self, similarity)
    }
}

/// A similarity between directions: each mapped row is divided by its length, and 0 stays 0.
///
/// Where both maps of a similarity are the same, as for the dot product and the learned form, the length of a mapped row
/// is √S(x, x), hence the score is S(x, z) / √(S(x, x) S(z, z)), or 0 if either is 0. Where they differ, as for
/// [OASIS](crate::baselines::OasisModel), S(x, x) may be below 0 and has no root; then it is the cosine between the query and
/// the item, each mapped its own way.
///
/// ```
/// use hdsl::{Atom, BilinearModel, Cosine, Similarity, SparseRow};
/// let model = BilinearModel::new(3, 5.0, vec![(Atom::plus(0, 2)?, 0.5), (Atom::minus(0, 1)?, 0.5)])?;
/// let (a, b) = (SparseRow::new(&[0], &[2.0]), SparseRow::new(&[2], &[7.0]));
/// let cosine = model.score(a, b) / (model.score(a, a) * model.score(b, b)).sqrt();
/// assert!((Cosine(&model).score(a, b) - cosine).abs() < 1e-12);
/// assert_eq!(Cosine(&model).score(a, SparseRow::new(&[], &[])), 0.0);
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Debug)]
pub struct Cosine<'a, S: ?Sized>(pub &'a S);

impl<S: ?Sized> Clone for Cosine<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: ?Sized> Copy for Cosine<'_, S> {}

impl<S: Similarity + ?Sized> Similarity for Cosine<'_, S> {
    fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        // By the maps, which know what makes a length; it costs an allocation or two.
        let (a, b) = (alone(a), alone(b));
        self.queries(&a).row(0).dot(self.items(&b).row(0))
    }

    fn queries<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        Cow::Owned(directions(&self.0.queries(rows)))
    }

    fn items<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        Cow::Owned(directions(&self.0.items(rows)))
    }
}

/// Rows divided by their lengths.
fn directions(rows: &Rows) -> Rows {
    Preprocessor::fit(Preprocess::Unit, rows).apply(rows)
}

fn alone(row: SparseRow<'_>) -> Rows {
    let mut rows = Rows::new(row.indices().last().map_or(0, |&last| last as usize + 1));
    rows.push(row);
    rows
}

/// A similarity in one of its [forms](Normalization), chosen while the program runs; [`Normalization::of`] makes it.
#[derive(Debug)]
pub struct Normalized<'a, S: ?Sized> {
    normalization: Normalization,
    similarity: &'a S,
}

impl<S: ?Sized> Clone for Normalized<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: ?Sized> Copy for Normalized<'_, S> {}

impl<'a, S: Similarity + ?Sized> Normalized<'a, S> {
    pub(super) fn new(normalization: Normalization, similarity: &'a S) -> Self {
        Self {
            normalization,
            similarity,
        }
    }
}

impl<S: Similarity + ?Sized> Similarity for Normalized<'_, S> {
    fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        match self.normalization {
            Normalization::Dot => self.similarity.score(a, b),
            Normalization::Cosine => Cosine(self.similarity).score(a, b),
        }
    }

    fn queries<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        match self.normalization {
            Normalization::Dot => self.similarity.queries(rows),
            Normalization::Cosine => Cosine(self.similarity).queries(rows),
        }
    }

    fn items<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        match self.normalization {
            Normalization::Dot => self.similarity.items(rows),
            Normalization::Cosine => Cosine(self.similarity).items(rows),
        }
    }
}
