//! The symmetric eigenproblem, for dense matrices of at most a few thousand rows.
//!
//! Householder reflections make the matrix tridiagonal: A = Q T Qᵀ. QR steps with implicit Wilkinson shifts then make T
//! diagonal (Golub and Van Loan, *Matrix Computations*, Sec. 8.3). Both are backward stable: eigenvalues have errors of
//! about the machine precision times the largest one. Cubic time.

use crate::sort::sort_by;

/// An eigenvalue and its unit eigenvector.
pub type Eigenpair = (f64, Vec<f64>);

/// All eigenvalues of a symmetric matrix with their eigenvectors, by decreasing value. The matrix is given by its rows.
pub fn symmetric_eigen(mut rows: Vec<Vec<f64>>) -> Vec<Eigenpair> {
    let n = rows.len();
    let mut reflections = Vec::new();
    for k in 0..n.saturating_sub(2) {
        let (done, rest) = rows.split_at_mut(k + 1);
        reflections.push(reflect(&mut done[k][k + 1..], rest, k + 1));
    }
    let diagonal = (0..n).map(|k| rows[k][k]).collect();
    let beside = (1..n).map(|k| rows[k - 1][k]).collect();
    // Qᵀ, as the product of the reflections; the last ones affect the fewest entries.
    for (k, row) in rows.iter_mut().enumerate() {
        row.fill(0.0);
        row[k] = 1.0;
    }
    for (k, v) in reflections.iter().enumerate().rev() {
        for row in &mut rows[k + 1..] {
            let part = &mut row[k + 1..];
            add(part, -2.0 * dot(part, v), v);
        }
    }
    diagonalize(diagonal, beside, rows)
}

/// All eigenvalues of a tridiagonal symmetric matrix with their eigenvectors, by decreasing value. It has `beside[k]` in row k
/// and column k + 1.
pub(crate) fn tridiagonal_eigen(diagonal: Vec<f64>, beside: Vec<f64>) -> Vec<Eigenpair> {
    let n = diagonal.len();
    let unit = |k| (0..n).map(|at| f64::from(u8::from(at == k))).collect();
    diagonalize(diagonal, beside, (0..n).map(unit).collect())
}

/// Applies to both sides of a matrix the reflection I - 2 v vᵀ that makes `column` a multiple of the first unit vector.
/// The matrix is `rest` from its column `first` on; `column` becomes the result, and v is returned.
fn reflect(column: &mut [f64], rest: &mut [Vec<f64>], first: usize) -> Vec<f64> {
    let scale = column.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    if column[1..].iter().all(|&x| x == 0.0) {
        return vec![0.0; column.len()];
    }
    let mut v: Vec<f64> = column.iter().map(|x| x / scale).collect();
    // The sign that adds, so that nothing cancels.
    let length = dot(&v, &v).sqrt().copysign(v[0]);
    v[0] += length;
    let norm = dot(&v, &v).sqrt();
    v.iter_mut().for_each(|x| *x /= norm);
    column.fill(0.0);
    column[0] = -length * scale;
    // A - v wᵀ - w vᵀ with w = 2 (A v - (vᵀ A v) v).
    let mut w: Vec<f64> = rest.iter().map(|row| dot(&row[first..], &v)).collect();
    let along = dot(&w, &v);
    (w.iter_mut().zip(&v)).for_each(|(w, v)| *w = 2.0 * (*w - along * v));
    for (k, row) in rest.iter_mut().enumerate() {
        add(&mut row[first..], -v[k], &w);
        add(&mut row[first..], -w[k], &v);
    }
    v
}

/// The eigenvalues of a tridiagonal matrix T, and the eigenvectors of Q T Qᵀ if `vectors` are the rows of Qᵀ.
fn diagonalize(mut d: Vec<f64>, mut e: Vec<f64>, mut vectors: Vec<Vec<f64>>) -> Vec<Eigenpair> {
    let largest = d.iter().chain(&e).fold(0.0f64, |most, x| most.max(x.abs()));
    // Also false for NaN, so that the loops end.
    let couples = |e: f64| e.abs() > f64::EPSILON * largest;
    let mut end = d.len().saturating_sub(1);
    while end > 0 {
        if !couples(e[end - 1]) {
            end -= 1;
            continue;
        }
        let start = (0..end)
            .rev()
            .find(|&k| !couples(e[k]))
            .map_or(0, |k| k + 1);
        // The eigenvalue of the last two rows and columns that is nearer to the last entry.
        let half = (d[end - 1] - d[end]) / 2.0;
        let last = e[end - 1];
        let shift = d[end] - last * (last / (half + half.hypot(last).copysign(half)));
        // Each rotation of rows and columns k and k + 1 moves the entry outside the band, `z`, down by one.
        let (mut x, mut z) = (d[start] - shift, e[start]);
        for k in start..end {
            let r = x.hypot(z);
            let (c, s) = if r > 0.0 { (x / r, z / r) } else { (1.0, 0.0) };
            if k > start {
                e[k - 1] = r;
            }
            let (a, b, q) = (d[k], e[k], d[k + 1]);
            let move_by = s * (s * (q - a) + 2.0 * c * b);
            d[k] = a + move_by;
            d[k + 1] = q - move_by;
            e[k] = c * s * (q - a) + (c * c - s * s) * b;
            x = e[k];
            if k + 1 < end {
                z = s * e[k + 1];
                e[k + 1] *= c;
            }
            let (upper, lower) = vectors.split_at_mut(k + 1);
            for (u, v) in upper[k].iter_mut().zip(&mut lower[0]) {
                (*u, *v) = (c * *u + s * *v, c * *v - s * *u);
            }
        }
    }
    let mut pairs: Vec<Eigenpair> = d.into_iter().zip(vectors).collect();
    sort_by(&mut pairs, |a, b| b.0.total_cmp(&a.0));
    pairs
}

