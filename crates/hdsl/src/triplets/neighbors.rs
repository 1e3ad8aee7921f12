//! Triplets from labels: each row's nearest of its own class against its nearest of the others (Sec. 4.1).

use super::neighbor_lists::NeighborLists;
use super::{Source, Triplets};
use crate::cancel::CancelToken;
use crate::data::{Labels, Rows};
use crate::error::{Error, Result};
use crate::knn::{self, Neighbor};
use crate::similarity::Similarity;

impl Triplets {
    /// For each row, its `targets` nearest rows of the same class x its `impostors` nearest rows of other classes.
    ///
    /// Nearness is by `similarity`, the plain [`Dot`](crate::Dot) product in the paper. A row is left out of its own
    /// neighbors by number. A class with too few rows gives as many targets as it has, so a row alone in its class
    /// is never an anchor.
    ///
    /// ```
    /// use hdsl::{Dot, Labels, Rows, Triplets};
    /// let rows = Rows::from_parts(2, vec![0, 1, 2, 3, 4], vec![0, 0, 0, 1], vec![1.0, 2.0, 3.0, 1.0])?;
    /// let labels = Labels::from_names(["a", "a", "b", "b"]);
    /// let triplets = Triplets::by_neighbors(&Dot, &rows, &labels, 1, 1)?;
    /// assert_eq!(triplets.get(0), (0, 1, 2));
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn by_neighbors<S: Similarity + ?Sized>(
        similarity: &S,
        rows: &Rows,
        labels: &Labels,
        targets: usize,
        impostors: usize,
    ) -> Result<Self> {
        Self::by_neighbors_until(
            similarity,
            rows,
            labels,
            (targets, impostors),
            CancelToken::NEVER,
        )
    }

    /// [`Triplets::by_neighbors`] unless somebody wants to stop first: [`Error::Stopped`] then.
    pub fn by_neighbors_until<S: Similarity + ?Sized>(
        similarity: &S,
        rows: &Rows,
        labels: &Labels,
        (targets, impostors): (usize, usize),
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        check_classes(rows, labels)?;
        for (name, asked) in [("targets", targets), ("impostors", impostors)] {
            if asked == 0 {
                return Err(Error::param(name, asked, "a whole number above 0"));
            }
            if asked >= rows.n_rows() {
                return Err(Error::data(format!(
                    "there are {} rows, too few for {asked} {name} a row",
                    rows.n_rows()
                )));
            }
        }
        let near =
            knn::class_neighbors_until(similarity, rows, labels, (targets, impostors), cancel)?;
        let numbers = |lists: &[Neighbor]| lists.iter().map(|n| n.row).collect::<Vec<_>>();
        let lists = NeighborLists::new(
            near.same.iter().map(numbers),
            near.other.iter().map(numbers),
        );
        Ok(Triplets {
            source: Source::Neighbors(lists),
        })
    }
}

/// Labels that can be learned from: one a row, at least two classes, one of them with at least two rows.
pub(super) fn check_classes(rows: &Rows, labels: &Labels) -> Result<()> {
    if labels.len() != rows.n_rows() {
        return Err(Error::data(format!(
            "there are {} labels for {} rows",
            labels.len(),
            rows.n_rows()
        )));
    }
    let counts = labels.counts();
    let classes = counts.iter().filter(|&&c| c > 0).count();
    if classes < 2 {
        return Err(Error::data(format!(
            "every row has the label {:?}, expected at least two classes",
            labels.names().first().map_or("", String::as_str)
        )));
    }
    if counts.iter().all(|&c| c < 2) {
        return Err(Error::data(
            "no two rows share a label, so no row can be nearer to its own class",
        ));
    }
    Ok(())
}
