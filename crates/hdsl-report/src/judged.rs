//! Section 9: how well documents are ranked for queries with judgments, under the learned similarity and without learning.

use crate::input::{Input, JudgedQueries};
use crate::ranking::baseline;
use crate::references::{Purpose, Reference};
use crate::sample::thinned;
use hdsl::measures::{RankedGains, RankingQuality};
use hdsl::ranking::{Judged, p_value};
use hdsl::{BilinearModel, Dot, KnnIndex, Result, Rows, Similarity};
use serde::Serialize;

/// More queries are sampled.
const MAX_QUERIES: usize = 2000;
/// Queries in the table.
const MAX_LISTED: usize = 500;
/// Scores in memory at a time.
const SCORES_AT_A_TIME: usize = 1 << 22;

/// The section.
#[derive(Serialize)]
pub(crate) struct JudgedSection {
    /// The queries that are measured: those with a relevant document.
    pub(crate) n_queries: usize,
    /// The queries with a relevant document, measured or not.
    n_judged: usize,
    /// The documents of a ranking.
    n_documents: usize,
    /// The references, the base alone if there is one, and the learned similarity at the end.
    pub(crate) similarities: Vec<Measured>,
    /// The first queries, by number.
    queries: Vec<OfQuery>,
    /// Whether queries are test rows, whose neighbors are shown.
    are_test_rows: bool,
    source: String,
}

/// The means over queries of one similarity.
#[derive(Serialize)]
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    pub(crate) ndcg: f64,
    pub(crate) map: f64,
    recall_at_10: f64,
    recall_at_100: f64,
    mrr: f64,
    /// nDCG@10 of the learned similarity minus this one, and the p value of a paired randomization test; not for the
    /// learned similarity itself.
    versus: Option<(f64, f64)>,
}

/// One query.
#[derive(Serialize)]
struct OfQuery {
    row: u32,
    name: Option<String>,
    n_relevant: usize,
    /// nDCG@10 under each similarity, in their order.
    ndcg: Vec<f64>,
}

impl JudgedSection {
    /// `None` without judgments, without training rows, or if no query has a relevant document.
    pub(crate) fn of(input: &Input<'_>) -> Result<Option<Self>> {
        let (Some(given), Some(train)) = (&input.judged, input.train) else {
            return Ok(None);
        };
        let answered: Vec<&(u32, Judged)> = given
            .judged
            .iter()
            .filter(|(_, judged)| judged.answers().next().is_some())
            .collect();
        if answered.is_empty() {
            return Ok(None);
        }
        let measured = thinned(&answered, MAX_QUERIES);
        let ranker = Ranker {
            given,
            queries: &measured,
        };
        let mut ranked = Vec::new();
        for reference in Reference::all(input, train.rows, given.queries, Purpose::Rankings) {
            let apply = |rows: &Rows| reference.preprocessor.apply(rows);
            ranked.push((reference.name, ranker.rank(&Dot, train.rows, &apply)?));
        }
        let (model, normalization) = (input.model, input.rule.normalization);
        let prepare = |rows: &Rows| model.prepare(rows);
        if model.base() > 0.0 {
            let base = BilinearModel::base_only(model.n_features(), model.base())?;
            let normalized = normalization.of(&base);
            let rankings = ranker.rank(&normalized, train.rows, &prepare)?;
            ranked.push((baseline(model), rankings));
        }
        let normalized = normalization.of(model.similarity());
        let rankings = ranker.rank(&normalized, train.rows, &prepare)?;
        ranked.push(("learned similarity", rankings));
        Ok(Some(Self {
            n_queries: measured.len(),
            n_judged: answered.len(),
            n_documents: given
                .documents
                .as_ref()
                .map_or(train.rows.n_rows(), Vec::len),
            queries: of_queries(given, &measured, &ranked),
            similarities: measures(&ranked),
            are_test_rows: input.judged_test_rows().is_some(),
            source: given.source.to_owned(),
        }))
    }

