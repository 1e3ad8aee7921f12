//! What one row has in common with many others.

/// Set where more than one feature of the row has the same place in the table.
const CROWDED: u32 = 1 << 31;

/// Which features a row holds, in a table that stays in the nearest cache.
pub(crate) struct Overlap {
    /// One more than the place in the row of a feature that belongs here, or 0.
    table: Vec<u32>,
}

impl Overlap {
    /// For rows of up to so many values.
    pub(crate) fn new(longest: usize) -> Self {
        Self {
            table: vec![0; (8 * longest).next_power_of_two().clamp(1 << 10, 1 << 15)],
        }
    }

    fn at(&self, feature: u32) -> usize {
        feature as usize & (self.table.len() - 1)
    }

    /// Takes in the features of a row, increasing. [`Overlap::forget`] has to follow before the next.
    pub(crate) fn learn(&mut self, own: &[u32]) {
        for (place, &feature) in own.iter().enumerate() {
            let at = self.at(feature);
            let crowded = if self.table[at] == 0 { 0 } else { CROWDED };
            self.table[at] = (place as u32 + 1) | crowded;
        }
    }

    /// Takes them out again.
    pub(crate) fn forget(&mut self, own: &[u32]) {
        for &feature in own {
            let at = self.at(feature);
            self.table[at] = 0;
        }
    }

    /// Calls `each` with the places, in the row learned and in another one, of every feature that both hold.
    #[inline]
    pub(crate) fn each(&self, own: &[u32], other: &[u32], mut each: impl FnMut(usize, usize)) {
        let table = &self.table[..];
        for (place, &feature) in other.iter().enumerate() {
            let entry = table[feature as usize & (table.len() - 1)];
            if entry == 0 {
                continue;
            }
            let found = (entry & !CROWDED) as usize - 1;
            if own[found] == feature {
                each(found, place);
            } else if entry & CROWDED != 0
                && let Ok(found) = own.binary_search(&feature)
            {
                each(found, place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn finds_what_both_rows_hold(
            rows in prop::collection::vec(prop::collection::btree_set(0u32..40, 0..20), 1..6),
            spread in prop::sample::select(vec![1u32, 1 << 9, 1 << 10, 1 << 20]),
        ) {
            let rows: Vec<Vec<u32>> =
                rows.iter().map(|row| row.iter().map(|i| i * spread).collect()).collect();
            let mut overlap = Overlap::new(20);
            for own in &rows {
                overlap.learn(own);
                for other in &rows {
                    let mut found = Vec::new();
                    overlap.each(own, other, |p, q| found.push((own[p], other[q])));
                    let own: BTreeSet<_> = own.iter().collect();
                    let both: Vec<_> = other.iter().filter(|i| own.contains(i)).map(|&i| (i, i)).collect();
                    prop_assert_eq!(found, both);
                }
                overlap.forget(own);
            }
            prop_assert!(overlap.table.iter().all(|&entry| entry == 0));
        }
    }
}
