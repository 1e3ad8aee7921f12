//! Trainings over shards in this process against trainings over rows.

use super::*;
use crate::checkpoint::Checkpoint;
use crate::data::{Labels, Preprocess, Preprocessor, Rows, stratified_split};
use crate::error::Error;
use crate::model::{BaseWeight, TrainConfig};
use crate::observer::{Event, Observer};
use crate::random;
use crate::train::{Labeled, TrainData, Trained};
use crate::triplets::{TripletSource, Triplets};
use crate::{CancelToken, IndexBase, LossKind, Normalization, PredictionRule};
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::time::Duration;

/// Rows of three classes that share features within a class, with noise.
fn data(seed: u64, n_rows: usize) -> (Rows, Labels) {
    let mut rng = random::rng(seed, 78);
    let (mut starts, mut indices, mut values, mut names) = (vec![0], vec![], vec![], vec![]);
    for row in 0..n_rows {
        let class = row % 3;
        let mut features: Vec<u32> = (0..7)
            .map(|k| match k < 3 {
                true => (10 * class + random::below(&mut rng, 12)) as u32,
                false => random::below(&mut rng, 90) as u32,
            })
            .collect();
        features.sort_unstable();
        features.dedup();
        for feature in features {
            indices.push(feature);
            values.push(1.0 + random::below(&mut rng, 900) as f64 / 300.0);
        }
        starts.push(indices.len());
        names.push(["a", "b", "c"][class]);
    }
    let rows = Rows::from_parts(90, starts, indices, values).unwrap();
    (rows, Labels::from_names(&names))
}

/// Shards of contiguous ranges of rows in this process.
struct InProcess<'a> {
    rows: Rows,
    labels: &'a Labels,
    valid: Rows,
    config: &'a TrainConfig,
    n_shards: usize,
    shards: RefCell<Vec<Shard>>,
    triplets: RefCell<Triplets>,
    rounds: Cell<usize>,
    lost: &'a [usize],
    is_gone: Cell<bool>,
    gone_for_good: Option<usize>,
}

impl InProcess<'_> {
    fn build(&self) -> Prepared {
        let triplets = self.triplets.borrow();
        let n_rows = self.rows.n_rows();
        let mut sums = ColumnSums::default();
        sums.add(self.rows.view());
        let features = sums.order(self.rows.n_features()).unwrap();
        let ranges = triplets.by_anchor(n_rows).cut(self.n_shards);
        let shard = |range: std::ops::Range<usize>| {
            // Just the rows that are needed.
            let part = triplets.restricted_to(range.clone());
            let mut numbers: Vec<u32> = (range.start as u32..range.end as u32).collect();
            numbers.extend(part.iter().flat_map(|(a, n, f)| [a, n, f]));
            numbers.sort_unstable();
            numbers.dedup();
            let own = range.start as u32..range.end as u32;
            let shard = Shard::new(ShardParts {
                rows: self.rows.view().select(&numbers),
                numbers,
                own: own.clone(),
                n_rows,
                features: features.clone(),
                triplets: vec![ShardTriplets::List {
                    triplets: part.iter().collect(),
                    weights: None,
                }],
                loss: self.config.loss,
                n_threads: 1,
                memory_limit: None,
            })
            .unwrap();
            let items: Vec<u32> = own.collect();
            let items = self.rows.view().select(&items);
            let rule = self.config.rule;
            let valid = self.valid.clone();
            shard
                .set_validation(valid, items, rule.k, rule.normalization)
                .unwrap();
            shard
        };
        let shards: Vec<Shard> = ranges.into_iter().map(shard).collect();
        let every = triplets.len().div_ceil(10_000).max(1);
        let (mut offset, mut sum, mut count) = (0, 0.0, 0);
        for shard in &shards {
            let (part, n) = shard.base_margins(every, offset).unwrap();
            (offset, sum, count) = (offset + shard.n_triplets(), sum + part, count + n);
        }
        let total_weight = shards.iter().map(Shard::total_weight).sum();
        *self.shards.borrow_mut() = shards;
        let squares = self.rows.values().iter().map(|x| x * x).sum();
        let (occurring, _) = sums.into_parts();
        let sums = WeightSums::new(
            sum / count as f64,
            occurring.len(),
            self.rows.nnz(),
            squares,
        );
        Prepared {
            features,
            n_triplets: triplets.len(),
            total_weight,
            sums,
            codes: None,
            given: None,
        }
    }
}

