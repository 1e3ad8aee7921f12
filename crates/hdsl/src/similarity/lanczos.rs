//! The largest eigenvalues of a sparse symmetric positive semidefinite matrix, with their eigenvectors.
//!
//! The Lanczos method: an orthonormal basis of the Krylov space x, Ax, A²x, ... of a random x, in which A is
//! tridiagonal. The extreme eigenvalues of that small matrix converge to those of A. Every new vector is orthogonalized
//! against all earlier ones, so that rounding produces no copies of eigenvalues.
//!
//! One Krylov space contains one eigenvector per distinct eigenvalue. Further spaces, orthogonal to all that was found,
//! are therefore searched until their largest eigenvalue is below those that are wanted.

use crate::eigen::{Eigenpair, add, dot, tridiagonal_eigen};
use crate::sort::sort_by;

/// How small a residual |Ax - θx| has to be, relative to the largest eigenvalue.
const TOLERANCE: f64 = 1e-13;

/// The matrix Σ weight (e_i ± e_j)(e_i ± e_j)ᵀ, by its terms.
pub(super) struct SumOfPairs {
    pub(super) n: usize,
    /// i, j, the sign as 1 or -1, and the weight.
    pub(super) pairs: Vec<(usize, usize, f64, f64)>,
}

impl SumOfPairs {
    fn times(&self, x: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; self.n];
        for &(i, j, sign, weight) in &self.pairs {
            let along = weight * (x[i] + sign * x[j]);
            product[i] += along;
            product[j] += sign * along;
        }
        product
    }
}

/// The `count` largest eigenvalues, by decreasing value; fewer if there are not as many.
pub(super) fn largest(matrix: &SumOfPairs, count: usize) -> Vec<Eigenpair> {
    let count = count.min(matrix.n);
    let mut found: Vec<Eigenpair> = Vec::new();
    let mut random = Random(1);
    let mut wanted = count;
    while wanted > 0 && found.len() < matrix.n {
        let new = search(matrix, &found, wanted, &mut random);
        let Some(most) = new.first().map(|pair| pair.0) else {
            break;
        };
        // The smallest of those to return, as far as they are known.
        let least = found.get(count - 1).map(|pair| pair.0);
        found.extend(new);
        // Stable: pairs found earlier come first.
        sort_by(&mut found, |a, b| b.0.total_cmp(&a.0));
        wanted = match least {
            Some(least) if most <= least => 0,
            // There are repeated eigenvalues, perhaps many.
            Some(_) => (2 * wanted).min(count),
            None if found.len() < count => count - found.len(),
            None => 1,
        };
    }
    found.truncate(count);
    found
}

/// The `wanted` largest eigenvalues of one Krylov space orthogonal to `found`, or all of it if it has fewer.
fn search(
    matrix: &SumOfPairs,
    found: &[Eigenpair],
    wanted: usize,
    random: &mut Random,
) -> Vec<Eigenpair> {
    let most = matrix.n - found.len();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let (mut diagonal, mut beside) = (Vec::new(), Vec::new());
    let mut next: Vec<f64> = (0..matrix.n).map(|_| random.next()).collect();
    let mut norm = orthogonalize(&mut next, found, &basis);
    let mut check_at = (2 * wanted + 20).max(40);
    let mut scale = found.first().map_or(0.0, |pair| pair.0);
    loop {
        next.iter_mut().for_each(|v| *v /= norm);
        let product = matrix.times(&next);
        diagonal.push(dot(&product, &next));
        basis.push(std::mem::replace(&mut next, product));
        norm = orthogonalize(&mut next, found, &basis);
        // The trace of the tridiagonal matrix bounds its largest eigenvalue, all of which are at least 0.
        let size: f64 = diagonal.iter().sum::<f64>().max(scale);
        let is_invariant = basis.len() == most || norm <= f64::EPSILON * size;
        if !is_invariant && basis.len() < check_at {
            beside.push(norm);
            continue;
        }
        let m = basis.len();
        let mut eigen = tridiagonal_eigen(diagonal.clone(), beside.clone());
        eigen.truncate(wanted);
        scale = scale.max(eigen[0].0);
        let residual = |(_, vector): &Eigenpair| norm * vector[m - 1].abs();
        if is_invariant || (eigen.iter()).all(|pair| residual(pair) <= TOLERANCE * scale) {
            let vector = |(value, factors): Eigenpair| {
                let mut vector = vec![0.0; matrix.n];
                for (direction, factor) in basis.iter().zip(factors) {
                    add(&mut vector, factor, direction);
                }
                (value, vector)
            };
            return eigen.into_iter().map(vector).collect();
        }
        beside.push(norm);
        check_at = m + m / 2;
    }
}

