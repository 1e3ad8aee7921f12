//! A training that writes checkpoints, and goes on from one.

use super::data::{Labeled, TrainData};
use super::{Trained, train_unrecorded};
use crate::atoms::ActiveSet;
use crate::cancel::CancelToken;
use crate::checkpoint::{Checkpoint, Recorder};
use crate::data::{IndexBase, Labels, Preprocessor};
use crate::error::Result;
use crate::model::TrainConfig;
use crate::observer::{Event, Observer, Stop};
use std::ops::ControlFlow;

/// Trains with a recorder beside the observer.
pub(super) fn train_recorded(
    data: &TrainData<'_>,
    config: &TrainConfig,
    checkpoint: &Checkpoint,
    observer: &mut dyn Observer,
) -> Result<Trained> {
    let config = TrainConfig {
        checkpoint: None,
        ..config.clone()
    };
    config.check()?;
    recorded(checkpoint, fingerprint(data, &config), observer, |o| {
        let trained = train_unrecorded(data, &config, o)?;
        let is_complete = trained.run.stop != Stop::ObserverAsked;
        Ok((trained, is_complete))
    })
}

/// A training with a recorder beside the observer. `train` returns its result, and whether it came to its end.
pub(crate) fn recorded<T>(
    checkpoint: &Checkpoint,
    fingerprint: String,
    observer: &mut dyn Observer,
    train: impl FnOnce(&mut dyn Observer) -> Result<(T, bool)>,
) -> Result<T> {
    let mut recorder = Recorder::open(checkpoint, fingerprint)?;
    if let Some(note) = recorder.take_note() {
        // The training asks the observer again at its first event.
        let _ = observer.on_event(&Event::Note(&note));
    }
    let mut observer = Recorded { observer, recorder };
    let trained = train(&mut observer);
    if !matches!(trained, Ok((_, true))) {
        observer.recorder.interrupted();
    }
    trained.map(|(trained, _)| trained)
}

struct Recorded<'a> {
    observer: &'a mut dyn Observer,
    recorder: Recorder,
}

impl Observer for Recorded<'_> {
    fn on_event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.observer.on_event(event)
    }

    fn cancel_token(&self) -> CancelToken<'_> {
        self.observer.cancel_token()
    }

    fn recorder(&mut self) -> Option<&mut Recorder> {
        Some(&mut self.recorder)
    }
}

/// What is trained, in one line: a checkpoint of anything else is not resumed.
fn fingerprint(data: &TrainData<'_>, config: &TrainConfig) -> String {
    let mut sum = Sum::default();
    for rows in [Some(data.train), data.valid].into_iter().flatten() {
        sum.labeled(rows);
    }
    if let Some(triplets) = data.triplets {
        for (anchor, near, far) in triplets.iter() {
            sum.numbers([anchor, near, far].map(u64::from));
        }
        let weights = triplets.weights().unwrap_or_default();
        sum.numbers(weights.iter().map(|weight| weight.to_bits()));
    }
    sum.names(data.names);
    sum.start(data.start);
    if let Some(known) = data.preprocessor {
        sum.preprocessor(known);
    }
    sum.training(config)
}

/// A checksum of data, fed in large pieces because that is faster.
#[derive(Default)]
pub(crate) struct Sum {
    hasher: crc32fast::Hasher,
    buffer: Vec<u8>,
}

impl Sum {
    pub(crate) fn numbers(&mut self, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            self.buffer.extend_from_slice(&number.to_le_bytes());
            if self.buffer.len() >= 1 << 16 {
                self.flush();
            }
        }
    }

    fn text(&mut self, text: &str) {
        self.numbers([text.len() as u64]);
        self.buffer.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn names(&mut self, names: Option<&[String]>) {
        for name in names.unwrap_or_default() {
            self.text(name);
        }
    }

    pub(crate) fn labels(&mut self, labels: Option<&Labels>) {
        if let Some(labels) = labels {
            self.names(Some(labels.names()));
            self.numbers(labels.codes().iter().map(|&code| u64::from(code)));
        }
    }

    pub(crate) fn start(&mut self, start: Option<&ActiveSet>) {
        for (atom, weight) in start.into_iter().flat_map(ActiveSet::iter) {
            let sign = atom.sign().value().to_bits();
            self.numbers([atom.i().into(), atom.j().into(), sign, weight.to_bits()]);
        }
    }

    pub(crate) fn preprocessor(&mut self, known: &Preprocessor) {
        let maxima = known.maxima();
        self.numbers(maxima.flat_map(|(feature, max)| [u64::from(feature), max.to_bits()]));
    }

    fn labeled(&mut self, part: Labeled<'_>) {
        let rows = part.rows;
        let one_based = part.index_base == IndexBase::One;
        self.numbers([rows.n_features() as u64, u64::from(one_based)]);
        self.numbers(rows.starts().iter().map(|&start| start as u64));
        self.numbers(rows.indices().iter().map(|&index| u64::from(index)));
        self.numbers(rows.values().iter().map(|value| value.to_bits()));
        self.labels(part.labels);
    }

    fn flush(&mut self) {
        self.hasher.update(&self.buffer);
        self.buffer.clear();
    }

    /// The line of a training of these data.
    pub(crate) fn training(mut self, config: &TrainConfig) -> String {
        self.flush();
        // It does not change what is found.
        let config = TrainConfig {
            memory_limit: None,
            ..config.clone()
        };
        let (version, sum) = (env!("CARGO_PKG_VERSION"), self.hasher.finalize());
        format!("hdsl {version} data {sum:08x} {config:?}")
    }
}
