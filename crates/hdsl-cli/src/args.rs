//! The flags as they are typed, and the help texts that teach the method. Nothing here opens a file: values are
//! checked as far as they can be on their own, and the commands do the rest.

use clap::builder::styling::{AnsiColor, Styles};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use hdsl::data::Frequency;
use hdsl::tune::Ablation;
use hdsl::{Normalization, PredictionRule, TripletSource, Vote};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const ABOUT: &str = "\
Learn which features make two things similar, from very high-dimensional sparse data.

From rows with labels (or triplets, clicks, judgments) hdsl learns a similarity
  S_M(x, x') = sum over pairs of features (i, j) of M_ij x_i x'_j
in which only a few pairs count, however many features there are. It can then classify, rank,
project, and say in words why two rows are alike.";

const FLOW: &str = "\
The usual flow:
  hdsl demo                                                    see it work, nothing to download
  hdsl inspect train.svm.bz2                                   what is in a file
  hdsl tune train.svm.bz2 --valid valid.svm.bz2 -o m.hdsl      learn the best similarity for it
  hdsl evaluate m.hdsl --train train.svm.bz2 test.svm.bz2      error of what was learned
  hdsl evaluate identity --train train.svm.bz2 test.svm.bz2    the same of the plain dot product
  hdsl explain m.hdsl --names vocab.txt                        which features and pairs it uses
  hdsl report m.hdsl --train train.svm.bz2 --test test.svm.bz2 -o report.html    a page to look at

Files: svmlight/libsvm, NIPS 2003 (dexter, dorothea), Matrix Market, scipy's .npz; plain or compressed
with gz, bz2, xz or zst; `-` is standard input. Rows are counted from 0, lines in messages from 1.
Exit status: 0 done, 1 failed while running, 2 wrong use or bad input.";

/// The whole command line.
#[derive(Parser, Debug)]
#[command(
    name = "hdsl",
    version,
    about = "Learn which features make two things similar, from very high-dimensional sparse data",
    long_about = ABOUT,
    after_help = FLOW,
    styles = STYLES,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,

    /// What every command takes.
    #[command(flatten)]
    pub(crate) global: Global,
}

/// What every command takes.
#[derive(Args, Debug, Clone)]
pub(crate) struct Global {
    /// Threads to use; results are the same, byte for byte, for any number [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = positive, allow_negative_numbers = true, help_heading = "Everywhere")]
    pub(crate) threads: Option<usize>,
    /// Say more on standard error: what readers noticed, one line per evaluation
    #[arg(short, long, global = true, action = ArgAction::SetTrue, help_heading = "Everywhere")]
    pub(crate) verbose: bool,
    /// Say nothing on standard error but errors
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "verbose",
        help_heading = "Everywhere"
    )]
    pub(crate) quiet: bool,
}

/// One variant a command.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Demo(Demo),
    Tune(Box<Tune>),
    Train(Box<Train>),
    Predict(Predict),
    Evaluate(Evaluate),
    Neighbors(Neighbors),
    Score(Score),
    Transform(Transform),
    Explain(Explain),
    Report(Box<Report>),
    Inspect(Inspect),
    Triplets(TripletsCmd),
    Vectorize(Vectorize),
    Convert(Convert),
    #[cfg(feature = "fetch")]
    Fetch(Fetch),
    Completions(Completions),
    Man(Man),
}

