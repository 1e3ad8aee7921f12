//! The gradient, never as a d x d array.
//!
//! With w_t = -v_t ℓ'(m_t), let G = Σ_t w_t x_a (x_n - x_f)ᵀ = -V ∇f. Put the w_t on *pairs of rows*: the pair
//! {a, n} gains w_t and {a, f} loses it. With S the symmetric matrix of these sums, H = G + Gᵀ = Xᵀ S X, and an
//! atom's gain is <B, G> = λ (D_i + D_j ± H_ij) with D_i = H_ii / 2. Mined triplets share pairs, so this is
//! several times less work than visiting triplets.

use crate::atoms::{ActiveSet, Atom, Sign};
use crate::data::{Overlap, PackedRows};
use crate::objective::{Problem, Scored};
use crate::triplets::Triplets;

/// Which rows some triplets join, and by which pair. Built once for all triplets, or anew for each batch.
pub(crate) struct PairGraph {
    /// Row r's neighbors are at `starts[r]..starts[r + 1]` of the next two. A row paired with itself is listed
    /// twice, since S then holds twice the sum.
    starts: Vec<usize>,
    others: Vec<u32>,
    pairs: Vec<u32>,
    /// The two rows of each pair, the lower first.
    ends: Vec<(u32, u32)>,
    /// The pairs {anchor, near} and {anchor, far} of each triplet.
    near: Vec<u32>,
    far: Vec<u32>,
}

impl PairGraph {
    /// The pairs of the triplets named by `which`, numbered by lower row.
    pub(crate) fn new(
        n_rows: usize,
        triplets: &Triplets,
        which: impl ExactSizeIterator<Item = u32> + Clone,
    ) -> Self {
        let n = which.len();
        // Slot 2k is the near pair of the k-th triplet and slot 2k + 1 its far pair; bucket the slots by lower row.
        let ends_of = |t: u32| {
            let (a, near, far) = triplets.get(t as usize);
            [(a.min(near), a.max(near)), (a.min(far), a.max(far))]
        };
        let mut bucket = vec![0usize; n_rows + 1];
        for t in which.clone() {
            for (low, _) in ends_of(t) {
                bucket[low as usize + 1] += 1;
            }
        }
        for row in 0..n_rows {
            bucket[row + 1] += bucket[row];
        }
        let mut fill = bucket.clone();
        let mut slots = vec![(0u32, 0u32); 2 * n];
        for (k, t) in which.enumerate() {
            for (side, (low, high)) in ends_of(t).into_iter().enumerate() {
                slots[fill[low as usize]] = (high, (2 * k + side) as u32);
                fill[low as usize] += 1;
            }
        }
        let (mut near, mut far) = (vec![0u32; n], vec![0u32; n]);
        let mut ends = Vec::new();
        let mut seen = vec![(u32::MAX, 0u32); n_rows];
        for low in 0..n_rows {
            for &(high, slot) in &slots[bucket[low]..bucket[low + 1]] {
                let known = &mut seen[high as usize];
                if known.0 != low as u32 {
                    *known = (low as u32, ends.len() as u32);
                    ends.push((low as u32, high));
                }
                let side = if slot % 2 == 0 { &mut near } else { &mut far };
                side[slot as usize / 2] = known.1;
            }
        }
        let mut starts = vec![0usize; n_rows + 1];
        for &(p, q) in &ends {
            starts[p as usize + 1] += 1;
            starts[q as usize + 1] += 1;
        }
        for row in 0..n_rows {
            starts[row + 1] += starts[row];
        }
        let mut fill = starts.clone();
        let (mut others, mut pairs) = (vec![0u32; 2 * ends.len()], vec![0u32; 2 * ends.len()]);
        for (pair, &(p, q)) in ends.iter().enumerate() {
            for (from, to) in [(p, q), (q, p)] {
                let at = &mut fill[from as usize];
                others[*at] = to;
                pairs[*at] = pair as u32;
                *at += 1;
            }
        }
        Self {
            starts,
            others,
            pairs,
            ends,
            near,
            far,
        }
    }

