//! Terms of rows, counted piece by piece in parallel, and rows made of the counts.
//!
//! Each thread numbers terms as it meets them, and counts go straight into the arrays of the rows, so that a file is never in
//! memory twice. When all terms are known, the numbers are replaced by places in the vocabulary.

use super::interner::{Hashed, Interner};
use super::rows::Rows;
use super::vectorize::Weighting;
use crate::parallel;
use crate::sort::sort_by_key;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The terms of one column that one thread has met.
#[derive(Default)]
pub(super) struct TermTable {
    interner: Interner,
    met: Vec<Met>,
}

/// What is known about a term.
#[derive(Clone, Copy, Default)]
struct Met {
    /// In how many rows it occurs.
    frequency: u32,
    /// The last row it occurs in, and its place in the piece of that row.
    last_row: u32,
    place: u32,
}

/// A table for each column.
pub(super) struct Tables {
    number: usize,
    /// Rows so far, the current one included.
    n_rows: u32,
    columns: Vec<TermTable>,
}

/// Tables to count with, as many as there are threads at work. Which of them counts a piece depends on chance, but the
/// numbers of terms are replaced at the end, and the result is the same.
pub(super) struct TablePool {
    n_columns: usize,
    n_made: AtomicUsize,
    free: Mutex<Vec<Tables>>,
}

impl TablePool {
    pub(super) fn new(n_columns: usize) -> Self {
        Self {
            n_columns,
            n_made: AtomicUsize::new(0),
            free: Mutex::default(),
        }
    }

    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Tables) -> T) -> T {
        let lock = || self.free.lock().expect("no thread panics with it");
        let free = lock().pop();
        let mut tables = free.unwrap_or_else(|| Tables {
            number: self.n_made.fetch_add(1, Ordering::Relaxed),
            n_rows: 0,
            columns: (0..self.n_columns).map(|_| TermTable::default()).collect(),
        });
        let result = work(&mut tables);
        lock().push(tables);
        result
    }

    /// The terms of each column.
    pub(super) fn into_terms(self) -> Vec<Terms> {
        let mut tables = self.free.into_inner().expect("no thread panics with it");
        sort_by_key(&mut tables, |tables| tables.number);
        let mut terms: Vec<Terms> = (0..self.n_columns).map(|_| Terms::default()).collect();
        for tables in tables {
            for (terms, table) in terms.iter_mut().zip(tables.columns) {
                terms.add(table);
            }
        }
        terms
    }
}

/// The terms that all threads have met in one column.
#[derive(Default)]
pub(super) struct Terms {
    pub(super) interner: Interner,
    /// In how many rows each term occurs.
    pub(super) frequencies: Vec<u64>,
    /// For each table, the number here of each of its terms.
    numbers: Vec<Vec<u32>>,
}

impl Terms {
    fn add(&mut self, table: TermTable) {
        let mut numbers = Vec::with_capacity(table.met.len());
        for (term, met) in table.interner.iter().zip(&table.met) {
            let number = self.interner.intern(term);
            if number as usize == self.frequencies.len() {
                self.frequencies.push(0);
            }
            self.frequencies[number as usize] += u64::from(met.frequency);
            numbers.push(number);
        }
        self.numbers.push(numbers);
    }

    /// The place of each term of each table, by the places of the terms here.
    pub(super) fn placed(&self, places: &[u32]) -> Vec<Vec<u32>> {
        let place = |&number: &u32| places[number as usize];
        let table = |numbers: &Vec<u32>| numbers.iter().map(place).collect();
        self.numbers.iter().map(table).collect()
    }
}

/// Some rows: the terms of each column, in the order in which they were met, and how often each occurs.
#[derive(Default)]
pub(super) struct Piece {
    /// The number of the tables it was counted with.
    table: usize,
    /// How many terms each column of each row has.
    lengths: Vec<u32>,
    terms: Vec<u32>,
    values: Vec<f64>,
    /// Where the current column starts.
    start: usize,
    /// Numbers of terms of the current column.
    known: Vec<u32>,
    /// Terms of the current column without numbers, and where each ends in the text. They are looked up together, so that the
    /// cache misses of several overlap.
    waiting: Vec<(Hashed, usize)>,
    waiting_text: String,
}

