//! The command line as a whole: the list of commands, the global options, and the first page of help.

use crate::args::{heading::GLOBAL, threads};
use crate::commands;
use crate::failure::Failure;
use crate::output::Log;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{ArgAction, Args, Parser, Subcommand};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const ABOUT: &str = "\
Learn which features make two rows similar, from very high-dimensional sparse data.

From rows with labels (or from triplets, clicks or judgments) hdsl learns a bilinear similarity
  S_M(x, x') = x^T M x' = sum over pairs of features (i, j) of M_ij x_i x'_j
whose matrix M has few non-zero entries, however many features there are, alone or on top of the
dot product: S(x, x') = BASE <x, x'> + x^T M x'. With it, hdsl classifies, ranks and projects rows,
and explains the score of two rows feature by feature.";

const WORKFLOW: &str = "\
A typical workflow:
  hdsl demo                                                    a complete example, no download
  hdsl inspect train.svm.bz2                                   contents of a file
  hdsl tune train.svm.bz2 --valid valid.svm.bz2 -o m.hdsl      search for a good similarity
  hdsl evaluate m.hdsl --train train.svm.bz2 test.svm.bz2      its prediction error
  hdsl evaluate identity --train train.svm.bz2 test.svm.bz2    the error of the plain dot product
  hdsl explain m.hdsl --names vocab.txt                        the features and pairs it uses
  hdsl tune reviews.csv --label stars -o reviews.hdsl          the same from a table of texts,
  hdsl predict reviews.hdsl new.csv --reasons 3                and its predictions with reasons
  hdsl report m.hdsl --train train.svm.bz2 --test test.svm.bz2 -o report.html    a page with charts

Files: records as CSV, TSV, JSON lines, Parquet, Arrow or plain text; rows as svmlight/libsvm, NIPS
2003 (dexter, dorothea), Matrix Market or scipy's .npz; uncompressed or compressed with gz, bz2, xz
or zst; `-` is standard input. Rows are counted from 0, lines from 1.

Exit status: 0 success; 1 failure while running, such as a full disk; 2 wrong usage or bad input;
70 a bug, which the message asks to report; 130 stopped by Ctrl-C before there was a result; 143 and
129 stopped by SIGTERM and SIGHUP, after the best model so far was saved.";

/// The whole command line.
#[derive(Parser, Debug)]
#[command(
    name = "hdsl",
    version,
    about = "Learn which features make two rows similar, from very high-dimensional sparse data",
    long_about = ABOUT,
    after_help = WORKFLOW,
    styles = STYLES,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: Global,
}

/// Options of every command.
#[derive(Args, Debug, Clone)]
pub(crate) struct Global {
    /// Number of threads; results are the same, byte for byte, for any number [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = threads, allow_negative_numbers = true, help_heading = GLOBAL)]
    pub(crate) threads: Option<usize>,
    /// Print details on standard error: notes of the readers, one line per evaluation
    #[arg(short, long, global = true, action = ArgAction::SetTrue, help_heading = GLOBAL)]
    pub(crate) verbose: bool,
    /// Print nothing but errors on standard error
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = GLOBAL)]
    pub(crate) quiet: bool,
}

/// One variant per command, in the order of the help text.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Demo(commands::demo::Demo),
    Tune(Box<commands::tune::Tune>),
    Train(Box<commands::train::Train>),
    Rank(Box<commands::rank::Rank>),
    Predict(commands::predict::Predict),
    Evaluate(commands::evaluate::Evaluate),
    Neighbors(commands::neighbors::Neighbors),
    Index(Box<commands::index::Index>),
    Score(commands::score::Score),
    Transform(commands::transform::Transform),
    Explain(commands::explain::Explain),
    Report(Box<commands::report::Report>),
    Inspect(commands::inspect::Inspect),
    Triplets(commands::triplets::TripletsArgs),
    Vectorize(commands::vectorize::Vectorize),
    Convert(commands::convert::Convert),
    #[cfg(feature = "fetch")]
    Fetch(commands::fetch::Fetch),
    Completions(commands::completions::Completions),
    Man(commands::man::ManPages),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(&self, log: &Log) -> Result<(), Failure> {
        match self {
            Command::Demo(args) => commands::demo::run(args, log),
            Command::Tune(args) => commands::tune::run(args, log),
            Command::Train(args) => commands::train::run(args, log),
            Command::Rank(args) => commands::rank::run(args, log),
            Command::Predict(args) => commands::predict::run(args, log),
            Command::Evaluate(args) => commands::evaluate::run(args, log),
            Command::Neighbors(args) => commands::neighbors::run(args, log),
            Command::Index(args) => commands::index::run(args, log),
            Command::Score(args) => commands::score::run(args, log),
            Command::Transform(args) => commands::transform::run(args, log),
            Command::Explain(args) => commands::explain::run(args, log),
            Command::Report(args) => commands::report::run(args, log),
            Command::Inspect(args) => commands::inspect::run(args, log),
            Command::Triplets(args) => commands::triplets::run(args, log),
            Command::Vectorize(args) => commands::vectorize::run(args, log),
            Command::Convert(args) => commands::convert::run(args, log),
            #[cfg(feature = "fetch")]
            Command::Fetch(args) => commands::fetch::run(args, log),
            Command::Completions(args) => commands::completions::run(args),
            Command::Man(args) => commands::man::run(args, log),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
