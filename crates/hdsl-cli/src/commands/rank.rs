//! `hdsl rank`: learn to rank documents from judgments, and measure it on held-out queries.

use crate::args::{
    ReadArgs, TextArgs, above_zero,
    heading::{COLLECTION, METHOD},
    named, positive,
};
use crate::failure::Failure;
use crate::files::{self, Reader};
use crate::output::{self, Log, count, thousands};
use crate::progress::RankingProgress;
use crate::signals;
use clap::{Args, ValueHint};
use hdsl::data::{Document, Stem, Vectorizer, is_documents, read_documents};
use hdsl::ranking::{
    Collection, Comparison, HeldOut, Ids, Judgments, Quality, RankConfig, RankSetting, Ranked, rank,
};
use hdsl::{IndexBase, Preprocess, Rows};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Learn to rank documents from judgments, and measure the ranking on held-out queries
///
/// Learns S(x, x') = beta <x, x'> + x^T M x' of queries and documents, and ranks by its cosine normalization
/// S(x, x') / sqrt(S(x, x) S(x', x')). M is learned from triplets (query, answer, wrong answer): for each answer, wrong
/// answers are drawn from the 50 unjudged documents that are most similar to the query, and from judged documents of lower
/// gain. Every query has the same weight. Titles, or the rows of --pairs, add triplets (title, its own text, other text).
///
/// --folds measures by cross-validation over queries: lambda, the weight of the pairs and beta are chosen by another
/// cross-validation, over the queries of the other folds, so that nothing is learned from the queries it is measured on. nDCG@10
/// (gain / log2(rank + 1)) and mean average precision are those of all queries with an answer. The p value of a difference is that of
/// a paired randomization test. The model is then learned from all queries; `neighbors`, `score`, `explain` and
/// `report` take it.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl rank docs.svm --queries queries.svm --judgments qrels.txt -o m.hdsl
      rows of word counts; judgments name rows, counted from 0
  hdsl rank corpus.jsonl --queries queries.jsonl --judgments qrels.tsv --stem english --stop-words english -o m.hdsl
      texts with ids and titles, as BEIR has them
  hdsl rank cran.all.1400 --queries cran.qry --judgments cranqrel --number-queries --lower-is-better \\
      --stem english --stop-words english --save-vocab vocab.txt -o m.hdsl
      the Cranfield collection
  hdsl vectorize cran.all.1400 --vocab vocab.txt -o docs.svm && hdsl vectorize cran.qry --vocab vocab.txt -o q.svm
  hdsl neighbors m.hdsl --train docs.svm q.svm -k 10
      rankings of new queries under the learned similarity",
    mut_arg("queries", |arg| arg.required(true)),
    mut_arg("judgments", |arg| arg.required(true)))]
pub(crate) struct Rank {
    /// Documents: rows (svmlight, npz, ...), or texts (`id<TAB>text`, JSON lines, SMART)
    #[arg(value_name = "DOCUMENTS", value_hint = ValueHint::FilePath)]
    documents: PathBuf,
    #[command(flatten)]
    collection: CollectionArgs,
    #[command(flatten)]
    text: TextArgs,
    /// Folds over queries that the ranking is measured by; 0: learn only
    #[arg(long, value_name = "N", default_value_t = 5)]
    folds: usize,

    /// Preprocessing of feature values; fitted on the documents and saved in the model
    #[arg(long, value_name = "HOW", value_parser = named!(Preprocess, UNIT_ROWS), default_value_t = Preprocess::Tfidf, help_heading = METHOD)]
    preprocess: Preprocess,
    /// Sizes lambda of the domain to choose from [default: 1/8, 1/4 and 1/2 of the number of features]
    #[arg(long, value_name = "LAMBDA,...", value_delimiter = ',', value_parser = above_zero, allow_negative_numbers = true, help_heading = METHOD)]
    lambda: Vec<f64>,
    /// Weights of titles or pairs to choose from, relative to the judgments [default: 3]
    #[arg(long, value_name = "WEIGHT,...", value_delimiter = ',', value_parser = above_zero, allow_negative_numbers = true, help_heading = METHOD)]
    pair_weights: Vec<f64>,
    /// Weights of the base similarity to choose from: beta / mean of S_M(d, d) over documents [default: 0.5,1,2,4,8]
    #[arg(long, value_name = "SHARE,...", value_delimiter = ',', value_parser = above_zero, allow_negative_numbers = true, help_heading = METHOD)]
    base_shares: Vec<f64>,
    /// Numbers of iterations per model to choose from
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1600", value_parser = positive, allow_negative_numbers = true, help_heading = METHOD)]
    max_iter: Vec<usize>,
    /// Average N models that differ in the wrong answers drawn
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = positive, allow_negative_numbers = true, help_heading = METHOD)]
    n_estimators: usize,
    /// Seed of all random choices: the same seed gives the same bytes
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = METHOD)]
    seed: u64,

    /// Model file to write; checked to be writable before the work starts
    #[arg(short, long, value_name = "MODEL", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Print one JSON object on standard output instead of text, with the measures of each query
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

