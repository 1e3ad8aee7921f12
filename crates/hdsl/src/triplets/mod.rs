//! Training data: "anchor is more similar to near than to far", as row numbers into one [`Rows`](crate::Rows).

mod anchors;
mod file;
mod neighbors;
mod random;
mod source;
mod stored;

pub(crate) use anchors::Anchors;
pub use file::TripletFormat;
pub use source::TripletSource;

use crate::error::{Error, Result};
use neighbors::NeighborLists;
use random::RandomDraws;
use std::fmt;
use stored::Stored;

/// Triplets of row numbers, with optional weights above 0.
///
/// Those mined from labels are not stored one by one: for neighbors, the lists of neighbors are; for random triplets, a
/// seed. Each triplet is computed whenever it is asked for, so that a hundred million take a few megabytes.
#[derive(Clone)]
pub struct Triplets {
    kind: Kind,
}

/// How triplets are stored.
#[derive(Clone)]
enum Kind {
    Stored(Stored),
    Random(RandomDraws),
    Neighbors(NeighborLists),
}

impl Triplets {
    /// No triplets yet, all of weight 1.
    pub fn new() -> Self {
        Self {
            kind: Kind::Stored(Stored::default()),
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
        if !matches!(self.kind, Kind::Stored(_)) {
            let mut stored = Stored::default();
            stored.reserve(self.len());
            self.each(|anchor, near, far| stored.push(anchor, near, far, 1.0));
            self.kind = Kind::Stored(stored);
        }
        match &mut self.kind {
            Kind::Stored(stored) => stored,
            _ => unreachable!("it was written out just now"),
        }
    }

    /// How many there are (T in the paper).
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::Stored(stored) => stored.len(),
            Kind::Random(draws) => draws.len(),
            Kind::Neighbors(lists) => lists.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The weights, if any differs from 1.
    pub fn weights(&self) -> Option<&[f64]> {
        match &self.kind {
            Kind::Stored(stored) => stored.weights(),
            Kind::Random(_) | Kind::Neighbors(_) => None,
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
        match &self.kind {
            Kind::Stored(stored) => stored.get(t),
            Kind::Random(draws) => draws.get(t),
            Kind::Neighbors(lists) => lists.get(t),
        }
    }

    /// Each triplet in turn: anchor, near, far.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, u32, u32)> {
        (0..self.len()).map(|t| self.get(t))
    }

    /// Calls `each` with every triplet in turn, as [`Triplets::iter`] has them, and faster.
    pub(crate) fn each(&self, mut each: impl FnMut(u32, u32, u32)) {
        let n_rows = match &self.kind {
            Kind::Stored(stored) => return stored.each(each),
            Kind::Random(draws) => draws.n_rows(),
            Kind::Neighbors(lists) => lists.n_rows(),
        };
        let anchors = self.by_anchor(n_rows);
        for anchor in 0..n_rows {
            self.each_of_anchor(&anchors, anchor, |_, near, far| {
                each(anchor as u32, near, far);
            });
        }
    }

    /// The triplets by anchor, among `n_rows` rows that [`Triplets::check`] has seen. Only a list whose anchors do not
    /// come in increasing order takes memory for each triplet.
    pub(crate) fn by_anchor(&self, n_rows: usize) -> Anchors {
        match &self.kind {
            Kind::Stored(stored) => Anchors::grouped(stored.anchors(), n_rows),
            Kind::Random(draws) => Anchors::counted(n_rows, |row| draws.count_of(row)),
            Kind::Neighbors(lists) => Anchors::counted(n_rows, |row| lists.count_of(row)),
        }
    }

    /// About how many different (anchor, near) and (anchor, far) there are: counted for neighbors, expected for random
    /// triplets, sampled in long lists.
    pub(crate) fn count_pairs(&self) -> f64 {
        match &self.kind {
            Kind::Stored(stored) => stored.count_pairs(),
            Kind::Random(draws) => draws.expected_pairs(),
            Kind::Neighbors(lists) => lists.count_pairs() as f64,
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
        match &self.kind {
            Kind::Stored(stored) => match anchors.order() {
                None => stored.each_in(range, each),
                Some(order) => {
                    for (k, &t) in order[range].iter().enumerate() {
                        let (_, near, far) = stored.get(t as usize);
                        each(first + k, near, far);
                    }
                }
            },
            Kind::Random(draws) => {
                draws.each_of(anchor, |k, near, far| each(first + k, near, far));
            }
            Kind::Neighbors(lists) => {
                lists.each_of(anchor, |k, near, far| each(first + k, near, far));
            }
        }
    }

    /// Near and far of the triplet at a position, which is one of `anchor`.
    #[inline]
    pub(crate) fn at(&self, anchors: &Anchors, position: usize, anchor: usize) -> (u32, u32) {
        let range = anchors.range(anchor);
        debug_assert!(range.contains(&position), "the triplet has this anchor");
        match &self.kind {
            Kind::Stored(stored) => {
                let (_, near, far) = stored.get(anchors.triplet(position));
                (near, far)
            }
            Kind::Random(draws) => draws.nth(anchor, position - range.start),
            Kind::Neighbors(lists) => lists.nth(anchor, position - range.start),
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
        let made_from = match &self.kind {
            Kind::Stored(stored) => return stored.check(n_rows),
            Kind::Random(draws) => draws.n_rows(),
            Kind::Neighbors(lists) => lists.n_rows(),
        };
        if made_from > n_rows {
            return Err(Error::data(format!(
                "the triplets were mined from {made_from} rows, but there are {n_rows} rows"
            )));
        }
        Ok(())
    }
}

/// The error about a number of triplets beyond 32 bits.
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

/// The same triplets of the same weights in the same order, however they are stored.
impl PartialEq for Triplets {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self.iter().eq(other.iter())
            && (0..self.len()).all(|t| self.weight(t) == other.weight(t))
    }
}

impl fmt::Debug for Triplets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Stored(_) => "stored",
            Kind::Random(_) => "random",
            Kind::Neighbors(_) => "neighbors",
        };
        f.debug_struct("Triplets")
            .field("kind", &kind)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
