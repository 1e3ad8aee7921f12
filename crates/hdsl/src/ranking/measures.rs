//! How good a ranking is, and whether one ranking is better than another.

use super::judgments::{Judged, Judgments};
use crate::data::Rows;
use crate::error::Result;
use crate::knn::KnnIndex;
use crate::measures::RankedGains;
use crate::random::rng;
use crate::similarity::Similarity;
use rand_chacha::rand_core::Rng;

/// Places of a ranking that nDCG looks at.
const TOP: usize = 10;

/// Places of a ranking that average precision looks at, as in trec_eval's runs.
const DEPTH: usize = 1000;

/// Random sign changes of a test.
const FLIPS: u32 = 10_000;

/// The quality of one ranking.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quality {
    /// nDCG@10: Σ gain / log₂(rank + 1) over the first 10 documents, divided by that of the best ranking.
    pub ndcg: f64,
    /// Average precision over the first 1,000 documents: the mean over the answers of the share of answers down to them.
    pub average_precision: f64,
}

impl Quality {
    /// That of documents in the order of a ranking.
    ///
    /// ```
    /// use hdsl::ranking::{Judged, Quality};
    /// let judged = Judged { gains: vec![(3, 1.0), (8, 2.0)], left_out: vec![] };
    /// let quality = Quality::of(&[8, 5, 3], &judged);
    /// assert_eq!(quality.average_precision, (1.0 + 2.0 / 3.0) / 2.0);
    /// let ideal = 2.0 + 1.0 / 3f64.log2();
    /// assert!((quality.ndcg - (2.0 + 1.0 / 4f64.log2()) / ideal).abs() < 1e-15);
    /// ```
    pub fn of(ranked: &[u32], judged: &Judged) -> Self {
        let gain = |&document: &u32| judged.gain(document).unwrap_or(0.0);
        let ranked = RankedGains::in_order(
            ranked.iter().map(gain),
            judged.gains.iter().map(|judged| judged.1),
        );
        Self {
            ndcg: ranked.ndcg(TOP),
            average_precision: ranked.average_precision(),
        }
    }
}

/// The quality of the rankings of some queries, in their order. Documents of equal scores are ranked by number.
pub(super) fn evaluate(
    similarity: &(impl Similarity + ?Sized),
    documents: &Rows,
    queries: &Rows,
    which: &[u32],
    judgments: &Judgments,
) -> Result<Vec<Quality>> {
    let index = KnnIndex::new(similarity, documents);
    let judged = |at: u32| judgments.of(which[at as usize]);
    let ranked = index.neighbors_where(&queries.select(which), DEPTH, |query, document| {
        !judged(query).is_left_out(document)
    })?;
    let rankings = (0..).zip(&ranked).map(|(query, ranking)| {
        let documents: Vec<u32> = ranking.iter().map(|neighbor| neighbor.row).collect();
        Quality::of(&documents, judged(query))
    });
    Ok(rankings.collect())
}

/// The mean of one measure.
pub(super) fn mean(of: &[Quality], measure: fn(&Quality) -> f64) -> f64 {
    of.iter().map(measure).sum::<f64>() / of.len().max(1) as f64
}

/// The standard error of the mean difference in nDCG@10 of two rankings of the same queries.
pub(super) fn standard_error(some: &[Quality], others: &[Quality]) -> f64 {
    let differences: Vec<f64> = some
        .iter()
        .zip(others)
        .map(|(a, b)| a.ndcg - b.ndcg)
        .collect();
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let squares = differences.iter().map(|d| (d - mean).powi(2));
    (squares.sum::<f64>() / (n * (n - 1.0).max(1.0))).sqrt()
}

