//! Exact inner product search: the rows with the largest dot products with a query.
//!
//! Two algorithms give the same lists, bit for bit. Where rows have few columns to choose from, as under a learned
//! similarity, a [tree](super::tree) of bounds leads to the few rows that are scored at all. Otherwise, and where the
//! tree excludes too few rows, an [inverted index](super::inverted) sums the scores of all rows.
//!
//! Rows are stored by *place*: each class is a range of places, and in it [similar rows](super::order) are close. So
//! "the same class" and "other classes" are ranges, and one pass finds both lists.

use super::inverted::{InvertedIndex, Sums};
use super::order;
use super::top::TopK;
use super::tree::{self, Tree};
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
    places: Places,
    tree: Option<Tree>,
    /// Built when it is first needed: where there is a tree, that may be never.
    inverted: OnceLock<InvertedIndex>,
}

/// The row at each place and the place of each row, unless they are the same.
pub(super) struct Places(Option<(Vec<u32>, Vec<u32>)>);

impl Places {
    fn new(order: Option<Vec<u32>>) -> Self {
        Self(order.map(|order| {
            let mut places = vec![0; order.len()];
            for (place, &row) in order.iter().enumerate() {
                places[row as usize] = place as u32;
            }
            (order, places)
        }))
    }

    #[inline]
    pub(super) fn row_at(&self, place: usize) -> u32 {
        match &self.0 {
            Some((rows, _)) => rows[place],
            None => place as u32,
        }
    }

    #[inline]
    pub(super) fn place_of(&self, row: u32) -> usize {
        match &self.0 {
            Some((_, places)) => places[row as usize] as usize,
            None => row as usize,
        }
    }
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
    /// The lists found, in the order in which they were asked for.
    pub(super) tops: Vec<TopK>,
    sums: Sums,
    bounded: tree::Query,
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
        let compact = columns.compact(items);
        cancel.check()?;
        let with_tree = with_tree && Tree::pays(&compact);
        let order =
            (with_tree || classes.is_some()).then(|| order::similar_together(&compact, classes));
        cancel.check()?;
        let rows = match &order {
            Some(order) => compact.select(order),
            None => compact,
        };
        cancel.check()?;
        Ok(Self {
            columns,
            tree: with_tree.then(|| Tree::new(&rows)),
            rows,
            places: Places::new(order),
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

    /// Finds the lists of one mapped query; they are then in `scratch.tops`, in the same order.
    pub(super) fn search(&self, scratch: &mut Scratch, query: SparseRow<'_>, lists: &[List<'_>]) {
        scratch.query.clear();
        let known = |(feature, x)| Some((self.columns.number(feature)?, x));
        scratch.query.extend(query.iter().filter_map(known));
        scratch.tops.resize_with(lists.len(), TopK::default);
        if !self.search_tree(scratch, lists) {
            let inverted = self.inverted.get_or_init(|| InvertedIndex::new(&self.rows));
            inverted.sum(&mut scratch.sums, &scratch.query);
            for (top, list) in scratch.tops.iter_mut().zip(lists) {
                scratch.sums.select(top, list, &self.places);
            }
            scratch.sums.clear();
        }
    }

    /// Searches the tree. False if there is none, or if it excludes too few rows.
    fn search_tree(&self, scratch: &mut Scratch, lists: &[List<'_>]) -> bool {
        let Scratch {
            query,
            tops,
            bounded,
            ..
        } = scratch;
        let Some(tree) = &self.tree else {
            return false;
        };
        let Some(slack) = tree.slack(query) else {
            return false;
        };
        bounded.set(query, self.columns.len());
        let found = tops.iter_mut().zip(lists).all(|(top, list)| {
            top.reset(list.k);
            tree.search(bounded, &list.places, |place| {
                let row = self.places.row_at(place);
                if (list.allowed)(row) {
                    top.offer(row, bounded.dot(self.rows.row(place)));
                }
                top.floor() - slack
            })
        });
        bounded.clear(query);
        found
    }
}
