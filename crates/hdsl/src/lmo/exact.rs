//! The true best of all d(d-1) atoms, by rows of H in the order of what they could hold at most.
//!
//! H = Xᵀ Y with Y = S X. For a block J of columns, max_{j in J} |H_ij| is at most what row i of Xᵀ makes of the
//! largest positive and negative entries of each row of Y within J. Columns of like size share a block, so that a
//! few frequent features do not loosen the bound of the many rare ones. A row of H whose bound, with the best D
//! still open in each block, cannot beat the best atom so far is never computed.

use crate::objective::Scored;
use crate::solver::Engine;

/// The best atom, at least as good as `so_far`, and how many rows of H it took to prove it.
pub(crate) fn exact<'p>(engine: &mut impl Engine<'p>, so_far: Scored) -> (Scored, usize) {
    let problem = engine.problem();
    let bounds = Bounds::new(engine);
    let diagonal: Vec<f64> = (0..problem.n_columns() as u32)
        .map(|j| engine.diagonal(j))
        .collect();
    let mut open = OpenDiagonals::new(&diagonal, &bounds.block_of, bounds.n_blocks);
    let mut order: Vec<(f64, u32)> = (0..diagonal.len() as u32)
        .map(|i| (diagonal[i as usize] + bounds.partner(i, &open.best), i))
        .collect();
    order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let (mut best, mut rows) = (so_far, 0);
    for &(at_most, i) in &order {
        if at_most < best.1 {
            break;
        }
        // Rows dealt with no longer count as partners, so the bound has come down since the sort.
        if diagonal[i as usize] + bounds.partner(i, &open.best) >= best.1 {
            best = problem.better(best, engine.best_with(i));
            rows += 1;
        }
        open.close(i, &diagonal);
    }
    (best, rows)
}

/// Upper bounds of |H_ij|, for each feature i and block of columns j.
struct Bounds {
    block_of: Vec<u32>,
    n_blocks: usize,
    largest: Vec<f64>,
}

impl Bounds {
    fn new<'p>(engine: &impl Engine<'p>) -> Self {
        let problem = engine.problem();
        let n_columns = problem.n_columns();
        let n_blocks = ((1 << 22) / n_columns).clamp(1, 32);
        // Features are numbered by size. Block sizes double: the larger a column, the fewer share its block.
        let mut block_of = vec![0; n_columns];
        let (mut block, mut end) = (0, (n_columns >> (n_blocks - 1)).max(1));
        for (j, block_of) in block_of.iter_mut().enumerate() {
            if j >= end && block + 1 < n_blocks {
                block += 1;
                end *= 2;
            }
            *block_of = block as u32;
        }
        // For x > 0 positive entries of Y push H up and negative ones down; for x < 0 the other way round.
        let mut up = vec![0.0; n_columns * n_blocks];
        let mut down = vec![0.0; n_columns * n_blocks];
        let mut highest = vec![0.0f64; n_blocks];
        let mut lowest = vec![0.0f64; n_blocks];
        engine.for_each_product_row(&mut |r, product, reached| {
            highest.fill(0.0);
            lowest.fill(0.0);
            for &j in reached {
                let (y, block) = (product[j as usize], block_of[j as usize] as usize);
                highest[block] = highest[block].max(y);
                lowest[block] = lowest[block].max(-y);
            }
            for (i, x) in problem.rows.row(r).iter() {
                let at = i as usize * n_blocks;
                let (with, against) = if x > 0.0 {
                    (&highest, &lowest)
                } else {
                    (&lowest, &highest)
                };
                for block in 0..n_blocks {
                    up[at + block] += x.abs() * with[block];
                    down[at + block] += x.abs() * against[block];
                }
            }
        });
        // The sums above and a row of H round differently: leave room for that.
        let slack = 1.0 + 1e-9;
        let largest = up
            .iter()
            .zip(&down)
            .map(|(u, d)| slack * u.max(*d))
            .collect();
        Self {
            block_of,
            n_blocks,
            largest,
        }
    }

    /// The most that D_j + |H_ij| can be for any j, given the best D of each block.
    fn partner(&self, i: u32, best_diagonal: &[f64]) -> f64 {
        let at = i as usize * self.n_blocks;
        let mut most = f64::NEG_INFINITY;
        for (h, d) in self.largest[at..at + self.n_blocks]
            .iter()
            .zip(best_diagonal)
        {
            most = most.max(h + d);
        }
        most
    }
}

/// The best D among the columns of each block that are not dealt with yet.
struct OpenDiagonals {
    sorted: Vec<Vec<u32>>,
    block_of: Vec<u32>,
    closed: Vec<bool>,
    next: Vec<usize>,
    best: Vec<f64>,
}

impl OpenDiagonals {
    fn new(diagonal: &[f64], block_of: &[u32], n_blocks: usize) -> Self {
        let mut sorted = vec![Vec::new(); n_blocks];
        for (j, &block) in block_of.iter().enumerate() {
            sorted[block as usize].push(j as u32);
        }
        for block in &mut sorted {
            block.sort_unstable_by(|&a, &b| {
                diagonal[b as usize]
                    .total_cmp(&diagonal[a as usize])
                    .then(a.cmp(&b))
            });
        }
        let best = sorted
            .iter()
            .map(|block| {
                block
                    .first()
                    .map_or(f64::NEG_INFINITY, |&j| diagonal[j as usize])
            })
            .collect();
        Self {
            sorted,
            block_of: block_of.to_vec(),
            closed: vec![false; block_of.len()],
            next: vec![0; n_blocks],
            best,
        }
    }

    fn close(&mut self, i: u32, diagonal: &[f64]) {
        self.closed[i as usize] = true;
        let block = self.block_of[i as usize] as usize;
        let list = &self.sorted[block];
        while self.next[block] < list.len() && self.closed[list[self.next[block]] as usize] {
            self.next[block] += 1;
        }
        self.best[block] = list
            .get(self.next[block])
            .map_or(f64::NEG_INFINITY, |&j| diagonal[j as usize]);
    }
}
