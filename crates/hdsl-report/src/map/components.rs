//! The first two principal components of sparse rows, by subspace iteration. The rows are not centered explicitly: the
//! mean is subtracted from the products. One thread and a fixed seed, so the same rows give the same axes.

use hdsl::Rows;
use nalgebra::DMatrix;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The dimension of the subspace; more than two, so that the first two components converge quickly.
const SUBSPACE: usize = 12;
const ITERATIONS: usize = 40;

/// Two orthonormal directions, the principal components.
pub(super) struct Components {
    /// One column per component.
    directions: DMatrix<f64>,
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
        let start = DMatrix::from_fn(d, width, |_, _| {
            random.next_u32() as f64 / u32::MAX as f64 - 0.5
        });
        let mut basis = start.qr().q();
        for _ in 0..ITERATIONS {
            basis = covariance_times(rows, &mean, &basis).qr().q();
        }
        // The covariance restricted to the subspace: its eigenvectors give the components.
        let restricted = basis.tr_mul(&covariance_times(rows, &mean, &basis));
        let eigen = ((&restricted + restricted.transpose()) * 0.5).symmetric_eigen();
        let mut order: Vec<usize> = (0..width).collect();
        order.sort_by(|&a, &b| eigen.eigenvalues[b].total_cmp(&eigen.eigenvalues[a]));
        let mut directions = DMatrix::zeros(d, 2);
        let mut shares = [0.0; 2];
        for c in 0..2 {
            let mut direction = &basis * eigen.eigenvectors.column(order[c]);
            // The sign of a direction is arbitrary: the largest entry is made positive.
            let largest = direction
                .iter()
                .copied()
                .fold(0.0f64, |m, v| if v.abs() > m.abs() + 1e-9 { v } else { m });
            direction *= if largest < 0.0 { -1.0 } else { 1.0 };
            directions.set_column(c, &direction);
            shares[c] =
                (eigen.eigenvalues[order[c]].max(0.0) / total.max(f64::MIN_POSITIVE)).min(1.0);
        }
        let offset = |c: usize| {
            mean.iter()
                .zip(directions.column(c).iter())
                .map(|(m, v)| m * v)
                .sum()
        };
        Self {
            offsets: [offset(0), offset(1)],
            directions,
            shares,
        }
    }

    /// The coordinates of rows along both directions.
    pub(super) fn map(&self, rows: &Rows) -> [Vec<f64>; 2] {
        std::array::from_fn(|c| {
            let direction = self.directions.column(c);
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
fn covariance_times(rows: &Rows, mean: &[f64], basis: &DMatrix<f64>) -> DMatrix<f64> {
    let width = basis.ncols();
    // Row-major, since features are accessed one by one.
    let flat: Vec<f64> = basis.transpose().as_slice().to_vec();
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
    DMatrix::from_row_slice(mean.len(), width, &out)
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
        let dense = DMatrix::from_fn(80, 15, |r, c| rows.row(r).get(c as u32));
        let mean = dense.row_mean();
        let centered = DMatrix::from_fn(80, 15, |r, c| dense[(r, c)] - mean[c]);
        let eigen = centered.tr_mul(&centered).symmetric_eigen();
        let mut values: Vec<f64> = eigen.eigenvalues.iter().copied().collect();
        values.sort_by(|a, b| b.total_cmp(a));
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