/// See it work: plant a data set, learn it, compare, explain. No download, a few seconds
///
/// Makes rows that look like short restaurant reviews: thousands of made-up words with Zipf frequencies,
/// nearly all of them noise. A review tells what it thinks of the food, the service and the price, each
/// by one of several words that stand for each other (`delicious` or `savoury`, `stale` or `soggy`), and
/// its class is all of its verdicts together. Two reviews that agree often share no such word, so a
/// plain dot product hardly sees it. The learned similarity does, by pairs: delicious here and savoury
/// there is alike, delicious here and stale there is not.
///
/// The planted words and pairs are known, so the demo counts how many of them were found. Everything
/// it makes is written to a folder, to play with in the next commands.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_long_help = "Example:\n  hdsl demo --dir my-demo --seed 7"
)]
pub(crate) struct Demo {
    /// Folder for the data and the model; made if missing, files of an earlier demo are replaced
    #[arg(long, value_name = "DIR", default_value = "hdsl-demo", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Another seed plants another data set
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Print one JSON object on standard output and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

/// Learn a similarity from labeled rows or from triplets, and save it
///
/// Learns M of S_M(x, x') = x^T M x' from triplets (x, y, z), "x is more like y than like z":
///
///   minimize    f(M) = (1/T) sum_t loss(m_t),   m_t = S_M(x_t, y_t) - S_M(x_t, z_t)
///   subject to  M in the convex hull of the atoms LAMBDA (e_i +- e_j)(e_i +- e_j)^T
///
/// A plus atom says that features i and j mean alike, a minus atom that they mean unlike. Each
/// iteration adds one atom or takes weight from one (Frank-Wolfe with away steps), so after k
/// iterations at most 2(k+1) features are in use. Stopping early is how this method regularizes: with
/// validation rows, the model kept is the iterate with the lowest k-NN error there; without, the last.
///
/// The whole path of steps is saved: earlier, sparser models can be taken out later, without training
/// again, by --max-features, --max-atoms or --iteration of the other commands. The preprocessing is saved
/// too, so that other commands take raw rows.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  hdsl train train.svm.bz2 --valid valid.svm.bz2 --scale 1,10,100,1000 -o m.hdsl
      tries four lambdas and keeps the one with the lowest 3-NN error on the validation rows
  hdsl train train.svm.bz2 --valid valid.svm.bz2 --triplets random:20 --scale 100 -o m.hdsl --json
      20 random triplets a row (better than neighbors when rows are few); results as JSON
  hdsl train train.svm.bz2 --triplets knn:3:5 --scale 100 --search exact --tol 0.01 -o m.hdsl
      stops when the objective is proved to be within 0.01 of the best possible
  hdsl train rows.svm --triplets clicks:log.txt --scale 100 -o m.hdsl
      learns from what people clicked; no labels needed

Ctrl-C stops training and keeps the best model so far; a second one ends the program at once."
)]
pub(crate) struct Train {
    /// Training rows, `-` for standard input
    #[arg(value_name = "TRAIN", value_hint = ValueHint::FilePath)]
    pub(crate) train: PathBuf,
    /// Where to save the model; found out before training whether this can be written
    #[arg(short, long, value_name = "MODEL", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Size of the domain (lambda), above 0: one number, or several to try on the validation rows
    ///
    /// The larger, the further M may go in few steps. Scan 1,10,100,1000 first; the best is often 10 to 1000 for
    /// values in [0, 1], and 10^4 or more with --preprocess unit.
    #[arg(
        long,
        value_name = "LAMBDA,...",
        required = true,
        value_delimiter = ',',
        value_parser = above_zero, allow_negative_numbers = true
    )]
    pub(crate) scale: Vec<f64>,

    /// Validation rows: keep the iterate (and the lambda) with the lowest k-NN error on them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "holdout", help_heading = "Validation")]
    pub(crate) valid: Option<PathBuf>,
    /// Labels of the validation rows, one a line, for formats that keep them apart
    #[arg(long, value_name = "FILE", requires = "valid", value_hint = ValueHint::FilePath, help_heading = "Validation")]
    pub(crate) valid_labels: Option<PathBuf>,
    /// Set this share of the training rows aside for validation, by class, at random with --seed
    #[arg(long, value_name = "FRACTION", value_parser = fraction, allow_negative_numbers = true, help_heading = "Validation")]
    pub(crate) holdout: Option<f64>,
    /// Neighbors that vote on a validation row
    #[arg(short, value_name = "K", default_value_t = 3, value_parser = positive, allow_negative_numbers = true, help_heading = "Validation")]
    pub(crate) k: usize,
    /// How neighbors decide a class; saved in the model, as are -k and --form
    #[arg(long, value_name = "HOW", value_enum, default_value_t = VoteArg::Majority, help_heading = "Validation")]
    pub(crate) vote: VoteArg,
    /// The form in which the similarity ranks
    #[arg(long, value_name = "FORM", value_enum, default_value_t = NormalizationArg::Dot, help_heading = "Validation")]
    pub(crate) normalization: NormalizationArg,
    /// Iterations between evaluations on the validation rows
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = positive, allow_negative_numbers = true, help_heading = "Validation")]
    pub(crate) eval_every: usize,
    /// Stop a run when the validation error has not fallen for this many iterations [default: never]
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true, help_heading = "Validation")]
    pub(crate) patience: Option<usize>,

    /// Where triplets come from: knn:3:5, random:20, clicks:FILE, judgments:FILE, or a FILE
    ///
    /// knn:T:I             each row with its T nearest of the same label x its I nearest of another
    /// random:N            N a row: one row of the same label, one of another, drawn with --seed
    /// FILE                lines `anchor near far [weight]`
    /// clicks:FILE         lines `query clicked skipped`, counted and merged into weights
    /// judgments:FILE      lines `query document grade`, a higher grade is better
    /// judgments-low:FILE  the same where a lower grade is better
    ///
    /// Nearest is by dot product. Files name rows of TRAIN counted from 0, and need no labels.
    #[arg(
        long,
        value_name = "SOURCE",
        default_value = "knn:3:5",
        verbatim_doc_comment,
        help_heading = "Method"
    )]
    pub(crate) triplets: TripletSource,
    /// Mine triplets again so many times, under the similarity learned so far
    ///
    /// Each time, each row with its 3 nearest of the same label x its 5 nearest of another is added to the triplets there
    /// are, and training goes on from where it was.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Method")]
    pub(crate) rounds: usize,
    /// Take the mean of so many models, which differ in their random triplets and starts
    ///
    /// The first has --seed, the others the numbers after it. Their mean is again a combination of atoms: steadier than one
    /// of them, and of more features. Its path meets the atoms by weight, the heaviest first.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = positive, allow_negative_numbers = true, help_heading = "Method")]
    pub(crate) models: usize,
    /// How raw values are scaled; learned on TRAIN and saved in the model
    #[arg(long, value_name = "HOW", value_enum, default_value_t = ScalingArg::Max, help_heading = "Method")]
    pub(crate) preprocess: ScalingArg,
    /// How the next atom is sought
    #[arg(long, value_name = "HOW", value_enum, default_value_t = SearchArg::Alternating, help_heading = "Method")]
    pub(crate) search: SearchArg,
    /// Which steps are allowed besides forward ones
    #[arg(long, value_name = "RULE", value_enum, default_value_t = StepsArg::Away, help_heading = "Method")]
    pub(crate) steps: StepsArg,
    /// What a triplet costs, by its margin m = S_M(x, y) - S_M(x, z)
    #[arg(long, value_name = "LOSS", value_enum, default_value_t = LossArg::SmoothedHinge, help_heading = "Method")]
    pub(crate) loss: LossArg,
    /// Triplets each gradient is taken over, drawn anew each iteration [default: all]
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true, help_heading = "Method")]
    pub(crate) batch: Option<usize>,
    /// Seed of everything random: same seed, same bytes
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Method")]
    pub(crate) seed: u64,

    /// Iterations at most, for each lambda and each round
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = positive, allow_negative_numbers = true, help_heading = "When to stop")]
    pub(crate) max_iter: usize,
    /// Stop when the objective is certainly within this of the best possible
    ///
    /// The Frank-Wolfe gap bounds f(M) - f(M*) only if search and batch are exact, so an exact search is run now and
    /// then to claim it, whatever --search says.
    #[arg(long, value_name = "GAP", value_parser = above_zero, allow_negative_numbers = true, help_heading = "When to stop")]
    pub(crate) tol: Option<f64>,
    /// Iterations at most of the last round [default: --max-iter]
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true, help_heading = "When to stop")]
    pub(crate) last_iter: Option<usize>,
    /// Prove the gap of the last iterate by one exact search at the end
    #[arg(long, help_heading = "When to stop")]
    pub(crate) certify: bool,
    /// Never use more than this many features
    #[arg(long, value_name = "N", value_parser = at_least_two, allow_negative_numbers = true, help_heading = "When to stop")]
    pub(crate) max_features: Option<usize>,
    /// Stop after this long, for each lambda: 30s, 5m, 1.5h
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "When to stop")]
    pub(crate) time: Option<Duration>,
    /// Refuse to start if training would take more memory than this: 500MB, 4GB [default: what is free]
    ///
    /// Found out by an estimate, which is rather too high than too low. A limit above what is free lets a run start that
    /// was refused.
    #[arg(long, value_name = "SIZE", value_parser = memory, help_heading = "When to stop")]
    pub(crate) memory: Option<u64>,

    /// Rows behind those of the training file.
    #[command(flatten)]
    pub(crate) more: AddFile,
    /// Feature names, one a line, to be saved in the model
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Files")]
    pub(crate) names: Option<PathBuf>,
    /// Labels of the training rows, one a line, for formats that keep them apart
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Files")]
    pub(crate) labels: Option<PathBuf>,
    /// How data files are read.
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Print one JSON object on standard output and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

