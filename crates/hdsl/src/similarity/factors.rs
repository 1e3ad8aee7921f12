//! The form that the learned similarity and its orthogonal version share: a weighted sum of products of projections.

use crate::data::{Columns, Groups, Rows, SparseRow, map_rows};

/// S(x, z) = λ Σ_c value_c (v_c · x)(v_c · z), with sparse vectors v_c and values above 0.
///
/// The vectors are stored by feature, so that the cost of a row follows its stored values, not the number of vectors.
/// Features that no vector uses are ignored, also those beyond `n_features`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Factors {
    n_features: usize,
    lambda: f64,
    values: Vec<f64>,
    /// sqrt(λ value_c). The root is taken in two parts: a large λ must not overflow.
    roots: Vec<f64>,
    columns: Columns,
    /// For each of `columns` the vectors that use it, as (c, entry of v_c), by increasing c.
    entries: Groups<(u32, f64)>,
}

impl Factors {
    /// `entries` are (c, feature, entry of v_c) by increasing c; all their features are among `columns`.
    pub(super) fn new(
        n_features: usize,
        lambda: f64,
        values: Vec<f64>,
        columns: Columns,
        entries: &[(u32, u32, f64)],
    ) -> Self {
        let number = |feature| columns.number(feature).expect("used features are numbered");
        let pairs = entries.iter().map(|&(c, f, entry)| (number(f), (c, entry)));
        let entries = Groups::new(columns.len(), pairs);
        Self {
            n_features,
            lambda,
            roots: values.iter().map(|v| lambda.sqrt() * v.sqrt()).collect(),
            values,
            columns,
            entries,
        }
    }

    pub(super) fn n_features(&self) -> usize {
        self.n_features
    }

    pub(super) fn lambda(&self) -> f64 {
        self.lambda
    }

    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    pub(super) fn roots(&self) -> &[f64] {
        &self.roots
    }

    pub(super) fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The vectors that use a feature, as (c, entry of v_c).
    pub(super) fn using(&self, feature: u32) -> &[(u32, f64)] {
        let number = self.columns.number(feature);
        number.map_or(&[], |n| self.entries.of(n as usize))
    }

    /// S(a, b), summed by increasing c; the same whichever row comes first.
    pub(super) fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        let (a, b) = (self.projections(a), self.projections(b));
        let mut sum = 0.0;
        let mut q = 0;
        for (c, x) in a {
            while q < b.len() && b[q].0 < c {
                q += 1;
            }
            if q < b.len() && b[q].0 == c {
                sum += self.values[c as usize] * (x * b[q].1);
            }
        }
        self.lambda * sum
    }

    /// v_c · x where a feature of the row is used and the sum is not 0, by increasing c.
    fn projections(&self, row: SparseRow<'_>) -> Vec<(u32, f64)> {
        let mut terms: Vec<(u32, f64)> = Vec::new();
        for (feature, value) in row.iter() {
            let using = self.using(feature).iter();
            terms.extend(using.map(|&(c, entry)| (c, entry * value)));
        }
        terms.sort_by_key(|t| t.0);
        terms.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 += later.1;
            }
            same
        });
        terms.retain(|t| t.1 != 0.0);
        terms
    }

    /// The row's coordinates sqrt(λ value_c) (v_c · x), whose inner products are S.
    pub(super) fn transform(&self, row: SparseRow<'_>) -> Vec<f64> {
        let mut z = vec![0.0; self.values.len()];
        for (feature, value) in row.iter() {
            for &(c, entry) in self.using(feature) {
                z[c as usize] += entry * value;
            }
        }
        z.iter_mut().zip(&self.roots).for_each(|(z, r)| *z *= r);
        z
    }

    /// [`Self::transform`] of many rows, sparse and in parallel. A coordinate beyond the range of `f64` becomes the
    /// largest number, and 0 where infinities of both signs meet.
    pub(super) fn transform_rows(&self, rows: &Rows) -> Rows {
        // A table of all features pays if they are few compared with the values to look up.
        let table = (self.n_features <= rows.nnz().saturating_mul(4)).then(|| {
            let mut table = vec![u32::MAX; self.n_features];
            for (number, &feature) in self.columns.features().iter().enumerate() {
                table[feature as usize] = number as u32;
            }
            table
        });
        let number = |feature: u32| match &table {
            Some(table) => table.get(feature as usize).copied().unwrap_or(u32::MAX),
            None => self.columns.number(feature).unwrap_or(u32::MAX),
        };
        let dim = self.values.len();
        map_rows(
            rows,
            dim,
            || Sums::new(dim),
            |sums, row, indices, values| {
                for (feature, value) in row.iter() {
                    let n = number(feature);
                    if n != u32::MAX {
                        for &(c, entry) in self.entries.of(n as usize) {
                            sums.add(c, entry * value);
                        }
                    }
                }
                sums.drain(|c, z| {
                    if z != 0.0 {
                        let finite = if z.is_nan() { 0.0 } else { z };
                        indices.push(c);
                        values.push((self.roots[c as usize] * finite).clamp(f64::MIN, f64::MAX));
                    }
                });
            },
        )
    }
}

/// Sums by index, read back in increasing order without sorting: one bit per index says which were added to.
struct Sums {
    sums: Vec<f64>,
    changed: Vec<u64>,
}

impl Sums {
    fn new(n: usize) -> Self {
        Self {
            sums: vec![0.0; n],
            changed: vec![0; n.div_ceil(64)],
        }
    }

    fn add(&mut self, index: u32, term: f64) {
        self.sums[index as usize] += term;
        self.changed[index as usize / 64] |= 1 << (index % 64);
    }

    /// Every sum that was added to; all are 0 afterwards.
    fn drain(&mut self, mut each: impl FnMut(u32, f64)) {
        for (word, changed) in self.changed.iter_mut().enumerate() {
            while *changed != 0 {
                let index = word * 64 + changed.trailing_zeros() as usize;
                *changed &= *changed - 1;
                each(index as u32, std::mem::take(&mut self.sums[index]));
            }
        }
    }
}
