//! Exact inner product search: the rows with the largest dot products with a query.
//!
//! There are two algorithms with bitwise equal results. For low-dimensional rows, as under a learned similarity, it is
//! branch and bound on a [tree](super::tree), which computes the scores of few rows. Otherwise, and if the bounds of
//! the tree exclude too few rows, an [inverted index](super::inverted) computes the scores of all rows.
//!
//! Rows are stored in an order in which each class is contiguous and [similar rows](super::order) are close together. A
//! row's index in this order is its *position*. The rows of the same class as the query are one range of positions, and
//! those of other classes are two. Neighbors of the same class and neighbors of other classes are two requests of the
//! same search; the inverted index computes all scores once for both.

use super::inverted::{InvertedIndex, select};
use super::top::TopK;
use super::tree::{self, Tree};
use super::{Neighbor, order};
use crate::cancel::CancelToken;
use crate::data::{Columns, Rows, SparseRow};
use crate::error::Result;
use std::ops::Range;
use std::sync::OnceLock;

/// A tree is built for at least this many rows. With fewer, the inverted index is as fast.
const MIN_TREE_ROWS: usize = 256;

/// The rows to search.
pub(super) struct Index {
    /// The features that occur in the rows, numbered from 0 without gaps. All other fields use these column numbers.
    columns: Columns,
    /// The rows in the order of positions.
    rows: Rows,
    /// The row number at each position; `None` if position and row number are the same.
    order: Option<Vec<u32>>,
    tree: Option<Tree>,
    /// Built at its first use. If there is a tree, it may never be used.
    inverted: OnceLock<InvertedIndex>,
}

/// A request for one list of neighbors: the `k` nearest among the allowed rows in two ranges of positions.
pub(super) struct Request<'a> {
    pub(super) k: usize,
    pub(super) positions: [Range<usize>; 2],
    /// Whether a row number is allowed.
    pub(super) allowed: &'a dyn Fn(u32) -> bool,
}

/// Buffers of one thread.
#[derive(Default)]
pub(super) struct Scratch {
    /// The query, without features that occur in no row.
    query: Vec<(u32, f64)>,
    /// The same query in the form for the tree.
    in_tree: tree::Query,
    /// The score at each position.
    scores: Vec<f64>,
}

impl Index {
    /// Indexes rows that the feature map of the similarity was applied to. If classes are given, each class is a range
    /// of positions, in the order of class codes.
    pub(super) fn new(
        items: &Rows,
        classes: Option<&[u32]>,
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        Self::with_tree(items, classes, items.n_rows() >= MIN_TREE_ROWS, cancel)
    }

    /// [`Index::new`], where `with_tree` says whether to build a tree. Without effect if a tree is not worthwhile for
    /// these rows.
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
        let with_tree = with_tree && Tree::is_worthwhile(&rows);
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

    fn row_at(&self, position: usize) -> u32 {
        (self.order.as_ref()).map_or(position as u32, |order| order[position])
    }

    /// The neighbors of one query that the feature map was applied to, one list per request.
    pub(super) fn search(
        &self,
        scratch: &mut Scratch,
        query: SparseRow<'_>,
        requests: &[Request<'_>],
    ) -> Vec<Vec<Neighbor>> {
        let compact = |(feature, x)| Some((self.columns.number(feature)?, x));
        scratch.query.clear();
        scratch.query.extend(query.iter().filter_map(compact));
        let found = (self.tree.as_ref()).and_then(|tree| self.search_tree(tree, scratch, requests));
        found.unwrap_or_else(|| {
            let inverted = self.inverted.get_or_init(|| InvertedIndex::new(&self.rows));
            inverted.score_all(&mut scratch.scores, &scratch.query);
            let answer = |request| select(&scratch.scores, request, |at| self.row_at(at));
            requests.iter().map(answer).collect()
        })
    }

    /// [`Index::search`] in the tree. `None` if its bounds exclude too few rows, or if the query is out of the range of
    /// single precision.
    fn search_tree(
        &self,
        tree: &Tree,
        scratch: &mut Scratch,
        requests: &[Request<'_>],
    ) -> Option<Vec<Vec<Neighbor>>> {
        let Scratch { query, in_tree, .. } = scratch;
        let slack = tree.slack(query)?;
        in_tree.set(query, self.columns.len());
        let answer = |request: &Request<'_>| {
            let mut top = TopK::new(request.k);
            let complete = tree.search(in_tree, &request.positions, |position| {
                let row = self.row_at(position);
                if (request.allowed)(row) {
                    top.push(row, in_tree.dot(self.rows.row(position)));
                }
                top.threshold() - slack
            });
            complete.then(|| top.into_sorted())
        };
        let found = requests.iter().map(answer).collect();
        in_tree.clear(query);
        found
    }
}
