//! The measuring program: makes data, measures calls of the public library, runs a kernel under an instruction counter.
//! Results are one JSON object on standard output. `benchmarks/run` and `benchmarks/instructions` call it.

mod commands;

use clap::{Parser, Subcommand};
use commands::Failure;
use commands::{count, index, knn, limits, read, split, synthesize, trace};

/// Makes data and measures single operations
#[derive(Parser)]
struct Args {
    /// Threads to use
    #[arg(long, global = true, default_value_t = 1)]
    threads: usize,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write synthetic rows as svmlight
    Synthesize(synthesize::Args),
    /// Split a file into parts, stratified by class
    Split(split::Args),
    /// Time the reading of a file
    Read(read::Args),
    /// Time the k-NN evaluation of a model or of the dot product
    Knn(knn::Args),
    /// Time an index file: opening, searching, adding
    Index(index::Args),
    /// Train, and report errors or iterations with their times
    Trace(trace::Args),
    /// Compare the phases of an iteration with the memory bandwidth
    Limits(limits::Args),
    /// Run a kernel once, for `benchmarks/instructions`
    Count(count::Args),
    /// List the kernels
    Kernels,
}

fn main() -> Result<(), Failure> {
    let args = Args::parse();
    rayon::ThreadPoolBuilder::new()
        .num_threads(args.threads)
        .use_current_thread()
        .build_global()?;
    match args.command {
        Command::Synthesize(args) => synthesize::run(&args),
        Command::Split(args) => split::run(&args),
        Command::Read(args) => read::run(&args),
        Command::Knn(args) => knn::run(&args),
        Command::Index(args) => index::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Limits(args) => limits::run(&args),
        Command::Count(args) => count::run(&args),
        Command::Kernels => {
            hdsl_benchmarks::kernels::NAMES
                .iter()
                .for_each(|name| println!("{name}"));
            Ok(())
        }
    }
}
