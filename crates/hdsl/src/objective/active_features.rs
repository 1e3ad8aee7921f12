//! The features of the active atoms, by row and as a graph: H_ij of every active atom is summed up from these.

use super::Problem;
use crate::atoms::{ActiveSet, Atom};
use std::collections::HashMap;

/// One end of an active atom.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    /// The active feature at the other end.
    pub(crate) to: u32,
    /// The slot of the atom, its place in every table by atom.
    pub(crate) slot: u32,
}

/// Numbers for active features and slots for active atoms, both reused when free; and the active features of each row.
/// Follows the active set.
pub(crate) struct ActiveFeatures {
    atoms: Vec<Atom>,
    slots: Vec<u32>,
    /// The number of each column that is an active feature.
    numbers: HashMap<u32, u32>,
    links: Vec<Vec<Link>>,
    free_numbers: Vec<u32>,
    free_slots: Vec<u32>,
    n_slots: u32,
    rows: RowLists,
}

impl ActiveFeatures {
    pub(crate) fn new(n_rows: usize) -> Self {
        Self {
            atoms: Vec::new(),
            slots: Vec::new(),
            numbers: HashMap::new(),
            links: Vec::new(),
            free_numbers: Vec::new(),
            free_slots: Vec::new(),
            n_slots: 0,
            rows: RowLists::new(n_rows),
        }
    }

    /// The slots of the active atoms, in their order.
    pub(crate) fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// How many slots there are, free ones included.
    pub(crate) fn n_slots(&self) -> usize {
        self.n_slots as usize
    }

    /// How many numbers of features there are, free ones included.
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

    /// Adds and removes atoms so that they are those of the active set, in its order. Returns how many were added.
    pub(crate) fn follow(&mut self, problem: &Problem<'_>, active: &ActiveSet) -> usize {
        // Atoms leave anywhere and join at the end, so those that stay are a prefix of the active set.
        let (atoms, slots) = (
            std::mem::take(&mut self.atoms),
            std::mem::take(&mut self.slots),
        );
        for (atom, slot) in atoms.into_iter().zip(slots) {
            if active.atoms().get(self.atoms.len()) == Some(&atom) {
                self.atoms.push(atom);
                self.slots.push(slot);
            } else {
                self.remove(problem, atom, slot);
            }
        }
        let added = &active.atoms()[self.atoms.len()..];
        added.iter().for_each(|&atom| self.add(problem, atom));
        added.len()
    }

    fn add(&mut self, problem: &Problem<'_>, atom: Atom) {
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.n_slots += 1;
            self.n_slots - 1
        });
        let [i, j] = [atom.i(), atom.j()].map(|column| self.number(problem, column));
        self.links[i as usize].push(Link { to: j, slot });
        self.links[j as usize].push(Link { to: i, slot });
        self.atoms.push(atom);
        self.slots.push(slot);
    }

    /// The number of a column, which becomes an active feature if it is none.
    fn number(&mut self, problem: &Problem<'_>, column: u32) -> u32 {
        if let Some(&number) = self.numbers.get(&column) {
            return number;
        }
        let number = self.free_numbers.pop().unwrap_or_else(|| {
            self.links.push(Vec::new());
            self.links.len() as u32 - 1
        });
        self.numbers.insert(column, number);
        let (rows, values) = problem.lists.column(column);
        for (&row, &x) in rows.iter().zip(values) {
            self.rows.push(row as usize, number, x);
        }
        number
    }

    fn remove(&mut self, problem: &Problem<'_>, atom: Atom, slot: u32) {
        for column in [atom.i(), atom.j()] {
            let number = self.numbers[&column];
            let links = &mut self.links[number as usize];
            links.retain(|link| link.slot != slot);
            if links.is_empty() {
                self.numbers.remove(&column);
                self.free_numbers.push(number);
                for &row in problem.lists.column(column).0 {
                    self.rows.remove(row as usize, number);
                }
            }
        }
        self.free_slots.push(slot);
    }
}

/// A list of (active feature, value) for each row, in one array with room to grow.
struct RowLists {
    /// Start and length of each list, side by side: rows are visited in no order.
    lists: Vec<[u32; 2]>,
    /// How long each list may grow where it is.
    room: Vec<u32>,
    entries: Vec<(u32, f64)>,
}

impl RowLists {
    fn new(n_rows: usize) -> Self {
        Self {
            lists: vec![[0; 2]; n_rows],
            room: vec![0; n_rows],
            entries: Vec::new(),
        }
    }

    #[inline]
    fn get(&self, row: usize) -> &[(u32, f64)] {
        let [start, len] = self.lists[row].map(|place| place as usize);
        &self.entries[start..start + len]
    }

    fn push(&mut self, row: usize, feature: u32, x: f64) {
        let [start, len] = self.lists[row].map(|place| place as usize);
        if len == self.room[row] as usize {
            // Move the list to the end, with twice the room. The gap it leaves is at most as large as what it now takes.
            let new_start = self.entries.len();
            self.room[row] = (2 * self.room[row]).max(4);
            self.entries.extend_from_within(start..start + len);
            let end = new_start + self.room[row] as usize;
            self.entries.resize(end, (0, 0.0));
            let limit = "lists of active features have fewer than 2^32 entries";
            self.lists[row][0] = u32::try_from(new_start).expect(limit);
        }
        let [start, len] = &mut self.lists[row];
        self.entries[*start as usize + *len as usize] = (feature, x);
        *len += 1;
    }

    fn remove(&mut self, row: usize, feature: u32) {
        let [start, len] = self.lists[row].map(|place| place as usize);
        let entries = &mut self.entries[start..start + len];
        if let Some(at) = entries.iter().position(|entry| entry.0 == feature) {
            entries.swap(at, len - 1);
            self.lists[row][1] -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_may_contain_more_active_features_than_fit_16_bits() {
        let mut lists = RowLists::new(2);
        let n = 1 << 17;
        for feature in 0..n {
            lists.push(1, feature, f64::from(feature));
        }
        lists.push(0, 7, 0.5);
        lists.remove(1, 3);
        assert_eq!(lists.get(0), [(7, 0.5)]);
        assert_eq!(lists.get(1).len(), n as usize - 1);
        let mut features: Vec<u32> = lists.get(1).iter().map(|entry| entry.0).collect();
        features.sort_unstable();
        assert!(features.into_iter().eq((0..n).filter(|&f| f != 3)));
        assert!(lists.get(1).iter().all(|&(f, x)| x == f64::from(f)));
    }
}
