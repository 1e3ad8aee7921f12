//! The hot kernels, each ready to be run again and again: timed by `cargo bench`, counted by `benchmarks/instructions`.

use crate::synthetic::Synthetic;
use hdsl::bench::{WarmEngine, with_warm_engine};
use hdsl::data::write_svmlight;
use hdsl::knn::evaluate_similarity;
use hdsl::{
    BilinearModel, Dataset, Dot, Labels, PredictionRule, ReadOptions, Rows, SolverParams, Triplets,
    parse_dataset,
};
use std::hint::black_box;

/// A piece of work that can be done many times.
pub trait Kernel {
    /// Makes ready for the next time; not measured.
    fn reset(&mut self) {}
    /// Does it once.
    fn work(&mut self);
}

/// How much work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// For an emulated machine, a hundred times slower than the real one.
    Small,
    /// Milliseconds on a real one.
    Large,
}

/// Every kernel by name.
pub const NAMES: [&str; 10] = [
    "svmlight",
    "mining",
    "partner",
    "steps",
    "rebuild",
    "exact",
    "train",
    "train_batch",
    "knn",
    "transform",
];

/// λ of every kernel that learns.
const SCALE: f64 = 100.0;

/// Prepares a kernel and hands it to `measure`; false if there is none of that name.
pub fn with_kernel(name: &str, size: Size, measure: &mut dyn FnMut(&mut dyn Kernel)) -> bool {
    let data = Data::new(size);
    let rows = &data.rows;
    let train = |iterations: usize, batch: Option<usize>| {
        let triplets = data.triplets();
        let mut params = SolverParams::new(SCALE);
        params.max_iter = iterations;
        params.batch = batch;
        let solver = params.build().expect("settings are good");
        move || drop(black_box(solver.fit(rows, &triplets, &mut ())))
    };
    match name {
        "svmlight" => {
            let text = data.text();
            let options = ReadOptions::default();
            measure(&mut Plain(|| {
                drop(black_box(parse_dataset("text".as_ref(), &text, &options)));
            }));
        }
        "mining" => measure(&mut Plain(|| {
            let mined =
                Triplets::by_neighbors(&Dot, rows, &data.labels, [3, 5], hdsl::CancelToken::NEVER);
            drop(black_box(mined));
        })),
        "partner" => data.with_engine(|engine| {
            // The largest features have the longest rows of H; smaller ones stand for the random starts.
            let n_columns = engine.n_columns() as u32;
            let features = (0..8)
                .chain((1..=8).map(|part| part * n_columns / 9))
                .collect();
            measure(&mut Partners { engine, features });
        }),
        "steps" => data.with_engine(|engine| measure(&mut Steps(engine))),
        "rebuild" => data.with_engine(|engine| {
            measure(&mut Plain(|| {
                black_box(engine.rebuild());
            }));
        }),
        "exact" => data.with_engine(|engine| {
            measure(&mut Plain(|| {
                black_box(engine.exact());
            }));
        }),
        "train" => measure(&mut Plain(train(100, None))),
        "train_batch" => measure(&mut Plain(train(20, Some(rows.n_rows())))),
        "knn" => {
            let model = data.model();
            let (asked, truth) = data.asked();
            measure(&mut Plain(|| {
                let labels = &data.labels;
                drop(black_box(evaluate_similarity(
                    &model,
                    rows,
                    labels,
                    &asked,
                    &truth,
                    &PredictionRule::default(),
                )));
            }));
        }
        "transform" => {
            let model = data.model();
            measure(&mut Plain(|| drop(black_box(model.transform_rows(rows)))));
        }
        _ => return false,
    }
    true
}

/// A kernel that leaves nothing behind.
struct Plain<F>(F);

impl<F: FnMut()> Kernel for Plain<F> {
    fn work(&mut self) {
        (self.0)();
    }
}

/// Best partners of several features.
struct Partners<'a, 'p> {
    engine: &'a mut WarmEngine<'p>,
    features: Vec<u32>,
}

impl Kernel for Partners<'_, '_> {
    fn work(&mut self) {
        for &feature in &self.features {
            black_box(self.engine.partner(feature));
        }
    }
}

/// Line searches and updates, from the same iterate each time.
struct Steps<'a, 'p>(&'a mut WarmEngine<'p>);

impl Kernel for Steps<'_, '_> {
    fn reset(&mut self) {
        self.0.rebuild();
    }
    fn work(&mut self) {
        assert!(black_box(self.0.steps()) > 0, "some step leads down");
    }
}

/// Scaled already, since all values are in (0, 1].
struct Data {
    size: Size,
    rows: Rows,
    labels: Labels,
    base: hdsl::IndexBase,
}

impl Data {
    fn new(size: Size) -> Self {
        let (rows, per_row, features) = match size {
            Size::Small => (600, 30, 10_000),
            Size::Large => (4_000, 50, 50_000),
        };
        let made = Synthetic {
            rows,
            per_row,
            features,
            ..Synthetic::default()
        };
        let Dataset {
            rows,
            labels,
            index_base: base,
            ..
        } = made.make();
        Self {
            size,
            rows,
            labels: labels.expect("synthetic rows have labels"),
            base,
        }
    }

    fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        write_svmlight(&mut text, &self.rows, Some(&self.labels), None, self.base)
            .expect("a vector takes all");
        text
    }

    fn triplets(&self) -> Triplets {
        let per_row = match self.size {
            Size::Small => 5,
            Size::Large => 10,
        };
        Triplets::at_random(&self.rows, &self.labels, per_row, 0).expect("there are two classes")
    }

    fn with_engine(&self, work: impl FnOnce(&mut WarmEngine<'_>)) {
        with_warm_engine(&self.rows, &self.triplets(), SCALE, 50, work)
            .expect("the data can be learned from");
    }

    fn model(&self) -> BilinearModel {
        let mut params = SolverParams::new(SCALE);
        params.max_iter = 50;
        let run = (params.build())
            .and_then(|solver| solver.fit(&self.rows, &self.triplets(), &mut ()))
            .expect("the data can be learned from");
        BilinearModel::from_active(self.rows.n_features(), SCALE, &run.active)
            .expect("a run ends at a model")
    }

    /// Every third row, as one to classify.
    fn asked(&self) -> (Rows, Labels) {
        let which: Vec<u32> = (0..self.rows.n_rows() as u32).step_by(3).collect();
        (self.rows.select(&which), self.labels.select(&which))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_kernel_that_can_be_repeated() {
        for name in NAMES {
            let mut runs = 0;
            let found = with_kernel(name, Size::Small, &mut |kernel| {
                for _ in 0..2 {
                    kernel.reset();
                    kernel.work();
                    runs += 1;
                }
            });
            assert!(found && runs == 2, "{name}");
        }
        assert!(!with_kernel("nothing", Size::Small, &mut |_| ()));
    }
}
