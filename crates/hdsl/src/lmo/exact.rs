//! The true best of all d(d-1) atoms, by rows of H that could hold it.
//!
//! Features are numbered by decreasing size, and row i is only asked about partners j > i: a pair is looked at once,
//! from its larger end. With u = S X_{:,i}, |H_ij| <= min(max|u| ‖X_j‖_1, ‖u‖_2 ‖X_j‖_2). The norms of u are in turn
//! bounded by those of the rows of S that feature i picks, which takes one pass over the data and no row of H. Most
//! features are too small, or their partners are, to beat the best atom so far, and their row is never computed.

use crate::objective::Scored;
use crate::solver::Engine;

/// The best atom, at least as good as `so_far`.
pub(crate) fn exact<'p>(engine: &mut impl Engine<'p>, so_far: Scored) -> Scored {
    let problem = engine.problem();
    let n_columns = problem.n_columns();
    let norms_of_rows = engine.norms_of_pair_rows();
    // The best any later feature has to offer, by itself and per unit of u.
    let mut suffix = vec![[f64::NEG_INFINITY, 0.0, 0.0]; n_columns + 1];
    for j in (0..n_columns).rev() {
        let [sum, length] = problem.norms(j as u32);
        let [diagonal, sums, lengths] = suffix[j + 1];
        suffix[j] = [
            diagonal.max(engine.diagonal(j as u32)),
            sums.max(sum),
            lengths.max(length),
        ];
    }
    // The bounds and a row of H round differently: leave room for that.
    let slack = 1.0 + 1e-9;
    let mut best = so_far;
    for i in 0..n_columns - 1 {
        let (holders, values) = problem.lists.column(i as u32);
        let mut u = [0.0; 2];
        for (&p, &x) in holders.iter().zip(values) {
            let [largest, length] = norms_of_rows[p as usize];
            u[0] += x.abs() * largest;
            u[1] += x.abs() * length;
        }
        let [diagonal, sum, length] = suffix[i + 1];
        let at_most =
            engine.diagonal(i as u32) + diagonal + slack * (u[0] * sum).min(u[1] * length);
        if at_most >= best.1 {
            best = engine.best_above(i as u32, best, i as u32 + 1);
        }
    }
    best
}
