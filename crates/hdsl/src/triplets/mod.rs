//! Training data: "anchor is more similar to near than to far", as row numbers into one [`Rows`](crate::Rows).

mod clicks;
mod judgments;
mod list;
mod neighbours;
mod random;

pub use clicks::{parse_clicks, read_clicks};
pub use judgments::{GradeOrder, parse_judgments, read_judgments};
pub use list::{parse_triplets, read_triplets, write_triplets};

use crate::error::{Error, Result};

/// Triplets of row numbers, with optional weights above 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Triplets {
    anchor: Vec<u32>,
    near: Vec<u32>,
    far: Vec<u32>,
    weights: Option<Vec<f64>>,
}

impl Triplets {
    /// No triplets yet, all of weight 1.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a triplet of weight 1.
    pub fn push(&mut self, anchor: u32, near: u32, far: u32) {
        self.anchor.push(anchor);
        self.near.push(near);
        self.far.push(far);
        if let Some(weights) = &mut self.weights {
            weights.push(1.0);
        }
    }

    /// Adds a triplet that counts `weight` times in the objective.
    pub fn push_weighted(&mut self, anchor: u32, near: u32, far: u32, weight: f64) {
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

    /// How many there are (T in the paper).
    pub fn len(&self) -> usize {
        self.anchor.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.anchor.is_empty()
    }

    /// The anchor of each triplet (x in the paper).
    pub fn anchor(&self) -> &[u32] {
        &self.anchor
    }

    /// The row the anchor should be more similar to (y in the paper).
    pub fn near(&self) -> &[u32] {
        &self.near
    }

    /// The row the anchor should be less similar to (z in the paper).
    pub fn far(&self) -> &[u32] {
        &self.far
    }

    /// The weights, if any differs from 1.
    pub fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// The weight of one triplet.
    pub fn weight(&self, t: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |w| w[t])
    }

    /// One triplet: anchor, near, far.
    pub fn get(&self, t: usize) -> (u32, u32, u32) {
        (self.anchor[t], self.near[t], self.far[t])
    }

    /// Checks that there is a triplet, that every row exists, that near and far differ and weights are above 0.
    pub fn check(&self, n_rows: usize) -> Result<()> {
        if self.is_empty() {
            return Err(Error::data("there are no triplets to learn from"));
        }
        if self.len() >= 1 << 31 {
            return Err(Error::data(format!(
                "there are {} triplets, more than the 2^31 - 1 that can be kept",
                self.len()
            )));
        }
        for index in 0..self.len() {
            let (anchor, near, far) = self.get(index);
            if let Some(row) = [anchor, near, far]
                .into_iter()
                .find(|&r| r as usize >= n_rows)
            {
                return Err(Error::TripletRow {
                    index,
                    row,
                    rows: n_rows,
                });
            }
            if near == far {
                return Err(Error::data(format!(
                    "triplet {index} has row {near} both as near and as far, expected two different rows"
                )));
            }
            let weight = self.weight(index);
            if !(weight.is_finite() && weight > 0.0) {
                return Err(Error::data(format!(
                    "triplet {index} has weight {weight}, expected a number above 0"
                )));
            }
        }
        Ok(())
    }
}
