//! Measures of one ranking.

/// Documents with equal scores.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ties {
    /// How many there are.
    n: usize,
    /// How many have a gain above 0.
    relevant: usize,
    /// The sum of the gains.
    gain: f64,
}

/// The gains of documents in the order of a ranking. A document with a gain above 0 is relevant.
///
/// Every measure is its expected value over all orders of documents with equal scores (McSherry and Najork, *Computing
/// information retrieval performance measures efficiently in the presence of tied scores*, ECIR 2008). All measures are 0
/// if no document is relevant.
///
/// ```
/// use hdsl::measures::RankedGains;
/// let ranked = RankedGains::by_scores(&[0.9, 0.2, 0.4, 0.2], &[2.0, 1.0, 0.0, 0.0]);
/// let ndcg = (2.0 + (1.0 / 4f64.log2() + 1.0 / 5f64.log2()) / 2.0) / (2.0 + 1.0 / 3f64.log2());
/// assert!((ranked.ndcg(10) - ndcg).abs() < 1e-15);
/// assert_eq!(ranked.average_precision(), (1.0 + (2.0 / 3.0 + 2.0 / 4.0) / 2.0) / 2.0);
/// assert_eq!(ranked.recall(3), (1.0 + 0.5) / 2.0);
/// assert_eq!(ranked.reciprocal_rank(), 1.0);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RankedGains {
    ties: Vec<Ties>,
    /// The gains above 0 of all documents, ranked or not, by decreasing gain.
    ideal: Vec<f64>,
}

impl RankedGains {
    /// Documents by decreasing score.
    ///
    /// # Panics
    /// If there are not as many gains as scores.
    pub fn by_scores(scores: &[f64], gains: &[f64]) -> Self {
        assert_eq!(scores.len(), gains.len(), "a gain for every score");
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        // 0 and -0 are equal scores.
        let equal = order.chunk_by(|&a, &b| scores[a] == scores[b]);
        let ties = equal.map(|which| Ties {
            n: which.len(),
            relevant: which.iter().filter(|&&at| gains[at] > 0.0).count(),
            gain: which.iter().map(|&at| gains[at]).sum(),
        });
        Self {
            ties: ties.collect(),
            ideal: ideal(gains.iter().copied()),
        }
    }

    /// Documents in a given order without ties. `all` has the gains of all documents, ranked or not.
    pub fn in_order(
        ranked: impl IntoIterator<Item = f64>,
        all: impl IntoIterator<Item = f64>,
    ) -> Self {
        let alone = |gain: f64| Ties {
            n: 1,
            relevant: usize::from(gain > 0.0),
            gain,
        };
        Self {
            ties: ranked.into_iter().map(alone).collect(),
            ideal: ideal(all.into_iter()),
        }
    }

    /// Whether some document is relevant.
    pub fn has_relevant(&self) -> bool {
        !self.ideal.is_empty()
    }

    /// Each group of ties with the number of documents before it.
    fn groups(&self) -> impl Iterator<Item = (usize, &Ties)> {
        self.ties.iter().scan(0, |before, ties| {
            let first = *before;
            *before += ties.n;
            Some((first, ties))
        })
    }

    /// nDCG@k: Σ gain / log₂(rank + 1) over the first k documents, divided by that of the best ranking.
    pub fn ndcg(&self, k: usize) -> f64 {
        let discount = |place: usize| 1.0 / ((place + 2) as f64).log2();
        let mut dcg = 0.0;
        for (first, ties) in self.groups().take_while(|group| group.0 < k) {
            let gain = ties.gain / ties.n as f64;
            let places = first..(first + ties.n).min(k);
            dcg += places.map(|place| gain * discount(place)).sum::<f64>();
        }
        let best = self.ideal.iter().enumerate().take(k);
        let best: f64 = best.map(|(place, gain)| gain * discount(place)).sum();
        if best > 0.0 { dcg / best } else { 0.0 }
    }

    /// Average precision: the mean over the relevant documents of the share of relevant documents down to each. Relevant
    /// documents that are not in the ranking count 0. The mean over queries is MAP.
    pub fn average_precision(&self) -> f64 {
        let (mut found, mut sum) = (0.0, 0.0);
        for (first, ties) in self.groups().filter(|group| group.1.relevant > 0) {
            let (n, relevant) = (ties.n as f64, ties.relevant as f64);
            // The expected number of the other relevant documents per place before one in these ties.
            let others = if ties.n > 1 {
                (relevant - 1.0) / (n - 1.0)
            } else {
                0.0
            };
            for k in 0..ties.n {
                let until = found + k as f64 * others + 1.0;
                sum += relevant / n * until / (first + k + 1) as f64;
            }
            found += relevant;
        }
        self.per_relevant(sum)
    }

    /// recall@k: the share of the relevant documents that are among the first k.
    pub fn recall(&self, k: usize) -> f64 {
        let found = |(first, ties): (usize, &Ties)| {
            let within = ties.n.min(k.saturating_sub(first));
            ties.relevant as f64 * within as f64 / ties.n as f64
        };
        self.per_relevant(self.groups().map(found).sum())
    }

