//! Triplets kept as lists of neighbors: each anchor's targets x its impostors.

use std::fmt;

/// The k-th triplet of an anchor is its target k / m and its impostor k % m, where it has m impostors.
#[derive(Clone, PartialEq)]
pub(super) struct NeighborLists {
    targets: Lists,
    impostors: Lists,
    /// The triplets of row r are `starts[r]..starts[r + 1]`.
    starts: Vec<usize>,
    /// The most triplets of any row.
    most: usize,
}

/// A list of rows for each row.
#[derive(Clone, PartialEq)]
struct Lists {
    starts: Vec<usize>,
    rows: Vec<u32>,
}

impl Lists {
    fn of<L: IntoIterator<Item = u32>>(lists: impl IntoIterator<Item = L>) -> Self {
        let (mut starts, mut rows) = (vec![0], Vec::new());
        for list in lists {
            rows.extend(list);
            starts.push(rows.len());
        }
        rows.shrink_to_fit();
        Self { starts, rows }
    }

    #[inline]
    fn get(&self, row: usize) -> &[u32] {
        &self.rows[self.starts[row]..self.starts[row + 1]]
    }
}

impl NeighborLists {
    /// From the targets of each row, which are all of its class and not the row itself, and the impostors of each row,
    /// which are not of its class.
    pub(super) fn new<T: IntoIterator<Item = u32>, I: IntoIterator<Item = u32>>(
        targets: impl IntoIterator<Item = T>,
        impostors: impl IntoIterator<Item = I>,
    ) -> Self {
        let (targets, impostors) = (Lists::of(targets), Lists::of(impostors));
        assert_eq!(
            targets.starts.len(),
            impostors.starts.len(),
            "every row has a list of each kind"
        );
        let mut starts = vec![0];
        let (mut next, mut most) = (0, 0);
        for row in 0..targets.starts.len() - 1 {
            let count = targets.get(row).len() * impostors.get(row).len();
            most = most.max(count);
            next += count;
            starts.push(next);
        }
        Self {
            targets,
            impostors,
            starts,
            most,
        }
    }

    pub(super) fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn len(&self) -> usize {
        self.starts[self.n_rows()]
    }

    /// How many triplets a row is the anchor of; 0 for rows that were not there.
    pub(super) fn count_of(&self, row: usize) -> usize {
        match self.starts.get(row + 1) {
            Some(end) => end - self.starts[row],
            None => 0,
        }
    }

    /// Different (anchor, other): a target is never an impostor of the same anchor.
    pub(super) fn count_pairs(&self) -> usize {
        (0..self.n_rows())
            .filter(|&row| self.count_of(row) > 0)
            .map(|row| self.targets.get(row).len() + self.impostors.get(row).len())
            .sum()
    }

    pub(super) fn get(&self, t: usize) -> (u32, u32, u32) {
        assert!(t < self.len(), "triplet {t} of {}", self.len());
        // No row has more than `most`, so the anchor is not before this one. It mostly is this one.
        let guess = t / self.most;
        let anchor = if t < self.starts[guess + 1] {
            guess
        } else {
            guess + self.starts[guess + 1..].partition_point(|&start| start <= t)
        };
        let (near, far) = self.of(anchor, t - self.starts[anchor]);
        (anchor as u32, near, far)
    }

    /// The k-th triplet of an anchor.
    #[inline]
    pub(super) fn of(&self, anchor: usize, k: usize) -> (u32, u32) {
        let (targets, impostors) = (self.targets.get(anchor), self.impostors.get(anchor));
        (targets[k / impostors.len()], impostors[k % impostors.len()])
    }

    /// Calls `each` with number, near and far of the triplets of an anchor.
    #[inline]
    pub(super) fn each_of(&self, anchor: usize, mut each: impl FnMut(usize, u32, u32)) {
        let mut k = 0;
        for &near in self.targets.get(anchor) {
            for &far in self.impostors.get(anchor) {
                each(k, near, far);
                k += 1;
            }
        }
    }
}

impl fmt::Debug for NeighborLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByNeighbors")
            .field("len", &self.len())
            .field("n_rows", &self.n_rows())
            .field("most_of_a_row", &self.most)
            .finish_non_exhaustive()
    }
}