/// A test collection: queries and judgments beside the documents.
#[derive(Args, Debug)]
pub(crate) struct CollectionArgs {
    /// Queries, in a format of the same kind
    #[arg(long, value_name = "FILE", requires = "judgments", value_hint = ValueHint::FilePath, help_heading = COLLECTION)]
    pub(crate) queries: Option<PathBuf>,
    /// Lines `query document grade` or, as TREC has them, `query 0 document grade`
    ///
    /// Queries and documents are named by the ids of texts, or by row numbers counted from 0. A document of a grade below 0 is
    /// left out of the ranking of that query. Documents that are not judged are wrong answers.
    #[arg(long, value_name = "FILE", requires = "queries", value_hint = ValueHint::FilePath, help_heading = COLLECTION)]
    pub(crate) judgments: Option<PathBuf>,
    /// Grade 1 is better than grade 4: gains are the highest grade + 1 - grade
    #[arg(long, requires = "judgments", help_heading = COLLECTION)]
    lower_is_better: bool,
    /// Judgments name queries by position in their file, counted from 1, whatever their ids are
    #[arg(long, requires = "judgments", help_heading = COLLECTION)]
    number_queries: bool,
    /// Two files of rows that belong together, row by row, such as titles and texts: supervision without judgments
    #[arg(long, num_args = 2, value_names = ["LEFT", "RIGHT"], requires = "judgments", value_hint = ValueHint::FilePath, help_heading = COLLECTION)]
    pairs: Option<Vec<PathBuf>>,
    /// DOCUMENTS and QUERIES are texts [default: detected for SMART, JSON lines, and files named .tsv or .txt]
    #[arg(long, requires = "judgments", help_heading = COLLECTION)]
    texts: bool,
    /// Do not learn from titles of texts
    #[arg(long, requires = "judgments", help_heading = COLLECTION)]
    no_titles: bool,
    /// Save the vocabulary of texts, for `hdsl vectorize --vocab`
    #[arg(long, value_name = "FILE", requires = "judgments", value_hint = ValueHint::FilePath, help_heading = COLLECTION)]
    save_vocab: Option<PathBuf>,
}

/// After these, rows have unit length.
const UNIT_ROWS: [Preprocess; 4] = [
    Preprocess::Tfidf,
    Preprocess::Bm25,
    Preprocess::Unit,
    Preprocess::MaxUnit,
];

/// The files of a test collection.
struct Data {
    documents: Rows,
    queries: Rows,
    pairs: Option<(Rows, Rows)>,
    document_ids: Ids,
    query_ids: Ids,
    /// The ids of queries, where they have any.
    query_names: Option<Vec<String>>,
    vectorizer: Option<Vectorizer>,
    index_base: Option<IndexBase>,
}

/// What `rank` and `tune` do with a test collection.
pub(crate) struct Job<'a> {
    pub(crate) documents: &'a Path,
    pub(crate) collection: &'a CollectionArgs,
    pub(crate) text: &'a TextArgs,
    pub(crate) read: &'a ReadArgs,
    pub(crate) config: RankConfig,
    pub(crate) output: &'a Path,
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Rank, log: &Log) -> Result<(), Failure> {
    let job = Job {
        documents: &args.documents,
        collection: &args.collection,
        text: &args.text,
        read: &args.read,
        config: args.config(),
        output: &args.output,
        json: args.json,
    };
    job.run(log)
}

