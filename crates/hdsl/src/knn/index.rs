//! Exact inner product search: the rows with the largest dot products with a query.
//!
//! Two algorithms give the same lists, bit for bit. Where rows have few columns to choose from, as under a learned
//! similarity, a [tree](super::tree) of bounds leads to the few rows that are scored at all. Otherwise, and where the
//! tree excludes too few rows, an [inverted index](super::inverted) sums the scores of all rows.
//!
//! Rows are stored by *place*: each class is a range of places, and in it [similar rows](super::order) are close. So
//! "the same class" and "other classes" are ranges, and one pass finds both lists.

use super::inverted::{InvertedIndex, select};
use super::top::TopK;
use super::tree::{self, Tree};
use super::{Neighbor, order};
use crate::cancel::CancelToken;
use crate::data::{Columns, Rows, SparseRow};
use crate::error::Result;
use std::ops::Range;
use std::sync::OnceLock;

/// A tree is built for at least so many rows; fewer are summed as fast.
const TREE_ROWS: usize = 256;

/// Rows that are ranked.
pub(super) struct Index {
    /// The columns of the rows, which are compact below.
    columns: Columns,
    /// Rows by place.
    rows: Rows,
    /// The row at each place, unless they are the same.
    order: Option<Vec<u32>>,
    tree: Option<Tree>,
    /// Built when it is first needed: where there is a tree, that may be never.
    inverted: OnceLock<InvertedIndex>,
}

/// A list of neighbors to find: the best `k` of the rows at the given places that are allowed.
pub(super) struct List<'a> {
    pub(super) k: usize,
    pub(super) places: [Range<usize>; 2],
    pub(super) allowed: &'a dyn Fn(u32) -> bool,
}

/// Buffers of one thread.
#[derive(Default)]
pub(super) struct Scratch {
    /// The query's columns that some row has.
    query: Vec<(u32, f64)>,
    bounded: tree::Query,
    /// The score of each place.
    scores: Vec<f64>,
}

impl Index {
    /// Indexes mapped rows. If rows have classes, each class is a range of places.
    pub(super) fn new(
        items: &Rows,
        classes: Option<&[u32]>,
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        Self::with_tree(items, classes, items.n_rows() >= TREE_ROWS, cancel)
    }

    /// [`Index::new`] with a tree for any number of rows, or for none.
    pub(super) fn with_tree(
        items: &Rows,
        classes: Option<&[u32]>,
        with_tree: bool,
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        cancel.check()?;
        let columns = Columns::of(items);
        let mut rows = columns.compact(items);
        cancel.check()?;
        let with_tree = with_tree && Tree::pays(&rows);
        let order =
            (with_tree || classes.is_some()).then(|| order::similar_together(&rows, classes));
        cancel.check()?;
        if let Some(order) = &order {
            rows = rows.select(order);
        }
        cancel.check()?;
        Ok(Self {
            columns,
            tree: with_tree.then(|| Tree::new(&rows)),
            rows,
            order,
            inverted: OnceLock::new(),
        })
    }

    pub(super) fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }

    #[cfg(test)]
    pub(super) fn tree_height(&self) -> usize {
        self.tree.as_ref().map_or(0, Tree::height)
    }

    fn row_at(&self, place: usize) -> u32 {
        (self.order.as_ref()).map_or(place as u32, |order| order[place])
    }

    /// The lists of one mapped query.
    pub(super) fn search(
        &self,
        scratch: &mut Scratch,
        query: SparseRow<'_>,
        lists: &[List<'_>],
    ) -> Vec<Vec<Neighbor>> {
        let known = |(feature, x)| Some((self.columns.number(feature)?, x));
        scratch.query.clear();
        scratch.query.extend(query.iter().filter_map(known));
        let found = (self.tree.as_ref()).and_then(|tree| self.search_tree(tree, scratch, lists));
        found.unwrap_or_else(|| {
            let inverted = self.inverted.get_or_init(|| InvertedIndex::new(&self.rows));
            inverted.sum(&mut scratch.scores, &scratch.query);
            let one = |list| select(&scratch.scores, list, |place| self.row_at(place));
            lists.iter().map(one).collect()
        })
    }

    /// Searches the tree; `None` if it excludes too few rows, or single precision cannot represent the query.
    fn search_tree(
        &self,
        tree: &Tree,
        scratch: &mut Scratch,
        lists: &[List<'_>],
    ) -> Option<Vec<Vec<Neighbor>>> {
        let Scratch { query, bounded, .. } = scratch;
        let slack = tree.slack(query)?;
        bounded.set(query, self.columns.len());
        let one = |list: &List<'_>| {
            let mut top = TopK::new(list.k);
            let complete = tree.search(bounded, &list.places, |place| {
                let row = self.row_at(place);
                if (list.allowed)(row) {
                    top.offer(row, bounded.dot(self.rows.row(place)));
                }
                top.floor() - slack
            });
            complete.then(|| top.into_list())
        };
        let found = lists.iter().map(one).collect();
        bounded.clear(query);
        found
    }
}