/// Find the best similarity for labeled rows, and save it
///
/// Nobody has to know what lambda is. Searches, under a limit of time: how values are scaled; where
/// triplets come from (neighbors or chance) and how often they are mined again under the
/// similarity learned so far; lambda; the loss; where on the path to stop; how many neighbors
/// decide, whether they vote with their similarity, and whether the similarity or its cosine ranks
/// them; one model or the mean of several. Weak settings are given up early. Everything is chosen
/// on rows that were not learned from: those of --valid, or folds of the training rows. Then the
/// winner is trained on all rows.
///
/// Ends with a leaderboard, the error to expect on new rows (of the choice, estimated on rows that
/// did not choose), and the `hdsl train` line that makes the same model again.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  hdsl tune train.svm.bz2 --valid valid.svm.bz2 -o best.hdsl
      chooses on the validation rows, then trains on both files
  hdsl tune train.svm.bz2 --cv 5 --time 5m --max-features 200 -o best.hdsl
      chooses by five folds; at most five minutes, and a model of at most 200 features
  hdsl evaluate best.hdsl --train train.svm.bz2 --add valid.svm.bz2 test.svm.bz2
      the model knows how it decides

A search that was killed goes on where it was if the same command is given again: what is
finished is kept in best.hdsl.tune until the search is over. Ctrl-C ends the search and trains
the best so far."
)]
pub(crate) struct Tune {
    /// Training rows, `-` for standard input
    #[arg(value_name = "TRAIN", value_hint = ValueHint::FilePath)]
    pub(crate) train: PathBuf,
    /// Where to save the model; found out before the search whether this can be written
    #[arg(short, long, value_name = "MODEL", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Stop searching in time to be done after this long: 30s, 5m, 1.5h
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10m")]
    pub(crate) time: Duration,
    /// The best model of at most this many features
    #[arg(long, value_name = "N", value_parser = at_least_two, allow_negative_numbers = true)]
    pub(crate) max_features: Option<usize>,
    /// The best model of at most this many atoms (dimensions of `transform`)
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    pub(crate) max_atoms: Option<usize>,
    /// Iterations of a round [default: 400 to 800, by the number of classes and of rows]
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    pub(crate) round_iter: Option<usize>,
    /// What is searched over
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = PresetArg::Best)]
    pub(crate) preset: PresetArg,
    /// Leave parts of the search out
    ///
    /// rounds      triplets mined again under what was learned
    /// means       means of several models
    /// votes       other numbers of neighbors and ways to decide than the majority of 3
    /// cosine      the cosine form of the similarity
    /// random      random triplets
    /// neighbors  triplets of neighbors under the dot product
    /// unit        rows of length 1
    /// losses      other losses than the smoothed hinge
    #[arg(
        long,
        value_name = "PART",
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(Ablation::ALL.map(Ablation::name)).map(|name| name.parse::<Ablation>().expect("it is one of them")),
        hide_possible_values = true,
        conflicts_with = "preset",
        verbatim_doc_comment
    )]
    pub(crate) without: Vec<Ablation>,
    /// Seed of everything random: same seed, same bytes, if the time allows all that is planned
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Validation rows to choose by
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["cv", "holdout"], help_heading = "Validation")]
    pub(crate) valid: Option<PathBuf>,
    /// Labels of the validation rows, one a line, for formats that keep them apart
    #[arg(long, value_name = "FILE", requires = "valid", value_hint = ValueHint::FilePath, help_heading = "Validation")]
    pub(crate) valid_labels: Option<PathBuf>,
    /// Choose by so many folds of the training rows [default: 5 if they are fewer than 3,000]
    #[arg(long, value_name = "FOLDS", value_parser = at_least_two, allow_negative_numbers = true, conflicts_with = "holdout", help_heading = "Validation")]
    pub(crate) cv: Option<usize>,
    /// Choose by this share of the training rows [default: 0.2 if they are 3,000 or more]
    #[arg(long, value_name = "FRACTION", value_parser = fraction, allow_negative_numbers = true, help_heading = "Validation")]
    pub(crate) holdout: Option<f64>,
    /// Train the winner on TRAIN alone, not on the validation rows as well
    #[arg(long, requires = "valid", help_heading = "Validation")]
    pub(crate) no_refit: bool,

    /// Refuse to start a run that would take more memory than this: 500MB, 4GB [default: what is free]
    #[arg(long, value_name = "SIZE", value_parser = memory, help_heading = "Files")]
    pub(crate) memory: Option<u64>,
    /// Feature names, one a line, to be saved in the model
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Files")]
    pub(crate) names: Option<PathBuf>,
    /// Labels of the training rows, one a line, for formats that keep them apart
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Files")]
    pub(crate) labels: Option<PathBuf>,
    /// How data files are read.
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Print one JSON object on standard output and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `tune` searches over.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PresetArg {
    /// all of the above
    Best,
    /// the paper's recipe: [0, 1] preprocessing, 3 x 5 neighbors mined once, lambda from 1 to 10^9, 3-NN
    Paper,
}

