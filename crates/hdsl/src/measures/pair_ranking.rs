//! How well a similarity separates similar from dissimilar pairs.

use crate::data::Rows;
use crate::parallel;
use crate::similarity::Similarity;
use crate::triplets::Pairs;

/// The area under the ROC curve of the scores of pairs of preprocessed rows: the probability that a similar pair has a
/// higher score than a dissimilar one, where a tie counts one half. `None` unless there are pairs of both kinds.
///
/// ```
/// use hdsl::measures::pair_auc;
/// use hdsl::triplets::Pairs;
/// use hdsl::{Dot, Rows};
/// let rows = Rows::from_parts(2, vec![0, 1, 2, 3], vec![0, 0, 1], vec![1.0; 3])?;
/// let pairs = Pairs::parse("inline".as_ref(), b"0 1 1\n0 2 -1\n1 2 1\n", 3)?;
/// assert_eq!(pair_auc(&Dot, &rows, &pairs), Some(0.75)); // 1 > 0, and 0 = 0
/// # Ok::<(), hdsl::Error>(())
/// ```
///
/// # Panics
/// If a pair names a row that does not exist.
pub fn pair_auc<S: Similarity + ?Sized>(similarity: &S, rows: &Rows, pairs: &Pairs) -> Option<f64> {
    let score = |p: usize| {
        let pair = &pairs.pairs()[p];
        let [first, second] = [pair.rows.0, pair.rows.1].map(|row| rows.row(row as usize));
        (similarity.score(first, second), pair.similar, pair.weight)
    };
    let mut scored: Vec<(f64, bool, f64)> = parallel::map_blocks(pairs.pairs().len(), 256, score);
    scored.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Dissimilar pairs of lower scores, and twice the pairs of pairs in the right order.
    let (mut below, mut right, mut similar_total) = (0.0, 0.0, 0.0);
    for equal in scored.chunk_by(|a, b| a.0 == b.0) {
        let weight_of = |kind: bool| -> f64 {
            let of_kind = equal.iter().filter(|pair| pair.1 == kind);
            of_kind.map(|pair| pair.2).sum()
        };
        let (similar, dissimilar) = (weight_of(true), weight_of(false));
        right += similar * (2.0 * below + dissimilar);
        below += dissimilar;
        similar_total += similar;
    }
    let total = similar_total * below;
    (total > 0.0).then(|| right / (2.0 * total))
}
