//! Cutting rows into parts that keep the classes in proportion.

use crate::data::Labels;
use crate::error::{Error, Result};
use crate::random;
use crate::sort::order;

/// Divides rows at random into parts of the given sizes, every class in proportion (by largest remainder).
///
/// The fractions must be 0 or above and sum to 1. Row numbers increase within each part. The same labels,
/// fractions and seed give the same parts on every machine.
///
/// ```
/// use hdsl::Labels;
/// use hdsl::data::stratified_split;
/// let labels = Labels::from_names(["a", "b", "a", "b", "a", "a", "b", "b", "a", "b"]);
/// let parts = stratified_split(&labels, &[0.6, 0.4], 1)?;
/// assert_eq!((parts[0].len(), parts[1].len()), (6, 4));
/// assert_eq!(labels.select(&parts[1]).counts(), [2, 2]);
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn stratified_split(labels: &Labels, fractions: &[f64], seed: u64) -> Result<Vec<Vec<u32>>> {
    let total: f64 = fractions.iter().sum();
    if !(fractions.iter().all(|f| *f >= 0.0) && (total - 1.0).abs() < 1e-9) {
        let given = format!("{fractions:?}");
        let want = "numbers from 0 that sum to 1";
        return Err(Error::param("fractions", given, want));
    }
    let mut classes = vec![Vec::new(); labels.names().len()];
    for (row, &code) in labels.codes().iter().enumerate() {
        classes[code as usize].push(row as u32);
    }
    let mut rng = random::rng(seed, 0);
    let mut parts = vec![Vec::new(); fractions.len()];
    for mut class in classes {
        random::shuffle(&mut rng, &mut class);
        let mut rest = class.as_slice();
        for (part, size) in parts.iter_mut().zip(sizes(class.len(), fractions)) {
            let (mine, others) = rest.split_at(size);
            part.extend_from_slice(mine);
            rest = others;
        }
    }
    for part in &mut parts {
        part.sort_unstable();
    }
    Ok(parts)
}

/// Shares `n` out by largest remainder; earlier parts win ties.
fn sizes(n: usize, fractions: &[f64]) -> Vec<usize> {
    // A hair's breadth above, so that 0.3 * 10 counts as 3 whatever its last bit says.
    let exact: Vec<f64> = fractions.iter().map(|f| f * n as f64 + 1e-9).collect();
    let mut sizes: Vec<usize> = exact.iter().map(|e| *e as usize).collect();
    let remainder = |part: usize| ((exact[part] - sizes[part] as f64) * 1e6).round();
    let by_remainder = order(fractions.len(), &|a, b| {
        remainder(b).total_cmp(&remainder(a))
    });
    let mut left = n.saturating_sub(sizes.iter().sum());
    for &part in by_remainder.iter().cycle() {
        if left == 0 {
            break;
        }
        if fractions[part] > 0.0 {
            sizes[part] += 1;
            left -= 1;
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exact_shares_stay_exact() {
        assert_eq!(sizes(10, &[0.6, 0.2, 0.2]), [6, 2, 2]);
        assert_eq!(sizes(10, &[0.3, 0.7]), [3, 7]);
        assert_eq!(sizes(5, &[0.5, 0.5]), [3, 2]);
        assert_eq!(sizes(1, &[0.0, 0.5, 0.5]), [0, 1, 0]);
        assert_eq!(sizes(0, &[1.0]), [0]);
        assert_eq!(sizes(5_946, &[1.0]), [5_946]);
    }

    #[test]
    fn fractions_must_make_a_whole() {
        let labels = Labels::from_names(["a", "b"]);
        for bad in [
            &[0.5, 0.6][..],
            &[],
            &[f64::NAN, 1.0],
            &[-0.5, 1.5],
            &[f64::INFINITY],
        ] {
            assert!(stratified_split(&labels, bad, 0).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn every_row_lands_in_one_part_and_classes_keep_their_share(
            labels in prop::collection::vec(0u32..4, 0..80),
            cuts in prop::collection::vec(0.0f64..1.0, 1..5),
            seed in any::<u64>(),
        ) {
            let total: f64 = cuts.iter().sum::<f64>() + 0.1;
            let mut fractions: Vec<f64> = cuts.iter().map(|c| c / total).collect();
            fractions.push(0.1 / total);
            let labels = Labels::from_names(labels.iter().map(u32::to_string));
            let parts = stratified_split(&labels, &fractions, seed).unwrap();
            prop_assert_eq!(&parts, &stratified_split(&labels, &fractions, seed).unwrap());
            let mut all: Vec<u32> = parts.concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..labels.len() as u32).collect::<Vec<_>>());
            for (part, fraction) in parts.iter().zip(&fractions) {
                prop_assert!(part.windows(2).all(|w| w[0] < w[1]));
                for (have, of) in labels.select(part).counts().into_iter().zip(labels.counts()) {
                    prop_assert!((have as f64 - fraction * of as f64).abs() < 1.0 + 1e-6);
                }
            }
        }
    }
}
