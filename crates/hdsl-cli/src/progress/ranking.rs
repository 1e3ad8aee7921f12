//! Progress of a ranking's cross-validation.

use super::Bar;
use crate::output::Log;
use crate::signals::{cancel_token, unless_stopped};
use hdsl::CancelToken;
use hdsl::observer::{Event, Observer};
use std::ops::ControlFlow;

/// Observes a cross-validation: a bar over its folds, a line for each under `-v`.
pub(crate) struct RankingProgress<'a> {
    bar: Bar<'a>,
}

impl<'a> RankingProgress<'a> {
    pub(crate) fn new(log: &'a Log, n_steps: usize) -> Self {
        let bar = Bar::of_steps(log, n_steps, "folds");
        Self { bar }
    }

    pub(crate) fn finish(self) {
        self.bar.finish();
    }
}

impl Observer for RankingProgress<'_> {
    fn cancel_token(&self) -> CancelToken<'_> {
        cancel_token()
    }

    fn on_event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if let Event::FoldDone { done, of } = *event {
            self.bar.bar.set_position(done as u64);
            self.bar
                .detail(format!("fold {done} of {} is done", of - 1));
        }
        unless_stopped()
    }
}
