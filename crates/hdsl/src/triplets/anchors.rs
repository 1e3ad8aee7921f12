//! Triplets by anchor: which *positions* an anchor's triplets have in the order of anchors, and which triplet is where.

use crate::data::{Groups, group_starts};
use std::ops::Range;

/// What [`Triplets::by_anchor`](super::Triplets::by_anchor) gives. Triplets of one anchor keep their order.
#[derive(Default)]
pub(crate) struct Anchors {
    /// The triplets of row r are at positions `starts[r]..starts[r + 1]`.
    starts: Vec<usize>,
    /// The triplet at each position, where that is not the position itself.
    order: Option<Vec<u32>>,
}

impl Anchors {
    /// Of triplets in the order of their anchors, `count_of(row)` for each row.
    pub(super) fn counted(n_rows: usize, count_of: impl Fn(usize) -> usize) -> Self {
        let mut starts = Vec::with_capacity(n_rows + 1);
        let mut next = 0;
        starts.push(next);
        for row in 0..n_rows {
            next += count_of(row);
            starts.push(next);
        }
        Self {
            starts,
            order: None,
        }
    }

    /// Of triplets with these anchors, in any order.
    pub(super) fn grouped(anchors: &[u32], n_rows: usize) -> Self {
        let keys = anchors.iter().copied();
        if anchors.is_sorted() {
            return Self {
                starts: group_starts(n_rows, keys),
                order: None,
            };
        }
        let (starts, order) = Groups::new(n_rows, keys.zip(0u32..)).into_parts();
        Self {
            starts,
            order: Some(order),
        }
    }

    /// Ranges of rows with about as many triplets each.
    pub(crate) fn cut(&self, n_parts: usize) -> Vec<Range<usize>> {
        let (n_rows, total) = (self.starts.len() - 1, self.starts[self.starts.len() - 1]);
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

    /// The triplet at each position, if that is not the position itself.
    pub(crate) fn order(&self) -> Option<&[u32]> {
        self.order.as_deref()
    }

    /// The number of the triplet at a position.
    #[inline]
    pub(crate) fn triplet(&self, position: usize) -> usize {
        match &self.order {
            None => position,
            Some(order) => order[position] as usize,
        }
    }
}
