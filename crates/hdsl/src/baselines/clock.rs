//! A learner's own time, without its monitor's.

use super::Monitor;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

pub(super) struct Clock {
    started: Instant,
    held: Duration,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self {
            started: Instant::now(),
            held: Duration::ZERO,
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        (self.started.elapsed() - self.held).as_secs_f64()
    }

    /// Tells the monitor, with the clock held.
    pub(super) fn tell<E>(&mut self, monitor: &mut dyn Monitor<E>, event: &E) -> ControlFlow<()> {
        let begin = Instant::now();
        let answer = monitor.hear(event);
        self.held += begin.elapsed();
        answer
    }
}
