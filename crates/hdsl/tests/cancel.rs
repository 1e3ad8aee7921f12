//! Cancellation before there is a model. The flag is raised from inside the work, so that no clock is needed.

use hdsl::observer::Event;
use hdsl::{
    CancelToken, Dataset, Dot, Error, IndexBase, Labels, Observer, Rows, Similarity, SparseRow,
    TrainConfig, TrainData, Triplets, train,
};
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

fn data() -> Dataset {
    let mut rows = Rows::new(50);
    for row in 0..300u32 {
        let features = [row % 7, 10 + row % 11, 30 + row % 3];
        rows.push(SparseRow::new(&features, &[1.0, 0.5, 2.0]));
    }
    Dataset {
        labels: Some(Labels::from_names((0..300).map(|r| (r % 3).to_string()))),
        rows,
        queries: None,
        index_base: IndexBase::Zero,
        notes: Vec::new(),
        records: None,
    }
}

/// The dot product; raises the flag when rows begin to be searched for.
struct RaisesWhenSearched<'a>(&'a AtomicBool);

impl Similarity for RaisesWhenSearched<'_> {
    fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        Dot.score(a, b)
    }

    fn queries<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        self.0.store(true, Ordering::Relaxed);
        Dot.queries(rows)
    }

    fn items<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        Dot.items(rows)
    }
}

#[test]
fn mining_by_neighbors_ends_when_asked() {
    let data = data();
    let labels = data.labels.as_ref().unwrap();
    let raised = AtomicBool::new(false);
    let similarity = RaisesWhenSearched(&raised);
    let stopped = Triplets::by_neighbors(
        &similarity,
        &data.rows,
        labels,
        [3, 5],
        CancelToken::when(&raised),
    );
    assert!(raised.load(Ordering::Relaxed), "the search had begun");
    assert!(matches!(stopped, Err(Error::Stopped)));
    raised.store(false, Ordering::Relaxed);
    let mined =
        Triplets::by_neighbors(&Dot, &data.rows, labels, [3, 5], CancelToken::when(&raised))
            .unwrap();
    assert_eq!(
        mined,
        Triplets::by_neighbors(&Dot, &data.rows, labels, [3, 5], CancelToken::NEVER).unwrap()
    );
}

/// Raises its flag at the n-th event.
struct RaisesAt<'a> {
    raised: &'a AtomicBool,
    at: usize,
    heard: AtomicUsize,
}

impl Observer for RaisesAt<'_> {
    fn on_event(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        if self.heard.fetch_add(1, Ordering::Relaxed) + 1 == self.at {
            self.raised.store(true, Ordering::Relaxed);
        }
        ControlFlow::Continue(())
    }

    fn cancel_token(&self) -> CancelToken<'_> {
        CancelToken::when(self.raised)
    }
}

#[test]
fn training_ends_before_the_first_iteration_and_not_later() {
    let data = data();
    let mut config = TrainConfig::new(0.01);
    config.max_iter = 5;
    let outcome = |at: usize| {
        let raised = AtomicBool::new(at == 0);
        let heard = AtomicUsize::new(0);
        let mut watcher = RaisesAt {
            raised: &raised,
            at,
            heard,
        };
        let trained = train(&TrainData::new(&data), &config, &mut watcher);
        (trained, watcher.heard.into_inner())
    };
    // Before anything; after the triplets are there; when the run has begun.
    for (at, events) in [(0, 0), (1, 1), (2, 2)] {
        let (trained, heard) = outcome(at);
        assert!(matches!(trained, Err(Error::Stopped)), "{at}");
        assert_eq!(heard, events, "{at}");
    }
    // From the first iteration on, events are how a run is ended.
    let (trained, undisturbed) = (outcome(3).0.unwrap(), outcome(usize::MAX).0.unwrap());
    assert!(undisturbed.run.iterations > 0);
    assert_eq!(trained.model.to_bytes(), undisturbed.model.to_bytes());
}
