//! Training data: "anchor is more similar to near than to far", as row numbers into one [`Rows`](crate::Rows).

mod anchors;
mod file;
mod neighbor_lists;
mod neighbors;
mod random;
mod source;
mod stored;

pub(crate) use anchors::Anchors;
pub use file::TripletFormat;
pub use source::TripletSource;

use crate::error::{Error, Result};
use neighbor_lists::NeighborLists;
use random::Draws;
use std::fmt;
use stored::Stored;

/// Triplets of row numbers, with optional weights above 0.
///
/// Those mined from labels are not kept one by one: by neighbors, the lists of neighbors are; at random, a seed. Each
/// triplet is made again whenever it is asked for, so that a hundred million take a few megabytes.
#[derive(Clone)]
pub struct Triplets {
    source: Source,
}

/// Where a triplet comes from when it is asked for.
#[derive(Clone)]
enum Source {
    Stored(Stored),
    Random(Draws),
    Neighbors(NeighborLists),
}

impl Triplets {
    /// No triplets yet, all of weight 1.
    pub fn new() -> Self {
        Self {
            source: Source::Stored(Stored::default()),
        }
    }

    /// Adds a triplet of weight 1. Mined triplets are first written out one by one, which takes 12 bytes each.
    pub fn push(&mut self, anchor: u32, near: u32, far: u32) {
        self.push_weighted(anchor, near, far, 1.0);
    }

    /// Adds a triplet that counts `weight` times in the objective. Mined triplets are first written out one by one.
    pub fn push_weighted(&mut self, anchor: u32, near: u32, far: u32, weight: f64) {
        self.stored().push(anchor, near, far, weight);
    }

    /// Adds the triplets of another list behind these, with their weights. Both are written out one by one.
    ///
    /// ```
    /// use hdsl::{Labels, Rows, Triplets};
    /// let rows = Rows::from_parts(1, vec![0; 4], vec![], vec![])?;
    /// let mut triplets = Triplets::at_random(&rows, &Labels::from_names(["a", "a", "b"]), 5, 0)?;
    /// triplets.append(&triplets.clone());
    /// assert_eq!((triplets.len(), triplets.get(19)), (20, (1, 0, 2)));
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn append(&mut self, other: &Triplets) {
        let stored = self.stored();
        stored.reserve(other.len());
        let mut t = 0;
        other.each(|anchor, near, far| {
            stored.push(anchor, near, far, other.weight(t));
            t += 1;
        });
    }

    /// The list to add to, written out if it was not one yet.
    fn stored(&mut self) -> &mut Stored {
        if !matches!(self.source, Source::Stored(_)) {
            let mut stored = Stored::default();
            stored.reserve(self.len());
            self.each(|anchor, near, far| stored.push(anchor, near, far, 1.0));
            self.source = Source::Stored(stored);
        }
        match &mut self.source {
            Source::Stored(stored) => stored,
            _ => unreachable!("it was written out just now"),
        }
    }