impl Job<'_> {
    pub(crate) fn run(&self, log: &Log) -> Result<(), Failure> {
        files::refuse_stdout_with_json(self.json, Some(self.output))?;
        let is_text = self.collection.texts || is_documents(self.documents);
        self.check(is_text)?;
        let out = files::create(self.output)?;
        let vocabulary_out = self.collection.save_vocab.as_deref();
        let vocabulary_out = vocabulary_out.map(files::create).transpose()?;
        let mut data = match is_text {
            true => self.read_texts()?,
            false => self.read_rows(log)?,
        };
        if self.collection.number_queries {
            data.query_ids = Ids::Positions(data.queries.n_rows());
        }
        let judgments = Judgments::read(
            self.judgments(),
            &data.query_ids,
            &data.document_ids,
            self.collection.lower_is_better,
        )
        .map_err(|error| self.unknown_query(error, is_text))?;
        let vectorizer = data.vectorizer.as_ref();
        let collection = Collection {
            documents: &data.documents,
            queries: &data.queries,
            judgments: &judgments,
            pairs: data.pairs.as_ref(),
            names: vectorizer.map(|vectorizer| vectorizer.terms()),
        };
        signals::stop_in_order();
        let mut progress = RankingProgress::new(log, self.config.folds + 1);
        let ranked = rank(&collection, &self.config, &mut progress);
        progress.finish();
        let ranked = ranked.map_err(|error| Failure::from(error.in_file(self.documents)))?;
        let model = match data.index_base {
            None => ranked.model.clone().numbered_by_position(),
            Some(_) => ranked.model.clone(),
        };
        let bytes = model.to_bytes();
        // The vocabulary first: without it the model cannot be used, and it can be made again without learning.
        if let (Some(out), Some(vectorizer)) = (vocabulary_out, &data.vectorizer) {
            files::write(out, |out| vectorizer.write(out))?;
        }
        files::write_model(out, &bytes, None)?;
        if ranked.held_out.is_none() && self.config.folds > 0 {
            log.note(
                "interrupted before all folds were measured; the settings are the best so far",
            );
        }
        let result = RankResult {
            job: self,
            data: &data,
            n_queries: judgments.queries().len(),
            ranked: &ranked,
            n_bytes: bytes.len(),
        };
        output::result(
            self.json,
            Some(self.output),
            || result.json(),
            || result.text(),
        )
    }

    fn queries(&self) -> &Path {
        let given = self.collection.queries.as_deref();
        given.expect("the command line requires --queries")
    }

    fn judgments(&self) -> &Path {
        let given = self.collection.judgments.as_deref();
        given.expect("the command line requires --judgments")
    }

    /// Combinations of options that are refused before any work.
    fn check(&self, is_text: bool) -> Result<(), Failure> {
        let for_text = [
            ("--stem", self.text.stem != Stem::None),
            ("--stop-words", self.text.stop_words.is_some()),
            ("--no-titles", self.collection.no_titles),
            ("--save-vocab", self.collection.save_vocab.is_some()),
            ("--min-df", self.text.min_df.is_some()),
            ("--max-df", self.text.max_df.is_some()),
            ("--ngrams", self.text.ngrams.is_some()),
            ("--hashing", self.text.hashing.is_some()),
        ];
        if let Some((option, _)) = for_text.iter().find(|option| option.1 && !is_text) {
            return Err(Failure::usage(format!(
                "{option} is for texts, and {} has rows; pass --texts if it has lines `id<TAB>text`",
                self.documents.display()
            )));
        }
        if self.text.vocab.is_some() {
            return Err(Failure::usage(
                "--vocab cannot be combined with --queries and --judgments: the vocabulary is that of the documents",
            ));
        }
        if is_text && self.collection.pairs.is_some() {
            return Err(Failure::usage(
                "--pairs takes rows, and DOCUMENTS has texts, whose titles are the pairs",
            ));
        }
        Ok(())
    }

    /// Documents and queries as texts, with one vocabulary, that of the documents.
    fn read_texts(&self) -> Result<Data, Failure> {
        let (documents, queries) = (
            read_documents(self.documents)?,
            read_documents(self.queries())?,
        );
        let whole = |of: &[Document]| -> Vec<String> {
            of.iter().map(|d| d.whole().into_owned()).collect()
        };
        let texts = whole(&documents);
        let vectorizer = Vectorizer::fit(&texts, self.text.options()?)
            .map_err(|error| Failure::from(error.in_file(self.documents)))?;
        let titled: Vec<&Document> = documents.iter().filter(|d| !d.title.is_empty()).collect();
        let pairs = (!titled.is_empty() && !self.collection.no_titles).then(|| {
            let titles: Vec<&str> = titled.iter().map(|d| d.title.as_str()).collect();
            let bodies: Vec<&str> = titled.iter().map(|d| d.body()).collect();
            (vectorizer.transform(&titles), vectorizer.transform(&bodies))
        });
        let ids = |of: &[Document]| Ids::named(of.iter().map(|d| d.id.as_str()));
        Ok(Data {
            documents: vectorizer.transform(&texts),
            queries: vectorizer.transform(&whole(&queries)),
            pairs,
            document_ids: ids(&documents),
            query_ids: ids(&queries),
            query_names: Some(queries.into_iter().map(|query| query.id).collect()),
            vectorizer: Some(vectorizer),
            index_base: Some(IndexBase::One),
        })
    }

    /// Documents, queries and pairs as rows.
    fn read_rows(&self, log: &Log) -> Result<Data, Failure> {
        let mut reader = Reader::new(self.read, log);
        let documents = reader.training(self.documents, None, "", &Default::default())?;
        files::check_values(self.config.preprocess, self.documents, &documents.rows)?;
        let mut others = |path: &Path| -> Result<Rows, Failure> {
            let data = reader.data(path, None)?;
            files::check_values(self.config.preprocess, path, &data.rows)?;
            files::note_unseen(log, path, &data.rows, documents.rows.n_features());
            Ok(data.rows)
        };
        let queries = others(self.queries())?;
        let pairs = match self.collection.pairs.as_deref() {
            Some([left, right]) => Some((others(left)?, others(right)?)),
            _ => None,
        };
        let by_position = reader.is_numbered_by_position(self.documents);
        Ok(Data {
            document_ids: Ids::Rows(documents.rows.n_rows()),
            query_ids: Ids::Rows(queries.n_rows()),
            index_base: (!by_position).then_some(documents.index_base),
            documents: documents.rows,
            queries,
            pairs,
            query_names: None,
            vectorizer: None,
        })
    }

    /// Judgments that name queries by position are the usual reason for an id that no query has.
    fn unknown_query(&self, error: hdsl::Error, is_text: bool) -> Failure {
        let is_query =
            matches!(&error, hdsl::Error::Parse { reason, .. } if reason.starts_with("query"));
        match is_query && is_text && !self.collection.number_queries {
            true => Failure::usage(format!(
                "{error}; pass --number-queries if judgments count the queries of {} from 1",
                self.queries().display()
            )),
            false => error.into(),
        }
    }
}

