//! The first two principal components of sparse rows, by subspace iteration. The rows are not centered explicitly: the
//! mean is subtracted from the products. One thread and a fixed seed, so the same rows give the same axes.

use hdsl::Rows;
use hdsl::eigen::symmetric_eigen;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The dimension of the subspace; more than two, so that the first two components converge quickly.
const SUBSPACE: usize = 12;
const ITERATIONS: usize = 40;

/// Two orthonormal directions, the principal components.
pub(super) struct Components {
    directions: [Vec<f64>; 2],
    /// The mean row times each direction.
    offsets: [f64; 2],
    shares: [f64; 2],
}

impl Components {
    /// The components of rows without empty columns: time and memory are proportional to the number of columns.
    pub(super) fn fit(rows: &Rows) -> Self {
        let d = rows.n_features().max(2);
        let n = rows.n_rows() as f64;
        let mut mean = vec![0.0; d];
        let mut total = 0.0;
        for (feature, value) in rows.iter().flat_map(|row| row.iter()) {
            mean[feature as usize] += value / n;
            total += value * value;
        }
        total -= n * mean.iter().map(|m| m * m).sum::<f64>();
        let width = SUBSPACE.min(d);
        let mut random = ChaCha8Rng::seed_from_u64(0);
        let mut uniform = || random.next_u32() as f64 / u32::MAX as f64 - 0.5;
        // One vector per dimension of the subspace.
        let mut basis: Vec<Vec<f64>> = (0..width)
            .map(|_| (0..d).map(|_| uniform()).collect())
            .collect();
        orthonormalize(&mut basis);
        for _ in 0..ITERATIONS {
            basis = covariance_times(rows, &mean, &basis);
            orthonormalize(&mut basis);
        }
        // The covariance restricted to the subspace: its eigenvectors give the components.
        let images = covariance_times(rows, &mean, &basis);
        let entry =
            |a: usize, b: usize| (dot(&basis[a], &images[b]) + dot(&basis[b], &images[a])) / 2.0;
        let eigen = symmetric_eigen(
            (0..width)
                .map(|a| (0..width).map(|b| entry(a, b)).collect())
                .collect(),
        );
        let directions: [Vec<f64>; 2] = std::array::from_fn(|c| {
            let mut direction = vec![0.0; d];
            for (vector, factor) in basis.iter().zip(&eigen[c].1) {
                add(&mut direction, *factor, vector);
            }
            // The sign of a direction is arbitrary: the largest entry is made positive.
            let largest = direction
                .iter()
                .copied()
                .fold(0.0f64, |m, v| if v.abs() > m.abs() + 1e-9 { v } else { m });
            if largest < 0.0 {
                direction.iter_mut().for_each(|v| *v = -*v);
            }
            direction
        });
        let share = |c: usize| (eigen[c].0.max(0.0) / total.max(f64::MIN_POSITIVE)).min(1.0);
        let shares = [share(0), share(1)];
        let offsets = [dot(&mean, &directions[0]), dot(&mean, &directions[1])];
        Self {
            directions,
            offsets,
            shares,
        }
    }

    /// The coordinates of rows along both directions.
    pub(super) fn map(&self, rows: &Rows) -> [Vec<f64>; 2] {
        std::array::from_fn(|c| {
            let direction = &self.directions[c];
            let at = |feature: u32| direction.get(feature as usize).copied().unwrap_or(0.0);
            rows.iter()
                .map(|row| row.iter().map(|(f, v)| v * at(f)).sum::<f64>() - self.offsets[c])
                .collect()
        })
    }

    /// The share of the variance along each direction.
    pub(super) fn shares(&self) -> [f64; 2] {
        self.shares
    }
}