/// Subtracts the projections on all known vectors, twice, since once leaves rounding. Returns the length of the rest.
fn orthogonalize(vector: &mut [f64], found: &[Eigenpair], basis: &[Vec<f64>]) -> f64 {
    for _ in 0..2 {
        for other in found.iter().map(|pair| &pair.1).chain(basis) {
            add(vector, -dot(vector, other), other);
        }
    }
    dot(vector, vector).sqrt()
}

/// Numbers between -1 and 1, by the multiplications of splitmix64. Any numbers without structure will do.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eigen::symmetric_eigen;

    fn dense(matrix: &SumOfPairs) -> Vec<Vec<f64>> {
        let mut dense = vec![vec![0.0; matrix.n]; matrix.n];
        for &(i, j, sign, weight) in &matrix.pairs {
            dense[i][i] += weight;
            dense[j][j] += weight;
            dense[i][j] += sign * weight;
            dense[j][i] += sign * weight;
        }
        dense
    }

    /// Eigenvalues are those of the dense method, vectors are orthonormal, and A x = θ x.
    #[track_caller]
    fn agrees(matrix: &SumOfPairs, count: usize) {
        let dense = symmetric_eigen(dense(matrix));
        let values: Vec<f64> = dense.iter().map(|pair| pair.0).collect();
        let found = largest(matrix, count);
        assert_eq!(found.len(), count.min(matrix.n));
        for (at, (value, vector)) in found.iter().enumerate() {
            assert!(
                (value - values[at]).abs() < 1e-12 * values[0],
                "{at}: {value} {}",
                values[at]
            );
            let mut rest = matrix.times(vector);
            add(&mut rest, -value, vector);
            assert!(dot(&rest, &rest).sqrt() < 1e-11 * values[0], "{at}");
            for (other, pair) in found.iter().enumerate() {
                let want = f64::from(u8::from(at == other));
                assert!((dot(vector, &pair.1) - want).abs() < 1e-10, "{at} {other}");
            }
        }
    }

    fn drawn(n: usize, extra: usize, equal: bool) -> SumOfPairs {
        let mut random = Random(n as u64);
        let mut below = |n: usize| ((random.next() + 1.0) / 2.0 * n as f64) as usize % n;
        let mut pairs: Vec<(usize, usize, f64, f64)> = Vec::new();
        for j in 1..n {
            pairs.push((below(j), j, 1.0, 0.0));
        }
        for _ in 0..extra {
            let (i, j) = (below(n), below(n));
            if i != j {
                pairs.push((i.min(j), i.max(j), -1.0, 0.0));
            }
        }
        for pair in &mut pairs {
            let weight = 10f64.powi(-(below(4) as i32)) * (1 + below(1000)) as f64;
            pair.3 = if equal { 1.0 } else { weight };
        }
        SumOfPairs { n, pairs }
    }

    #[test]
    fn eigenvalues_are_those_of_the_dense_method() {
        for n in [2, 3, 10, 60, 150] {
            for equal in [false, true] {
                for count in [1, 2, 7, n / 2, n] {
                    agrees(&drawn(n, n / 3, equal), count.max(1));
                }
            }
        }
    }

    /// All leaves of a star are alike: all eigenvalues but two are the same.
    #[test]
    fn repeated_eigenvalues_are_all_found() {
        let star = SumOfPairs {
            n: 120,
            pairs: (1..120).map(|j| (0, j, 1.0, 0.5)).collect(),
        };
        agrees(&star, 30);
        // Several stars of the same kind in a row.
        let mut pairs: Vec<_> = (0..160)
            .filter(|n| n % 16 != 0)
            .map(|n| (n / 16 * 16, n, 1.0, 1.0))
            .collect();
        pairs.extend((1..10).map(|s| (16 * (s - 1), 16 * s, -1.0, 1e-9)));
        agrees(&SumOfPairs { n: 160, pairs }, 40);
    }
}
