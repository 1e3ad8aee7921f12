//! Progress of a download.

use super::Bar;
use super::line::pace;
use crate::output::Log;
use hdsl_fetch::Event;
use indicatif::BinaryBytes;
use std::ops::ControlFlow;

/// Observes a download: bytes, rate and time left on a terminal, one line per file under `-v`.
pub(crate) struct Download<'a> {
    log: &'a Log,
    name: &'static str,
    bar: Option<Bar<'a>>,
}

impl<'a> Download<'a> {
    pub(crate) fn new(log: &'a Log, name: &'static str) -> Self {
        Self {
            log,
            name,
            bar: None,
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish();
        }
    }

    /// Shows an event. Ctrl-C ends the program; what was received is kept for the next call.
    pub(crate) fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        match *event {
            Event::Receiving { url, done, total } => self.start(url, done, total),
            Event::Received { done, .. } => {
                if let Some(bar) = &self.bar {
                    bar.bar.set_position(done);
                }
            }
            Event::Retrying { reason, delay } => {
                let seconds = delay.as_secs_f64();
                self.note(format!("{reason}; retrying in {seconds:.0} s"));
            }
            Event::Locked => {
                let name = self.name;
                self.note(format!(
                    "another process is fetching {name}; waiting for it"
                ));
            }
            Event::Unpacking { file } => self.detail(format!("unpacking {file}")),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn detail(&self, text: String) {
        match &self.bar {
            Some(bar) => bar.detail(text),
            None => self.log.detail(text),
        }
    }

    fn note(&self, text: String) {
        match &self.bar {
            Some(bar) => bar.note(text),
            None => self.log.note(text),
        }
    }

    fn start(&mut self, url: &str, done: u64, total: Option<u64>) {
        if let Some(bar) = self.bar.take() {
            bar.finish();
        }
        let bar = Bar::new(self.log, total, |state, line| {
            let (done, of) = (state.pos(), state.len());
            line.counts = match of {
                Some(of) => format!("{}/{}", BinaryBytes(done), BinaryBytes(of)),
                None => format!("{} (of unknown size)", BinaryBytes(done)),
            };
            line.share = of.map(|of| done as f64 / of.max(1) as f64);
            let per_second = state.per_sec();
            line.left = of.and_then(|of| pace(done, of, per_second).1);
            line.rate = (per_second > 0.0).then(|| format!("{}/s", BinaryBytes(per_second as u64)));
        });
        let file = url.rsplit('/').next().unwrap_or(url);
        bar.set_prefix(file);
        // Bytes of an earlier call say nothing about the rate.
        bar.bar.set_position(done);
        bar.bar.reset_eta();
        let from = match done {
            0 => String::new(),
            done => format!(", from byte {done} on"),
        };
        bar.detail(format!("downloading {url}{from}"));
        self.bar = Some(bar);
    }
}
