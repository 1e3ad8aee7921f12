//! Options that several commands share, and the parsers of values. The options of a single command stand beside its code in
//! `commands/`.
//!
//! Nothing here opens a file: values are checked as far as they can be on their own.

mod records;
mod shared;
mod values;

pub(crate) use records::{ColumnArgs, TextArgs};

pub(crate) use shared::{
    AddedRows, DataArgs, ModelFile, PathPoint, RankingArgs, ReadArgs, RuleArgs, TrainingFiles,
    ValidationFiles,
};
pub(crate) use values::{
    ModelArg, OrNever, RowList, RowOf, above_zero, at_least_two, base_weight, duration, fraction,
    iterations, memory, models, or_never, positive, threads,
};

/// Headings of groups of options, in the order in which help texts show them.
pub(crate) mod heading {
    pub(crate) const VALIDATION: &str = "Validation";
    pub(crate) const COLLECTION: &str = "Queries and judgments";
    pub(crate) const COLUMNS: &str = "Columns of records";
    pub(crate) const TEXT: &str = "Texts";
    pub(crate) const METHOD: &str = "Method";
    pub(crate) const STOP: &str = "When to stop";
    pub(crate) const LIMITS: &str = "Limits";
    pub(crate) const PATH: &str = "Earlier iterates";
    pub(crate) const FILES: &str = "Files";
    pub(crate) const GLOBAL: &str = "Global options";
}

/// A parser for one of the library's named enums: its names, each with its help text.
macro_rules! named {
    ($type:ty) => {
        $crate::args::named!($type, <$type>::ALL)
    };
    ($type:ty, $values:expr) => {
        clap::builder::TypedValueParser::try_map(
            clap::builder::PossibleValuesParser::new(
                $values.map(|value| {
                    clap::builder::PossibleValue::new(value.name()).help(value.help())
                }),
            ),
            |name| name.parse::<$type>(),
        )
    };
}
pub(crate) use named;