    /// 1 / rank of the first relevant document. The mean over queries is MRR.
    pub fn reciprocal_rank(&self) -> f64 {
        let Some((first, ties)) = self.groups().find(|group| group.1.relevant > 0) else {
            return 0.0;
        };
        let (mut sum, mut none_before) = (0.0, 1.0);
        for k in 0..=ties.n - ties.relevant {
            // The probability that the next of these ties is relevant, if none before it was.
            let hit = ties.relevant as f64 / (ties.n - k) as f64;
            sum += none_before * hit / (first + k + 1) as f64;
            none_before *= 1.0 - hit;
        }
        sum
    }

    fn per_relevant(&self, sum: f64) -> f64 {
        match self.ideal.len() {
            0 => 0.0,
            n => sum / n as f64,
        }
    }
}

/// The gains above 0, by decreasing gain.
fn ideal(gains: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut ideal: Vec<f64> = gains.filter(|gain| *gain > 0.0).collect();
    ideal.sort_by(f64::total_cmp);
    ideal.reverse();
    ideal
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{below, rng, shuffle};

    /// nDCG@k, average precision, recall@k and reciprocal rank by their definitions: `ranked` are gains in order.
    fn naive(ranked: &[f64], k: usize) -> [f64; 4] {
        let dcg = |gains: &[f64]| -> f64 {
            (1..=k.min(gains.len()))
                .map(|rank| gains[rank - 1] / (1.0 + rank as f64).log2())
                .sum()
        };
        let mut best = ranked.to_vec();
        best.sort_by(|a, b| b.partial_cmp(a).unwrap());
        let relevant = |gains: &[f64]| gains.iter().filter(|g| **g > 0.0).count() as f64;
        let n = relevant(ranked);
        let hits: Vec<usize> = (1..=ranked.len())
            .filter(|&rank| ranked[rank - 1] > 0.0)
            .collect();
        let precisions = hits
            .iter()
            .map(|&rank| relevant(&ranked[..rank]) / rank as f64);
        [
            dcg(ranked) / dcg(&best),
            precisions.sum::<f64>() / n,
            relevant(&ranked[..k.min(ranked.len())]) / n,
            1.0 / hits[0] as f64,
        ]
    }

    fn measures(ranked: &RankedGains, k: usize) -> [f64; 4] {
        [
            ranked.ndcg(k),
            ranked.average_precision(),
            ranked.recall(k),
            ranked.reciprocal_rank(),
        ]
    }

    /// All orders of a list.
    fn orders(list: &[usize]) -> Vec<Vec<usize>> {
        match list {
            [] => vec![vec![]],
            _ => (0..list.len())
                .flat_map(|at| {
                    let mut rest = list.to_vec();
                    let first = rest.remove(at);
                    orders(&rest).into_iter().map(move |mut order| {
                        order.insert(0, first);
                        order
                    })
                })
                .collect(),
        }
    }

    #[test]
    fn measures_are_means_over_all_orders_of_ties() {
        let mut random = rng(11, 0);
        for _ in 0..150 {
            let n = 1 + below(&mut random, 6);
            let scores: Vec<f64> = (0..n).map(|_| below(&mut random, 3) as f64).collect();
            let mut gains: Vec<f64> = (0..n).map(|_| below(&mut random, 3) as f64).collect();
            gains[below(&mut random, n)] = 2.0;
            let k = 1 + below(&mut random, 7);
            // Orders that the scores allow.
            let allowed: Vec<Vec<usize>> = orders(&(0..n).collect::<Vec<_>>())
                .into_iter()
                .filter(|order| order.windows(2).all(|w| scores[w[0]] >= scores[w[1]]))
                .collect();
            let mut expected = [0.0; 4];
            for order in &allowed {
                let ranked: Vec<f64> = order.iter().map(|&at| gains[at]).collect();
                for (sum, value) in expected.iter_mut().zip(naive(&ranked, k)) {
                    *sum += value / allowed.len() as f64;
                }
            }
            let found = measures(&RankedGains::by_scores(&scores, &gains), k);
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-12, "{scores:?} {gains:?} {k}");
            }
        }
    }

    #[test]
    fn measures_of_long_rankings_agree_with_their_definitions() {
        let mut random = rng(12, 0);
        for _ in 0..100 {
            let n = 2 + below(&mut random, 200);
            let mut gains: Vec<f64> = (0..n).map(|_| below(&mut random, 4) as f64).collect();
            gains[0] = 1.0;
            shuffle(&mut random, &mut gains);
            let ranked = RankedGains::in_order(gains.iter().copied(), gains.iter().copied());
            let k = 1 + below(&mut random, 120);
            for (found, expected) in measures(&ranked, k).iter().zip(naive(&gains, k)) {
                assert!((found - expected).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn without_a_relevant_document_all_measures_are_0() {
        for ranked in [
            RankedGains::by_scores(&[], &[]),
            RankedGains::by_scores(&[1.0, 1.0], &[0.0, 0.0]),
        ] {
            assert!(!ranked.has_relevant());
            assert_eq!(measures(&ranked, 10), [0.0; 4]);
        }
        // A relevant document that was not found.
        let missed = RankedGains::in_order([0.0], [0.0, 1.0]);
        assert_eq!(measures(&missed, 10), [0.0; 4]);
    }
}