/// vector += factor · other.
pub(crate) fn add(vector: &mut [f64], factor: f64, other: &[f64]) {
    for (v, o) in vector.iter_mut().zip(other) {
        *v += factor * o;
    }
}

/// The sum is taken in eight parts, which a processor adds up side by side.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (whole, rest) = (a.chunks_exact(8), a.len() / 8 * 8);
    let mut parts = [0.0; 8];
    for (x, y) in whole.zip(b.chunks_exact(8)) {
        for at in 0..8 {
            parts[at] += x[at] * y[at];
        }
    }
    let rest: f64 = a[rest..].iter().zip(&b[rest..]).map(|(x, y)| x * y).sum();
    parts.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;

    /// A v = value v for all pairs, and vectors are orthonormal: then these are all eigenvalues.
    #[track_caller]
    fn decomposes(rows: Vec<Vec<f64>>) {
        let n = rows.len();
        let pairs = symmetric_eigen(rows.clone());
        assert_eq!(pairs.len(), n);
        let size = rows.iter().flatten().fold(0.0f64, |m, x| m.max(x.abs()));
        let size = size * n as f64;
        assert!(pairs.is_sorted_by(|a, b| a.0 >= b.0));
        for (at, (value, vector)) in pairs.iter().enumerate() {
            for (row, v) in rows.iter().zip(vector) {
                let rest = (dot(row, vector) - value * v).abs();
                assert!(rest <= 1e-14 * size, "{at} of {n}: {rest}");
            }
            for (other, pair) in pairs.iter().enumerate() {
                let want = f64::from(u8::from(at == other));
                assert!((dot(vector, &pair.1) - want).abs() < 1e-13 * (n as f64 + 4.0));
            }
        }
    }

    #[test]
    fn pairs_are_those_of_the_matrix() {
        let mut rng = random::rng(5, 0);
        let mut drawn = || random::below(&mut rng, 2001) as f64 / 1000.0 - 1.0;
        for n in [0, 1, 2, 3, 4, 5, 8, 17, 60, 130] {
            let draws: Vec<Vec<f64>> = (0..n).map(|_| (0..n).map(|_| drawn()).collect()).collect();
            let entry = |r: usize, c: usize| draws[r.min(c)][r.max(c)];
            let square = |entry: &dyn Fn(usize, usize) -> f64| -> Vec<Vec<f64>> {
                (0..n)
                    .map(|r| (0..n).map(|c| entry(r, c)).collect())
                    .collect()
            };
            decomposes(square(&entry));
            // Of extreme sizes.
            decomposes(square(&|r, c| 1e-200 * entry(r, c)));
            decomposes(square(&|r, c| 1e150 * entry(r, c)));
            // Many entries are 0; graded; of rank 1; with equal eigenvalues; 0.
            decomposes(square(
                &|r, c| match (r + 2 * c) % 5 == 0 && (c + 2 * r) % 5 == 0 {
                    true => entry(r, c),
                    false => 0.0,
                },
            ));
            decomposes(square(&|r, c| entry(r, c) * 0.1f64.powi((r + c) as i32)));
            decomposes(square(&|_, _| 1.0));
            decomposes(square(&|r, c| f64::from(u8::from(r == c))));
            decomposes(square(&|_, _| 0.0));
        }
    }

    /// The second differences have the eigenvalues 2 - 2 cos(π k / (n + 1)).
    #[test]
    fn known_eigenvalues() {
        let n = 50;
        let pairs = tridiagonal_eigen(vec![2.0; n], vec![-1.0; n - 1]);
        for (at, (value, _)) in pairs.iter().enumerate() {
            let angle = std::f64::consts::PI * (n - at) as f64 / (n + 1) as f64;
            assert!((value - (2.0 - 2.0 * angle.cos())).abs() < 1e-14);
        }
    }

    #[test]
    fn numbers_that_are_not_finite_end() {
        for bad in [f64::NAN, f64::INFINITY] {
            let pairs = symmetric_eigen(vec![vec![bad; 6]; 6]);
            assert_eq!(pairs.len(), 6);
        }
    }
}