impl Link for InProcess<'_> {
    fn prepare(&self, seed: u64, _: f64) -> Result<Prepared> {
        let source = &self.config.triplets;
        let mined = source.triplets(&self.rows, Some(self.labels), seed, CancelToken::NEVER)?;
        *self.triplets.borrow_mut() = mined;
        Ok(self.build())
    }

    fn mine(&self, model: Model) -> Result<Prepared> {
        let learned = model.similarity();
        let (rows, labels) = (&self.rows, self.labels);
        let found = Triplets::by_neighbors(learned, rows, labels, [3, 5], CancelToken::NEVER)?;
        self.triplets.borrow_mut().append(&found);
        Ok(self.build())
    }

    fn ask(&self, message: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.rounds.set(self.rounds.get() + 1);
        self.is_gone
            .set(self.is_gone.get() || self.lost.contains(&self.rounds.get()));
        if self.is_gone.get() {
            return Err(Error::WorkerLost("shard 0".into()));
        }
        self.shards
            .borrow()
            .iter()
            .map(|shard| shard.answer(message))
            .collect()
    }

    fn recover(&self, _: &str) -> Result<()> {
        if self
            .gone_for_good
            .is_some_and(|round| self.rounds.get() >= round)
        {
            return Err(Error::DataLost("block 0 is lost".into()));
        }
        self.is_gone.set(false);
        self.build();
        Ok(())
    }
}

struct Case {
    config: TrainConfig,
    rows: Rows,
    labels: Labels,
    valid: (Rows, Labels),
}

impl Case {
    fn new(seed: u64, configure: impl FnOnce(&mut TrainConfig)) -> Self {
        let (rows, labels) = data(seed, 90);
        let parts = stratified_split(&labels, &[0.7, 0.3], seed).unwrap();
        let mut config = TrainConfig::new(20.0);
        config.triplets = TripletSource::Random { per_row: 6 };
        config.max_iter = 60;
        config.rule = PredictionRule::nearest(3);
        config.preprocess = Preprocess::Unit;
        configure(&mut config);
        let part = |which: &[u32]| (rows.view().select(which), labels.select(which));
        let (train, valid) = (part(&parts[0]), part(&parts[1]));
        Self {
            config,
            rows: train.0,
            labels: train.1,
            valid,
        }
    }

    fn local(&self) -> Trained {
        let labeled = |rows, labels| Labeled {
            rows,
            labels: Some(labels),
            index_base: IndexBase::Zero,
        };
        let mut data = TrainData::new(labeled(self.rows.view(), &self.labels));
        data.valid = Some(labeled(self.valid.0.view(), &self.valid.1));
        crate::train(&data, &self.config, &mut ()).unwrap()
    }

    fn over_shards(
        &self,
        n_shards: usize,
        lost: &[usize],
        gone_for_good: Option<usize>,
    ) -> Result<ClusterTrained> {
        self.observed(n_shards, lost, gone_for_good, &mut ())
    }

    fn observed(
        &self,
        n_shards: usize,
        lost: &[usize],
        gone_for_good: Option<usize>,
        observer: &mut dyn Observer,
    ) -> Result<ClusterTrained> {
        let preprocessor = Preprocessor::fit(self.config.preprocess, self.rows.view());
        let link = InProcess {
            rows: preprocessor.apply(self.rows.view()),
            labels: &self.labels,
            valid: preprocessor.apply(self.valid.0.view()),
            config: &self.config,
            n_shards,
            shards: RefCell::new(Vec::new()),
            triplets: RefCell::new(Triplets::new()),
            rounds: Cell::new(0),
            lost,
            is_gone: Cell::new(false),
            gone_for_good,
        };
        let data = ClusterData {
            n_features: self.rows.n_features(),
            labels: Some(&self.labels),
            truth: Some(&self.valid.1),
            preprocessor: &preprocessor,
            names: None,
            start: None,
        };
        train(&data, &self.config, &link, observer)
    }

    fn check(&self, what: &str) {
        let local = self.local();
        for n_shards in [1, 2, 3, 4] {
            let what = format!("{what}, {n_shards} shards");
            assert_same(
                &local,
                &self.over_shards(n_shards, &[], None).unwrap(),
                &what,
            );
        }
        let lost = self.over_shards(3, &[2, 9, 40, 41, 77, 130], None).unwrap();
        assert_same(&local, &lost, &format!("{what}, lost workers"));
    }
}

fn assert_same(local: &Trained, other: &ClusterTrained, what: &str) {
    assert!(other.error.is_none(), "{what}");
    let (a, b) = (local.model.parts(), other.trained.model.parts());
    assert_eq!(a.chosen, b.chosen, "{what}");
    assert_eq!(a.evaluations, b.evaluations, "{what}");
    assert_eq!(a.path.len(), b.path.len(), "{what}");
    let (a, b) = (&local.model.path(), &other.trained.model.path());
    let (a, b) = (a.at(a.len()).unwrap(), b.at(b.len()).unwrap());
    assert_eq!(a.atoms(), b.atoms(), "{what}");
    for (a, b) in a.weights().zip(b.weights()) {
        assert!((a - b).abs() < 1e-9, "{what}: {a} {b}");
    }
    let (a, b) = (&local.run, &other.trained.run);
    assert_eq!((a.stop, a.n_triplets), (b.stop, b.n_triplets), "{what}");
    assert!((a.lambda / b.lambda - 1.0).abs() < 1e-9, "{what}");
}

