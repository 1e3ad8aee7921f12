//! Rankings of judged documents by a similarity.

use super::RankedGains;
use crate::data::Rows;
use crate::parallel;
use crate::similarity::Similarity;
use std::collections::HashMap;

/// Ranks documents for each query by a similarity of preprocessed rows. Queries are rows with the gains of their judged
/// documents.
///
/// The documents of a ranking are `among`, without the query itself unless it is judged; or the judged documents only, if
/// there is no such list. A document that is not judged has gain 0.
///
/// ```
/// use hdsl::measures::rank_documents;
/// use hdsl::{Dot, Rows};
/// let rows = Rows::from_parts(1, vec![0, 1, 2, 3, 4], vec![0; 4], vec![1.0, 5.0, 2.0, 4.0])?;
/// let queries = [(0, vec![(2, 1.0), (1, 0.0)])];
/// let ranked = rank_documents(&Dot, &rows, &queries, None);
/// assert_eq!(ranked[0].reciprocal_rank(), 1.0 / 2.0); // row 1, then row 2
/// let ranked = rank_documents(&Dot, &rows, &queries, Some(&[0, 1, 2, 3]));
/// assert_eq!(ranked[0].reciprocal_rank(), 1.0 / 3.0); // row 1, then rows 3 and 2
/// # Ok::<(), hdsl::Error>(())
/// ```
///
/// # Panics
/// If a row does not exist.
pub fn rank_documents<S: Similarity + ?Sized>(
    similarity: &S,
    rows: &Rows,
    queries: &[(u32, Vec<(u32, f64)>)],
    among: Option<&[u32]>,
) -> Vec<RankedGains> {
    parallel::map(queries.len(), |at| {
        let (query, mut judged) = queries[at].clone();
        if let Some(documents) = among {
            let known: HashMap<u32, f64> = judged.iter().copied().collect();
            let is_other = |row: &&u32| **row != query && !known.contains_key(row);
            let others = documents.iter().filter(is_other);
            judged.extend(others.map(|&row| (row, 0.0)));
        }
        let asked = rows.row(query as usize);
        let score = |row: u32| similarity.score(asked, rows.row(row as usize));
        let scores: Vec<f64> = judged.iter().map(|&(row, _)| score(row)).collect();
        let gains: Vec<f64> = judged.iter().map(|&(_, gain)| gain).collect();
        RankedGains::by_scores(&scores, &gains)
    })
}

/// Means over queries of the measures of their rankings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RankingQuality {
    /// nDCG@10.
    pub ndcg: f64,
    /// MAP, the mean of average precisions.
    pub average_precision: f64,
    /// recall@10.
    pub recall_at_10: f64,
    /// recall@100.
    pub recall_at_100: f64,
    /// MRR, the mean of reciprocal ranks.
    pub reciprocal_rank: f64,
    /// The number of queries: those with a relevant document.
    pub n_queries: usize,
}

impl RankingQuality {
    /// That of the rankings that have a relevant document.
    pub fn of(ranked: &[RankedGains]) -> Self {
        let counted: Vec<&RankedGains> = ranked.iter().filter(|r| r.has_relevant()).collect();
        let n = counted.len().max(1) as f64;
        let mean = |measure: &dyn Fn(&RankedGains) -> f64| {
            counted.iter().map(|ranked| measure(ranked)).sum::<f64>() / n
        };
        Self {
            ndcg: mean(&|ranked| ranked.ndcg(10)),
            average_precision: mean(&RankedGains::average_precision),
            recall_at_10: mean(&|ranked| ranked.recall(10)),
            recall_at_100: mean(&|ranked| ranked.recall(100)),
            reciprocal_rank: mean(&RankedGains::reciprocal_rank),
            n_queries: counted.len(),
        }
    }
}
