//! Times of the hot kernels, one thread: `cargo bench -p hdsl-benchmarks [-- NAME] [-- --quick]`.

use criterion::Criterion;
use hdsl_benchmarks::kernels::{NAMES, Size, with_kernel};
use std::time::{Duration, Instant};

fn kernels(c: &mut Criterion) {
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .use_current_thread()
        .build_global()
        .expect("no pool is there yet");
    for name in NAMES {
        c.bench_function(name, |bencher| {
            with_kernel(name, Size::Large, &mut |kernel| {
                bencher.iter_custom(|times| {
                    let mut total = Duration::ZERO;
                    for _ in 0..times {
                        kernel.reset();
                        let started = Instant::now();
                        kernel.work();
                        total += started.elapsed();
                    }
                    total
                });
            });
        });
    }
}

fn main() {
    let mut criterion = Criterion::default().sample_size(20).configure_from_args();
    kernels(&mut criterion);
    criterion.final_summary();
}