#[test]
fn a_training_over_shards_is_the_training_over_rows() {
    Case::new(1, |_| {}).check("random triplets");
    Case::new(2, |config| {
        config.triplets = TripletSource::Neighbors {
            targets: 2,
            impostors: 3,
        };
        config.base = BaseWeight::Auto;
        config.lambda = vec![5.0, 50.0];
        config.patience = Some(20);
        config.preprocess = Preprocess::Tfidf;
    })
    .check("neighbors on a base, two λ, early stopping");
    Case::new(3, |config| {
        config.mining_rounds = 2;
        config.loss = LossKind::SquaredHinge;
        config.rule.normalization = Normalization::Cosine;
    })
    .check("mining rounds");
    Case::new(4, |config| config.n_estimators = 3).check("an ensemble");
}

/// Stops after so many iterations.
fn stop_after(n: usize) -> impl FnMut(&Event<'_>) -> ControlFlow<()> {
    let mut seen = 0;
    move |event| {
        seen += usize::from(matches!(event, Event::Iteration(..)));
        match seen >= n {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

#[test]
fn a_training_goes_on_from_its_checkpoint_on_any_number_of_shards() {
    let folder = tempfile::tempdir().unwrap();
    type Configured = (&'static str, fn(&mut TrainConfig));
    let configure: [Configured; 3] = [
        ("random triplets", |_| {}),
        ("mining rounds", |config| config.mining_rounds = 1),
        ("an ensemble", |config| config.n_estimators = 2),
    ];
    for (what, configure) in configure {
        let uninterrupted = Case::new(6, configure).over_shards(2, &[], None).unwrap();
        for (n_shards, stop) in [(2, 5), (3, 50), (2, 75)] {
            let path = folder.path().join(format!("{what} {stop}"));
            let case = Case::new(6, |config| {
                configure(config);
                let mut checkpoint = Checkpoint::new(&path);
                checkpoint.every = Duration::ZERO;
                config.checkpoint = Some(checkpoint);
            });
            let first = case.observed(2, &[], None, &mut stop_after(stop)).unwrap();
            assert!(path.exists() && first.error.is_none());
            // Other shards, and shards that are made again, have other rounding errors.
            let lost: &[usize] = if n_shards == 2 { &[] } else { &[9] };
            let resumed = case.over_shards(n_shards, lost, None).unwrap();
            let what = format!("{what}, stopped after {stop}, {n_shards} shards");
            assert_same(&uninterrupted.trained, &resumed, &what);
            let bytes = |done: &ClusterTrained| done.trained.model.to_bytes();
            assert!(
                n_shards == 3 || bytes(&resumed) == bytes(&uninterrupted),
                "{what}"
            );
        }
    }
}

#[test]
fn the_checkpoint_of_other_rows_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut case = Case::new(6, |config| {
        let mut checkpoint = Checkpoint::new(folder.path().join("checkpoint"));
        checkpoint.every = Duration::ZERO;
        config.checkpoint = Some(checkpoint);
    });
    case.observed(2, &[], None, &mut stop_after(5)).unwrap();
    case.rows = Case::new(7, |_| {}).rows;
    let error = case.over_shards(2, &[], None).err().unwrap().to_string();
    assert!(
        error.contains("does not belong to these triplets"),
        "{error}"
    );
    case.config.max_iter += 1;
    let error = case.over_shards(2, &[], None).err().unwrap().to_string();
    assert!(error.contains("of another training"), "{error}");
}

#[test]
fn the_best_model_so_far_remains_if_data_is_lost_for_good() {
    let case = Case::new(1, |_| {});
    let done = case.over_shards(2, &[60], Some(60)).unwrap();
    assert_eq!(done.error.unwrap().to_string(), "block 0 is lost");
    let local = case.local();
    let n = done.trained.model.path().len();
    assert!((5..40).contains(&n), "{n}");
    let at = |trained: &Trained| trained.model.path().at(n).unwrap();
    assert_eq!(at(&local).atoms(), at(&done.trained).atoms());
    // Without an iterate there is nothing to keep.
    assert!(matches!(
        case.over_shards(2, &[1], Some(1)),
        Err(Error::DataLost(_))
    ));
}

#[test]
fn the_order_of_features_is_that_of_all_rows_at_once() {
    let (rows, _) = data(5, 50);
    let mut whole = ColumnSums::default();
    whole.add(rows.view());
    let mut parts = ColumnSums::default();
    for range in [0..7u32, 7..8, 8..50] {
        parts.add(rows.view().select(&range.collect::<Vec<u32>>()).view());
    }
    assert_eq!(whole, parts);
    assert!(ColumnSums::from_parts(vec![2, 1], vec![0.0; 2]).is_err());
}