    /// (other row, pair) for each pair of a row.
    fn around(&self, row: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let range = self.starts[row]..self.starts[row + 1];
        let pairs = self.pairs[range.clone()].iter().map(|&p| p as usize);
        self.others[range].iter().map(|&o| o as usize).zip(pairs)
    }
}

/// x_p ∘ x_q for every pair, kept when they are few: D is then one pass over them.
struct Products {
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Products {
    /// None if there would be more than `limit` of them.
    fn of(rows: &PackedRows, ends: &[(u32, u32)], limit: usize) -> Option<Self> {
        let mut products = Self {
            starts: Vec::with_capacity(ends.len() + 1),
            columns: Vec::new(),
            values: Vec::new(),
        };
        products.starts.push(0);
        for &(p, q) in ends {
            let (a, b) = (rows.row(p as usize), rows.row(q as usize));
            let (mut s, mut t) = (0, 0);
            while s < a.nnz() && t < b.nnz() {
                let (i, j) = (a.indices()[s], b.indices()[t]);
                if i == j {
                    products.columns.push(i);
                    products.values.push(a.values().at(s) * b.values().at(t));
                }
                s += usize::from(i <= j);
                t += usize::from(j <= i);
            }
            products.starts.push(products.columns.len());
            if products.columns.len() > limit {
                return None;
            }
        }
        Some(products)
    }
}

/// The gradient at one iterate: S as one number a pair, and D. Everything else is computed when asked for.
pub(crate) struct Gradient {
    graph: PairGraph,
    products: Option<Products>,
    /// S: one sum of pushes for each pair.
    sums: Vec<f64>,
    /// D_i = H_ii / 2.
    diagonal: Vec<f64>,
    /// Σ_t w_t m_t = <M, G>.
    at_model: f64,
    /// λ / V over the triplets this gradient is taken over.
    unit: f64,
}

impl Gradient {
    /// A gradient over all triplets, to be filled by [`Gradient::refresh`] every iteration.
    pub(crate) fn full(problem: &Problem<'_>) -> Self {
        let n = problem.triplets.len() as u32;
        let graph = PairGraph::new(problem.rows.n_rows(), problem.triplets, 0..n);
        // Keep memory within a small multiple of the input's.
        let limit = 8 * (problem.rows.nnz() + problem.triplets.len());
        let products = Products::of(&problem.rows, &graph.ends, limit);
        Self::over(problem, graph, products, problem.total_weight)
    }

    /// A gradient over some triplets, without products.
    #[cfg(test)]
    pub(crate) fn batch(problem: &Problem<'_>, which: &[u32]) -> Self {
        let graph = PairGraph::new(
            problem.rows.n_rows(),
            problem.triplets,
            which.iter().copied(),
        );
        let weight = which
            .iter()
            .map(|&t| problem.triplets.weight(t as usize))
            .sum();
        Self::over(problem, graph, None, weight)
    }

    fn over(
        problem: &Problem<'_>,
        graph: PairGraph,
        products: Option<Products>,
        weight: f64,
    ) -> Self {
        Self {
            sums: vec![0.0; graph.ends.len()],
            diagonal: Vec::new(),
            graph,
            products,
            at_model: 0.0,
            unit: problem.scale / weight,
        }
    }

    /// Takes in new pushes and margins, one for each triplet of this gradient.
    pub(crate) fn refresh(&mut self, rows: &PackedRows, pushes: &[f64], margins: &[f64]) {
        self.at_model = pushes.iter().zip(margins).map(|(w, m)| w * m).sum();
        self.sums.fill(0.0);
        for ((&near, &far), &push) in self.graph.near.iter().zip(&self.graph.far).zip(pushes) {
            self.sums[near as usize] += push;
            self.sums[far as usize] -= push;
        }
        self.diagonal.clear();
        self.diagonal.resize(rows.n_features(), 0.0);
        match &self.products {
            Some(products) => {
                for (pair, &sum) in self.sums.iter().enumerate() {
                    if sum != 0.0 {
                        let range = products.starts[pair]..products.starts[pair + 1];
                        for (&column, &value) in products.columns[range.clone()]
                            .iter()
                            .zip(&products.values[range])
                        {
                            self.diagonal[column as usize] += sum * value;
                        }
                    }
                }
            }
            None => self.diagonal_from_rows(rows),
        }
    }