/// How data files are read.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct ReadArgs {
    /// Format of the data files [default: found from content and name]
    #[arg(long, value_name = "FORMAT", value_enum, help_heading = "Files")]
    pub(crate) format: Option<FormatArg>,
    /// The first feature is number 0 [default: found from the training file]
    #[arg(long, help_heading = "Files")]
    pub(crate) zero_based: bool,
    /// The first feature is number 1; a feature 0 is then an error
    #[arg(long, conflicts_with = "zero_based", help_heading = "Files")]
    pub(crate) one_based: bool,
}

/// An earlier, sparser model from the saved path.
#[derive(Args, Debug, Clone, Default)]
#[group(multiple = false)]
pub(crate) struct PathArgs {
    /// Use the last point of the saved path with at most N features
    #[arg(long, value_name = "N", value_parser = at_least_two, allow_negative_numbers = true, help_heading = "Earlier models")]
    pub(crate) max_features: Option<usize>,
    /// Use the last point of the saved path with at most N atoms (dimensions of `transform`)
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true, help_heading = "Earlier models")]
    pub(crate) max_atoms: Option<usize>,
    /// Use the model as it was after N iterations
    #[arg(long, value_name = "N", help_heading = "Earlier models")]
    pub(crate) iteration: Option<usize>,
}

/// Training rows as neighbors to vote or to be found.
#[derive(Args, Debug, Clone)]
pub(crate) struct TrainFile {
    /// The rows neighbors are sought among, usually those the model was trained on
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) train: PathBuf,
    /// Labels of the --train rows, one a line, for formats that keep them apart
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Files")]
    pub(crate) train_labels: Option<PathBuf>,
    /// Rows behind them.
    #[command(flatten)]
    pub(crate) more: AddFile,
}

/// More rows than one file of them holds.
#[derive(Args, Debug, Clone)]
pub(crate) struct AddFile {
    /// More training rows, as if they stood at the end of the training file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Files")]
    pub(crate) add: Option<PathBuf>,
    /// Labels of the --add rows, one a line, for formats that keep them apart
    #[arg(long, value_name = "FILE", requires = "add", value_hint = ValueHint::FilePath, help_heading = "Files")]
    pub(crate) add_labels: Option<PathBuf>,
}

/// How the class of a row is decided by training rows, where that is not as the model has it.
#[derive(Args, Debug, Clone)]
pub(crate) struct DecideArgs {
    /// Neighbors that vote [default: as many as in training; 3 for `identity`]
    #[arg(short, value_name = "K", value_parser = positive, allow_negative_numbers = true)]
    pub(crate) k: Option<usize>,
    /// How neighbors decide a class [default: as in training; majority for `identity`]
    #[arg(long, value_name = "HOW", value_enum)]
    pub(crate) vote: Option<VoteArg>,
    /// The form in which the similarity ranks [default: as in training; dot for `identity`]
    #[arg(long, value_name = "FORM", value_enum)]
    pub(crate) normalization: Option<NormalizationArg>,
}

impl DecideArgs {
    /// The model's own decision, except for what the flags say.
    pub(crate) fn over(&self, own: PredictionRule) -> PredictionRule {
        PredictionRule {
            k: self.k.unwrap_or(own.k),
            vote: self.vote.map_or(own.vote, VoteArg::vote),
            normalization: self
                .normalization
                .map_or(own.normalization, NormalizationArg::normalization),
        }
    }
}

/// Classify rows by the vote of their nearest training rows
///
/// The class of a row is the most frequent one among its k nearest training rows under the model; a tie goes to the
/// class of the nearest. A model that was trained with another --vote or --form decides by that. Writes one class a
/// line, in the order of the rows.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  hdsl predict m.hdsl --train train.svm.bz2 test.svm.bz2 -o predicted.txt")]
pub(crate) struct Predict {
    /// A model, or the word `identity` for the plain dot product
    #[arg(value_name = "MODEL", value_hint = ValueHint::FilePath)]
    pub(crate) model: ModelArg,
    /// Rows to classify
    #[arg(value_name = "ROWS", value_hint = ValueHint::FilePath)]
    pub(crate) rows: PathBuf,
    /// Neighbors.
    #[command(flatten)]
    pub(crate) train: TrainFile,
    /// Where to write the classes [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Who decides.
    #[command(flatten)]
    pub(crate) decide: DecideArgs,
    /// Preprocessor for `identity` only, learned on --train
    #[arg(long, value_name = "HOW", value_enum)]
    pub(crate) preprocess: Option<ScalingArg>,
    /// Earlier models.
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// Reading.
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Print one JSON object with the classes on standard output instead of lines
    #[arg(long)]
    pub(crate) json: bool,
}