impl Rank {
    fn config(&self) -> RankConfig {
        let mut config = RankConfig::default();
        config.preprocess = self.preprocess;
        config.lambda = self.lambda.clone();
        if !self.pair_weights.is_empty() {
            config.pair_weights = self.pair_weights.clone();
        }
        if !self.base_shares.is_empty() {
            config.base_shares = self.base_shares.clone();
        }
        config.max_iter = self.max_iter.clone();
        config.n_estimators = self.n_estimators;
        config.folds = self.folds;
        config.seed = self.seed;
        config
    }
}

/// A finished ranking, as text and as JSON.
struct RankResult<'a> {
    job: &'a Job<'a>,
    data: &'a Data,
    n_queries: usize,
    ranked: &'a Ranked,
    n_bytes: usize,
}

/// Mean nDCG@10 and mean average precision.
fn means(of: &[Quality]) -> [f64; 2] {
    let n = of.len().max(1) as f64;
    [
        of.iter().map(|q| q.ndcg).sum::<f64>() / n,
        of.iter().map(|q| q.average_precision).sum::<f64>() / n,
    ]
}

impl RankResult<'_> {
    fn text(&self) -> String {
        let model = &self.ranked.model;
        let collection = format!(
            "{}, {} with answers, {}",
            count(self.data.documents.n_rows(), "document"),
            match self.n_queries {
                1 => "1 query".to_owned(),
                n => format!("{} queries", thousands(n)),
            },
            count(self.data.documents.n_features(), "feature")
        );
        let mut text = output::fields(&[("collection", collection)]);
        if let Some(held_out) = &self.ranked.held_out {
            text += &self.measured(held_out);
        }
        let lines = [
            (
                "settings",
                in_words(self.ranked.setting.as_ref(), self.data.pairs.is_some()),
            ),
            ("uses", output::usage_of(model)),
            ("saved", output::saved(self.job.output, self.n_bytes)),
        ];
        text + &output::fields(&lines)
    }

    fn measured(&self, held_out: &HeldOut) -> String {
        let mut table = vec![output::head(["held-out queries", "nDCG@10", "MAP"])];
        for (name, of) in [
            ("tf-idf cosine", &held_out.tfidf),
            ("BM25-weighted cosine", &held_out.bm25),
            ("learned similarity", &held_out.learned),
        ] {
            let [ndcg, map] = means(of).map(|x| format!("{x:.4}"));
            table.push(vec![name.to_owned(), ndcg, map]);
        }
        let mut text = format!("\n{}\n", output::table("", &table));
        let against = |other: &[Quality]| Comparison::of(&held_out.learned, other);
        let difference = |name: &str, versus: Comparison| {
            format!(
                "nDCG@10 minus that of the {name}: {:+.4} (p = {})\n",
                versus.difference,
                Precise(versus.p_value)
            )
        };
        let tfidf = against(&held_out.tfidf);
        text += &difference("tf-idf cosine", tfidf);
        text += &difference("BM25-weighted cosine", against(&held_out.bm25));
        text += match (tfidf.is_better(), tfidf.difference > 0.0) {
            (true, _) => "Learning helps: it ranks better than the tf-idf cosine.\n\n",
            (false, true) => {
                "Learning does not help for sure: the difference may be chance. More queries would tell.\n\n"
            }
            (false, false) => "Learning does not help: rank by the tf-idf cosine.\n\n",
        };
        text
    }

    fn json(&self) -> Value {
        let setting = |s: &Option<RankSetting>| {
            let learned = |s: &RankSetting| {
                json!({
                    "lambda": s.lambda, "pair_weight": s.pair_weight, "max_iter": s.max_iter, "base_share": s.base_share,
                    "ndcg": s.ndcg,
                })
            };
            s.as_ref().map(learned)
        };
        let held_out = self.ranked.held_out.as_ref().map(|held_out| {
            let measures = |of: &[Quality]| {
                let [ndcg, map] = means(of);
                json!({ "ndcg_at_10": ndcg, "map": map })
            };
            let versus = |other: &[Quality]| {
                let versus = Comparison::of(&held_out.learned, other);
                json!({ "difference": versus.difference, "p_value": versus.p_value, "is_better": versus.is_better() })
            };
            let queries = held_out.queries.iter().enumerate().map(|(at, &query)| {
                let of = |list: &[Quality]| json!({ "ndcg_at_10": list[at].ndcg, "ap": list[at].average_precision });
                json!({
                    "query": self.query_name(query),
                    "tfidf": of(&held_out.tfidf), "bm25": of(&held_out.bm25), "learned": of(&held_out.learned),
                })
            });
            json!({
                "tfidf": measures(&held_out.tfidf),
                "bm25": measures(&held_out.bm25),
                "learned": measures(&held_out.learned),
                "learned_minus_tfidf": versus(&held_out.tfidf),
                "learned_minus_bm25": versus(&held_out.bm25),
                "settings": held_out.settings.iter().map(setting).collect::<Vec<_>>(),
                "queries": queries.collect::<Vec<Value>>(),
            })
        });
        let similarity = self.ranked.model.similarity();
        json!({
            "output": self.job.output,
            "n_documents": self.data.documents.n_rows(),
            "n_queries": self.n_queries,
            "n_features": self.data.documents.n_features(),
            "n_pairs": self.data.pairs.as_ref().map_or(0, |pairs| pairs.0.n_rows()),
            "folds": self.job.config.folds,
            "held_out": held_out,
            "setting": setting(&self.ranked.setting),
            "base": similarity.base(),
            "n_atoms": similarity.atoms().len(),
            "n_features_used": similarity.n_features_used(),
        })
    }

    /// The id of a query, or its row number.
    fn query_name(&self, query: u32) -> Value {
        match &self.data.query_names {
            Some(names) => json!(names[query as usize]),
            None => json!(query),
        }
    }
}

/// The chosen settings.
fn in_words(setting: Option<&RankSetting>, with_pairs: bool) -> String {
    let Some(setting) = setting else {
        return "none: no learned similarity was better than the plain one, which is saved"
            .to_owned();
    };
    let pairs = match with_pairs {
        true => format!(", weight of pairs {}", setting.pair_weight),
        false => String::new(),
    };
    format!(
        "lambda {}{pairs}, {} iterations, share of the base {}; nDCG@10 {:.4} in the cross-validation that chose them",
        output::short(setting.lambda),
        thousands(setting.max_iter),
        setting.base_share,
        setting.ndcg
    )
}

/// A p value with as many digits as it has.
struct Precise(f64);

impl std::fmt::Display for Precise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 < 0.01 {
            true => write!(f, "{:.4}", self.0),
            false => write!(f, "{:.2}", self.0),
        }
    }
}