impl Piece {
    /// Starts a row whose terms are counted with tables.
    pub(super) fn start_row(&mut self, tables: &mut Tables) {
        self.table = tables.number;
        tables.n_rows += 1;
    }

    /// Counts a term of the current column.
    #[inline]
    pub(super) fn learn(&mut self, term: &str) {
        self.waiting_text.push_str(term);
        let end = self.waiting_text.len();
        self.waiting.push((Hashed::new(term), end));
    }

    /// Ends a column whose terms are counted with tables.
    pub(super) fn end_learned(&mut self, tables: &mut Tables, column: usize) {
        let (row, table) = (tables.n_rows, &mut tables.columns[column]);
        let mut start = 0;
        for &(hashed, end) in &self.waiting {
            let term = &self.waiting_text[start..end];
            self.known.push(table.interner.intern_hashed(hashed, term));
            start = end;
        }
        table.met.resize(table.interner.len(), Met::default());
        for &number in &self.known {
            let met = &mut table.met[number as usize];
            if met.last_row == row {
                self.values[met.place as usize] += 1.0;
                continue;
            }
            met.frequency += 1;
            (met.last_row, met.place) = (row, self.terms.len() as u32);
            self.terms.push(number);
            self.values.push(1.0);
        }
        self.known.clear();
        self.waiting.clear();
        self.waiting_text.clear();
        self.end_column();
    }

    /// Counts a term that has its place.
    #[inline]
    pub(super) fn add(&mut self, place: u32) {
        self.known.push(place);
    }

    /// Adds the value of a column that is one feature.
    pub(super) fn add_number(&mut self, value: f64) {
        if value != 0.0 {
            self.terms.push(0);
            self.values.push(value);
        }
    }

    pub(super) fn end_column(&mut self) {
        self.known.sort_unstable();
        for same in self.known.chunk_by(|a, b| a == b) {
            self.terms.push(same[0]);
            self.values.push(same.len() as f64);
        }
        self.known.clear();
        self.lengths.push((self.terms.len() - self.start) as u32);
        self.start = self.terms.len();
    }
}

/// A term that is not in the vocabulary.
pub(super) const LEFT_OUT: u32 = u32::MAX;

/// How the terms of one column become features.
pub(super) struct Placement {
    /// The first feature of the column.
    pub(super) offset: u32,
    /// For each table, the place of each term in the vocabulary, or [`LEFT_OUT`]; none: terms have their places already.
    pub(super) places: Option<Vec<Vec<u32>>>,
    pub(super) weighting: Weighting,
    /// The inverse document frequency of each term of the vocabulary, for [`Weighting::TfIdf`].
    pub(super) idf: Vec<f64>,
}

impl Placement {
    /// The features of one column of a row, with their values.
    fn place(&self, table: usize, terms: &[u32], values: &[f64], entries: &mut Vec<(u32, f64)>) {
        entries.clear();
        match &self.places {
            None => entries.extend(terms.iter().copied().zip(values.iter().copied())),
            Some(places) if !terms.is_empty() => {
                let places = &places[table][..];
                for (&term, &value) in terms.iter().zip(values) {
                    let place = places[term as usize];
                    if place != LEFT_OUT {
                        entries.push((place, value));
                    }
                }
                entries.sort_unstable_by_key(|entry| entry.0);
            }
            Some(_) => {}
        }
        match self.weighting {
            Weighting::Counts => {}
            Weighting::Binary => entries.iter_mut().for_each(|entry| entry.1 = 1.0),
            Weighting::TfIdf => {
                for (place, value) in &mut *entries {
                    *value *= self.idf[*place as usize];
                }
                let squares = entries.iter().map(|entry| entry.1 * entry.1);
                let norm = squares.sum::<f64>().sqrt();
                entries.iter_mut().for_each(|entry| entry.1 /= norm);
            }
        }
    }
}