/// Measure the k-NN error of a model, or of the plain dot product, on labeled rows
///
///   error            share of rows whose class is not the one their nearest training rows vote for
///   balanced error   mean over the classes of each one's error, however unequal they are in size
///
/// With `identity` in the place of a model, the plain dot product is measured, after the same preprocessing
/// as `train` learns by default, so that the two figures can be compared.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  hdsl evaluate m.hdsl --train train.svm.bz2 test.svm.bz2
  hdsl evaluate m.hdsl --train train.svm.bz2 test.svm.bz2 -k 15 --vote weighted --normalization cosine
  hdsl evaluate identity --train train.svm.bz2 test.svm.bz2 --json             the plain dot product
  hdsl evaluate m.hdsl --train train.svm.bz2 test.svm.bz2 --max-features 50    a sparser model"
)]
pub(crate) struct Evaluate {
    /// A model, or the word `identity` for the plain dot product
    #[arg(value_name = "MODEL", value_hint = ValueHint::FilePath)]
    pub(crate) model: ModelArg,
    /// Labeled rows to test on
    #[arg(value_name = "TEST", value_hint = ValueHint::FilePath)]
    pub(crate) test: PathBuf,
    /// Neighbors.
    #[command(flatten)]
    pub(crate) train: TrainFile,
    /// Labels of the TEST rows, one a line, for formats that keep them apart
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Files")]
    pub(crate) labels: Option<PathBuf>,
    /// Who decides.
    #[command(flatten)]
    pub(crate) decide: DecideArgs,
    /// Preprocessor for `identity` only, learned on --train [default: max]
    #[arg(long, value_name = "HOW", value_enum)]
    pub(crate) preprocess: Option<ScalingArg>,
    /// Earlier models.
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// Reading.
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Print one JSON object on standard output and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the most similar training rows of each row
///
/// Prints a line a neighbor: row, rank, neighbor, score, and the neighbor's class where there is one. Rows
/// are counted from 0. Equal scores are listed by row number.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  hdsl neighbors m.hdsl --train train.svm.bz2 test.svm.bz2 -k 5 --rows 0,7-9")]
pub(crate) struct Neighbors {
    /// A model, or the word `identity` for the plain dot product
    #[arg(value_name = "MODEL", value_hint = ValueHint::FilePath)]
    pub(crate) model: ModelArg,
    /// Rows whose neighbors are wanted
    #[arg(value_name = "ROWS", value_hint = ValueHint::FilePath)]
    pub(crate) rows_file: PathBuf,
    /// Neighbors.
    #[command(flatten)]
    pub(crate) train: TrainFile,
    /// How many neighbors a row
    #[arg(short, value_name = "K", default_value_t = 10, value_parser = positive, allow_negative_numbers = true)]
    pub(crate) k: usize,
    /// The form in which the similarity ranks [default: the model's own; dot for `identity`]
    #[arg(long, value_name = "FORM", value_enum)]
    pub(crate) normalization: Option<NormalizationArg>,
    /// Only these rows, counted from 0: numbers and ranges [default: all]
    #[arg(long, value_name = "LIST", value_parser = row_list)]
    pub(crate) rows: Option<RowList>,
    /// Where to write the list [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Preprocessor for `identity` only, learned on --train [default: max]
    #[arg(long, value_name = "HOW", value_enum)]
    pub(crate) preprocess: Option<ScalingArg>,
    /// Earlier models.
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// Reading.
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Print one JSON object on standard output instead of lines
    #[arg(long)]
    pub(crate) json: bool,
}

/// Score pairs of rows: S_M(x, x') = x^T M x'
///
/// By default row 0 of A with row 0 of B, row 1 with row 1, and so on. With --pairs, the pairs a file lists, and
/// with --all, every row of A with every row of B. Prints lines `row of A, row of B, score`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl score m.hdsl queries.svm documents.svm --pairs pairs.txt -o scores.txt
  hdsl score m.hdsl test.svm.bz2 --all           every row with every row of the same file")]
pub(crate) struct Score {
    /// A model
    #[arg(value_name = "MODEL", value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    /// Rows on the one side
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    pub(crate) a: PathBuf,
    /// Rows on the other side [default: A]
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    pub(crate) b: Option<PathBuf>,
    /// Score the pairs of this file: lines `row of A, row of B`, counted from 0, separated by blanks or a comma
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pairs: Option<PathBuf>,
    /// Score every row of A with every row of B
    #[arg(long, conflicts_with = "pairs")]
    pub(crate) all: bool,
    /// Where to write the scores [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Earlier models.
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// Reading.
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Print one JSON object on standard output instead of lines
    #[arg(long)]
    pub(crate) json: bool,
}

/// Map rows into the space where the learned similarity is a plain dot product
///
/// One coordinate per atom, sqrt(LAMBDA weight) (x_i +- x_j): the dot product of two mapped rows is their score under
/// the model. The mapped rows suit any tool that knows dot products: an index, a linear classifier, a plot. With
/// --rank R, the R orthogonal directions that keep the most of M (for rows of any kind, by its largest eigenvalues).
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  hdsl transform m.hdsl test.svm.bz2 -o z.npz        in Python: scipy.sparse.load_npz(\"z.npz\")")]
pub(crate) struct Transform {
    /// A model
    #[arg(value_name = "MODEL", value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    /// Rows to map
    #[arg(value_name = "ROWS", value_hint = ValueHint::FilePath)]
    pub(crate) rows: PathBuf,
    /// Where to write them: .npz (scipy's sparse matrix) or .svm (svmlight with the labels of ROWS)
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Reduce to this many orthogonal dimensions [default: one per atom]
    #[arg(long, value_name = "R", value_parser = positive, allow_negative_numbers = true)]
    pub(crate) rank: Option<usize>,
    /// Format to write [default: found from the name of the file]
    #[arg(long, value_name = "FORMAT", value_enum, help_heading = "Files")]
    pub(crate) to: Option<WriteFormatArg>,
    /// Labels of ROWS, one a line, for formats that keep them apart
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Files")]
    pub(crate) labels: Option<PathBuf>,
    /// Earlier models.
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// Reading.
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Print one JSON object on standard output and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

/// Say which features and pairs of features a model uses, or why two rows are alike
///
/// M is a weighted sum of atoms LAMBDA (e_i +- e_j)(e_i +- e_j)^T, so
///
///   S_M(x, x') = sum over atoms of LAMBDA weight (x_i +- x_j)(x'_i +- x'_j)
///
/// Features are listed by M_ii, pairs by |M_ij|. A pair with a plus says that i in one row and j in the
/// other make the two more alike; with a minus, less alike. With --pair, the contributions M_ij x_i x'_j
/// to the score of two given rows are listed; all of them together add up to the score.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  hdsl explain m.hdsl --names vocab.txt --top 20
  hdsl explain m.hdsl --pair test.svm.bz2:3 train.svm.bz2:17        rows are counted from 0"
)]
pub(crate) struct Explain {
    /// A model
    #[arg(value_name = "MODEL", value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    /// How many features, pairs or contributions to list; 0 lists all
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,
    /// Explain the score of two rows: FILE:ROW twice, rows counted from 0
    #[arg(long, value_names = ["FILE:ROW", "FILE:ROW"], num_args = 2)]
    pub(crate) pair: Option<Vec<RowOf>>,
    /// Feature names, one a line, or a vocabulary file of `vectorize` [default: those saved in the model]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) names: Option<PathBuf>,
    /// Earlier models.
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// Reading.
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Print one JSON object on standard output and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write a page to look at: one HTML file that tells the story of a model
///
/// The page opens offline in any browser, and fetches nothing. It shows the errors before and after learning, the run,
/// the matrix, features and pairs in tables and as a graph, the error with fewer dimensions, a map of the rows, the
/// neighbors of single test rows with the reasons, and the mistakes. Only the model is needed: what cannot be shown
/// without more is left out, and the page says which flag adds it. Large data are sampled, with a note where.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl report m.hdsl --train train.svm.bz2 --test test.svm.bz2 --names vocab.txt -o report.html
  hdsl report m.hdsl --train train.svm --test test.svm --text train.tsv test.tsv -o report.html
      shows the texts of rows and marks the words that count
  hdsl train ... -o m.hdsl --json > run.json && hdsl report m.hdsl --run run.json -o report.html
      shows the training time too, which a model does not keep")]
pub(crate) struct Report {
    /// A model
    #[arg(value_name = "MODEL", value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    /// Where to write the page
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// The rows neighbors are sought among, usually those the model was trained on
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) train: Option<PathBuf>,
    /// Rows the model has not seen, to judge it by
    #[arg(long, value_name = "FILE", requires = "train", value_hint = ValueHint::FilePath)]
    pub(crate) test: Option<PathBuf>,
    /// Neighbors that vote [default: as in training]
    #[arg(short, value_name = "K", value_parser = positive, allow_negative_numbers = true)]
    pub(crate) k: Option<usize>,
    /// Feature names, one a line, or a vocabulary file of `vectorize` [default: those saved in the model]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) names: Option<PathBuf>,
    /// Texts of the --train and of the --test rows: the two files `vectorize` made the rows from
    #[arg(long, value_names = ["TRAIN", "TEST"], num_args = 2, requires = "test", value_hint = ValueHint::FilePath)]
    pub(crate) text: Option<Vec<PathBuf>>,
    /// The triplets of training, if it took them from a file; others are mined again
    #[arg(long, value_name = "SOURCE", requires = "train")]
    pub(crate) triplets: Option<TripletSource>,
    /// What `hdsl train --json` printed, for the training time
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) run: Option<PathBuf>,
    /// Labels of the --train rows, one a line, for formats that keep them apart
    #[arg(long, value_name = "FILE", requires = "train", value_hint = ValueHint::FilePath, help_heading = "Files")]
    pub(crate) train_labels: Option<PathBuf>,
    /// Labels of the --test rows, one a line, for formats that keep them apart
    #[arg(long, value_name = "FILE", requires = "test", value_hint = ValueHint::FilePath, help_heading = "Files")]
    pub(crate) test_labels: Option<PathBuf>,
    /// Earlier models.
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// Reading.
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Print one JSON object on standard output and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

