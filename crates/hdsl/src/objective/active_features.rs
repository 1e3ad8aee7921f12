//! The features of the active atoms: for each row, those that it contains, and for each feature, its atoms. They are
//! used to update H_ij of every active atom.

use super::Problem;
use crate::atoms::{ActiveSet, Atom};
use std::collections::HashMap;

/// An active atom, seen from one of its two features.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    /// The other feature.
    pub(crate) to: u32,
    /// The index of the atom in the active set.
    pub(crate) atom: usize,
}

/// Active features, numbered from 0, and the active features of each row. [`ActiveFeatures::follow`] updates them to an
/// active set.
pub(crate) struct ActiveFeatures {
    atoms: Vec<Atom>,
    /// The number of each column that is an active feature. A feature may be kept after its last atom was removed.
    numbers: HashMap<u32, u32>,
    links: Vec<Vec<Link>>,
    rows: RowLists,
}

impl ActiveFeatures {
    pub(crate) fn new(n_rows: usize) -> Self {
        Self {
            atoms: Vec::new(),
            numbers: HashMap::new(),
            links: Vec::new(),
            rows: RowLists::new(n_rows),
        }
    }

    pub(crate) fn n_atoms(&self) -> usize {
        self.atoms.len()
    }

    pub(crate) fn n_features(&self) -> usize {
        self.links.len()
    }

    /// The active atoms of an active feature.
    #[inline]
    pub(crate) fn links(&self, feature: u32) -> &[Link] {
        &self.links[feature as usize]
    }

    /// The active features that a row contains, with their values.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[(u32, f64)] {
        self.rows.get(row)
    }

    /// Adds and removes atoms until they are those of the active set, in the same order. Returns, for each of the
    /// previous atoms, whether it is kept.
    pub(crate) fn follow(&mut self, problem: &Problem<'_>, active: &ActiveSet) -> Vec<bool> {
        // An active set removes atoms anywhere and adds them at the end, so the kept atoms are its first ones.
        let mut staying = active.atoms().iter().peekable();
        let before = std::mem::take(&mut self.atoms);
        let stays: Vec<bool> = before
            .iter()
            .map(|atom| staying.next_if_eq(&atom).is_some())
            .collect();
        if stays.contains(&false) {
            // Features that no atom has any more take time in every update. Under the step rule `decrease` atoms come and go
            // often, and the lists are made anew once a fifth of the features is of no use. Other shares were not compared.
            if self.links.len() > active.n_features() + active.n_features() / 4 + 16 {
                *self = Self::new(problem.rows.n_rows());
            }
            self.links.iter_mut().for_each(Vec::clear);
            active
                .atoms()
                .iter()
                .for_each(|&atom| self.add(problem, atom));
        } else {
            self.atoms = before;
            staying.for_each(|&atom| self.add(problem, atom));
        }
        stays
    }

    fn add(&mut self, problem: &Problem<'_>, atom: Atom) {
        let place = self.atoms.len();
        let [i, j] = [atom.i(), atom.j()].map(|column| self.number(problem, column));
        self.links[i as usize].push(Link { to: j, atom: place });
        self.links[j as usize].push(Link { to: i, atom: place });
        self.atoms.push(atom);
    }

    /// The number of a column. It becomes an active feature if it was none.
    fn number(&mut self, problem: &Problem<'_>, column: u32) -> u32 {
        *self.numbers.entry(column).or_insert_with(|| {
            let number = self.links.len() as u32;
            self.links.push(Vec::new());
            let (rows, values) = problem.lists.column(column);
            for (&row, &x) in rows.iter().zip(values) {
                self.rows.push(row as usize, (number, x));
            }
            number
        })
    }
}

/// A list of (active feature, value) for each row, all in one array. Rows are visited in random order; the table of
/// starts and lengths is small enough for the cache.
struct RowLists {
    /// Start and length of each list.
    lists: Vec<[u32; 2]>,
    entries: Vec<(u32, f64)>,
}

impl RowLists {
    fn new(n_rows: usize) -> Self {
        Self {
            lists: vec![[0; 2]; n_rows],
            entries: Vec::new(),
        }
    }

    #[inline]
    fn get(&self, row: usize) -> &[(u32, f64)] {
        let [start, len] = self.lists[row].map(|place| place as usize);
        &self.entries[start..start + len]
    }

    fn push(&mut self, row: usize, entry: (u32, f64)) {
        let [start, len] = self.lists[row].map(|place| place as usize);
        // A list has a capacity of at least 4, and always a power of 2. A full list moves to the end of the array,
        // where its capacity doubles. The gap it leaves is half as large as its new place.
        if len == 0 || (len >= 4 && len.is_power_of_two()) {
            let moved = self.entries.len();
            self.entries.extend_from_within(start..start + len);
            self.entries.resize(moved + (2 * len).max(4), (0, 0.0));
            let limit = "lists of active features have fewer than 2^32 entries";
            self.lists[row][0] = u32::try_from(moved).expect(limit);
        }
        let [start, len] = &mut self.lists[row];
        self.entries[*start as usize + *len as usize] = entry;
        *len += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_may_contain_more_active_features_than_fit_16_bits() {
        let mut lists = RowLists::new(3);
        let n = 1 << 17;
        for feature in 0..n {
            lists.push(1, (feature, f64::from(feature)));
            if feature < 5 {
                lists.push(0, (feature, 0.5));
            }
        }
        assert_eq!(lists.get(0), [0, 1, 2, 3, 4].map(|f| (f, 0.5)));
        assert!(lists.get(1).iter().map(|entry| entry.0).eq(0..n));
        assert!(lists.get(1).iter().all(|&(f, x)| x == f64::from(f)));
        assert_eq!(lists.get(2), []);
    }
}
