//! The features that one row shares with many others.

/// Set where more than one feature of the row has the same place in the table.
const CROWDED: u32 = 1 << 31;
/// No feature has this number.
const NONE: u32 = u32::MAX;

/// The features of one row, in a hash table small enough for the first-level cache.
pub(crate) struct Overlap {
    /// One more than the place in the row of a feature that belongs here, or 0.
    table: Vec<u32>,
    /// `NONE`, then the features of the row.
    own: Vec<u32>,
    found: Vec<(u32, u32)>,
}

impl Overlap {
    /// For rows of up to so many values.
    pub(crate) fn new(longest: usize) -> Self {
        Self {
            table: vec![0; (8 * longest).next_power_of_two().clamp(1 << 10, 1 << 15)],
            own: vec![NONE],
            found: vec![(0, 0); longest + 1],
        }
    }

    /// Replaces the row by another one, given by its features in increasing order.
    pub(crate) fn learn(&mut self, own: &[u32]) {
        let last = self.table.len() - 1;
        for feature in self.own.drain(1..) {
            self.table[feature as usize & last] = 0;
        }
        self.own.extend_from_slice(own);
        for (place, &feature) in own.iter().enumerate() {
            let entry = &mut self.table[feature as usize & last];
            let crowded = if *entry == 0 { 0 } else { CROWDED };
            *entry = (place as u32 + 1) | crowded;
        }
    }

    /// The places, in this row and in another one, of every feature that both have.
    // Not inlined: among many other variables its loop would be slower.
    #[inline(never)]
    pub(crate) fn with(&mut self, other: &[u32]) -> &[(u32, u32)] {
        let Self { table, own, found } = self;
        let (table, own, found) = (&table[..], &own[..], &mut found[..]);
        let last = table.len() - 1;
        let mut n = 0;
        // Almost no branches: matches cannot be predicted.
        for (place, &feature) in other.iter().enumerate() {
            let mut entry = table[feature as usize & last];
            if entry & CROWDED != 0 {
                let at = own[1..].binary_search(&feature);
                entry = at.map_or(0, |place| place as u32 + 1);
            }
            found[n] = (entry.wrapping_sub(1), place as u32);
            n += usize::from(own[entry as usize] == feature);
        }
        &found[..n]
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
                    let found = overlap.with(other).iter();
                    let found: Vec<_> = found.map(|&(p, q)| (own[p as usize], other[q as usize])).collect();
                    let own: BTreeSet<_> = own.iter().collect();
                    let both: Vec<_> = other.iter().filter(|i| own.contains(i)).map(|&i| (i, i)).collect();
                    prop_assert_eq!(found, both);
                }
            }
        }
    }
}