/// Say what is in a data file or in a model
///
/// For data: rows, features, non-zeros, classes, the range of values, the index base, and what the reader noticed. For a
/// model: lambda, atoms, features, preprocessing, how it was trained. `--json` of a model prints all of it: every atom with
/// its weight, the preprocessing, the names and the path.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl inspect train.svm.bz2
  hdsl inspect m.hdsl --json > model.json")]
pub(crate) struct Inspect {
    /// A data file or a model
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Labels, one a line, for formats that keep them apart
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Files")]
    pub(crate) labels: Option<PathBuf>,
    /// Reading.
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Print one JSON object on standard output and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

/// Mine triplets and write them, or check a file of triplets
///
/// Takes the same sources as `train --triplets`. Says how many triplets there are and how many of them the plain dot
/// product already satisfies (m > 0): learning has something to do only where it does not. With -o, writes lines
/// `anchor near far [weight]`, which `train --triplets FILE` reads.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl triplets train.svm.bz2 --triplets knn:3:5 -o triplets.txt
  hdsl triplets rows.svm --triplets clicks:log.txt -o triplets.txt
  hdsl triplets rows.svm --triplets triplets.txt            only check a file")]
pub(crate) struct TripletsCmd {
    /// The rows triplets refer to
    #[arg(value_name = "ROWS", value_hint = ValueHint::FilePath)]
    pub(crate) rows: PathBuf,
    /// knn:3:5, random:20, clicks:FILE, judgments:FILE, judgments-low:FILE or a FILE; see `train --help`
    #[arg(long, value_name = "SOURCE", default_value = "knn:3:5")]
    pub(crate) triplets: TripletSource,
    /// Where to write the triplets
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// How raw values are scaled before neighbors are sought
    #[arg(long, value_name = "HOW", value_enum, default_value_t = ScalingArg::Max)]
    pub(crate) preprocess: ScalingArg,
    /// Seed of random triplets
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Labels of the rows, one a line, for formats that keep them apart
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Files")]
    pub(crate) labels: Option<PathBuf>,
    /// Reading.
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Print one JSON object on standard output and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

/// Turn `label<TAB>text` lines into sparse rows
///
/// A word is a run of two or more letters, digits or underscores. Each distinct word that is neither too rare nor too
/// frequent becomes a feature. The vocabulary found is saved with --save-vocab and applied to later files with --vocab, so
/// that training and test rows number their features alike; words it does not know are left out.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl vectorize train.tsv.bz2 --min-df 2 --save-vocab vocab.txt -o train.svm
  hdsl vectorize test.tsv.bz2 --vocab vocab.txt -o test.svm
  hdsl train train.svm --scale 100 --holdout 0.3 --names vocab.txt -o m.hdsl && hdsl explain m.hdsl")]
pub(crate) struct Vectorize {
    /// Lines `label<TAB>text`
    #[arg(value_name = "TEXTS", value_hint = ValueHint::FilePath)]
    pub(crate) texts: PathBuf,
    /// Where to write the rows: .svm (svmlight) or .npz (scipy's sparse matrix)
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// What a value is [default: counts, or as --vocab says]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) weighting: Option<WeightingArg>,
    /// Leave out words found in fewer documents: 5 is a number of them, 0.01 a share
    #[arg(long, value_name = "DF", default_value = "1", value_parser = Frequency::from_str, conflicts_with = "vocab")]
    pub(crate) min_df: Frequency,
    /// Leave out words found in more documents: 500 is a number of them, 0.5 a share
    #[arg(long, value_name = "DF", default_value = "1.0", value_parser = Frequency::from_str, conflicts_with = "vocab")]
    pub(crate) max_df: Frequency,
    /// Take `Word` and `word` for different words
    #[arg(long, conflicts_with = "vocab")]
    pub(crate) keep_case: bool,
    /// Apply this vocabulary instead of finding one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) vocab: Option<PathBuf>,
    /// Save the vocabulary found
    #[arg(long, value_name = "FILE", conflicts_with = "vocab", value_hint = ValueHint::FilePath)]
    pub(crate) save_vocab: Option<PathBuf>,
    /// Format to write [default: found from the name of the file]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) to: Option<WriteFormatArg>,
    /// Where labels go with npz, which holds none [default: the same name ending in .labels]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) save_labels: Option<PathBuf>,
    /// Print one JSON object on standard output and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

/// Convert rows from any format read to svmlight or npz
///
/// An npz file holds no labels: they are written beside it, one a line, to the same name ending in .labels.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl convert dorothea_valid.data.bz2 --labels dorothea_valid.labels -o valid.svm
  hdsl convert train.svm.bz2 -o train.npz")]
pub(crate) struct Convert {
    /// Rows in any format
    #[arg(value_name = "INPUT", value_hint = ValueHint::FilePath)]
    pub(crate) input: PathBuf,
    /// Where to write them: .svm (svmlight) or .npz
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Format to write [default: found from the name of the file]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) to: Option<WriteFormatArg>,
    /// Where labels go with npz, which holds none [default: the same name ending in .labels]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) save_labels: Option<PathBuf>,
    /// Labels of the rows, one a line, for formats that keep them apart
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Files")]
    pub(crate) labels: Option<PathBuf>,
    /// Reading.
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Print one JSON object on standard output and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

/// Download public data sets of the kind this is for, and say how to train on them
///
/// Without a name, lists the sets there are. With one or more, downloads the original files of UCI
/// or LIBSVM into a cache, unpacks what is packed, reads every part once to see that it is whole,
/// and prints where it lies. A second call finds everything there and needs no network.
///
/// A download that breaks goes on where it stopped, in the same call or in the next one; a file
/// takes its name only when it is complete. The digest each file had when it came is kept beside it
/// in SHA256SUMS, and damage is noticed. Where there is no network, the message names the address to
/// download from elsewhere and the place to put the file.
#[cfg(feature = "fetch")]
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
The cache: --dir, or the environment variable HDSL_DATA, or hdsl in the user's folder of caches.
Proxies are taken from HTTPS_PROXY, ALL_PROXY and NO_PROXY, other certificates from SSL_CERT_FILE.

Examples:
  hdsl fetch                                     what there is
  hdsl fetch dexter                              all parts of dexter
  hdsl train \"$(hdsl fetch dexter --part train --paths)\" --holdout 0.3 --scale 1,10,100 -o m.hdsl
  hdsl fetch rcv1.binary --base-url http://localhost:8000    from a mirror made with `wget -x`"
)]
pub(crate) struct Fetch {
    /// Data sets by name; none to list them
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Only these parts: train, valid, test or all, as the list says
    #[arg(
        long = "part",
        value_name = "PART,...",
        value_delimiter = ',',
        requires = "names"
    )]
    pub(crate) parts: Vec<String>,
    /// Print the paths of the parts, one a line, and nothing else; they are not read
    #[arg(long, requires = "names", conflicts_with = "json")]
    pub(crate) paths: bool,
    /// Keep data in this folder [default: $HDSL_DATA, or hdsl among the caches]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
    /// Download again, and replace what is there
    #[arg(long, requires = "names")]
    pub(crate) again: bool,
    /// Use only what is there, and fail if something is missing
    #[arg(long, conflicts_with = "again")]
    pub(crate) offline: bool,
    /// Fetch https://HOST/PATH from URL/HOST/PATH instead [default: $HDSL_FETCH_BASE, or the source itself]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,
    /// Print one JSON object on standard output and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print a completion script for a shell
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  hdsl completions bash > ~/.local/share/bash-completion/completions/hdsl
  hdsl completions zsh > ~/.zfunc/_hdsl
  hdsl completions fish > ~/.config/fish/completions/hdsl.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Write man pages to a folder
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  hdsl man man1 && man -l man1/hdsl-train.1")]
pub(crate) struct Man {
    /// The folder; made if missing
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
}

