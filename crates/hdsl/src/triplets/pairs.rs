//! Pairs of rows that are similar or dissimilar, and the triplets that follow from them.

use super::file::{TripletFormat, each_record, parse_row, wrong_count};
use super::{Triplets, check_weight, shown};
use crate::data::input::{Input, quote};
use crate::data::number::parse_f64;
use crate::error::{Error, Parsed, Result};
use crate::random::Lists;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// The number of rows that a similar pair is compared with if no row is known to be dissimilar.
const DRAWN: usize = 5;
/// Seed and stream of these draws: the same pairs give the same triplets.
const DRAWS: (u64, u64) = (0, 0x7061_6972);

/// Two rows that are similar or dissimilar.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Pair {
    /// The two rows; their order does not matter.
    pub rows: (u32, u32),
    /// Whether they are similar.
    pub similar: bool,
    /// How many times the pair counts.
    pub weight: f64,
}

/// Pairs of rows that are similar or dissimilar.
///
/// ```
/// use hdsl::triplets::Pairs;
/// let pairs = Pairs::parse("inline".as_ref(), b"0 1 1\n0 2 -1\n3 2 -1 0.5\n", 5)?;
/// let triplets = pairs.triplets();
/// let all: Vec<_> = triplets.iter().collect();
/// // Row 0 is more similar to row 1 than to row 2. Rows 2 and 3 are similar to no other row but to themselves.
/// assert_eq!(all[0], (0, 1, 2));
/// assert!(all.contains(&(3, 3, 2)) && all.contains(&(2, 2, 3)) && all.contains(&(2, 2, 0)));
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairs {
    pairs: Vec<Pair>,
    /// The place of the first pair of the same two rows, the lower one first.
    places: HashMap<(u32, u32), usize>,
}

/// The rows that are known to be similar and dissimilar to one row, with the weights of the pairs.
#[derive(Default)]
struct Known {
    similar: Vec<(u32, f64)>,
    dissimilar: Vec<(u32, f64)>,
}

impl Pairs {
    /// No pairs yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a pair. It is an error if the rows are the same, if they are already paired with the opposite meaning, or if the
    /// weight is not above 0.
    pub fn push(&mut self, rows: (u32, u32), similar: bool, weight: f64) -> Result<()> {
        let place = self.pairs.len();
        self.add(rows, similar, weight)
            .map_err(|reason| Error::data(format!("pair {place}: {reason}")))
    }

    fn add(&mut self, rows: (u32, u32), similar: bool, weight: f64) -> Parsed<()> {
        let (first, second) = rows;
        if first == second {
            return Err(format!(
                "row `{first}` is paired with itself, expected two different rows"
            ));
        }
        check_weight(weight)
            .map_err(|want| format!("weight `{}`, expected {want}", shown(weight)))?;
        let key = (first.min(second), first.max(second));
        let place = *self.places.entry(key).or_insert(self.pairs.len());
        if self.pairs.get(place).is_some_and(|p| p.similar != similar) {
            let [here, there] = match similar {
                true => ["similar", "dissimilar"],
                false => ["dissimilar", "similar"],
            };
            return Err(format!(
                "rows `{first}` and `{second}` are {here} here, but {there} in an earlier pair"
            ));
        }
        self.pairs.push(Pair {
            rows,
            similar,
            weight,
        });
        Ok(())
    }

    /// Reads lines `row row label [weight]`, for rows below `n_rows`: the label is 1 for similar rows, -1 or 0 for
    /// dissimilar ones.
    pub fn read(path: &Path, n_rows: usize) -> Result<Self> {
        Self::of(Input::open(path, &TripletFormat::Pairs.expected())?, n_rows)
    }

    /// [`Pairs::read`] from memory; messages call the file `name`.
    pub fn parse(name: &Path, bytes: &[u8], n_rows: usize) -> Result<Self> {
        let expected = TripletFormat::Pairs.expected();
        Self::of(Input::new(name, bytes, &expected)?, n_rows)
    }

