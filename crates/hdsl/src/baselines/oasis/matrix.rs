//! The dense matrix W, and what a block of passive-aggressive steps does to it.

use super::vector::Vector;
use crate::parallel::prelude::*;
use nalgebra::{DMatrix, SymmetricEigen};

/// Rows of W that are one piece of work, and how many multiplications are worth cutting into pieces.
const PIECE: usize = 64;
const WORTH_THREADS: usize = 1 << 17;

/// A square matrix, row after row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Matrix {
    dim: usize,
    values: Vec<f64>,
}

/// One triplet: V = x (y - z)ᵀ as its two factors.
pub(super) struct Move {
    pub(super) anchor: Vector,
    pub(super) difference: Vector,
}

/// A triplet's loss before its step, and the length of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Taken {
    pub(super) loss: f64,
    pub(super) tau: f64,
}

/// An entry of some anchor: the row of W it meets, which move it belongs to, its value.
type Entry = (u32, u32, f64);

impl Matrix {
    pub(super) fn identity(dim: usize) -> Self {
        let mut values = vec![0.0; dim * dim];
        values.iter_mut().step_by(dim + 1).for_each(|w| *w = 1.0);
        Self { dim, values }
    }

    pub(super) fn from_values(dim: usize, values: Vec<f64>) -> Self {
        assert_eq!(values.len(), dim * dim, "a square matrix");
        Self { dim, values }
    }

    pub(super) fn dim(&self) -> usize {
        self.dim
    }

    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.dim..][..self.dim]
    }

    /// Takes the moves in order, each a passive-aggressive step from where the one before it ended.
    ///
    /// W is read once and written once for all of them, which is what time goes into if it is larger than a cache: scores
    /// are taken before the first step, and what the steps between add to them is known from a few dot products,
    /// xᵀ (Σ τ V) v = Σ τ (x · x')(v' · v).
    pub(super) fn advance(&mut self, moves: &[Move], aggressiveness: f64) -> Vec<Taken> {
        let mut entries: Vec<Entry> = Vec::new();
        for (s, step) in moves.iter().enumerate() {
            step.anchor.each(|row, x| entries.push((row, s as u32, x)));
        }
        // Stable: within a row of W the moves stay in order.
        entries.sort_by_key(|entry| entry.0);
        let mut margins = self.scores(moves, &entries);
        let mut taken: Vec<Taken> = Vec::with_capacity(moves.len());
        for (s, step) in moves.iter().enumerate() {
            for (before, done) in moves.iter().zip(&taken).filter(|(_, done)| done.tau > 0.0) {
                let both = step.anchor.dot(&before.anchor);
                if both != 0.0 {
                    margins[s] += done.tau * both * step.difference.dot(&before.difference);
                }
            }
            let loss = (1.0 - margins[s]).max(0.0);
            let squares = step.anchor.squares() * step.difference.squares();
            let tau = match loss > 0.0 && squares > 0.0 {
                true => (loss / squares).min(aggressiveness),
                false => 0.0,
            };
            taken.push(Taken { loss, tau });
        }
        entries.retain(|entry| taken[entry.1 as usize].tau > 0.0);
        self.add(moves, &taken, &entries);
        taken
    }

    /// xᵀ W (y - z) of each move.
    fn scores(&self, moves: &[Move], entries: &[Entry]) -> Vec<f64> {
        let sums = |entries: &[Entry]| {
            let mut sums = vec![0.0; moves.len()];
            for &(row, s, x) in entries {
                let product = moves[s as usize]
                    .difference
                    .dot_dense(self.row(row as usize));
                sums[s as usize] += x * product;
            }
            sums
        };
        if !worth_threads(moves, entries) {
            return sums(entries);
        }
        let parts: Vec<Vec<f64>> = (0..self.dim.div_ceil(PIECE))
            .into_par_iter()
            .map(|piece| sums(of_piece(entries, piece)))
            .collect();
        parts
            .into_iter()
            .reduce(|mut all, part| {
                all.iter_mut().zip(part).for_each(|(a, p)| *a += p);
                all
            })
            .unwrap_or_default()
    }

    /// W += Σ τ x (y - z)ᵀ.
    fn add(&mut self, moves: &[Move], taken: &[Taken], entries: &[Entry]) {
        let dim = self.dim;
        let add = |entries: &[Entry], first: usize, rows: &mut [f64]| {
            for &(row, s, x) in entries {
                let row = &mut rows[(row as usize - first) * dim..][..dim];
                let s = s as usize;
                moves[s].difference.add_to(taken[s].tau * x, row);
            }
        };
        if !worth_threads(moves, entries) {
            return add(entries, 0, &mut self.values);
        }
        (self.values.par_chunks_mut(PIECE * dim).enumerate())
            .for_each(|(piece, rows)| add(of_piece(entries, piece), piece * PIECE, rows));
    }

    /// (W + Wᵀ) / 2.
    pub(super) fn symmetrize(&mut self) {
        for i in 0..self.dim {
            for j in 0..i {
                let (p, q) = (i * self.dim + j, j * self.dim + i);
                let mean = 0.5 * self.values[p] + 0.5 * self.values[q];
                (self.values[p], self.values[q]) = (mean, mean);
            }
        }
    }

    /// The nearest symmetric matrix without eigenvalues below 0; cubic in time.
    pub(super) fn make_positive(&mut self) {
        self.symmetrize();
        let matrix = DMatrix::from_row_slice(self.dim, self.dim, &self.values);
        let mut eigen = SymmetricEigen::new(matrix);
        if eigen.eigenvalues.iter().any(|&value| value < 0.0) {
            (eigen.eigenvalues.iter_mut()).for_each(|value| *value = value.max(0.0));
            self.values.copy_from_slice(eigen.recompose().as_slice());
            self.symmetrize();
        }
    }
}

/// The entries that meet rows of one piece.
fn of_piece(entries: &[Entry], piece: usize) -> &[Entry] {
    let place = |row: usize| entries.partition_point(|entry| (entry.0 as usize) < row);
    &entries[place(piece * PIECE)..place((piece + 1) * PIECE)]
}

fn worth_threads(moves: &[Move], entries: &[Entry]) -> bool {
    let multiplications = |&(_, s, _): &Entry| moves[s as usize].difference.stored();
    entries.iter().map(multiplications).sum::<usize>() >= WORTH_THREADS
}
