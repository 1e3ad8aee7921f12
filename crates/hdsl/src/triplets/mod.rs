//! Training data: "anchor is more similar to near than to far", as row numbers into one [`Rows`](crate::Rows).

mod anchors;
mod file;
mod judgments;
mod neighbors;
mod pairs;
mod random;
mod source;

pub(crate) use anchors::Anchors;
pub use file::TripletFormat;
pub use judgments::{JudgedQuery, Judgments};
pub(crate) use neighbors::check_classes;
pub use pairs::{Pair, Pairs};
pub use source::TripletSource;

use crate::error::{Error, Result};
use crate::random::Lists;
pub(crate) use neighbors::NeighborLists;
use random::RandomDraws;
use std::fmt;
use std::ops::Range;

/// About as many listed triplets are looked at to count pairs.
const SAMPLE: usize = 1 << 17;

/// Triplets of row numbers, with optional weights above 0.
///
/// Those mined from labels are not stored one by one: for neighbors, the lists of neighbors are; for random triplets, a
/// seed. Each triplet is computed whenever it is asked for, so that a hundred million take a few megabytes.
#[derive(Clone)]
pub struct Triplets {
    kind: Kind,
    /// If any differs from 1; mined triplets have none.
    weights: Option<Vec<f64>>,
}

/// How triplets are stored.
#[derive(Clone)]
enum Kind {
    /// Anchor, near and far of each, in the order they were given.
    Listed(Vec<(u32, u32, u32)>),
    /// What they are computed from, in the order of their anchors.
    Mined(Anchors, Mined),
}

#[derive(Clone)]
enum Mined {
    Random(RandomDraws),
    Neighbors(NeighborLists),
}

impl Triplets {
    /// No triplets yet, all of weight 1.
    pub fn new() -> Self {
        Self {
            kind: Kind::Listed(Vec::new()),
            weights: None,
        }
    }

    /// Triplets of the rows by increasing number, `count_of(row)` of them for each.
    fn mined(mined: Mined, n_rows: usize, count_of: impl Fn(usize) -> usize) -> Self {
        Self {
            kind: Kind::Mined(Anchors::counted(n_rows, count_of), mined),
            weights: None,
        }
    }

    /// Adds a triplet of weight 1. Mined triplets are first written out one by one, which takes 12 bytes each.
    pub fn push(&mut self, anchor: u32, near: u32, far: u32) {
        self.push_weighted(anchor, near, far, 1.0);
    }

    /// Adds a triplet that counts `weight` times in the objective. Mined triplets are first written out one by one.
    pub fn push_weighted(&mut self, anchor: u32, near: u32, far: u32, weight: f64) {
        if let Kind::Mined(..) = self.kind {
            self.kind = Kind::Listed(self.iter().collect());
        }
        if weight != 1.0 && self.weights.is_none() {
            self.weights = Some(vec![1.0; self.len()]);
        }
        if let Some(weights) = &mut self.weights {
            weights.push(weight);
        }
        if let Kind::Listed(list) = &mut self.kind {
            list.push((anchor, near, far));
        }
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
        for (t, (anchor, near, far)) in other.iter().enumerate() {
            self.push_weighted(anchor, near, far, other.weight(t));
        }
    }

    /// The same triplets, each with its weight times that of its anchor; those of weight 0 are left out. They are written
    /// out one by one.
    ///
    /// ```
    /// let mut triplets = hdsl::Triplets::new();
    /// triplets.push(0, 1, 2);
    /// triplets.push(3, 1, 2);
    /// let weighted = triplets.weighted_by_anchor(|anchor| f64::from(anchor));
    /// assert_eq!((weighted.len(), weighted.get(0), weighted.weight(0)), (1, (3, 1, 2), 3.0));
    /// ```
    pub fn weighted_by_anchor(&self, weight: impl Fn(u32) -> f64) -> Self {
        let mut weighted = Self::new();
        for (t, (anchor, near, far)) in self.iter().enumerate() {
            let weight = weight(anchor) * self.weight(t);
            if weight > 0.0 {
                weighted.push_weighted(anchor, near, far, weight);
            }
        }
        weighted
    }

    /// The lists of neighbors they are made of, if they are.
    pub(crate) fn lists(&self) -> Option<&NeighborLists> {
        match &self.kind {
            Kind::Mined(_, Mined::Neighbors(lists)) => Some(lists),
            _ => None,
        }
    }