/// The covariance (times the number of rows) times a basis: Xᵀ X B - n m (mᵀ B).
fn covariance_times(rows: &Rows, mean: &[f64], basis: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let width = basis.len();
    // Row-major, since features are accessed one by one.
    let flat: Vec<f64> = (0..mean.len())
        .flat_map(|feature| basis.iter().map(move |vector| vector[feature]))
        .collect();
    let mut out = vec![0.0; flat.len()];
    let mut along = vec![0.0; width];
    let mut mean_along = vec![0.0; width];
    for (feature, &m) in mean.iter().enumerate() {
        for c in 0..width {
            mean_along[c] += m * flat[feature * width + c];
        }
    }
    for row in rows.iter() {
        along.iter_mut().for_each(|a| *a = 0.0);
        for (feature, value) in row.iter() {
            let at = feature as usize * width;
            for c in 0..width {
                along[c] += value * flat[at + c];
            }
        }
        for (feature, value) in row.iter() {
            let at = feature as usize * width;
            for c in 0..width {
                out[at + c] += value * along[c];
            }
        }
    }
    let n = rows.n_rows() as f64;
    for (feature, &m) in mean.iter().enumerate() {
        for c in 0..width {
            out[feature * width + c] -= n * m * mean_along[c];
        }
    }
    (0..width)
        .map(|c| out.iter().skip(c).step_by(width).copied().collect())
        .collect()
}

/// Makes vectors orthonormal, by Gram and Schmidt. One that depends on those before it becomes 0.
fn orthonormalize(vectors: &mut [Vec<f64>]) {
    for c in 0..vectors.len() {
        let (before, rest) = vectors.split_at_mut(c);
        let vector = &mut rest[0];
        let whole = dot(vector, vector).sqrt();
        // Twice, since once leaves rounding.
        for other in before.iter().chain(before.iter()) {
            let along = dot(vector, other);
            add(vector, -along, other);
        }
        let length = dot(vector, vector).sqrt();
        let is_new = length > 1e-12 * whole;
        let factor = if is_new { 1.0 / length } else { 0.0 };
        vector.iter_mut().for_each(|v| *v *= factor);
    }
}

/// vector += factor · other.
fn add(vector: &mut [f64], factor: f64, other: &[f64]) {
    for (v, o) in vector.iter_mut().zip(other) {
        *v += factor * o;
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdsl::SparseRow;

    #[test]
    fn components_are_those_of_the_dense_covariance() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let mut uniform = || random.next_u32() as f64 / u32::MAX as f64;
        let mut rows = Rows::new(15);
        for _ in 0..80 {
            let (a, b) = (uniform(), uniform());
            let dense: Vec<f64> = (0..15)
                .map(|f| {
                    (f as f64 * 0.2) * a + if f % 2 == 0 { 2.0 * b } else { 0.0 } + 0.3 * uniform()
                })
                .collect();
            let kept: Vec<u32> = (0..15).filter(|&f| (f * 7) % 4 != 0).collect();
            let values: Vec<f64> = kept.iter().map(|&f| dense[f as usize]).collect();
            rows.push(SparseRow::new(&kept, &values));
        }
        let column = |c: u32| -> Vec<f64> {
            let values: Vec<f64> = rows.iter().map(|row| row.get(c)).collect();
            let mean = values.iter().sum::<f64>() / 80.0;
            values.into_iter().map(|v| v - mean).collect()
        };
        let centered: Vec<Vec<f64>> = (0..15).map(column).collect();
        let products = |a: &Vec<f64>| centered.iter().map(|b| dot(a, b)).collect();
        let eigen = symmetric_eigen(centered.iter().map(products).collect());
        let values: Vec<f64> = eigen.into_iter().map(|pair| pair.0).collect();
        let total: f64 = values.iter().sum();

        let found = Components::fit(&rows);
        let [x, y] = found.map(&rows);
        for (coordinates, (value, share)) in
            [&x, &y].into_iter().zip(values.iter().zip(found.shares()))
        {
            let sum: f64 = coordinates.iter().map(|v| v * v).sum();
            assert!((sum - value).abs() < 1e-6 * value, "{sum} for {value}");
            assert!((share - value / total).abs() < 1e-6);
        }
        let across: f64 = x.iter().zip(&y).map(|(a, b)| a * b).sum();
        assert!(across.abs() < 1e-6 * values[1]);
    }

    #[test]
    fn equal_rows_have_no_variance() {
        let mut rows = Rows::new(4);
        (0..5).for_each(|_| rows.push(SparseRow::new(&[1], &[2.0])));
        let found = Components::fit(&rows);
        assert!(found.map(&rows).iter().flatten().all(|v| v.abs() < 1e-9));
    }
}
