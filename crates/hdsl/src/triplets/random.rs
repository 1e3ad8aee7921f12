//! Triplets from labels by chance: what the paper does where training rows are few (Sec. 4.1).

use super::Triplets;
use super::neighbours::check_classes;
use crate::data::{Labels, Rows};
use crate::error::{Error, Result};
use crate::random;

/// Mining's own stream of random numbers.
const STREAM: u64 = 2;

impl Triplets {
    /// For each row, `per_row` triplets, each with another random row of its class and a random row of another class.
    ///
    /// A row alone in its class is never an anchor.
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
        // Rows sorted by class: a class is a range, and the rest is what lies before and after it.
        let counts = labels.counts();
        let mut starts = vec![0; counts.len() + 1];
        for (class, &count) in counts.iter().enumerate() {
            starts[class + 1] = starts[class] + count;
        }
        let mut fill = starts.clone();
        let mut sorted = vec![0u32; labels.len()];
        let mut place = vec![0; labels.len()];
        for (row, &class) in labels.codes().iter().enumerate() {
            let at = &mut fill[class as usize];
            sorted[*at] = row as u32;
            place[row] = *at;
            *at += 1;
        }
        let mut rng = random::rng(seed, STREAM);
        let mut triplets = Triplets::new();
        for (anchor, &class) in labels.codes().iter().enumerate() {
            let (start, size) = (starts[class as usize], counts[class as usize]);
            if size < 2 {
                continue;
            }
            for _ in 0..per_row {
                let near = start + random::below(&mut rng, size - 1);
                let near = near + usize::from(near >= place[anchor]);
                let far = random::below(&mut rng, labels.len() - size);
                let far = if far < start { far } else { far + size };
                triplets.push(anchor as u32, sorted[near], sorted[far]);
            }
        }
        Ok(triplets)
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
        for t in 0..triplets.len() {
            let (a, n, f) = triplets.get(t);
            assert_ne!(a, n);
            assert_eq!(labels.name(a as usize), labels.name(n as usize));
            assert_ne!(labels.name(a as usize), labels.name(f as usize));
            if a == 0 {
                *seen.entry((n, f)).or_insert(0) += 1;
            }
        }
        // Two others of class x, three rows of other classes.
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }
}
