//! Triplets stored one by one, in the order they were given.

use crate::error::{Error, Result};
use crate::random::Lists;
use std::ops::Range;

/// About as many triplets are looked at to count pairs.
const SAMPLE: usize = 1 << 17;

#[derive(Clone, Default)]
pub(super) struct Stored {
    anchor: Vec<u32>,
    near: Vec<u32>,
    far: Vec<u32>,
    weights: Option<Vec<f64>>,
}

impl Stored {
    pub(super) fn push(&mut self, anchor: u32, near: u32, far: u32, weight: f64) {
        let before = self.len();
        self.anchor.push(anchor);
        self.near.push(near);
        self.far.push(far);
        if weight != 1.0 || self.weights.is_some() {
            self.weights
                .get_or_insert_with(|| vec![1.0; before])
                .push(weight);
        }
    }

    pub(super) fn reserve(&mut self, more: usize) {
        for list in [&mut self.anchor, &mut self.near, &mut self.far] {
            list.reserve(more);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.anchor.len()
    }

    pub(super) fn anchors(&self) -> &[u32] {
        &self.anchor
    }

    pub(super) fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    #[inline]
    pub(super) fn get(&self, t: usize) -> (u32, u32, u32) {
        (self.anchor[t], self.near[t], self.far[t])
    }

    /// Calls `each` with every triplet in turn.
    pub(super) fn each(&self, mut each: impl FnMut(u32, u32, u32)) {
        for ((&anchor, &near), &far) in self.anchor.iter().zip(&self.near).zip(&self.far) {
            each(anchor, near, far);
        }
    }

    /// Calls `each` with number, near and far of the triplets of a range.
    #[inline]
    pub(super) fn each_in(&self, range: Range<usize>, mut each: impl FnMut(usize, u32, u32)) {
        let first = range.start;
        let both = self.near[range.clone()].iter().zip(&self.far[range]);
        for (k, (&near, &far)) in both.enumerate() {
            each(first + k, near, far);
        }
    }

    /// About how many different (anchor, other) there are, from the triplets of some anchors.
    pub(super) fn count_pairs(&self) -> f64 {
        let one_in = self.len().div_ceil(SAMPLE).max(1) as u32;
        let lists = Lists::new(0, 0);
        let mut sampled = 0usize;
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        self.each(|anchor, near, far| {
            if lists.list(u64::from(anchor)).below(0, one_in) == 0 {
                sampled += 1;
                pairs.extend([(anchor, near), (anchor, far)]);
            }
        });
        pairs.sort_unstable();
        pairs.dedup();
        match sampled {
            0 => 2.0 * self.len() as f64,
            _ => self.len() as f64 * pairs.len() as f64 / sampled as f64,
        }
    }

    /// Checks that every row exists, that near and far differ and weights are above 0.
    pub(super) fn check(&self, n_rows: usize) -> Result<()> {
        for index in 0..self.len() {
            let (anchor, near, far) = self.get(index);
            if let Some(row) = [anchor, near, far]
                .into_iter()
                .find(|&r| r as usize >= n_rows)
            {
                return Err(Error::data(format!(
                    "triplet {index} names row {row}, but there are {n_rows} rows"
                )));
            }
            if near == far {
                return Err(Error::data(format!(
                    "triplet {index} has row {near} both as near and as far, expected two different rows"
                )));
            }
            let weight = self.weights.as_ref().map_or(1.0, |weights| weights[index]);
            if !(weight.is_finite() && weight > 0.0) {
                return Err(Error::data(format!(
                    "triplet {index} has weight {weight}, expected a number above 0"
                )));
            }
        }
        Ok(())
    }
}
