//! Triplets from labels by chance: what the paper does where training rows are few (Sec. 4.1).

use super::neighbors::check_classes;
use super::{Source, Triplets, too_many};
use crate::data::{Labels, Rows};
use crate::error::{Error, Result};
use crate::random::{Lists, Numbered};
use std::fmt;

/// Mining's own stream of random numbers.
const STREAM: u64 = 2;

impl Triplets {
    /// For each row, `per_row` triplets, each with another random row of its class and a random row of another class.
    ///
    /// A row alone in its class is never an anchor. Takes memory for the rows, whatever the number of triplets: a
    /// triplet is drawn whenever it is asked for, always the same.
    /// ```
    /// use hdsl::{Labels, Rows, Triplets};
    /// let rows = Rows::from_parts(1, vec![0; 5], vec![], vec![])?;
    /// let labels = Labels::from_names(["a", "b", "a", "c"]);
    /// let triplets = Triplets::at_random(&rows, &labels, 2, 0)?;
    /// assert_eq!(triplets.len(), 4); // two each for the two rows of class a
    /// assert_eq!(triplets.get(0).1, 2);
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn at_random(rows: &Rows, labels: &Labels, per_row: usize, seed: u64) -> Result<Self> {
        check_classes(rows, labels)?;
        if per_row == 0 {
            return Err(Error::param(
                "random triplets a row",
                per_row,
                "a whole number above 0",
            ));
        }
        let draws = Draws::new(labels, per_row, seed);
        if draws.anchors.len().checked_mul(per_row).is_none() {
            return Err(too_many(draws.anchors.len() as u128 * per_row as u128));
        }
        Ok(Triplets {
            source: Source::Random(draws),
        })
    }
}

/// A seed and the rows by class: all it takes to draw a triplet, the same one each time.
#[derive(Clone, PartialEq)]
pub(super) struct Draws {
    seed: u64,
    /// The random numbers of the seed, a list for each anchor.
    numbers: Lists,
    per_row: usize,
    /// Rows that are not alone in their class, increasing.
    anchors: Vec<u32>,
    /// Rows sorted by class: a class is a range, and the rest is what lies before and after it.
    sorted: Vec<u32>,
    /// Where each row stands in `sorted`.
    place: Vec<u32>,
    /// The class of each row, and where each class starts in `sorted`.
    class: Vec<u32>,
    starts: Vec<u32>,
}

impl Draws {
    fn new(labels: &Labels, per_row: usize, seed: u64) -> Self {
        let counts = labels.counts();
        let mut starts = vec![0u32; counts.len() + 1];
        for (class, &count) in counts.iter().enumerate() {
            starts[class + 1] = starts[class] + count as u32;
        }
        let mut fill = starts.clone();
        let mut sorted = vec![0u32; labels.len()];
        let mut place = vec![0u32; labels.len()];
        for (row, &class) in labels.codes().iter().enumerate() {
            let at = &mut fill[class as usize];
            sorted[*at as usize] = row as u32;
            place[row] = *at;
            *at += 1;
        }
        Self {
            seed,
            numbers: Lists::new(seed, STREAM),
            per_row,
            anchors: (0..labels.len() as u32)
                .filter(|&row| counts[labels.codes()[row as usize] as usize] > 1)
                .collect(),
            sorted,
            place,
            class: labels.codes().to_vec(),
            starts,
        }
    }

    pub(super) fn n_rows(&self) -> usize {
        self.class.len()
    }

    pub(super) fn len(&self) -> usize {
        self.anchors.len() * self.per_row
    }

    /// The rows that are anchors, increasing.
    pub(super) fn anchors(&self) -> &[u32] {
        &self.anchors
    }

    /// How many triplets a row is the anchor of; 0 for rows that were not there.
    pub(super) fn count_of(&self, row: usize) -> usize {
        match self.class.get(row) {
            Some(&class) if self.starts[class as usize + 1] - self.starts[class as usize] > 1 => {
                self.per_row
            }
            _ => 0,
        }
    }

    /// How many different (anchor, other) are to be expected.
    pub(super) fn expected_pairs(&self) -> f64 {
        // Of m rows, each is missed by k draws with chance (1 - 1/m)^k.
        let met = |rows: u32| {
            let m = f64::from(rows);
            m * -(self.per_row as f64 * (-1.0 / m).ln_1p()).exp_m1()
        };
        let n_rows = self.n_rows() as u32;
        let of_class = |bounds: &[u32]| match bounds[1] - bounds[0] {
            0 | 1 => 0.0,
            size => f64::from(size) * (met(size - 1) + met(n_rows - size)),
        };
        self.starts.windows(2).map(of_class).sum()
    }

