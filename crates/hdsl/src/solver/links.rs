//! The active atoms as a graph: active features, numbered as they come, and the atoms between them.

use crate::atoms::Atom;
use std::collections::HashMap;

/// One end of an active atom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Link {
    /// The active feature at the other end.
    pub(super) to: u32,
    /// The place of the atom in every table.
    pub(super) slot: u32,
}

/// Numbers for active features and slots for active atoms; both are used again when free.
#[derive(Default)]
pub(super) struct Links {
    /// The number of each column that is an active feature.
    numbers: HashMap<u32, u32>,
    links: Vec<Vec<Link>>,
    free_numbers: Vec<u32>,
    free_slots: Vec<u32>,
    n_slots: u32,
}

impl Links {
    /// Active features there are numbers for.
    pub(super) fn n_features(&self) -> usize {
        self.links.len()
    }

    /// Atoms there are slots for.
    pub(super) fn n_slots(&self) -> usize {
        self.n_slots as usize
    }

    pub(super) fn of(&self, number: u32) -> &[Link] {
        &self.links[number as usize]
    }

    /// Takes in an atom: its slot, and the columns that become active by it with their numbers.
    pub(super) fn add(&mut self, atom: Atom) -> (u32, Vec<(u32, u32)>) {
        let mut new = Vec::new();
        for column in [atom.i(), atom.j()] {
            if !self.numbers.contains_key(&column) {
                let number = self.free_numbers.pop().unwrap_or_else(|| {
                    self.links.push(Vec::new());
                    self.links.len() as u32 - 1
                });
                self.numbers.insert(column, number);
                new.push((column, number));
            }
        }
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.n_slots += 1;
            self.n_slots - 1
        });
        let (i, j) = (self.numbers[&atom.i()], self.numbers[&atom.j()]);
        self.links[i as usize].push(Link { to: j, slot });
        self.links[j as usize].push(Link { to: i, slot });
        (slot, new)
    }

    /// Lets an atom go: the columns that are no longer active, with the numbers they had.
    pub(super) fn remove(&mut self, atom: Atom, slot: u32) -> Vec<(u32, u32)> {
        let mut gone = Vec::new();
        for column in [atom.i(), atom.j()] {
            let number = self.numbers[&column];
            let links = &mut self.links[number as usize];
            links.retain(|link| link.slot != slot);
            if links.is_empty() {
                self.numbers.remove(&column);
                self.free_numbers.push(number);
                gone.push((column, number));
            }
        }
        self.free_slots.push(slot);
        gone
    }
}
