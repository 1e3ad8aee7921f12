//! What one model of an ensemble learns from: a fraction of the rows, or of the anchors of given triplets (bagging without
//! replacement). Models that saw different rows differ more than their random starts alone make them, so that their average
//! varies less.

use super::held_out::parted;
use crate::data::{Labels, stratified_split};
use crate::error::{Error, Result};
use crate::random::{rng, shuffle};
use crate::triplets::Triplets;
use std::collections::HashSet;

/// The random stream of anchors.
const STREAM: u64 = 45;

/// The numbers of a fraction of the rows, by class, increasing: what one model of an ensemble learns from.
pub fn sampled_rows(labels: &Labels, fraction: f64, seed: u64) -> Result<Vec<u32>> {
    let rows = stratified_split(labels, &[fraction, 1.0 - fraction], seed)?.swap_remove(0);
    match rows.is_empty() {
        true => Err(too_few(fraction, labels.len(), "rows")),
        false => Ok(rows),
    }
}

/// The triplets of a fraction of the anchors, in their order: what one model of an ensemble learns from.
pub fn sampled_anchors(triplets: &Triplets, fraction: f64, seed: u64) -> Result<Triplets> {
    let mut anchors: Vec<u32> = triplets.iter().map(|t| t.0).collect();
    anchors.sort_unstable();
    anchors.dedup();
    let kept = (fraction * anchors.len() as f64).round() as usize;
    if kept == 0 {
        return Err(too_few(fraction, anchors.len(), "anchors"));
    }
    shuffle(&mut rng(seed, STREAM), &mut anchors);
    let kept: HashSet<u32> = anchors.into_iter().take(kept).collect();
    Ok(parted(triplets, &kept).0)
}

fn too_few(fraction: f64, n: usize, what: &str) -> Error {
    let wanted = format!("a fraction that leaves some of the {n} {what}");
    Error::param("subsample", fraction, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_its_share_of_each_class_and_depends_on_the_seed() {
        let names: Vec<&str> = (0..100)
            .map(|row| if row % 5 == 0 { "a" } else { "b" })
            .collect();
        let labels = Labels::from_names(names);
        let rows = sampled_rows(&labels, 0.7, 3).unwrap();
        assert_eq!(rows.len(), 70);
        assert!(rows.is_sorted());
        assert_eq!(labels.select(&rows).counts(), [14, 56]);
        assert_eq!(rows, sampled_rows(&labels, 0.7, 3).unwrap());
        assert_ne!(rows, sampled_rows(&labels, 0.7, 4).unwrap());
    }

    #[test]
    fn an_anchor_is_in_a_sample_with_all_its_triplets_or_none() {
        let mut triplets = Triplets::new();
        for t in 0..60u32 {
            triplets.push_weighted(t % 10, 10 + t % 7, 20 + t % 3, f64::from(1 + t));
        }
        let sample = sampled_anchors(&triplets, 0.5, 1).unwrap();
        let anchors: HashSet<u32> = sample.iter().map(|t| t.0).collect();
        assert_eq!((anchors.len(), sample.len()), (5, 30));
        let weights: f64 = (0..triplets.len())
            .zip(triplets.iter())
            .filter(|(_, t)| anchors.contains(&t.0))
            .map(|(at, _)| triplets.weight(at))
            .sum();
        assert_eq!(sample.total_weight(), weights);
        assert!(sampled_anchors(&triplets, 0.01, 1).is_err());
    }
}
