//! Exact inner product search: the rows with the largest dot products with a query.
//!
//! There are two algorithms with bitwise equal results. For low-dimensional rows, as under a learned similarity without a
//! base, it is branch and bound on a [tree](super::tree), which visits few rows. Otherwise, and if the bounds of the tree
//! exclude too few rows, an [inverted index](super::inverted) computes the scores of all rows in single precision. Both
//! then compute the scores of the remaining rows in double precision.
//!
//! Rows are stored in an order in which each class is contiguous and [similar rows](super::order) are close together. A
//! row's index in this order is its *position*. The rows of the same class as the query are one range of positions, and
//! those of other classes are two. Neighbors of the same class and neighbors of other classes are two requests of the
//! same search; the inverted index computes all scores once for both.

use super::inverted::{InvertedIndex, select};
use super::query::{ColumnMaxima, Query};
use super::top::TopK;
use super::tree::Tree;
use super::{Neighbor, order};
use crate::cancel::CancelToken;
use crate::data::{Columns, Rows, SparseRow};
use crate::error::Result;
use std::borrow::Cow;
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
    maxima: ColumnMaxima,
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
    query: Query,
    /// The score at each position, in single precision.
    scores: Vec<f32>,
}

impl Index {
    /// Indexes rows that the feature map of the similarity was applied to. If classes are given, each class is a range
    /// of positions, in the order of class codes.
    pub(super) fn new(
        items: Cow<'_, Rows>,
        classes: Option<&[u32]>,
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        let with_tree = items.n_rows() >= MIN_TREE_ROWS;
        Self::with_tree(items, classes, with_tree, cancel)
    }

    /// [`Index::new`], where `with_tree` says whether to build a tree. Without effect if a tree is not worthwhile for
    /// these rows.
    pub(super) fn with_tree(
        items: Cow<'_, Rows>,
        classes: Option<&[u32]>,
        with_tree: bool,
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        cancel.check()?;
        let columns = Columns::of(&*items);
        let mut rows = columns.compact(items.into_owned());
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
            maxima: ColumnMaxima::of(&rows),
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
        let Scratch {
            query: columns,
            scores,
        } = scratch;
        let compact = |(feature, x)| Some((self.columns.number(feature)?, x));
        columns.set(query.iter().filter_map(compact), self.columns.len());
        let query = &*columns;
        // Without a slack single precision says nothing, and all rows remain.
        let Some(slack) = self.maxima.slack(query) else {
            scores.clear();
            scores.resize(self.n_rows(), 0.0);
            return self.select(query, scores, f64::INFINITY, requests);
        };
        let found =
            (self.tree.as_ref()).and_then(|tree| self.search_tree(tree, query, slack, requests));
        found.unwrap_or_else(|| {
            let inverted = self.inverted.get_or_init(|| InvertedIndex::new(&self.rows));
            inverted.score_all(scores, query);
            self.select(query, scores, slack, requests)
        })
    }

    /// [`Index::search`], given the scores in single precision.
    fn select(
        &self,
        query: &Query,
        scores: &[f32],
        slack: f64,
        requests: &[Request<'_>],
    ) -> Vec<Vec<Neighbor>> {
        let exact = |position| query.dot(self.rows.row(position));
        let answer = |request| select(scores, slack, request, |at| self.row_at(at), exact);
        requests.iter().map(answer).collect()
    }

    /// [`Index::search`] in the tree. `None` if its bounds exclude too few rows.
    fn search_tree(
        &self,
        tree: &Tree,
        query: &Query,
        slack: f64,
        requests: &[Request<'_>],
    ) -> Option<Vec<Vec<Neighbor>>> {
        let answer = |request: &Request<'_>| {
            let mut top = TopK::new(request.k);
            let complete = tree.search(query, &request.positions, |position| {
                let row = self.row_at(position);
                if (request.allowed)(row) {
                    top.push(row, query.dot(self.rows.row(position)));
                }
                top.threshold() - slack
            });
            complete.then(|| top.into_sorted())
        };
        requests.iter().map(answer).collect()
    }
}