    /// The learned similarity.
    pub(crate) fn learned(&self) -> Option<&Measured> {
        self.similarities.last()
    }

    /// The reference with the highest nDCG@10, the base alone included.
    pub(crate) fn best_reference(&self) -> Option<&Measured> {
        let n = self.similarities.len().saturating_sub(1);
        let references = self.similarities[..n].iter();
        // The first of equals: the last one with the maximum, from the end.
        references.rev().max_by(|a, b| a.ndcg.total_cmp(&b.ndcg))
    }
}

/// The rankings of the queries under one similarity.
type Rankings = (&'static str, Vec<RankedGains>);

/// Ranks documents for queries.
struct Ranker<'a> {
    given: &'a JudgedQueries<'a>,
    queries: &'a [&'a (u32, Judged)],
}

impl Ranker<'_> {
    /// All documents of each query by decreasing score; ties count in expectation.
    fn rank<S: Similarity + ?Sized>(
        &self,
        similarity: &S,
        documents: &Rows,
        preprocess: &dyn Fn(&Rows) -> Rows,
    ) -> Result<Vec<RankedGains>> {
        let n = documents.n_rows();
        let index = KnnIndex::new(similarity, &preprocess(documents));
        let is_document = |row: u32| match &self.given.documents {
            Some(documents) => documents.binary_search(&row).is_ok(),
            None => true,
        };
        let mut ranked = Vec::with_capacity(self.queries.len());
        for some in self
            .queries
            .chunks((SCORES_AT_A_TIME / n.max(1)).clamp(1, 64))
        {
            let rows: Vec<u32> = some.iter().map(|of| of.0).collect();
            let asked = preprocess(&self.given.queries.select(&rows));
            let found = index.neighbors_where(&asked, n, |query, row| {
                is_document(row) && !some[query as usize].1.is_left_out(row)
            })?;
            for (neighbors, of) in found.iter().zip(some) {
                let scores: Vec<f64> = neighbors.iter().map(|n| n.score).collect();
                let gain = |row: u32| of.1.gain(row).unwrap_or(0.0);
                let gains: Vec<f64> = neighbors.iter().map(|n| gain(n.row)).collect();
                ranked.push(RankedGains::by_scores(&scores, &gains));
            }
        }
        Ok(ranked)
    }
}

fn measures(ranked: &[Rankings]) -> Vec<Measured> {
    let ndcg = |of: &Rankings| -> Vec<f64> { of.1.iter().map(|r| r.ndcg(10)).collect() };
    let learned = ranked.last().map(ndcg).unwrap_or_default();
    let last = ranked.len().saturating_sub(1);
    let measured = ranked.iter().enumerate().map(|(at, of)| {
        let quality = RankingQuality::of(&of.1);
        let versus = (at < last).then(|| {
            let other = ndcg(of);
            let differences: Vec<f64> = learned.iter().zip(&other).map(|(a, b)| a - b).collect();
            let mean = differences.iter().sum::<f64>() / differences.len().max(1) as f64;
            (mean, p_value(&differences))
        });
        Measured {
            name: of.0,
            ndcg: quality.ndcg,
            map: quality.average_precision,
            recall_at_10: quality.recall_at_10,
            recall_at_100: quality.recall_at_100,
            mrr: quality.reciprocal_rank,
            versus,
        }
    });
    measured.collect()
}

fn of_queries(
    given: &JudgedQueries<'_>,
    queries: &[&(u32, Judged)],
    ranked: &[Rankings],
) -> Vec<OfQuery> {
    let listed = queries.iter().enumerate().take(MAX_LISTED);
    listed
        .map(|(at, (row, judged))| OfQuery {
            row: *row,
            name: given.names.map(|names| names[*row as usize].clone()),
            n_relevant: judged.answers().count(),
            ndcg: ranked.iter().map(|of| of.1[at].ndcg(10)).collect(),
        })
        .collect()
}
