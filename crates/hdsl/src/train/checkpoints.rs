//! A training that writes checkpoints, and goes on from one.

use super::data::{Labeled, TrainData};
use super::{Trained, train_unrecorded};
use crate::cancel::CancelToken;
use crate::checkpoint::{Checkpoint, Recorder};
use crate::data::IndexBase;
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
    let mut recorder = Recorder::open(checkpoint, fingerprint(data, &config))?;
    if let Some(note) = recorder.take_note() {
        // The training asks the observer again at its first event.
        let _ = observer.on_event(&Event::Note(&note));
    }
    let mut observer = Recorded { observer, recorder };
    let trained = train_unrecorded(data, &config, &mut observer);
    let interrupted = match &trained {
        Ok(trained) => trained.run.stop == Stop::ObserverAsked,
        Err(_) => true,
    };
    if interrupted {
        observer.recorder.interrupted();
    }
    trained
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
    for name in data.names.unwrap_or_default() {
        sum.text(name);
    }
    if let Some(start) = data.start {
        for (atom, weight) in start.iter() {
            let sign = atom.sign().value().to_bits();
            sum.numbers([atom.i().into(), atom.j().into(), sign, weight.to_bits()]);
        }
    }
    if let Some(known) = data.preprocessor {
        let maxima = known.maxima();
        sum.numbers(maxima.flat_map(|(feature, max)| [u64::from(feature), max.to_bits()]));
    }
    // It does not change what is found.
    let config = TrainConfig {
        memory_limit: None,
        ..config.clone()
    };
    let version = env!("CARGO_PKG_VERSION");
    format!("hdsl {version} data {:08x} {config:?}", sum.finish())
}

/// A checksum of data, fed in large pieces because that is faster.
#[derive(Default)]
struct Sum {
    hasher: crc32fast::Hasher,
    buffer: Vec<u8>,
}

impl Sum {
    fn numbers(&mut self, numbers: impl IntoIterator<Item = u64>) {
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

    fn labeled(&mut self, part: Labeled<'_>) {
        let rows = part.rows;
        let one_based = part.index_base == IndexBase::One;
        self.numbers([rows.n_features() as u64, u64::from(one_based)]);
        self.numbers(rows.starts().iter().map(|&start| start as u64));
        self.numbers(rows.indices().iter().map(|&index| u64::from(index)));
        self.numbers(rows.values().iter().map(|value| value.to_bits()));
        if let Some(labels) = part.labels {
            labels.names().iter().for_each(|name| self.text(name));
            self.numbers(labels.codes().iter().map(|&code| u64::from(code)));
        }
    }

    fn flush(&mut self) {
        self.hasher.update(&self.buffer);
        self.buffer.clear();
    }

    fn finish(mut self) -> u32 {
        self.flush();
        self.hasher.finalize()
    }
}