    pub(super) fn get(&self, t: usize) -> (u32, u32, u32) {
        let anchor = self.anchors[t / self.per_row];
        let (near, far) = self.of(anchor as usize, t % self.per_row);
        (anchor, near, far)
    }

    /// The k-th triplet of an anchor.
    #[inline]
    pub(super) fn of(&self, anchor: usize, k: usize) -> (u32, u32) {
        debug_assert!(k < self.per_row);
        self.urn(anchor).draw(k)
    }

    /// Calls `each` with number, near and far of the triplets of an anchor.
    #[inline]
    pub(super) fn each_of(&self, anchor: usize, mut each: impl FnMut(usize, u32, u32)) {
        let urn = self.urn(anchor);
        for k in 0..self.per_row {
            let (near, far) = urn.draw(k);
            each(k, near, far);
        }
    }

    #[inline]
    fn urn(&self, anchor: usize) -> Urn<'_> {
        let class = self.class[anchor] as usize;
        let start = self.starts[class];
        Urn {
            numbers: self.numbers.list(anchor as u64),
            sorted: &self.sorted,
            start,
            size: self.starts[class + 1] - start,
            place: self.place[anchor],
        }
    }
}

/// What the triplets of one anchor are drawn from.
struct Urn<'a> {
    numbers: Numbered,
    sorted: &'a [u32],
    /// The class of the anchor starts here, has so many rows, and the anchor is at this place.
    start: u32,
    size: u32,
    place: u32,
}

impl Urn<'_> {
    #[inline]
    fn draw(&self, k: usize) -> (u32, u32) {
        let (near, far) = self.draw_places(k);
        (self.sorted[near as usize], self.sorted[far as usize])
    }

    #[inline]
    fn draw_places(&self, k: usize) -> (u32, u32) {
        let others = self.sorted.len() as u32 - self.size;
        let (near, far) = self.numbers.two_below(k as u64, self.size - 1, others);
        let near = self.start + near;
        let near = near + u32::from(near >= self.place);
        let far = if far < self.start {
            far
        } else {
            far + self.size
        };
        (near, far)
    }
}

impl fmt::Debug for Draws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtRandom")
            .field("len", &self.len())
            .field("n_rows", &self.n_rows())
            .field("per_row", &self.per_row)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_other_rows_of_the_class_and_rows_of_other_classes_evenly() {
        let labels = Labels::from_names(["x", "y", "x", "z", "x", "y"]);
        let rows = Rows::from_parts(1, vec![0; 7], vec![], vec![]).unwrap();
        let triplets = Triplets::at_random(&rows, &labels, 6000, 3).unwrap();
        let mut seen = std::collections::BTreeMap::new();
        for (a, n, f) in triplets.iter() {
            assert_ne!(a, n);
            assert_eq!(labels.name(a as usize), labels.name(n as usize));
            assert_ne!(labels.name(a as usize), labels.name(f as usize));
            *seen.entry((a, n, f)).or_insert(0i32) += 1;
        }
        // An anchor of x: two others, three rows of other classes. An anchor of y: one other and four. z: alone.
        assert_eq!(seen.len(), 3 * 6 + 2 * 4);
        for (&(a, n, f), &count) in &seen {
            let expected = match labels.name(a as usize) {
                "x" => 1000,
                _ => 1500,
            };
            assert!(
                (count - expected).abs() < 150,
                "({a}, {n}, {f}) came {count} times of {expected}"
            );
        }
    }

    #[test]
    fn more_triplets_than_can_be_counted_are_refused() {
        let labels = Labels::from_names(["x", "x", "y"]);
        let rows = Rows::from_parts(1, vec![0; 4], vec![], vec![]).unwrap();
        let most = Triplets::at_random(&rows, &labels, (1 << 31) - 1, 0).unwrap();
        assert!(most.check(3).is_ok());
        let more = Triplets::at_random(&rows, &labels, 1 << 31, 0).unwrap();
        let error = more.check(3).unwrap_err().to_string();
        assert_eq!(
            error,
            "there are 4294967296 triplets, more than the 2^32 - 1 that can be learned from"
        );
        let error = Triplets::at_random(&rows, &labels, usize::MAX, 0).unwrap_err();
        assert!(error.to_string().contains("2^32 - 1"), "{error}");
    }
}