/// All rows so far.
pub(super) struct Counted {
    n_columns: usize,
    /// Of each piece, the number of its tables, its rows and its entries.
    pieces: Vec<(usize, usize, usize)>,
    lengths: Vec<u32>,
    terms: Vec<u32>,
    values: Vec<f64>,
}

impl Counted {
    pub(super) fn new(n_columns: usize) -> Self {
        Self {
            n_columns,
            pieces: Vec::new(),
            lengths: Vec::new(),
            terms: Vec::new(),
            values: Vec::new(),
        }
    }

    pub(super) fn append(&mut self, piece: &Piece) {
        let n_rows = piece.lengths.len() / self.n_columns;
        self.pieces.push((piece.table, n_rows, piece.terms.len()));
        self.lengths.extend_from_slice(&piece.lengths);
        self.terms.extend_from_slice(&piece.terms);
        self.values.extend_from_slice(&piece.values);
    }

    pub(super) fn n_rows(&self) -> usize {
        self.lengths.len() / self.n_columns
    }

    /// The rows, with a placement for each column. They take the memory of the counts.
    pub(super) fn into_rows(mut self, n_features: usize, placements: &[Placement]) -> Rows {
        let mut parts = Vec::with_capacity(self.pieces.len());
        let (mut terms, mut values) = (&mut self.terms[..], &mut self.values[..]);
        let mut lengths = &self.lengths[..];
        for &(table, n_rows, n) in &self.pieces {
            let part = Part {
                table,
                lengths: take(&mut lengths, n_rows * self.n_columns),
                indices: take_mut(&mut terms, n),
                values: take_mut(&mut values, n),
            };
            parts.push(part);
        }
        let placed: Vec<Vec<u32>> = parallel::map_each(parts, |part| part.place(placements));
        let mut rows = Rows::new(n_features);
        rows.starts.reserve_exact(self.n_rows());
        drop(std::mem::take(&mut self.lengths));
        let (mut from, mut to) = (0, 0);
        for ((_, _, n), kept) in self.pieces.iter().zip(placed) {
            let start = to;
            for kept in kept {
                to += kept as usize;
                rows.starts.push(to);
            }
            let kept = from..from + (to - start);
            self.terms.copy_within(kept.clone(), start);
            self.values.copy_within(kept, start);
            from += n;
        }
        self.terms.truncate(to);
        self.values.truncate(to);
        self.terms.shrink_to_fit();
        self.values.shrink_to_fit();
        (rows.indices, rows.values) = (self.terms, self.values);
        rows
    }
}

fn take<'a, T>(rest: &mut &'a [T], n: usize) -> &'a [T] {
    let (taken, others) = rest.split_at(n);
    *rest = others;
    taken
}

fn take_mut<'a, T>(rest: &mut &'a mut [T], n: usize) -> &'a mut [T] {
    let (taken, others) = std::mem::take(rest).split_at_mut(n);
    *rest = others;
    taken
}

/// A piece within all rows.
struct Part<'a> {
    table: usize,
    lengths: &'a [u32],
    indices: &'a mut [u32],
    values: &'a mut [f64],
}

impl Part<'_> {
    /// Turns terms into features, without gaps from the start on. Returns how many each row has.
    fn place(self, placements: &[Placement]) -> Vec<u32> {
        let mut kept = Vec::with_capacity(self.lengths.len() / placements.len());
        let mut entries: Vec<(u32, f64)> = Vec::new();
        let (mut from, mut to) = (0, 0);
        for lengths in self.lengths.chunks(placements.len()) {
            let start = to;
            for (&length, placement) in lengths.iter().zip(placements) {
                let range = from..from + length as usize;
                from = range.end;
                let (terms, values) = (&self.indices[range.clone()], &self.values[range]);
                placement.place(self.table, terms, values, &mut entries);
                for &(place, value) in &entries {
                    self.indices[to] = placement.offset + place;
                    self.values[to] = value;
                    to += 1;
                }
            }
            kept.push((to - start) as u32);
        }
        kept
    }
}