    /// How many there are (T in the paper).
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::Listed(list) => list.len(),
            Kind::Mined(anchors, _) => anchors.starts()[anchors.n_rows()],
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The weights, if any differs from 1.
    pub fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
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
            Kind::Listed(list) => list[t],
            Kind::Mined(anchors, mined) => {
                let anchor = anchors.anchor_of(t);
                let k = t - anchors.range(anchor).start;
                let (near, far) = match mined {
                    Mined::Random(draws) => draws.nth(anchor, k),
                    Mined::Neighbors(lists) => lists.nth(anchor, k),
                };
                (anchor as u32, near, far)
            }
        }
    }

    /// Each triplet in turn: anchor, near, far.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, u32, u32)> {
        (0..self.len()).map(|t| self.get(t))
    }

    /// Calls `each` with every triplet in turn, as [`Triplets::iter`] has them, and faster.
    pub(crate) fn each(&self, mut each: impl FnMut(u32, u32, u32)) {
        match &self.kind {
            Kind::Listed(list) => list.iter().for_each(|&(a, near, far)| each(a, near, far)),
            Kind::Mined(anchors, _) => {
                for anchor in 0..anchors.n_rows() {
                    self.each_of_anchor(anchors, anchor, |_, near, far| {
                        each(anchor as u32, near, far);
                    });
                }
            }
        }
    }

    /// The triplets by anchor, among `n_rows` rows that [`Triplets::check`] has seen. Only a list whose anchors do not
    /// come in increasing order takes memory for each triplet.
    pub(crate) fn by_anchor(&self, n_rows: usize) -> Anchors {
        match &self.kind {
            Kind::Listed(list) => Anchors::grouped(list.iter().map(|triplet| triplet.0), n_rows),
            Kind::Mined(anchors, _) => anchors.among(n_rows),
        }
    }

    /// About how many different (anchor, near) and (anchor, far) there are: counted for neighbors, expected for random
    /// triplets, sampled in long lists.
    pub(crate) fn count_pairs(&self) -> f64 {
        match &self.kind {
            Kind::Listed(list) => sampled_pairs(list),
            Kind::Mined(_, Mined::Random(draws)) => draws.expected_pairs(),
            Kind::Mined(_, Mined::Neighbors(lists)) => lists.count_pairs() as f64,
        }
    }

    /// The triplets of a range of anchors, with the same row numbers.
    pub(crate) fn restricted_to(&self, rows: Range<usize>) -> Self {
        match &self.kind {
            Kind::Listed(list) => {
                let mut part = Self::new();
                for (t, &(anchor, near, far)) in list.iter().enumerate() {
                    if rows.contains(&(anchor as usize)) {
                        part.push_weighted(anchor, near, far, self.weight(t));
                    }
                }
                part
            }
            Kind::Mined(anchors, mined) => {
                let count = |row: usize| match rows.contains(&row) {
                    true => anchors.range(row).len(),
                    false => 0,
                };
                Self::mined(mined.clone(), anchors.n_rows(), count)
            }
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
        let at = |k, near, far| each(first + k, near, far);
        match &self.kind {
            Kind::Listed(list) => {
                for position in range {
                    let (_, near, far) = list[anchors.triplet(position)];
                    each(position, near, far);
                }
            }
            Kind::Mined(_, Mined::Random(draws)) => draws.each_of(anchor, at),
            Kind::Mined(_, Mined::Neighbors(lists)) => lists.each_of(anchor, at),
        }
    }

    /// The weight of the triplet at a position.
    #[inline]
    pub(crate) fn weight_at(&self, anchors: &Anchors, position: usize) -> f64 {
        self.weight(anchors.triplet(position))
    }

    /// All rows that the triplets of some anchors name, increasing: those anchors that have triplets, and the rows they are
    /// compared with.
    ///
    /// ```
    /// use hdsl::{Labels, Rows, Triplets};
    /// let rows = Rows::from_parts(1, vec![0; 5], vec![], vec![])?;
    /// let labels = Labels::from_names(["a", "b", "a", "c"]);
    /// let triplets = Triplets::at_random(&rows, &labels, 50, 0)?;
    /// assert_eq!(triplets.rows_named(0..1, 4), [0, 1, 2, 3]);
    /// assert!(triplets.rows_named(1..2, 4).is_empty()); // a row alone in its class
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the range ends after `n_rows`, or the triplets name other rows than the `n_rows` that there are.
    pub fn rows_named(&self, anchors: Range<usize>, n_rows: usize) -> Vec<u32> {
        let by_anchor = self.by_anchor(n_rows);
        let mut named = vec![false; n_rows];
        for anchor in anchors {
            named[anchor] |= !by_anchor.range(anchor).is_empty();
            self.each_of_anchor(&by_anchor, anchor, |_, near, far| {
                named[near as usize] = true;
                named[far as usize] = true;
            });
        }
        (0..n_rows as u32)
            .filter(|&row| named[row as usize])
            .collect()
    }

    /// Checks that there is a triplet and not too many, that every row exists, that near and far differ and weights are
    /// above 0 and at most 1e30. Takes a pass over triplets given one by one, and no time for mined ones.
    pub fn check(&self, n_rows: usize) -> Result<()> {
        if self.is_empty() {
            return Err(Error::data("there are no triplets to learn from"));
        }
        if self.len() as u64 > u64::from(u32::MAX) {
            return Err(too_many(self.len()));
        }
        match &self.kind {
            Kind::Listed(list) => (list.iter().enumerate())
                .try_for_each(|(t, &rows)| check_one(t, rows, self.weight(t), n_rows)),
            Kind::Mined(anchors, _) if anchors.n_rows() > n_rows => Err(Error::data(format!(
                "the triplets were mined from {} rows, but there are {n_rows} rows",
                anchors.n_rows()
            ))),
            Kind::Mined(..) => Ok(()),
        }
    }
}

