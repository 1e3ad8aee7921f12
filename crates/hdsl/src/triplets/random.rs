//! Random triplets from labels: what the paper does where training rows are few (Sec. 4.1).

use super::neighbors::check_classes;
use super::{Mined, Triplets, too_many};
use crate::data::{Groups, Labels, Rows};
use crate::error::{Error, Result};
use crate::random::{Lists, Numbered};

/// The stream of random numbers of mining.
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
        check_classes(rows.n_rows(), labels)?;
        if per_row == 0 {
            return Err(Error::param(
                "triplets",
                format!("random:{per_row}"),
                "a whole number above 0",
            ));
        }
        let sizes = labels.counts();
        let count_of = |row: usize| match sizes[labels.codes()[row] as usize] {
            1 => 0,
            _ => per_row,
        };
        let n_anchors: usize = sizes.iter().filter(|&&size| size > 1).sum();
        if n_anchors.checked_mul(per_row).is_none() {
            return Err(too_many(n_anchors as u128 * per_row as u128));
        }
        let draws = Mined::Random(RandomDraws::new(labels, per_row, seed));
        Ok(Self::mined(draws, rows.n_rows(), count_of))
    }
}

/// A seed and the rows by class: all it takes to draw a triplet, the same one each time.
#[derive(Clone)]
pub(super) struct RandomDraws {
    /// The random numbers of the seed, a list for each anchor.
    numbers: Lists,
    per_row: usize,
    /// Rows by class: a class is a range of places, and the other classes are what lies before and after it.
    by_class: Groups<u32>,
    /// The place of each row.
    place: Vec<u32>,
    /// The class of each row.
    class: Vec<u32>,
}

impl RandomDraws {
    fn new(labels: &Labels, per_row: usize, seed: u64) -> Self {
        let class = labels.codes().to_vec();
        let by_class = Groups::new(labels.names().len(), class.iter().copied().zip(0u32..));
        let mut place = vec![0; class.len()];
        for (at, &row) in (0u32..).zip(by_class.items()) {
            place[row as usize] = at;
        }
        Self {
            numbers: Lists::new(seed, STREAM),
            per_row,
            by_class,
            place,
            class,
        }
    }

    /// How many different pairs (anchor, other) are to be expected.
    pub(super) fn expected_pairs(&self) -> f64 {
        // Of m rows, each is missed by k draws with probability (1 - 1/m)^k.
        let drawn = |rows: usize| {
            let m = rows as f64;
            m * -(self.per_row as f64 * (-1.0 / m).ln_1p()).exp_m1()
        };
        let of_class = |bounds: &[usize]| match bounds[1] - bounds[0] {
            0 | 1 => 0.0,
            size => size as f64 * (drawn(size - 1) + drawn(self.class.len() - size)),
        };
        self.by_class.starts().windows(2).map(of_class).sum()
    }

    /// The k-th triplet of an anchor.
    #[inline]
    pub(super) fn nth(&self, anchor: usize, k: usize) -> (u32, u32) {
        debug_assert!(k < self.per_row);
        self.draws_of(anchor).nth(k)
    }

    /// Calls `each` with number, near and far of the triplets of an anchor.
    #[inline]
    pub(super) fn each_of(&self, anchor: usize, mut each: impl FnMut(usize, u32, u32)) {
        let draws = self.draws_of(anchor);
        for k in 0..self.per_row {
            let (near, far) = draws.nth(k);
            each(k, near, far);
        }
    }

    #[inline]
    fn draws_of(&self, anchor: usize) -> DrawsOfAnchor<'_> {
        let class = self.by_class.range(self.class[anchor] as usize);
        DrawsOfAnchor {
            numbers: self.numbers.list(anchor as u64),
            start: class.start as u32,
            size: class.len() as u32,
            rows: self.by_class.items(),
            place: self.place[anchor],
        }
    }
}

/// What the triplets of one anchor are drawn from.
struct DrawsOfAnchor<'a> {
    numbers: Numbered,
    /// The row at each place.
    rows: &'a [u32],
    /// The places of the anchor's class: where they start and how many there are.
    start: u32,
    size: u32,
    /// The place of the anchor.
    place: u32,
}

impl DrawsOfAnchor<'_> {
    /// Near and far of the k-th triplet.
    #[inline]
    fn nth(&self, k: usize) -> (u32, u32) {
        let others = self.rows.len() as u32 - self.size;
        let (near, far) = self.numbers.two_below(k as u64, self.size - 1, others);
        let near = self.start + near;
        let near = near + u32::from(near >= self.place);
        let far = if far < self.start {
            far
        } else {
            far + self.size
        };
        (self.rows[near as usize], self.rows[far as usize])
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
