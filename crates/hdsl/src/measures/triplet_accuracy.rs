//! The share of triplets that a similarity agrees with.

use crate::data::Rows;
use crate::parallel;
use crate::similarity::Similarity;
use crate::triplets::Triplets;
use std::cmp::Ordering;

/// How a similarity agrees with triplets, by the sums of their weights.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TripletAccuracy {
    /// Triplets with S(anchor, near) > S(anchor, far).
    pub satisfied: f64,
    /// Triplets with equal scores.
    pub tied: f64,
    /// All triplets.
    pub total: f64,
}

impl TripletAccuracy {
    /// That of triplets of preprocessed rows.
    ///
    /// ```
    /// use hdsl::measures::TripletAccuracy;
    /// use hdsl::{Dot, Rows, Triplets};
    /// let rows = Rows::from_parts(2, vec![0, 1, 2, 3], vec![0, 0, 1], vec![1.0; 3])?;
    /// let mut triplets = Triplets::new();
    /// triplets.push_weighted(0, 1, 2, 3.0); // 1 > 0
    /// triplets.push(2, 0, 1); // 0 = 0
    /// let counts = TripletAccuracy::of(&Dot, &rows, &triplets);
    /// assert_eq!((counts.satisfied, counts.tied, counts.total), (3.0, 1.0, 4.0));
    /// assert_eq!(counts.accuracy(), 3.5 / 4.0);
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    ///
    /// # Panics
    /// If a triplet names a row that does not exist.
    pub fn of<S: Similarity + ?Sized>(similarity: &S, rows: &Rows, triplets: &Triplets) -> Self {
        let outcome = |t: usize| {
            let (anchor, near, far) = triplets.get(t);
            let score =
                |row: u32| similarity.score(rows.row(anchor as usize), rows.row(row as usize));
            score(near).partial_cmp(&score(far))
        };
        let outcomes: Vec<Option<Ordering>> = parallel::map_blocks(triplets.len(), 256, outcome);
        // Summed in order: the same result for any number of threads.
        let mut counts = Self::default();
        for (t, outcome) in outcomes.into_iter().enumerate() {
            let weight = triplets.weight(t);
            counts.total += weight;
            match outcome {
                Some(Ordering::Greater) => counts.satisfied += weight,
                Some(Ordering::Equal) => counts.tied += weight,
                _ => {}
            }
        }
        counts
    }

    /// The share of triplets that the similarity agrees with; a tie counts one half. 0 if there are none.
    pub fn accuracy(&self) -> f64 {
        match self.total > 0.0 {
            true => (self.satisfied + 0.5 * self.tied) / self.total,
            false => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SparseRow;
    use crate::random::{below, rng};
    use crate::similarity::Dot;

    #[test]
    fn accuracy_is_that_of_random_tie_breaks() {
        let mut random = rng(3, 0);
        for _ in 0..50 {
            let mut rows = Rows::new(3);
            for _ in 0..8 {
                let filled: Vec<u32> = (0..3).filter(|_| below(&mut random, 2) == 0).collect();
                let values: Vec<f64> = filled
                    .iter()
                    .map(|_| 1.0 + below(&mut random, 2) as f64)
                    .collect();
                rows.push(SparseRow::new(&filled, &values));
            }
            let mut triplets = Triplets::new();
            let (mut expected, mut total) = (0.0, 0.0);
            for t in 0..30 {
                let [anchor, near] = [0; 2].map(|_| below(&mut random, 8));
                let far = (near + 1 + below(&mut random, 7)) % 8;
                let weight = [1.0, 0.25, 3.0][t % 3];
                triplets.push_weighted(anchor as u32, near as u32, far as u32, weight);
                let score = |row: usize| -> f64 {
                    let value = |row: usize, j: u32| rows.row(row).get(j);
                    (0..3).map(|j| value(anchor, j) * value(row, j)).sum()
                };
                let margin = score(near) - score(far);
                // The mean of both ways to break a tie.
                let wins = f64::from(margin > 0.0) + f64::from(margin >= 0.0);
                expected += weight * wins / 2.0;
                total += weight;
            }
            let counts = TripletAccuracy::of(&Dot, &rows, &triplets);
            assert!((counts.accuracy() - expected / total).abs() < 1e-12);
            assert!(counts.total == total);
        }
        let none = TripletAccuracy::of(&Dot, &Rows::new(1), &Triplets::new());
        assert_eq!(none.accuracy(), 0.0);
    }
}
