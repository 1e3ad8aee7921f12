//! Terms of rows, counted piece by piece in parallel, and rows made of the counts.

use super::interner::Interner;
use super::rows::{Rows, SparseRow};
use super::vectorize::Weighting;
use crate::parallel::prelude::*;

/// How many pieces become rows at a time; more only cost memory.
const PIECES_AT_A_TIME: usize = 16;

/// The terms of some rows in one column: which, and how often. Each term is there once per row.
#[derive(Default)]
pub(super) struct Counts {
    /// Where each row ends.
    ends: Vec<u32>,
    terms: Vec<u32>,
    counts: Vec<u32>,
}

impl Counts {
    fn row(&self, row: usize) -> impl Iterator<Item = (u32, u32)> {
        let start = if row == 0 { 0 } else { self.ends[row - 1] } as usize;
        let range = start..self.ends[row] as usize;
        let terms = self.terms[range.clone()].iter().copied();
        terms.zip(self.counts[range].iter().copied())
    }
}

/// Counts terms that are not known beforehand.
#[derive(Default)]
pub(super) struct LearningCounter {
    counts: Counts,
    interner: Interner,
    /// In how many rows each term occurs.
    frequencies: Vec<u32>,
    /// The last row of each term, counted from 1, and its place in that row's counts.
    last: Vec<(u32, u32)>,
}

impl LearningCounter {
    #[inline]
    pub(super) fn add(&mut self, term: &str) {
        let number = self.interner.intern(term) as usize;
        let row = self.counts.ends.len() as u32 + 1;
        if number == self.last.len() {
            self.last.push((0, 0));
            self.frequencies.push(0);
        }
        let (last, place) = &mut self.last[number];
        if *last == row {
            self.counts.counts[*place as usize] += 1;
            return;
        }
        (*last, *place) = (row, self.counts.terms.len() as u32);
        self.counts.terms.push(number as u32);
        self.counts.counts.push(1);
        self.frequencies[number] += 1;
    }

    pub(super) fn end_row(&mut self) {
        self.counts.ends.push(self.counts.terms.len() as u32);
    }
}

/// Counts terms by numbers that are known.
#[derive(Default)]
pub(super) struct FixedCounter {
    counts: Counts,
    row: Vec<u32>,
}

impl FixedCounter {
    #[inline]
    pub(super) fn add(&mut self, number: u32) {
        self.row.push(number);
    }

    pub(super) fn end_row(&mut self) {
        self.row.sort_unstable();
        for same in self.row.chunk_by(|a, b| a == b) {
            self.counts.terms.push(same[0]);
            self.counts.counts.push(same.len() as u32);
        }
        self.row.clear();
        self.counts.ends.push(self.counts.terms.len() as u32);
    }

    pub(super) fn finish(mut self) -> Counts {
        self.counts.terms.shrink_to_fit();
        self.counts.counts.shrink_to_fit();
        self.counts
    }
}

/// The terms of all pieces so far, and in how many rows each occurs.
#[derive(Default)]
pub(super) struct TermTable {
    pub(super) interner: Interner,
    pub(super) frequencies: Vec<u64>,
}

impl TermTable {
    /// Adds the terms of a piece, and gives its counts by the numbers that terms have here.
    pub(super) fn merge(&mut self, piece: LearningCounter) -> Counts {
        let mut numbers = Vec::with_capacity(piece.interner.len());
        for (term, &frequency) in piece.interner.iter().zip(&piece.frequencies) {
            let number = self.interner.intern(term);
            if number as usize == self.frequencies.len() {
                self.frequencies.push(0);
            }
            self.frequencies[number as usize] += u64::from(frequency);
            numbers.push(number);
        }
        let mut counts = piece.counts;
        for term in &mut counts.terms {
            *term = numbers[*term as usize];
        }
        counts.terms.shrink_to_fit();
        counts.counts.shrink_to_fit();
        counts
    }
}

/// One column of one piece of rows.
pub(super) enum ColumnPiece {
    Terms(Counts),
    /// One value per row, NaN where there is none.
    Numbers(Vec<f64>),
}