/// A model file, or the plain dot product.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ModelArg {
    /// The word `identity`.
    Identity,
    /// A file; one called `identity` is reached as `./identity`.
    File(PathBuf),
}

impl FromStr for ModelArg {
    type Err = std::convert::Infallible;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Ok(match s {
            "identity" => ModelArg::Identity,
            path => ModelArg::File(path.into()),
        })
    }
}

/// A row of a file, `FILE:ROW`. The file's name may itself hold a colon: the last one counts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowOf {
    /// The file.
    pub(crate) path: PathBuf,
    /// The row, counted from 0.
    pub(crate) row: usize,
}

impl FromStr for RowOf {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let want = "expected FILE:ROW with a row counted from 0, such as test.svm:3";
        let (path, row) = s.rsplit_once(':').ok_or(want)?;
        let row = row.parse().map_err(|_| want)?;
        if path.is_empty() {
            return Err(want.into());
        }
        Ok(RowOf {
            path: path.into(),
            row,
        })
    }
}

/// Rows asked for: numbers and ranges, both ends included.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowList(pub(crate) Vec<(usize, usize)>);

fn row_list(s: &str) -> Result<RowList, String> {
    s.split(',')
        .map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            match (first.trim().parse(), last.trim().parse()) {
                (Ok(first), Ok(last)) if first <= last => Ok((first, last)),
                _ => Err(format!(
                    "`{part}` is no row or range of rows, expected for example 0,7-9"
                )),
            }
        })
        .collect::<Result<_, _>>()
        .map(RowList)
}

/// Formats that can be read.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq)]
pub(crate) enum FormatArg {
    /// lines `label [qid:q] index:value ...  # comment`
    Svmlight,
    /// NIPS 2003 challenge: lines of `index:value` or of bare indices; labels in a file of their own
    Nips,
    /// Matrix Market coordinate file; labels in a file of their own
    Mtx,
    /// scipy.sparse.save_npz, CSR or CSC; labels in a file of their own
    Npz,
}

