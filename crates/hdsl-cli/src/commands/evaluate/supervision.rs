//! How well a similarity agrees with triplets, judgments and pairs.

use super::{Evaluate, uses};
use crate::failure::Failure;
use crate::files::Ranker;
use crate::output::{self, Log, count, percent, thousands};
use hdsl::measures::{RankingQuality, TripletAccuracy, pair_auc, rank_documents};
use hdsl::triplets::{Judgments, Pairs, TripletFormat};
use hdsl::{Normalization, Rows, Similarity, TripletSource, Triplets};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

/// What a file of triplets, judgments or pairs contains.
struct Supervision {
    triplets: Triplets,
    judgments: Option<Judgments>,
    pairs: Option<Pairs>,
}

impl Supervision {
    fn read(format: TripletFormat, path: &Path, n_rows: usize) -> Result<Self, Failure> {
        if format == TripletFormat::Pairs {
            let pairs = Pairs::read(path, n_rows)?;
            return Ok(Self {
                triplets: pairs.triplets(),
                judgments: None,
                pairs: Some(pairs),
            });
        }
        if !matches!(
            format,
            TripletFormat::Judgments | TripletFormat::JudgmentsLow
        ) {
            return Ok(Self {
                triplets: Triplets::read(path, format, n_rows)?,
                judgments: None,
                pairs: None,
            });
        }
        let judgments = Judgments::read(path, format, n_rows)?;
        let triplets = judgments.triplets();
        let is_relevant = |query| judgments.gains(query).iter().any(|judged| judged.1 > 0.0);
        if triplets.is_empty() && !judgments.queries().iter().any(is_relevant) {
            let message =
                "has no query with a relevant document or with two documents of different grades";
            return Err(Failure::file(path, message));
        }
        Ok(Self {
            triplets,
            judgments: Some(judgments),
            pairs: None,
        })
    }

    fn n_anchors(&self) -> usize {
        let anchors: BTreeSet<u32> = self.triplets.iter().map(|triplet| triplet.0).collect();
        anchors.len()
    }
}

/// The measures of rankings of the judged documents of each query, and of all documents.
struct Rankings {
    n_documents: usize,
    judged: RankingQuality,
    all: RankingQuality,
}

impl Rankings {
    fn of(similarity: &impl Similarity, rows: &Rows, judgments: &Judgments) -> Self {
        let gains = |query| judgments.gains(query);
        let queries: Vec<_> = (judgments.queries().iter())
            .map(|query| (query.query, gains(query)))
            .collect();
        let documents = judgments.documents();
        let quality =
            |among| RankingQuality::of(&rank_documents(similarity, rows, &queries, among));
        Self {
            n_documents: documents.len(),
            judged: quality(None),
            all: quality(Some(&documents)),
        }
    }
}

pub(super) fn run(args: &Evaluate, source: &TripletSource, log: &Log) -> Result<(), Failure> {
    let started = Instant::now();
    let TripletSource::File { format, path } = source else {
        return Err(Failure::usage(format!(
            "--triplets is {source}, expected a file of triplets, clicks:FILE, judgments:FILE, judgments-low:FILE or pairs:FILE"
        )));
    };
    let (mut ranker, rows);
    if args.ranking.train.is_some() {
        ranker = Ranker::open(&args.ranking, log)?;
        rows = ranker.queries(&args.test)?;
    } else {
        ranker = Ranker::on_rows(&args.ranking, &args.test, log)?;
        rows = ranker.train_rows()?;
    }
    let supervision = Supervision::read(*format, path, rows.n_rows())?;
    let normalization = args.rule.over(ranker.rule()).normalization;
    let similarity = normalization.of(ranker.similarity());
    let judgments = supervision.judgments.as_ref();
    let pairs = supervision.pairs.as_ref();
    let result = Measured {
        args,
        source,
        ranker: &ranker,
        normalization,
        accuracy: TripletAccuracy::of(&similarity, &rows, &supervision.triplets),
        rankings: judgments.map(|judgments| Rankings::of(&similarity, &rows, judgments)),
        pair_auc: pairs.and_then(|pairs| pair_auc(&similarity, &rows, pairs)),
        supervision,
    };
    match args.json {
        true => output::json(&result.json(started.elapsed().as_secs_f64())),
        false => output::stdout(&result.text()),
    }
}

