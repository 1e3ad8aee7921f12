//! Similarities of two rows: dot product, cosine, the learned bilinear form, its explanation and orthogonal version.

mod bilinear;
mod cosine;
mod explain;
mod factors;
mod lanczos;
mod reduced;

pub use bilinear::BilinearModel;
pub use cosine::{Normalization, Normalized};
pub use explain::{
    AtomContribution, BaseContribution, Explanation, FeatureWeight, PairContribution, PairWeight,
};
pub use reduced::ReducedTransform;

use crate::data::{Rows, SparseRow};
use std::borrow::Cow;

/// Something that says how similar two rows are, as the dot product of two maps.
///
/// The law: `score(a, b)` equals, up to rounding, the dot product of `a` mapped by [`queries`](Self::queries) and
/// `b` mapped by [`items`](Self::items). This is what lets one exact k-NN by inverted index serve every similarity,
/// the asymmetric ones included. Both maps keep the number and the order of rows.
///
/// ```
/// use hdsl::{Atom, BilinearModel, Rows, Similarity};
/// fn lawful(similarity: &impl Similarity, rows: &Rows) -> bool {
///     let (a, b) = (similarity.queries(rows), similarity.items(rows));
///     (similarity.score(rows.row(0), rows.row(1)) - a.row(0).dot(b.row(1))).abs() < 1e-12
/// }
/// let rows = Rows::from_parts(2, vec![0, 1, 3], vec![1, 0, 1], vec![1.0, 2.0, 0.5])?;
/// assert!(lawful(&hdsl::Dot, &rows));
/// assert!(lawful(&BilinearModel::new(2, 3.0, vec![(Atom::minus(0, 1)?, 1.0)])?, &rows));
/// # Ok::<(), hdsl::Error>(())
/// ```
pub trait Similarity: Sync {
    /// How similar `b` is to `a`: the larger, the more alike.
    fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64;

    /// The rows that ask (on the left of the score), mapped.
    fn queries<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows>;

    /// The rows that are ranked (on the right of the score), mapped: as the queries, unless the similarity is asymmetric.
    fn items<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        self.queries(rows)
    }
}

/// The plain dot product: both maps change nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dot;

impl Similarity for Dot {
    fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        a.dot(b)
    }

    fn queries<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        Cow::Borrowed(rows)
    }
}