    /// D without kept products.
    fn diagonal_from_rows(&mut self, rows: &PackedRows) {
        let mut overlap = Overlap::new(rows.longest());
        let mut pair = 0;
        while pair < self.graph.ends.len() {
            let low = self.graph.ends[pair].0;
            let own = rows.row(low as usize);
            overlap.learn(own.indices());
            while pair < self.graph.ends.len() && self.graph.ends[pair].0 == low {
                let sum = self.sums[pair];
                if sum != 0.0 {
                    let other = rows.row(self.graph.ends[pair].1 as usize);
                    for &(p, q) in overlap.with(other.indices()) {
                        let product = own.values().at(p as usize) * other.values().at(q as usize);
                        self.diagonal[own.indices()[p as usize] as usize] += sum * product;
                    }
                }
                pair += 1;
            }
        }
    }

    /// D, one number a feature.
    pub(crate) fn diagonal(&self) -> &[f64] {
        &self.diagonal
    }

    /// <B, -∇f> of an atom whose D_i + D_j ± H_ij is `score`.
    pub(crate) fn gain(&self, score: f64) -> f64 {
        self.unit * score
    }

    /// <M, -∇f>.
    pub(crate) fn gain_of_model(&self, problem: &Problem<'_>) -> f64 {
        self.at_model * self.unit / problem.scale
    }

    /// S X_{:,i}, as a row and what it gains.
    pub(crate) fn each_product(
        &self,
        problem: &Problem<'_>,
        i: u32,
        mut gain: impl FnMut(usize, f64),
    ) {
        let (holders, values) = problem.lists.column(i);
        for (&p, &x) in holders.iter().zip(values) {
            for (q, pair) in self.graph.around(p as usize) {
                let sum = self.sums[pair];
                if sum != 0.0 {
                    gain(q, sum * x);
                }
            }
        }
    }

    /// Row i of H, into `scratch.row` (0 where no triplet joins the features).
    pub(crate) fn row<'s>(
        &self,
        problem: &Problem<'_>,
        i: u32,
        scratch: &'s mut Scratch,
    ) -> &'s [f64] {
        scratch.clear();
        // u = S X_{:,i}: only rows that hold i, and the rows paired with them.
        self.each_product(problem, i, |q, by| {
            if !std::mem::replace(&mut scratch.marked[q], true) {
                scratch.reached.push(q as u32);
            }
            scratch.u[q] += by;
        });
        // Xᵀ u.
        for &q in &scratch.reached {
            let u = scratch.u[q as usize];
            let row = problem.rows.row(q as usize);
            let sums = &mut scratch.row;
            let each = |&j: &u32, x: f64| sums[j as usize] += u * x;
            row.values().each_with(row.indices().iter(), each);
        }
        &scratch.row
    }

    /// The best atom that has feature i, by a scan of the whole row of H.
    pub(crate) fn best_with(&self, problem: &Problem<'_>, i: u32, scratch: &mut Scratch) -> Scored {
        let row = self.row(problem, i, scratch);
        let here = self.diagonal[i as usize];
        let mut best: Option<Scored> = None;
        for (j, (&d, &h)) in self.diagonal.iter().zip(row).enumerate() {
            let score = here + d + h.abs();
            if j != i as usize && best.is_none_or(|b| score >= b.1) {
                let sign = if h < 0.0 { Sign::Minus } else { Sign::Plus };
                let found = (
                    Atom::new(i, j as u32, sign).expect("a partner is another feature"),
                    score,
                );
                best = Some(best.map_or(found, |b| problem.better(b, found)));
            }
        }
        best.expect("there are at least two features")
    }

    /// Every pair of rows with its sum of pushes, unless that is 0.
    pub(crate) fn each_pair(&self, mut visit: impl FnMut(u32, u32, f64)) {
        for (&(p, q), &sum) in self.graph.ends.iter().zip(&self.sums) {
            if sum != 0.0 {
                visit(p, q, sum);
            }
        }
    }

    /// The score of every active atom: treat each as one more column z_p = x_pi ± x_pj, then Σ S_pq z_p z_q / 2.
    pub(crate) fn active_scores(&self, table: &RowAtoms, n_atoms: usize) -> Vec<f64> {
        let mut scores = vec![0.0; n_atoms];
        let mut spread = vec![0.0; n_atoms];
        let mut pair = 0;
        while pair < self.graph.ends.len() {
            let low = self.graph.ends[pair].0 as usize;
            let here = &table.by_row[low];
            for &(atom, z) in here {
                spread[atom as usize] = z;
            }
            while pair < self.graph.ends.len() && self.graph.ends[pair].0 as usize == low {
                let sum = self.sums[pair];
                if sum != 0.0 && !here.is_empty() {
                    for &(atom, z) in &table.by_row[self.graph.ends[pair].1 as usize] {
                        scores[atom as usize] += sum * z * spread[atom as usize];
                    }
                }
                pair += 1;
            }
            for &(atom, _) in here {
                spread[atom as usize] = 0.0;
            }
        }
        scores
    }
}