/// What was measured, as text and as JSON.
struct Measured<'a> {
    args: &'a Evaluate,
    source: &'a TripletSource,
    ranker: &'a Ranker<'a>,
    normalization: Normalization,
    supervision: Supervision,
    accuracy: TripletAccuracy,
    rankings: Option<Rankings>,
    pair_auc: Option<f64>,
}

impl Measured<'_> {
    /// The share of tied triplets; none without triplets.
    fn tied(&self) -> Option<f64> {
        let TripletAccuracy { tied, total, .. } = self.accuracy;
        (total > 0.0).then(|| tied / total)
    }

    fn text(&self) -> String {
        let mut lines = vec![
            ("model", self.args.ranking.model.to_string()),
            ("uses", uses(self.ranker)),
        ];
        if let Some(tied) = self.tied() {
            let accuracy = format!(
                "{}  ({} of {}; {} tied, counted one half)",
                percent(self.accuracy.accuracy()),
                count(self.supervision.triplets.len(), "triplet"),
                count(self.supervision.n_anchors(), "anchor"),
                percent(tied)
            );
            lines.push(("triplet accuracy", accuracy));
        }
        if let (Some(auc), Some(pairs)) = (self.pair_auc, &self.supervision.pairs) {
            let n_pairs = count(pairs.pairs().len(), "pair");
            lines.push(("AUC of pairs", format!("{auc:.4}  ({n_pairs})")));
        }
        let table = self.rankings.as_ref().map(ranking_table);
        output::fields(&lines) + &table.unwrap_or_default()
    }

    fn json(&self, seconds: f64) -> Value {
        let model = self.ranker.model.as_ref();
        let learned = model.map(|model| model.similarity());
        let tied = self.tied();
        json!({
            "model": self.args.ranking.model.to_string(),
            "triplets": self.source.to_string(),
            "triplet_accuracy": tied.map(|_| self.accuracy.accuracy()),
            "tied": tied,
            "n_triplets": self.supervision.triplets.len(),
            "n_anchors": self.supervision.n_anchors(),
            "pair_auc": self.pair_auc,
            "rankings": self.rankings.as_ref().map(|rankings| json!({
                "n_documents": rankings.n_documents,
                "judged": quality_json(&rankings.judged),
                "all": quality_json(&rankings.all),
            })),
            "normalization": self.normalization,
            "preprocess": self.ranker.preprocess.kind(),
            "iteration": model.map(|model| model.chosen()),
            "n_atoms": learned.map(|m| m.atoms().len()),
            "n_features": learned.map(|m| m.n_features_used()),
            "n_features_total": self.ranker.preprocess.n_features(),
            "seconds": seconds,
        })
    }
}

/// The measures of both rankings, if some query has a relevant document.
fn ranking_table(rankings: &Rankings) -> String {
    if rankings.judged.n_queries == 0 {
        return String::new();
    }
    let row = |name: String, quality: &RankingQuality| {
        let measures = [
            quality.ndcg,
            quality.average_precision,
            quality.recall_at_10,
            quality.recall_at_100,
            quality.reciprocal_rank,
        ];
        let cells = measures.map(|measure| format!("{measure:.4}"));
        [name].into_iter().chain(cells).collect()
    };
    let documents = count(rankings.n_documents, "document");
    let table = [
        output::head(["ranked", "nDCG@10", "MAP", "recall@10", "recall@100", "MRR"]),
        row("judged documents".to_owned(), &rankings.judged),
        row(format!("all {documents}"), &rankings.all),
    ];
    let queries = match rankings.judged.n_queries {
        1 => "1 query".to_owned(),
        n => format!("{} queries", thousands(n)),
    };
    let note = format!("  means over {queries} with a relevant document\n");
    format!("\n{}\n{note}", output::table("  ", &table).trim_end())
}

fn quality_json(quality: &RankingQuality) -> Value {
    json!({
        "n_queries": quality.n_queries,
        "ndcg_at_10": quality.ndcg,
        "map": quality.average_precision,
        "recall_at_10": quality.recall_at_10,
        "recall_at_100": quality.recall_at_100,
        "mrr": quality.reciprocal_rank,
    })
}
