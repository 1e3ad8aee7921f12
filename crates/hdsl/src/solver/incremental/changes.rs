//! Passing the changed pairs of one anchor on to D and to the H of active atoms.

use super::diagonal::Diagonal;
use crate::cancel::CancelToken;
use crate::data::{Overlap, PackedRow, PackedRows};
use crate::error::Result;
use crate::objective::Problem;
use crate::solver::active_rows::ActiveRows;
use crate::solver::links::Links;
use crate::solver::margins::Two;

/// What every shard reads: σ, the rows, the active features of each, and which atoms link them.
#[derive(Clone, Copy)]
pub(super) struct Books<'a> {
    pub(super) sigma: f64,
    pub(super) rows: &'a PackedRows,
    pub(super) active_rows: &'a ActiveRows,
    pub(super) links: &'a Links,
}

/// What changed in the pairs of one anchor.
#[derive(Clone, Copy)]
pub(super) struct Changes<'a> {
    pub(super) own: PackedRow<'a>,
    pub(super) others: &'a [u32],
    /// Pairs of the anchor, counted from its first.
    pub(super) changed: &'a [u32],
    pub(super) by_pair: &'a [Two],
}

impl<'a> Changes<'a> {
    fn iter(self) -> impl Iterator<Item = (usize, Two)> + 'a {
        let by_pair = self.by_pair;
        self.changed
            .iter()
            .map(move |&local| (local as usize, by_pair[local as usize]))
    }

    /// D where products are not kept: what the anchor's row shares with each other row is found again.
    pub(super) fn pass_on_rows(
        self,
        rows: &PackedRows,
        overlap: &mut Overlap,
        sums: &mut Vec<Two>,
        diagonal: &mut Diagonal,
    ) {
        let own = self.own.indices();
        sums.clear();
        sums.resize(own.len(), [0.0; 2]);
        overlap.learn(own);
        for (local, delta) in self.iter() {
            let other = rows.row(self.others[local] as usize);
            for &(place, at) in overlap.with(other.indices()) {
                let (sum, x) = (&mut sums[place as usize], other.values().at(at as usize));
                *sum = [sum[0] + delta[0] * x, sum[1] + delta[1] * x];
            }
        }
        self.pass_on_places::<true>(sums, diagonal);
    }

    /// D from sums by place in the anchor's row.
    fn pass_on_places<const BOTH: bool>(self, sums: &[Two], diagonal: &mut Diagonal) {
        let own = self.own;
        let by_column = own.indices().iter().zip(sums);
        own.values().each_with(by_column, |(&column, sum), x| {
            if *sum != [0.0; 2] {
                diagonal.add::<BOTH>(column, [x * sum[0], x * sum[1]]);
            }
        });
    }

    /// H_ij of an active atom gains x_i of the anchor times Σ_q delta_q x_qj, and the other way round.
    pub(super) fn pass_on_active<const BOTH: bool>(
        self,
        books: Books<'_>,
        linked: &[(u32, f64)],
        sums: &mut Vec<Two>,
        cross: &mut [Two],
    ) {
        sums.clear();
        sums.resize(books.links.n_features(), [0.0; 2]);
        let sums = &mut sums[..];
        for (local, delta) in self.iter() {
            for &(feature, x) in books.active_rows.row(self.others[local] as usize) {
                let sum = &mut sums[feature as usize];
                if BOTH {
                    sum[0] += delta[0] * x;
                }
                sum[1] += delta[1] * x;
            }
        }
        for &(feature, x) in linked {
            for link in books.links.of(feature) {
                let (cross, sum) = (&mut cross[link.slot as usize], sums[link.to as usize]);
                if BOTH {
                    cross[0] += x * sum[0];
                }
                cross[1] += x * sum[1];
            }
        }
    }
}

/// Values that may be looked at to find products. Beyond, an iteration is long, and finding what few changed pairs
/// have in common costs little of it.
pub(in crate::solver) const MOST_WORK: usize = 1 << 29;

/// What paired rows have in common, pair by pair: places in the anchor's row, and the other row's values there (none
/// are kept where all are 1).
pub(super) struct Products {
    starts: Vec<u32>,
    places: Vec<u16>,
    values: Vec<f64>,
}

impl Products {
    /// What the anchor shares with the other row of every pair; none if that would be too much to find or to keep.
    pub(super) fn of(
        problem: &Problem<'_>,
        first: usize,
        pair_starts: &[u32],
        others: &[u32],
        n_triplets: usize,
        cancel: CancelToken<'_>,
    ) -> Result<Option<Self>> {
        let rows = &problem.rows;
        let work = |&other: &u32| rows.nnz_of(other as usize);
        if others.iter().map(work).sum::<usize>() > MOST_WORK {
            return Ok(None);
        }
        let limit = 8 * (rows.nnz() + n_triplets);
        let mut products = Self {
            starts: Vec::with_capacity(others.len() + 1),
            places: Vec::new(),
            values: Vec::new(),
        };
        let mut overlap = Overlap::new(rows.longest());
        products.starts.push(0);
        for (k, bounds) in pair_starts.windows(2).enumerate() {
            cancel.check()?;
            let own = rows.row(first + k);
            if own.nnz() >= usize::from(u16::MAX) {
                return Ok(None);
            }
            overlap.learn(own.indices());
            for &other in &others[bounds[0] as usize..bounds[1] as usize] {
                let other = rows.row(other as usize);
                let found = overlap.with(other.indices());
                products
                    .places
                    .extend(found.iter().map(|&(place, _)| place as u16));
                if !problem.all_ones {
                    let values = found.iter().map(|&(_, at)| other.values().at(at as usize));
                    products.values.extend(values);
                }
                products.starts.push(products.places.len() as u32);
            }
            if products.places.len() > limit.min(u32::MAX as usize / 2) {
                return Ok(None);
            }
        }
        products.places.shrink_to_fit();
        products.values.shrink_to_fit();
        Ok(Some(products))
    }

    /// D from the changed pairs of one anchor, the first of whose pairs is `first`: summed up by place in the
    /// anchor's row, where it stays in the cache, and then passed on once for each of its columns.
    pub(super) fn pass_on<const BOTH: bool>(
        &self,
        first: usize,
        changes: Changes<'_>,
        sums: &mut Vec<Two>,
        diagonal: &mut Diagonal,
    ) {
        sums.clear();
        sums.resize(changes.own.nnz(), [0.0; 2]);
        let sums = &mut sums[..];
        let mut add = |place: u16, by: Two| {
            let sum = &mut sums[usize::from(place)];
            if BOTH {
                sum[0] += by[0];
            }
            sum[1] += by[1];
        };
        for (local, delta) in changes.iter() {
            let pair = first + local;
            let range = self.starts[pair] as usize..self.starts[pair + 1] as usize;
            let places = &self.places[range.clone()];
            if self.values.is_empty() {
                places.iter().for_each(|&place| add(place, delta));
            } else {
                for (&place, &x) in places.iter().zip(&self.values[range]) {
                    add(place, [delta[0] * x, delta[1] * x]);
                }
            }
        }
        changes.pass_on_places::<BOTH>(sums, diagonal);
    }
}