/// Buffers for rows of H.
pub(crate) struct Scratch {
    u: Vec<f64>,
    marked: Vec<bool>,
    reached: Vec<u32>,
    row: Vec<f64>,
}

impl Scratch {
    pub(crate) fn new(problem: &Problem<'_>) -> Self {
        Self {
            u: vec![0.0; problem.rows.n_rows()],
            marked: vec![false; problem.rows.n_rows()],
            reached: Vec::new(),
            row: vec![0.0; problem.n_columns()],
        }
    }

    fn clear(&mut self) {
        for q in self.reached.drain(..) {
            self.u[q as usize] = 0.0;
            self.marked[q as usize] = false;
        }
        self.row.fill(0.0);
    }
}

/// For each row, the active atoms that see it and x_i ± x_j. Follows the active set.
pub(crate) struct RowAtoms {
    by_row: Vec<Vec<(u32, f64)>>,
    listed: Vec<Atom>,
}

impl RowAtoms {
    pub(crate) fn new(n_rows: usize) -> Self {
        Self {
            by_row: vec![Vec::new(); n_rows],
            listed: Vec::new(),
        }
    }

    /// Brings the table in line with the active set, whose order it follows.
    pub(crate) fn follow(&mut self, problem: &Problem<'_>, active: &ActiveSet) {
        // Atoms leave anywhere and join at the end, so what stays is a common subsequence.
        let mut kept = Vec::new();
        let mut renumber = vec![u32::MAX; self.listed.len()];
        for (old, atom) in self.listed.iter().enumerate() {
            if active.atoms().get(kept.len()) == Some(atom) {
                renumber[old] = kept.len() as u32;
                kept.push(*atom);
            }
        }
        if kept.len() < self.listed.len() {
            for row in &mut self.by_row {
                row.retain_mut(|entry| {
                    entry.0 = renumber[entry.0 as usize];
                    entry.0 != u32::MAX
                });
            }
        }
        let mut projected = Vec::new();
        for &atom in &active.atoms()[kept.len()..] {
            let number = kept.len() as u32;
            problem.project(atom, &mut projected);
            for feature in [atom.i(), atom.j()] {
                for &row in problem.lists.column(feature).0 {
                    // A row that holds both features is met twice; the second time its value is spent.
                    let z = std::mem::take(&mut projected[row as usize]);
                    if z != 0.0 {
                        self.by_row[row as usize].push((number, z));
                    }
                }
            }
            kept.push(atom);
        }
        self.listed = kept;
    }
}