/// Formats that can be written.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq)]
pub(crate) enum WriteFormatArg {
    /// lines `label index:value ...`
    Svmlight,
    /// scipy.sparse CSR matrix
    Npz,
}

/// How raw values are scaled.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq)]
pub(crate) enum ScalingArg {
    /// values as they are
    None,
    /// each feature divided by its largest value in training, then clipped to 1
    Max,
    /// each row divided by its length
    Unit,
    /// first max, then unit
    #[value(name = "max+unit")]
    MaxUnit,
}

/// How neighbors decide a class.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq)]
pub(crate) enum VoteArg {
    /// each of the k nearest rows has one vote; a tie goes to the class of the nearest
    Majority,
    /// each of the k nearest rows votes with its similarity, if that is above 0
    Weighted,
    /// the class with the highest mean similarity; all of its rows count, whatever k is
    ClassMean,
}

impl VoteArg {
    /// The library's word for it.
    pub(crate) fn vote(self) -> Vote {
        match self {
            VoteArg::Majority => Vote::Majority,
            VoteArg::Weighted => Vote::Weighted,
            VoteArg::ClassMean => Vote::ClassMean,
        }
    }
}

/// How a similarity ranks.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq)]
pub(crate) enum NormalizationArg {
    /// S(x, z)
    Dot,
    /// S(x, z) / sqrt(S(x, x) S(z, z)), and 0 where that is 0 / 0
    Cosine,
}

impl NormalizationArg {
    /// The library's word for it.
    pub(crate) fn normalization(self) -> Normalization {
        match self {
            NormalizationArg::Dot => Normalization::Dot,
            NormalizationArg::Cosine => Normalization::Cosine,
        }
    }
}

/// How the next atom is sought.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq)]
pub(crate) enum SearchArg {
    /// the best partner of a feature, then the best partner of that one: fast
    Alternating,
    /// the best of all d(d-1) atoms: slower, and gives a certificate
    Exact,
}

/// Which steps are allowed besides forward ones.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq)]
pub(crate) enum StepsArg {
    /// take weight from the worst atom in use, down to dropping it
    Away,
    /// move weight from the worst atom in use to the new one
    Pairwise,
    /// none: plain Frank-Wolfe
    Forward,
}

/// What a triplet costs.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq)]
pub(crate) enum LossArg {
    /// 1/2 - m below 0, (1-m)^2/2 up to 1, then 0
    SmoothedHinge,
    /// (1-m)^2/2 below 1, then 0
    SquaredHinge,
    /// ln(1 + exp(-m))
    Logistic,
    /// exp(-m)
    Exponential,
}

/// What a value of a vectorized text is.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq)]
pub(crate) enum WeightingArg {
    /// how often the word occurs
    Counts,
    /// 1 if it occurs
    Binary,
    /// count times ln((1 + documents) / (1 + documents with the word)) + 1, rows of length 1
    Tfidf,
}

fn positive(s: &str) -> Result<usize, String> {
    match s.parse::<usize>() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("expected a whole number above 0".into()),
    }
}

fn at_least_two(s: &str) -> Result<usize, String> {
    match s.parse::<usize>() {
        Ok(n) if n >= 2 => Ok(n),
        _ => Err("expected a whole number of at least 2, since one atom uses two features".into()),
    }
}

fn above_zero(s: &str) -> Result<f64, String> {
    match s.trim().parse::<f64>() {
        Ok(x) if x.is_finite() && x > 0.0 => Ok(x),
        _ => Err("expected a finite number above 0".into()),
    }
}

fn fraction(s: &str) -> Result<f64, String> {
    match s.parse::<f64>() {
        Ok(x) if x > 0.0 && x < 1.0 => Ok(x),
        _ => Err("expected a number between 0 and 1, such as 0.3".into()),
    }
}

fn duration(s: &str) -> Result<Duration, String> {
    let want = || "expected a time above 0, such as 30s, 5m or 1.5h".to_string();
    let at = s
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(s.len());
    let (number, unit) = s.split_at(at);
    let per_unit = match unit {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(want()),
    };
    let seconds = number.parse::<f64>().map_err(|_| want())? * per_unit;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err(want()),
    }
}

fn memory(s: &str) -> Result<u64, String> {
    let want = || "expected a size above 0, such as 500MB, 4GB or 1.5GiB".to_string();
    let at = s
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(s.len());
    let (number, unit) = s.split_at(at);
    let per_unit = match unit.trim_start().to_ascii_lowercase().as_str() {
        "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(want()),
    };
    match number.parse::<f64>().map_err(|_| want())? * per_unit {
        bytes if bytes >= 1.0 => Ok(bytes as u64),
        _ => Err(want()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn sizes_are_read_with_their_units() {
        for (text, bytes) in [
            ("4GB", 4_000_000_000),
            ("4 gb", 4_000_000_000),
            ("1.5GiB", 3 << 29),
            ("500M", 500_000_000),
            ("1b", 1),
        ] {
            assert_eq!(memory(text), Ok(bytes), "{text}");
        }
        // A bare number could be bytes or gigabytes: better to ask.
        for text in [
            "",
            "GB",
            "4",
            "0GB",
            "-1GB",
            "0.1b",
            "1.2.3GB",
            "nan",
            "4 bytes of it",
        ] {
            assert!(memory(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_row_of_a_file_may_have_colons_in_its_name() {
        assert_eq!(
            "c:d.svm:17".parse::<RowOf>(),
            Ok(RowOf {
                path: "c:d.svm".into(),
                row: 17
            })
        );
        for bad in ["a.svm", "a.svm:", ":3", "a.svm:-1", "a.svm:x"] {
            assert!(bad.parse::<RowOf>().is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_read_with_their_unit() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(duration("1.5h"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        for bad in ["", "0s", "-3s", "3 days", "1e400", "nan", "s", "1..5s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rows_are_listed_by_numbers_and_ranges() {
        assert_eq!(row_list("0,7-9"), Ok(RowList(vec![(0, 0), (7, 9)])));
        for bad in ["", "3-1", "x", "1,,2", "-3"] {
            assert!(row_list(bad).is_err(), "{bad}");
        }
    }
}