    /// How many there are (T in the paper).
    pub fn len(&self) -> usize {
        match &self.source {
            Source::Stored(stored) => stored.len(),
            Source::Random(draws) => draws.len(),
            Source::Neighbors(lists) => lists.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The weights, if any differs from 1.
    pub fn weights(&self) -> Option<&[f64]> {
        match &self.source {
            Source::Stored(stored) => stored.weights(),
            Source::Random(_) | Source::Neighbors(_) => None,
        }
    }

    /// The weight of one triplet.
    pub fn weight(&self, t: usize) -> f64 {
        self.weights().map_or(1.0, |weights| weights[t])
    }

    /// The sum of all weights: their number where none differs from 1.
    pub fn total_weight(&self) -> f64 {
        match self.weights() {
            Some(weights) => weights.iter().sum(),
            None => self.len() as f64,
        }
    }

    /// One triplet: anchor, near, far.
    ///
    /// # Panics
    /// If `t` is not below [`Triplets::len`].
    pub fn get(&self, t: usize) -> (u32, u32, u32) {
        match &self.source {
            Source::Stored(stored) => stored.get(t),
            Source::Random(draws) => draws.get(t),
            Source::Neighbors(lists) => lists.get(t),
        }
    }

    /// Each triplet in turn: anchor, near, far.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, u32, u32)> {
        (0..self.len()).map(|t| self.get(t))
    }

    /// Calls `each` with every triplet in turn, as [`Triplets::iter`] has them, and faster.
    pub(crate) fn each(&self, mut each: impl FnMut(u32, u32, u32)) {
        match &self.source {
            Source::Stored(stored) => stored.each(each),
            Source::Random(draws) => {
                for &anchor in draws.anchors() {
                    draws.each_of(anchor as usize, |_, near, far| each(anchor, near, far));
                }
            }
            Source::Neighbors(lists) => {
                for anchor in 0..lists.n_rows() {
                    lists.each_of(anchor, |_, near, far| each(anchor as u32, near, far));
                }
            }
        }
    }

    /// The triplets by anchor, among `n_rows` rows that [`Triplets::check`] has seen. Only a list whose anchors do not
    /// come in increasing order takes memory for each triplet.
    pub(crate) fn by_anchor(&self, n_rows: usize) -> Anchors {
        match &self.source {
            Source::Stored(stored) => Anchors::sorted(stored.anchors(), n_rows),
            Source::Random(draws) => Anchors::counted(n_rows, |row| draws.count_of(row)),
            Source::Neighbors(lists) => Anchors::counted(n_rows, |row| lists.count_of(row)),
        }
    }

    /// About how many different (anchor, near) and (anchor, far) there are: counted for neighbors, expected for random
    /// triplets, sampled in long lists.
    pub(crate) fn count_pairs(&self) -> f64 {
        match &self.source {
            Source::Stored(stored) => stored.count_pairs(),
            Source::Random(draws) => draws.expected_pairs(),
            Source::Neighbors(lists) => lists.count_pairs() as f64,
        }
    }

    /// Calls `each` with position, near and far of every triplet of one anchor, by increasing position. `anchors` is
    /// what [`Triplets::by_anchor`] gave.
    #[inline]
    pub(crate) fn each_of_anchor(
        &self,
        anchors: &Anchors,
        anchor: usize,
        mut each: impl FnMut(usize, u32, u32),
    ) {
        let range = anchors.range(anchor);
        if range.is_empty() {
            return;
        }
        let first = range.start;
        match &self.source {
            Source::Stored(stored) => match anchors.order() {
                None => stored.each_in(range, each),
                Some(order) => {
                    for (k, &t) in order[range].iter().enumerate() {
                        let (_, near, far) = stored.get(t as usize);
                        each(first + k, near, far);
                    }
                }
            },
            Source::Random(draws) => {
                draws.each_of(anchor, |k, near, far| each(first + k, near, far));
            }
            Source::Neighbors(lists) => {
                lists.each_of(anchor, |k, near, far| each(first + k, near, far));
            }
        }
    }

    /// Near and far of the triplet at a position, which is one of `anchor`.
    #[inline]
    pub(crate) fn at(&self, anchors: &Anchors, position: usize, anchor: usize) -> (u32, u32) {
        let range = anchors.range(anchor);
        debug_assert!(range.contains(&position), "the triplet has this anchor");
        match &self.source {
            Source::Stored(stored) => {
                let (_, near, far) = stored.get(anchors.triplet(position));
                (near, far)
            }
            Source::Random(draws) => draws.of(anchor, position - range.start),
            Source::Neighbors(lists) => lists.of(anchor, position - range.start),
        }
    }

    /// The weight of the triplet at a position.
    #[inline]
    pub(crate) fn weight_at(&self, anchors: &Anchors, position: usize) -> f64 {
        match self.weights() {
            None => 1.0,
            Some(weights) => weights[anchors.triplet(position)],
        }
    }

    /// Checks that there is a triplet and not too many, that every row exists, that near and far differ and weights are
    /// above 0. Takes a pass over triplets given one by one, and no time for mined ones.
    pub fn check(&self, n_rows: usize) -> Result<()> {
        if self.is_empty() {
            return Err(Error::data("there are no triplets to learn from"));
        }
        if self.len() as u64 > u64::from(u32::MAX) {
            return Err(too_many(self.len()));
        }
        let made_from = match &self.source {
            Source::Stored(stored) => return stored.check(n_rows),
            Source::Random(draws) => draws.n_rows(),
            Source::Neighbors(lists) => lists.n_rows(),
        };
        if made_from > n_rows {
            return Err(Error::data(format!(
                "the triplets were mined from {made_from} rows, but there are {n_rows} rows"
            )));
        }
        Ok(())
    }
}

/// What to say of a number of triplets that cannot be counted in 32 bits.
fn too_many(count: impl fmt::Display) -> Error {
    Error::data(format!(
        "there are {count} triplets, more than the 2^32 - 1 that can be learned from"
    ))
}

impl Default for Triplets {
    fn default() -> Self {
        Self::new()
    }
}

/// The same triplets of the same weights in the same order, however they are kept.
impl PartialEq for Triplets {
    fn eq(&self, other: &Self) -> bool {
        match (&self.source, &other.source) {
            (Source::Stored(a), Source::Stored(b)) => a == b,
            (Source::Random(a), Source::Random(b)) if a == b => true,
            (Source::Neighbors(a), Source::Neighbors(b)) if a == b => true,
            _ => {
                self.len() == other.len()
                    && self.iter().eq(other.iter())
                    && (0..self.len()).all(|t| self.weight(t) == other.weight(t))
            }
        }
    }
}

/// Given triplets one by one, mined ones in a word.
impl fmt::Debug for Triplets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Stored(stored) => stored.fmt(f),
            Source::Random(draws) => draws.fmt(f),
            Source::Neighbors(lists) => lists.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