/// The two-sided p value of a paired randomization test: how often random signs give a mean difference as far from 0 as
/// that of these differences.
///
/// ```
/// use hdsl::ranking::p_value;
/// assert!(p_value(&[0.1; 30]) < 0.001);
/// assert!(p_value(&[0.1, -0.1, 0.2, -0.2]) > 0.9);
/// ```
pub fn p_value(differences: &[f64]) -> f64 {
    let sum: f64 = differences.iter().sum();
    let mut random = rng(0, SIGNS);
    let mut as_far = 0;
    for _ in 0..FLIPS {
        let mut flipped = 0.0;
        for block in differences.chunks(64) {
            let bits = random.next_u64();
            for (k, difference) in block.iter().enumerate() {
                flipped += if bits >> k & 1 == 0 {
                    *difference
                } else {
                    -difference
                };
            }
        }
        as_far += u32::from(flipped.abs() >= sum.abs() - 1e-12);
    }
    f64::from(1 + as_far) / f64::from(1 + FLIPS)
}

/// The random stream of signs.
const SIGNS: u64 = 41;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{below, shuffle};

    /// The definitions, written out over all documents.
    fn naive(ranked: &[u32], gains: &[f64]) -> (f64, f64) {
        let dcg = |gains: Vec<f64>| -> f64 {
            (1..=10.min(gains.len()))
                .map(|rank| gains[rank - 1] / (1.0 + rank as f64).log2())
                .sum()
        };
        let mut best = gains.to_vec();
        best.sort_by(|a, b| b.partial_cmp(a).unwrap());
        let of_ranking = ranked.iter().map(|&d| gains[d as usize]).collect();
        let is_answer = |d: &&u32| gains[**d as usize] > 0.0;
        let n = gains.iter().filter(|g| **g > 0.0).count() as f64;
        let precisions = (1..=ranked.len())
            .filter(|&rank| is_answer(&&ranked[rank - 1]))
            .map(|rank| ranked[..rank].iter().filter(is_answer).count() as f64 / rank as f64);
        (dcg(of_ranking) / dcg(best), precisions.sum::<f64>() / n)
    }

    #[test]
    fn measures_agree_with_their_definitions() {
        let mut random = rng(5, 0);
        for case in 0..200 {
            let n = 1 + below(&mut random, 40);
            let gains: Vec<f64> = (0..n).map(|_| below(&mut random, 4) as f64).collect();
            if gains.iter().all(|g| *g == 0.0) {
                continue;
            }
            let mut ranked: Vec<u32> = (0..n as u32).collect();
            shuffle(&mut random, &mut ranked);
            ranked.truncate(1 + below(&mut random, n));
            let judged = Judged {
                gains: (0..)
                    .zip(gains.iter().copied())
                    .filter(|g| g.1 > 0.0 || case % 2 == 0)
                    .collect(),
                left_out: vec![],
            };
            let (ndcg, precision) = naive(&ranked, &gains);
            let quality = Quality::of(&ranked, &judged);
            assert!((quality.ndcg - ndcg).abs() < 1e-12);
            assert!((quality.average_precision - precision).abs() < 1e-12);
        }
    }

    #[test]
    fn measures_by_hand() {
        // Gains 3, 0, 1 and one missing answer of gain 2: DCG = 3 + 1/2, best = 3 + 2/log2(3) + 1/2.
        let judged = Judged {
            gains: vec![(0, 3.0), (1, 0.0), (2, 1.0), (9, 2.0)],
            left_out: vec![],
        };
        let quality = Quality::of(&[0, 1, 2], &judged);
        assert!((quality.ndcg - 3.5 / (3.5 + 2.0 / 3f64.log2())).abs() < 1e-15);
        assert!((quality.average_precision - (1.0 + 2.0 / 3.0) / 3.0).abs() < 1e-15);
        assert_eq!(Quality::of(&[], &judged), Quality::default());
    }

    #[test]
    fn p_values_are_those_of_all_signs() {
        // All 2^8 signs of 8 differences.
        let differences = [0.3, -0.1, 0.2, 0.05, 0.4, -0.2, 0.1, 0.15];
        let sum: f64 = differences.iter().sum();
        let far = (0..256u32).filter(|signs| {
            let flipped: f64 = (differences.iter().enumerate())
                .map(|(k, d)| if signs >> k & 1 == 0 { *d } else { -d })
                .sum();
            flipped.abs() >= sum.abs() - 1e-12
        });
        let exact = far.count() as f64 / 256.0;
        assert!((p_value(&differences) - exact).abs() < 0.02, "{exact}");
        assert_eq!(p_value(&[0.0, 0.0]), 1.0);
    }
}