    pub(super) fn of(input: Input<'_>, n_rows: usize) -> Result<Self> {
        let mut pairs = Self::new();
        each_record(input, |_, fields| {
            let (rows, label, weight) = match *fields {
                [first, second, label] => ([first, second], label, None),
                [first, second, label, weight] => ([first, second], label, Some(weight)),
                _ => return Err(wrong_count(fields.len(), TripletFormat::Pairs)),
            };
            let similar = match label {
                b"1" | b"+1" => true,
                b"-1" | b"0" => false,
                _ => {
                    return Err(format!(
                        "label {}, expected 1 for similar or -1 for dissimilar rows",
                        quote(label)
                    ));
                }
            };
            let weight = match weight {
                None => 1.0,
                Some(token) => {
                    let weight = parse_f64(token).unwrap_or(f64::NAN);
                    check_weight(weight)
                        .map_err(|want| format!("weight {}, expected {want}", quote(token)))?;
                    weight
                }
            };
            let rows = (parse_row(rows[0], n_rows)?, parse_row(rows[1], n_rows)?);
            pairs.add(rows, similar, weight)
        })?;
        Ok(pairs)
    }

    /// The pairs, in the order they were given.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// The triplets that follow from the pairs, by anchor. Each row of a pair is an anchor, and is compared
    ///
    /// - with each row known to be similar and each row known to be dissimilar, if there are both;
    /// - with each similar row and five rows drawn from those of all pairs that are not known to be similar, if none is
    ///   known to be dissimilar;
    /// - with itself and each dissimilar row, if none is known to be similar.
    ///
    /// The weight of a triplet is the product of the weights of its pairs; that of a drawn one is a fifth of it. A pair of
    /// weight 2 has the effect of giving the pair twice.
    pub fn triplets(&self) -> Triplets {
        let mut by_anchor: BTreeMap<u32, Known> = BTreeMap::new();
        for pair in &self.pairs {
            let (first, second) = pair.rows;
            for (anchor, other) in [(first, second), (second, first)] {
                let known = by_anchor.entry(anchor).or_default();
                match pair.similar {
                    true => known.similar.push((other, pair.weight)),
                    false => known.dissimilar.push((other, pair.weight)),
                }
            }
        }
        let pool: Vec<u32> = by_anchor.keys().copied().collect();
        let mut triplets = Triplets::new();
        for (&anchor, known) in &by_anchor {
            if known.dissimilar.is_empty() {
                add_drawn(&mut triplets, anchor, &known.similar, &pool);
                continue;
            }
            let itself = [(anchor, 1.0)];
            let similar = match known.similar.is_empty() {
                true => &itself[..],
                false => &known.similar,
            };
            for &(near, w) in similar {
                for &(far, v) in &known.dissimilar {
                    triplets.push_weighted(anchor, near, far, w * v);
                }
            }
        }
        triplets
    }
}