impl ColumnPiece {
    pub(super) fn n_rows(&self) -> usize {
        match self {
            Self::Terms(counts) => counts.ends.len(),
            Self::Numbers(numbers) => numbers.len(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Terms(counts) => counts.terms.len(),
            Self::Numbers(numbers) => numbers.len(),
        }
    }
}

/// A term that is not in the vocabulary.
pub(super) const LEFT_OUT: u32 = u32::MAX;

/// How the terms of one column become features.
pub(super) struct Placement {
    /// The first feature of the column.
    pub(super) offset: u32,
    /// The place of each term in the vocabulary, or [`LEFT_OUT`]; none: terms have their places already.
    pub(super) places: Option<Vec<u32>>,
    pub(super) weighting: Weighting,
    /// The inverse document frequency of each term of the vocabulary, for [`Weighting::TfIdf`].
    pub(super) idf: Vec<f64>,
}

/// The rows of some pieces; pieces are lists of columns. They are freed one after the other, so that the rows and the pieces
/// are hardly ever in memory together.
pub(super) fn into_rows(
    n_features: usize,
    placements: &[Placement],
    pieces: Vec<Vec<ColumnPiece>>,
) -> Rows {
    let n_rows: usize = pieces.iter().map(|piece| piece[0].n_rows()).sum();
    let most: usize = pieces.iter().flatten().map(ColumnPiece::len).sum();
    let mut rows = Rows::new(n_features);
    rows.starts.reserve_exact(n_rows);
    rows.indices.reserve_exact(most);
    rows.values.reserve_exact(most);
    let mut pieces = pieces.into_iter();
    loop {
        let some: Vec<_> = pieces.by_ref().take(PIECES_AT_A_TIME).collect();
        if some.is_empty() {
            break;
        }
        let made: Vec<Rows> = some
            .into_par_iter()
            .map(|piece| piece_rows(n_features, placements, &piece))
            .collect();
        for piece in made {
            let before = rows.indices.len();
            rows.starts
                .extend(piece.starts[1..].iter().map(|end| before + end));
            rows.indices.extend_from_slice(&piece.indices);
            rows.values.extend_from_slice(&piece.values);
        }
    }
    rows.indices.shrink_to_fit();
    rows.values.shrink_to_fit();
    rows
}

fn piece_rows(n_features: usize, placements: &[Placement], piece: &[ColumnPiece]) -> Rows {
    let mut rows = Rows::new(n_features);
    let most = piece.iter().map(ColumnPiece::len).sum();
    rows.indices.reserve_exact(most);
    rows.values.reserve_exact(most);
    let mut found: Vec<(u32, u32)> = Vec::new();
    for row in 0..piece[0].n_rows() {
        for (column, placement) in piece.iter().zip(placements) {
            let start = rows.indices.len();
            match column {
                ColumnPiece::Numbers(numbers) => {
                    let number = numbers[row];
                    if number != 0.0 && !number.is_nan() {
                        rows.indices.push(placement.offset);
                        rows.values.push(number);
                    }
                }
                ColumnPiece::Terms(counts) => {
                    found.clear();
                    match &placement.places {
                        None => found.extend(counts.row(row)),
                        Some(places) => {
                            let placed = counts.row(row);
                            let placed = placed.map(|(term, n)| (places[term as usize], n));
                            found.extend(placed.filter(|(place, _)| *place != LEFT_OUT));
                            found.sort_unstable_by_key(|&(place, _)| place);
                        }
                    }
                    for &(place, n) in &found {
                        rows.indices.push(placement.offset + place);
                        rows.values.push(match placement.weighting {
                            Weighting::Counts => f64::from(n),
                            Weighting::Binary => 1.0,
                            Weighting::TfIdf => f64::from(n) * placement.idf[place as usize],
                        });
                    }
                    if placement.weighting == Weighting::TfIdf {
                        let (indices, values) = (&rows.indices[start..], &rows.values[start..]);
                        let norm = SparseRow::new(indices, values).norm();
                        rows.values[start..].iter_mut().for_each(|v| *v /= norm);
                    }
                }
            }
        }
        rows.starts.push(rows.indices.len());
    }
    rows
}
