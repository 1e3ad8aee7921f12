//! Blocks of passive-aggressive steps on the dense matrix W, and what is done to it after the last.

use super::OasisModel;
use super::vector::{add_to, dot, dot_dense};
use crate::data::SparseRow;
use crate::eigen::{add, symmetric_eigen};
use crate::parallel;

/// Rows of W that are one piece of parallel work.
const PIECE: usize = 64;

/// One triplet: V = x (y - z)ᵀ as its two factors.
pub(super) struct Move<'a> {
    pub(super) anchor: SparseRow<'a>,
    pub(super) difference: (Vec<u32>, Vec<f64>),
}

impl Move<'_> {
    fn difference(&self) -> SparseRow<'_> {
        SparseRow::new(&self.difference.0, &self.difference.1)
    }
}

/// A triplet's loss before its step, and the length of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Taken {
    pub(super) loss: f64,
    pub(super) tau: f64,
}

/// An entry of an anchor: its row of W, the move it belongs to, its value.
type Entry = (usize, usize, f64);

impl OasisModel {
    /// Takes the moves in order, each a passive-aggressive step from the result of the one before it.
    ///
    /// W is read once and written once for all of them, because a W larger than the cache takes most of the time: scores
    /// are computed before the first step, and the steps in between change them by a few dot products,
    /// xᵀ (Σ τ V) v = Σ τ (x · x')(v' · v).
    pub(super) fn advance(&mut self, moves: &[Move<'_>], aggressiveness: f64) -> Vec<Taken> {
        let mut entries: Vec<Entry> = (moves.iter().enumerate())
            .flat_map(|(s, step)| step.anchor.iter().map(move |(row, x)| (row as usize, s, x)))
            .collect();
        // Stable: within a row of W the moves stay in order.
        entries.sort_by_key(|entry| entry.0);
        let mut margins = self.scores(moves, &entries);
        let mut taken: Vec<Taken> = Vec::with_capacity(moves.len());
        for (step, margin) in moves.iter().zip(&mut margins) {
            for (before, done) in moves.iter().zip(&taken).filter(|(_, done)| done.tau > 0.0) {
                let both = dot(step.anchor, before.anchor, self.dim);
                if both != 0.0 {
                    let along = dot(step.difference(), before.difference(), self.dim);
                    *margin += done.tau * both * along;
                }
            }
            let loss = (1.0 - *margin).max(0.0);
            let squares = [step.anchor, step.difference()].map(|v| dot(v, v, self.dim));
            let squares = squares[0] * squares[1];
            let tau = match loss > 0.0 && squares > 0.0 {
                true => (loss / squares).min(aggressiveness),
                false => 0.0,
            };
            taken.push(Taken { loss, tau });
        }
        entries.retain(|entry| taken[entry.1].tau > 0.0);
        self.add(moves, &taken, &entries);
        taken
    }

    /// xᵀ W (y - z) of each move.
    fn scores(&self, moves: &[Move<'_>], entries: &[Entry]) -> Vec<f64> {
        let of_piece = |piece| {
            let mut sums = vec![0.0; moves.len()];
            for &(row, s, x) in in_piece(entries, piece) {
                sums[s] += x * dot_dense(moves[s].difference(), self.row(row));
            }
            sums
        };
        let parts: Vec<Vec<f64>> = parallel::map(self.dim.div_ceil(PIECE), of_piece);
        let sum = parts.into_iter().reduce(|mut sums, part| {
            sums.iter_mut().zip(part).for_each(|(a, p)| *a += p);
            sums
        });
        sum.expect("W has a row")
    }

    /// W += Σ τ x (y - z)ᵀ.
    fn add(&mut self, moves: &[Move<'_>], taken: &[Taken], entries: &[Entry]) {
        let dim = self.dim.max(1);
        let pieces = self.values.chunks_mut(PIECE * dim).enumerate().collect();
        parallel::map_each(pieces, |(piece, rows): (usize, &mut [f64])| {
            for &(row, s, x) in in_piece(entries, piece) {
                let row = &mut rows[(row - piece * PIECE) * dim..][..dim];
                add_to(moves[s].difference(), taken[s].tau * x, row);
            }
        });
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

    /// The nearest positive semi-definite matrix; cubic time.
    pub(super) fn make_semidefinite(&mut self) {
        self.symmetrize();
        let dim = self.dim;
        let rows = self.values.chunks(dim).map(<[f64]>::to_vec).collect();
        let mut pairs = symmetric_eigen(rows);
        pairs.retain(|&(value, _)| value < 0.0);
        // What is below 0 is taken away: W - Σ value v vᵀ.
        let row_of = |(i, row): (usize, &mut [f64])| {
            for (value, vector) in &pairs {
                add(row, -value * vector[i], vector);
            }
        };
        parallel::map_each(self.values.chunks_mut(dim).enumerate().collect(), row_of);
        self.symmetrize();
    }
}

/// The entries of the rows of one piece.
fn in_piece(entries: &[Entry], piece: usize) -> &[Entry] {
    let place = |row: usize| entries.partition_point(|entry| entry.0 < row);
    &entries[place(piece * PIECE)..place((piece + 1) * PIECE)]
}