/// Checks that the rows of a triplet exist, that near and far differ and the weight can be used.
fn check_one(
    index: usize,
    (anchor, near, far): (u32, u32, u32),
    weight: f64,
    rows: usize,
) -> Result<()> {
    if let Some(row) = [anchor, near, far]
        .into_iter()
        .find(|&r| r as usize >= rows)
    {
        return Err(Error::data(format!(
            "triplet {index} names row {row}, but there are {rows} rows"
        )));
    }
    if near == far {
        return Err(Error::data(format!(
            "triplet {index} has row {near} both as near and as far, expected two different rows"
        )));
    }
    check_weight(weight).map_err(|want| {
        Error::data(format!(
            "triplet {index} has weight {}, expected {want}",
            shown(weight)
        ))
    })
}

/// The largest weight of a triplet, a pair or a class. The line search sums weights times squares of margins.
pub(crate) const LARGEST_WEIGHT: f64 = 1e30;

/// A weight in a message. Large ones would have hundreds of digits.
fn shown(weight: f64) -> String {
    match weight > LARGEST_WEIGHT {
        true => format!("{weight:e}"),
        false => weight.to_string(),
    }
}

/// What is expected of a weight that cannot be used.
fn check_weight(weight: f64) -> std::result::Result<(), &'static str> {
    match weight {
        _ if !(weight.is_finite() && weight > 0.0) => Err("a finite number above 0"),
        _ if weight > LARGEST_WEIGHT => Err("at most 1e30: sums of larger ones overflow"),
        _ => Ok(()),
    }
}

/// About how many different (anchor, other) there are, from the triplets of some anchors.
fn sampled_pairs(list: &[(u32, u32, u32)]) -> f64 {
    let one_in = list.len().div_ceil(SAMPLE).max(1) as u32;
    let lists = Lists::new(0, 0);
    let is_sampled = |t: &&(u32, u32, u32)| lists.list(u64::from(t.0)).below(0, one_in) == 0;
    let mut pairs: Vec<(u32, u32)> = (list.iter().filter(is_sampled))
        .flat_map(|&(anchor, near, far)| [(anchor, near), (anchor, far)])
        .collect();
    let sampled = pairs.len() as f64 / 2.0;
    pairs.sort_unstable();
    pairs.dedup();
    match pairs.is_empty() {
        true => 2.0 * list.len() as f64,
        false => list.len() as f64 * pairs.len() as f64 / sampled,
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
        write!(f, "Triplets({})", self.len())
    }
}

#[cfg(test)]
mod tests;