/// The triplets of an anchor without dissimilar rows. The draws depend on the two rows of a pair and the rows of all pairs.
fn add_drawn(triplets: &mut Triplets, anchor: u32, similar: &[(u32, f64)], pool: &[u32]) {
    let excluded: HashSet<u32> = similar.iter().map(|s| s.0).chain([anchor]).collect();
    let is_other = |row: &u32| !excluded.contains(row);
    // If most rows are excluded, drawing until one is not would take long.
    let others: Vec<u32>;
    let pool = match 2 * excluded.len() < pool.len() {
        true => pool,
        false => {
            others = pool.iter().copied().filter(is_other).collect();
            &others
        }
    };
    if pool.is_empty() {
        return;
    }
    let lists = Lists::new(DRAWS.0, DRAWS.1);
    for &(near, weight) in similar {
        let list = lists.list((u64::from(anchor) << 32) | u64::from(near));
        let rows = (0..).map(|k| pool[list.below(k, pool.len() as u32) as usize]);
        for far in rows.filter(is_other).take(DRAWN) {
            triplets.push_weighted(anchor, near, far, weight / DRAWN as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(pairs: &[(u32, u32, bool, f64)]) -> Pairs {
        let mut all = Pairs::new();
        for &(a, b, similar, weight) in pairs {
            all.push((a, b), similar, weight).unwrap();
        }
        all
    }

    fn weights(triplets: &Triplets) -> BTreeMap<(u32, u32, u32), f64> {
        let mut sums = BTreeMap::new();
        for (t, rows) in triplets.iter().enumerate() {
            *sums.entry(rows).or_insert(0.0) += triplets.weight(t);
        }
        sums
    }

    #[test]
    fn known_rows_are_combined_and_others_drawn() {
        let pairs = of(&[
            (0, 1, true, 1.0),
            (2, 0, false, 3.0),
            (3, 4, true, 2.0),
            (0, 5, true, 2.0),
        ]);
        let sums = weights(&pairs.triplets());
        assert_eq!(sums[&(0, 1, 2)], 3.0);
        assert_eq!(sums[&(0, 5, 2)], 6.0);
        assert_eq!(sums[&(2, 2, 0)], 3.0);
        // Rows 1, 3, 4 and 5 have no dissimilar row: their pairs count as much as their weights say.
        for (anchor, near, weight) in [(1, 0, 1.0), (3, 4, 2.0), (4, 3, 2.0), (5, 0, 2.0)] {
            let of_pair = sums.iter().filter(|(t, _)| (t.0, t.1) == (anchor, near));
            assert!((of_pair.clone().map(|(_, w)| w).sum::<f64>() - weight).abs() < 1e-12);
            assert!(of_pair.clone().all(|(t, _)| t.2 != anchor && t.2 != near));
        }
        assert!(pairs.triplets().check(6).is_ok());
        // A single similar pair has nothing to be compared with.
        assert!(of(&[(0, 1, true, 1.0)]).triplets().is_empty());
    }

    #[test]
    fn contradictions_are_refused() {
        let mut pairs = of(&[(0, 1, true, 1.0)]);
        let mut error = |rows, similar, weight| {
            let error = pairs.push(rows, similar, weight).unwrap_err();
            error.to_string()
        };
        assert!(error((1, 0), false, 1.0).contains("pair 1: rows `1` and `0` are dissimilar here"));
        assert!(error((2, 2), true, 1.0).contains("row `2` is paired with itself"));
        assert!(error((2, 3), true, 0.0).contains("weight `0`"));
        assert!(error((2, 3), true, f64::NAN).contains("weight `NaN`"));
        assert!(pairs.push((1, 0), true, 1.0).is_ok());
    }

    proptest! {
        #[test]
        fn a_pair_of_weight_two_is_a_pair_given_twice(
            ends in prop::collection::vec((0u32..12, 1u32..12, any::<bool>()), 1..40),
            twice in any::<prop::sample::Index>(),
        ) {
            let mut distinct = BTreeMap::new();
            for (a, step, similar) in ends {
                let b = (a + step) % 12;
                if a != b {
                    distinct.entry((a.min(b), a.max(b))).or_insert(similar);
                }
            }
            prop_assume!(!distinct.is_empty());
            let twice = twice.index(distinct.len());
            let mut weighted = Vec::new();
            let mut repeated = Vec::new();
            for (place, ((a, b), similar)) in distinct.into_iter().enumerate() {
                weighted.push((a, b, similar, if place == twice { 2.0 } else { 1.0 }));
                repeated.push((a, b, similar, 1.0));
                if place == twice {
                    repeated.push((b, a, similar, 1.0));
                }
            }
            let weighted = weights(&of(&weighted).triplets());
            let repeated = weights(&of(&repeated).triplets());
            prop_assert_eq!(weighted.len(), repeated.len());
            for (rows, weight) in weighted {
                prop_assert!((repeated[&rows] - weight).abs() < 1e-12);
            }
        }
    }
}
