//! Triplets from labels: each row's nearest of its own class against its nearest of the others (Sec. 4.1).

use super::{Mined, Triplets};
use crate::cancel::CancelToken;
use crate::data::{Groups, Labels, Rows};
use crate::error::{Error, Result};
use crate::knn::{self, Neighbor};
use crate::similarity::Similarity;
use serde::{Deserialize, Serialize};

impl Triplets {
    /// For each row, its `targets` nearest rows of the same class x its `impostors` nearest rows of other classes.
    ///
    /// `counts` are \[targets, impostors\]. Neighbors have the largest `similarity`, which is the [`Dot`](crate::Dot)
    /// product in the paper. A row is left out of its own neighbors by number. A class with too few rows gives as many
    /// targets as it has, so a row alone in its class is never an anchor.
    ///
    /// ```
    /// use hdsl::{CancelToken, Dot, Labels, Rows, Triplets};
    /// let rows = Rows::from_parts(2, vec![0, 1, 2, 3, 4], vec![0, 0, 0, 1], vec![1.0, 2.0, 3.0, 1.0])?;
    /// let labels = Labels::from_names(["a", "a", "b", "b"]);
    /// let triplets = Triplets::by_neighbors(&Dot, &rows, &labels, [1, 1], CancelToken::NEVER)?;
    /// assert_eq!(triplets.get(0), (0, 1, 2));
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn by_neighbors<S: Similarity + ?Sized>(
        similarity: &S,
        rows: &Rows,
        labels: &Labels,
        [targets, impostors]: [usize; 2],
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        check_classes(rows.n_rows(), labels)?;
        for (name, asked) in [("targets", targets), ("impostors", impostors)] {
            if asked == 0 {
                return Err(Error::param(name, asked, "a whole number above 0"));
            }
            if asked >= rows.n_rows() {
                return Err(Error::data(format!(
                    "there are {} rows, too few for {asked} {name} per row",
                    rows.n_rows()
                )));
            }
        }
        let found = knn::class_neighbors(similarity, rows, labels, [targets, impostors], cancel)?;
        let lists = NeighborLists {
            targets: rows_of(&found, 0),
            impostors: rows_of(&found, 1),
        };
        Ok(Self::from_lists(lists))
    }

    /// The triplets of these lists.
    pub(crate) fn from_lists(lists: NeighborLists) -> Self {
        let n_rows = lists.targets.starts().len() - 1;
        let counts: Vec<usize> = (0..n_rows).map(|row| lists.count_of(row)).collect();
        Self::mined(Mined::Neighbors(lists), n_rows, |row| counts[row])
    }
}

/// Triplets as lists of neighbors: the k-th triplet of an anchor is its target k / m and its impostor k % m, where it has
/// m impostors.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct NeighborLists {
    targets: Groups<u32>,
    impostors: Groups<u32>,
}

/// The row numbers of one of the lists of each row.
fn rows_of(lists: &[Vec<Vec<Neighbor>>], which: usize) -> Groups<u32> {
    let rows = (0u32..).zip(lists);
    let pairs = rows.flat_map(|(row, lists)| lists[which].iter().map(move |n| (row, n.row)));
    Groups::new(lists.len(), pairs)
}

impl NeighborLists {
    /// How many triplets a row is the anchor of.
    fn count_of(&self, row: usize) -> usize {
        self.targets.of(row).len() * self.impostors.of(row).len()
    }

    /// Different pairs (anchor, other): a target is never an impostor of the same anchor.
    pub(super) fn count_pairs(&self) -> usize {
        (0..self.targets.starts().len() - 1)
            .filter(|&row| self.count_of(row) > 0)
            .map(|row| self.targets.of(row).len() + self.impostors.of(row).len())
            .sum()
    }

    /// The k-th triplet of an anchor.
    #[inline]
    pub(super) fn nth(&self, anchor: usize, k: usize) -> (u32, u32) {
        let (targets, impostors) = (self.targets.of(anchor), self.impostors.of(anchor));
        (targets[k / impostors.len()], impostors[k % impostors.len()])
    }

    /// Calls `each` with number, near and far of the triplets of an anchor.
    #[inline]
    pub(super) fn each_of(&self, anchor: usize, mut each: impl FnMut(usize, u32, u32)) {
        let mut k = 0;
        for &near in self.targets.of(anchor) {
            for &far in self.impostors.of(anchor) {
                each(k, near, far);
                k += 1;
            }
        }
    }
}

/// Labels that can be learned from: one per row, at least two classes, one of them with at least two rows.
pub(crate) fn check_classes(n_rows: usize, labels: &Labels) -> Result<()> {
    if labels.len() != n_rows {
        return Err(Error::data(format!(
            "there are {} labels for {n_rows} rows",
            labels.len()
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
