//! S of [`crate::objective::gradient`] by rows: which rows the triplets join to a row, and how much they push.

use crate::solver::engine::SymmetrizedGradient;

/// A copy of S, each entry once and the zeros left out.
pub(super) struct PairRows {
    starts: Vec<usize>,
    others: Vec<u32>,
    values: Vec<f64>,
}

impl PairRows {
    /// S as the engine has it now.
    pub(super) fn of<'p>(gradient: &impl SymmetrizedGradient<'p>) -> Self {
        let n_rows = gradient.problem().rows.n_rows();
        let mut starts = vec![0usize; n_rows + 1];
        gradient.each_pair(|p, q, _| {
            starts[p as usize + 1] += 1;
            starts[q as usize + 1] += 1;
        });
        for row in 0..n_rows {
            starts[row + 1] += starts[row];
        }
        let mut ends = starts.clone();
        let mut others = vec![0u32; starts[n_rows]];
        let mut values = vec![0.0; starts[n_rows]];
        // A row paired with itself is met from both ends, and its entry of S is twice the sum.
        gradient.each_pair(|p, q, sum| {
            for (from, to) in [(p, q), (q, p)] {
                let at = &mut ends[from as usize];
                (others[*at], values[*at]) = (to, sum);
                *at += 1;
            }
        });
        let mut rows = Self {
            starts,
            others,
            values,
        };
        rows.merge();
        rows
    }

    /// Adds up entries that share a place, and closes the gaps.
    fn merge(&mut self) {
        let n_rows = self.starts.len() - 1;
        // Where the entry of each column of S is, if it is at or beyond the start of the row under way.
        let mut place = vec![usize::MAX; n_rows];
        let mut end = 0;
        for row in 0..n_rows {
            let old = self.starts[row]..self.starts[row + 1];
            let start = end;
            self.starts[row] = start;
            for at in old {
                let (other, value) = (self.others[at], self.values[at]);
                let known = &mut place[other as usize];
                if (start..end).contains(known) {
                    self.values[*known] += value;
                } else {
                    *known = end;
                    (self.others[end], self.values[end]) = (other, value);
                    end += 1;
                }
            }
        }
        self.starts[n_rows] = end;
        self.others.truncate(end);
        self.values.truncate(end);
    }

    /// The entries of a row of S: other rows and sums of pushes.
    pub(super) fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let range = self.starts[row]..self.starts[row + 1];
        (&self.others[range.clone()], &self.values[range])
    }

    /// How many entries a row has.
    pub(super) fn len(&self, row: usize) -> usize {
        self.starts[row + 1] - self.starts[row]
    }
}

/// The sizes of a vector v that bound |v · x| for a column x: by its largest entry times ‖x‖_1, and by its length
/// times ‖x‖_2, where for x >= 0 only one sign of v can count.
pub(super) fn sizes(v: &[f64], non_negative: bool) -> [f64; 2] {
    // Four of each side by side: a sum has to wait for the one before. And unlike `f64::max`, a plain comparison is
    // one instruction.
    let greater = |a: f64, b: f64| if a > b { a } else { b };
    let (mut largest, mut above, mut below) = ([0.0; 4], [0.0; 4], [0.0; 4]);
    let mut add = |v: &[f64; 4]| {
        for k in 0..4 {
            let up = greater(v[k], 0.0);
            let down = up - v[k];
            largest[k] = greater(largest[k], greater(up, down));
            above[k] += up * up;
            below[k] += down * down;
        }
    };
    let (fours, rest) = v.as_chunks::<4>();
    fours.iter().for_each(&mut add);
    let mut last = [0.0; 4];
    last[..rest.len()].copy_from_slice(rest);
    add(&last);
    let (above, below): (f64, f64) = (above.iter().sum(), below.iter().sum());
    let square = if non_negative {
        above.max(below)
    } else {
        above + below
    };
    [largest.into_iter().fold(0.0, greater), square.sqrt()]
}
