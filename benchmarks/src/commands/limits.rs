//! The phases of an iteration against the memory bandwidth of the machine, which is measured here.

use super::{Failure, labeled};
use hdsl::bench::{Phase, phases};
use hdsl::{CancelToken, Preprocess, Preprocessor, TripletSource};
use serde_json::json;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Rows to learn from
    train: PathBuf,
    /// λ
    #[arg(long, default_value_t = 100.0)]
    scale: f64,
    /// knn:K:M or random:N
    #[arg(long, default_value = "random:10")]
    triplets: TripletSource,
    /// As of `hdsl train`
    #[arg(long, default_value_t = 200)]
    max_iter: usize,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (data, labels) = labeled(&args.train, None)?;
    let rows = Preprocessor::fit(Preprocess::Max, &data.rows).apply(&data.rows);
    let triplets = (args.triplets).triplets(&rows, Some(&labels), 0, CancelToken::NEVER)?;
    let found = phases(rows, &triplets, args.scale, args.max_iter)?;
    let (streamed, random) = rates();
    let phase = |name: &str, phase: Phase| {
        json!({
            "name": name,
            "seconds": phase.seconds,
            "bytes": phase.traffic.bytes,
            "lines": phase.traffic.lines,
        })
    };
    println!(
        "{}",
        json!({
            "iterations": found.iterations,
            "seconds": found.seconds,
            "triplets": triplets.len(),
            "bytes_per_second": streamed,
            "lines_per_second": random,
            "phases": [
                phase("product", found.product),
                phase("row", found.row),
                phase("line search", found.line_search),
                phase("update", found.update),
            ],
        })
    );
    Ok(())
}

/// The rates of sequential reads in bytes per second and of random reads in cache lines per second, by one thread. The best of
/// five runs each.
fn rates() -> (f64, f64) {
    // Far more than a cache holds.
    let memory: Vec<u64> = (0..1u64 << 26).collect();
    let mask = memory.len() - 1;
    let best = |work: &dyn Fn() -> u64| {
        let seconds = (0..5).map(|_| {
            let started = Instant::now();
            black_box(work());
            started.elapsed().as_secs_f64()
        });
        seconds.fold(f64::INFINITY, f64::min)
    };
    let in_order = best(&|| memory.iter().fold(0, |sum: u64, &x| sum.wrapping_add(x)));
    // Addresses do not depend on the values read, so that the processor can overlap the reads.
    const READS: usize = 1 << 23;
    let at_random = best(&|| {
        let (mut place, mut sum) = (1u64, 0u64);
        for _ in 0..READS {
            place = place
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            sum = sum.wrapping_add(memory[(place >> 30) as usize & mask]);
        }
        sum
    });
    (
        (memory.len() * size_of::<u64>()) as f64 / in_order,
        READS as f64 / at_random,
    )
}
