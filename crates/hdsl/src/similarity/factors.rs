//! The form that the learned similarity and its orthogonal version share: a base plus a weighted sum of products of
//! projections.

use crate::data::{Columns, Groups, Rows, SparseRow, map_rows};

/// S(x, z) = base <x, z> + λ Σ_c value_c (v_c · x)(v_c · z), with sparse vectors v_c, values above 0 and a base of 0 or
/// above.
///
/// The vectors are stored by feature, so that the cost of a row follows its stored values, not the number of vectors.
/// Features from `n_features` on are ignored, and without a base also those that no vector uses.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Factors {
    pub(super) n_features: usize,
    pub(super) base: f64,
    pub(super) lambda: f64,
    pub(super) values: Vec<f64>,
    /// sqrt(λ value_c). The root is taken in two parts: a large λ must not overflow.
    roots: Vec<f64>,
    /// The features that vectors use.
    pub(super) columns: Columns,
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
            base: 0.0,
            lambda,
            roots: values.iter().map(|v| lambda.sqrt() * v.sqrt()).collect(),
            values,
            columns,
            entries,
        }
    }

    /// The vectors that use a feature, as (c, entry of v_c).
    pub(super) fn using(&self, feature: u32) -> &[(u32, f64)] {
        let number = self.columns.number(feature);
        number.map_or(&[], |n| self.entries.of(n as usize))
    }

    /// S(a, b); the same whichever row comes first.
    pub(super) fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        match self.base > 0.0 {
            true => self.base_score(a, b) + self.learned_score(a, b),
            false => self.learned_score(a, b),
        }
    }

    /// base <a, b>, over the features below `n_features`.
    pub(super) fn base_score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        match self.base > 0.0 {
            true => self.base * self.within(a).dot(self.within(b)),
            false => 0.0,
        }
    }

    /// A row without the features from `n_features` on.
    pub(super) fn within<'a>(&self, row: SparseRow<'a>) -> SparseRow<'a> {
        let n = row
            .indices()
            .partition_point(|&feature| (feature as usize) < self.n_features);
        SparseRow::new(&row.indices()[..n], &row.values()[..n])
    }

    /// The sum over c, by increasing c.
    pub(super) fn learned_score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
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

    /// How many coordinates the base has: one per feature, or none without a base.
    pub(super) fn n_base(&self) -> usize {
        if self.base > 0.0 { self.n_features } else { 0 }
    }

    /// The coordinates of each row, whose inner products are S: with a base sqrt(base) x, one per feature, and then
    /// sqrt(λ value_c) (v_c · x). A coordinate beyond the range of `f64` becomes the largest number, and 0 where
    /// infinities of both signs meet.
    pub(super) fn transform_rows(&self, rows: &Rows) -> Rows {
        self.coordinates(rows, self.n_base())
    }

    /// The coordinates without those of the base.
    pub(super) fn learned_rows(&self, rows: &Rows) -> Rows {
        self.coordinates(rows, 0)
    }

    fn coordinates(&self, rows: &Rows, n_base: usize) -> Rows {
        let base_root = self.base.sqrt();
        map_rows(
            rows,
            n_base + self.values.len(),
            || vec![0.0; self.values.len()],
            |sums, row, indices, values| {
                if n_base > 0 {
                    let within = self.within(row);
                    indices.extend_from_slice(within.indices());
                    let scaled = within.values().iter().map(|x| base_root * x);
                    values.extend(scaled.map(|z| z.clamp(f64::MIN, f64::MAX)));
                }
                for (feature, value) in row.iter() {
                    for &(c, entry) in self.using(feature) {
                        sums[c as usize] += entry * value;
                    }
                }
                for ((c, sum), root) in (n_base as u32..).zip(&mut *sums).zip(&self.roots) {
                    let z = std::mem::take(sum);
                    if z != 0.0 {
                        let finite = if z.is_nan() { 0.0 } else { z };
                        indices.push(c);
                        values.push((root * finite).clamp(f64::MIN, f64::MAX));
                    }
                }
            },
        )
    }
}
