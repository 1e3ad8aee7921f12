//! Triplets of a test collection: query, answer, wrong answer.

use super::Collection;
use crate::data::Rows;
use crate::error::Result;
use crate::knn::KnnIndex;
use crate::random::{rng, sample};
use crate::similarity::Dot;
use crate::triplets::Triplets;

/// Wrong answers are drawn from this many of the documents most similar to the query.
const NEAREST: usize = 50;

/// Wrong answers drawn per answer.
const PER_ANSWER: usize = 5;

/// Rows of a pair have at least this many features, or say too little about each other.
const MIN_FEATURES: usize = 2;

/// The random stream of the first query and that of the first pair.
const QUERIES: u64 = 1 << 32;
const PAIRS: u64 = 1 << 33;

/// Everything that triplets are drawn from. The rows are documents, queries, and both sides of the pairs, in this order.
pub(super) struct Supervision<'a> {
    collection: &'a Collection<'a>,
    n_documents: u32,
    /// For each query, the unjudged documents nearest to it.
    of_queries: Vec<Vec<u32>>,
    /// For each pair that is used, its number and the right sides nearest to its left side, other than its own.
    of_pairs: Vec<(u32, Vec<u32>)>,
}

impl<'a> Supervision<'a> {
    /// `documents`, `queries` and `pairs` are those of the collection, preprocessed. Nearest is by their dot product.
    pub(super) fn new(
        collection: &'a Collection<'a>,
        documents: &Rows,
        queries: &Rows,
        pairs: Option<&(Rows, Rows)>,
    ) -> Result<Self> {
        let judgments = collection.judgments;
        let is_wrong = |query: u32, document: u32| {
            let judged = judgments.of(query);
            judged.gain(document).is_none() && !judged.is_left_out(document)
        };
        let rows_of = |lists: Vec<Vec<crate::knn::Neighbor>>| {
            let rows = |list: Vec<crate::knn::Neighbor>| list.iter().map(|n| n.row).collect();
            lists.into_iter().map(rows)
        };
        let near = KnnIndex::new(&Dot, documents).neighbors_where(queries, NEAREST, is_wrong)?;
        let of_pairs = match pairs {
            None => Vec::new(),
            Some((left, right)) => {
                let index = KnnIndex::new(&Dot, right);
                let near = index.neighbors_where(left, NEAREST, |a, b| a != b)?;
                let is_used = |pair: &(u32, Vec<u32>)| {
                    let row = pair.0 as usize;
                    left.row(row).nnz().min(right.row(row).nnz()) >= MIN_FEATURES
                };
                (0..).zip(rows_of(near)).filter(is_used).collect()
            }
        };
        Ok(Self {
            collection,
            n_documents: documents.n_rows() as u32,
            of_queries: rows_of(near).collect(),
            of_pairs,
        })
    }

    /// Triplets for some queries, all of the same total weight, and for all pairs, which together have `pair_weight` times
    /// the weight of the queries. Draws depend on the seed and the query, not on what other queries there are.
    pub(super) fn triplets(&self, queries: &[u32], pair_weight: f64, seed: u64) -> Triplets {
        let mut triplets = Triplets::new();
        for &query in queries {
            let of_query = self.of_query(query, seed);
            let total: f64 = of_query.iter().map(|t| t.2).sum();
            for (near, far, weight) in of_query {
                triplets.push_weighted(self.n_documents + query, near, far, weight / total);
            }
        }
        if pair_weight > 0.0 {
            self.push_pairs(pair_weight * queries.len() as f64, seed, &mut triplets);
        }
        triplets
    }

    /// Each answer with documents of a lower gain, judged or not: (answer, other, difference of gains).
    fn of_query(&self, query: u32, seed: u64) -> Vec<(u32, u32, f64)> {
        let mut random = rng(seed, QUERIES + u64::from(query));
        let judged = self.collection.judgments.of(query);
        let unjudged = &self.of_queries[query as usize];
        let mut found = Vec::new();
        for (answer, gain) in judged.answers() {
            let lower = judged.gains.iter().filter(|other| other.1 < gain);
            let lower: Vec<(u32, f64)> = lower.copied().collect();
            let mut draw = |n: usize| sample(&mut random, n, n.min(PER_ANSWER));
            for at in draw(unjudged.len()) {
                found.push((answer, unjudged[at as usize], gain));
            }
            for at in draw(lower.len()) {
                let (other, its_gain) = lower[at as usize];
                found.push((answer, other, gain - its_gain));
            }
        }
        found
    }

    fn push_pairs(&self, total: f64, seed: u64, triplets: &mut Triplets) {
        let left = self.n_documents + self.collection.queries.n_rows() as u32;
        let right = left
            + self
                .collection
                .pairs
                .map_or(0, |pairs| pairs.0.n_rows() as u32);
        let drawn = |near: &Vec<u32>| near.len().min(PER_ANSWER);
        let count: usize = self.of_pairs.iter().map(|pair| drawn(&pair.1)).sum();
        for (pair, near) in &self.of_pairs {
            let mut random = rng(seed, PAIRS + u64::from(*pair));
            for at in sample(&mut random, near.len(), drawn(near)) {
                let other = right + near[at as usize];
                triplets.push_weighted(left + pair, right + pair, other, total / count as f64);
            }
        }
    }
}
