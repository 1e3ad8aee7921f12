//! Triplets by anchor: which *positions* an anchor's triplets have in the order of anchors, and which triplet is where.

use crate::data::{Groups, group_starts};
use std::ops::Range;

/// What [`Triplets::by_anchor`](super::Triplets::by_anchor) gives. Triplets of one anchor keep their order.
#[derive(Clone, Default)]
pub(crate) struct Anchors {
    /// The triplets of row r are at positions `starts[r]..starts[r + 1]`.
    starts: Vec<usize>,
    /// The triplet at each position, where that is not the position itself.
    pub(super) order: Option<Vec<u32>>,
}

impl Anchors {
    /// Of triplets in the order of their anchors, `count_of(row)` for each row.
    pub(super) fn counted(n_rows: usize, count_of: impl Fn(usize) -> usize) -> Self {
        let ends = (0..n_rows).scan(0, |end, row| {
            *end += count_of(row);
            Some(*end)
        });
        Self {
            starts: std::iter::once(0).chain(ends).collect(),
            order: None,
        }
    }

    /// Of triplets with these anchors, in any order.
    pub(super) fn grouped(anchors: impl Iterator<Item = u32> + Clone, n_rows: usize) -> Self {
        if anchors.clone().is_sorted() {
            return Self {
                starts: group_starts(n_rows, anchors),
                order: None,
            };
        }
        let (starts, order) = Groups::new(n_rows, anchors.zip(0u32..)).into_parts();
        Self {
            starts,
            order: Some(order),
        }
    }

    /// The same with more rows, which are no anchors.
    pub(super) fn among(&self, n_rows: usize) -> Self {
        let mut more = self.clone();
        more.starts.resize(n_rows + 1, self.starts[self.n_rows()]);
        more
    }

    /// The number of rows, anchors or not.
    pub(super) fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// The anchor of the triplet at a position.
    pub(super) fn anchor_of(&self, position: usize) -> usize {
        assert!(
            position < self.starts[self.n_rows()],
            "there is no triplet {position}"
        );
        self.starts.partition_point(|&start| start <= position) - 1
    }

    /// Ranges of rows with about as many triplets each.
    pub(crate) fn cut(&self, n_parts: usize) -> Vec<Range<usize>> {
        let (n_rows, total) = (self.n_rows(), self.starts[self.n_rows()]);
        let bound = |part: usize| match part {
            0 => 0,
            part if part == n_parts => n_rows,
            part => self
                .starts
                .partition_point(|&start| start < part * total / n_parts)
                .min(n_rows),
        };
        (0..n_parts)
            .map(|part| bound(part)..bound(part + 1))
            .collect()
    }

    /// The positions of an anchor's triplets.
    #[inline]
    pub(crate) fn range(&self, anchor: usize) -> Range<usize> {
        self.starts[anchor]..self.starts[anchor + 1]
    }

    /// Where each row's positions start, and at the end the number of triplets.
    pub(crate) fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The number of the triplet at a position.
    #[inline]
    pub(crate) fn triplet(&self, position: usize) -> usize {
        (self.order.as_ref()).map_or(position, |order| order[position] as usize)
    }
}
