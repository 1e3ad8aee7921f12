//! The compiled module of the Python package: `hdsl._core`.
//!
//! It takes scipy matrices and plain settings, calls the library `hdsl` with the interpreter lock released, and returns
//! numpy arrays. The scikit-learn interface is Python code, in `python/hdsl`.

#[cfg(panic = "abort")]
compile_error!("a panic has to become a Python exception: build with --profile unwind");

mod baselines;
mod blocks;
mod cluster;
mod command;
mod errors;
#[cfg(feature = "fetch")]
mod fetching;
mod index;
mod labels;
mod listening;
mod matrix;
mod model;
mod reading;
mod report;
mod settings;
mod stored;
mod training;
mod trials;
mod tuning;
mod work;

use hdsl::baselines::{Finish, Penalty, Sampling};
use hdsl::solver::Search;
use hdsl::tune::{Ablation, Preset};
use hdsl::{LossKind, Normalization, Preprocess, StepRule, Vote};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The names that each parameter takes, from the library's own enums.
fn choices(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let choices = PyDict::new(py);
    choices.set_item("loss", LossKind::ALL.map(LossKind::name))?;
    choices.set_item("search", Search::ALL.map(Search::name))?;
    choices.set_item("steps", StepRule::ALL.map(StepRule::name))?;
    choices.set_item("preprocess", Preprocess::ALL.map(Preprocess::name))?;
    choices.set_item("vote", Vote::ALL.map(Vote::name))?;
    choices.set_item("normalization", Normalization::ALL.map(Normalization::name))?;
    choices.set_item("penalty", Penalty::ALL.map(Penalty::name))?;
    choices.set_item("sampling", Sampling::ALL.map(Sampling::name))?;
    choices.set_item("finish", Finish::ALL.map(Finish::name))?;
    choices.set_item("preset", Preset::ALL.map(Preset::name))?;
    choices.set_item("ablate", Ablation::ALL.map(Ablation::name))?;
    Ok(choices)
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    // A file whose contents do not fit into memory is refused, as by the program.
    if let Some(bytes) = hdsl::solver::available_memory() {
        hdsl::data::limit_reading(bytes);
    }
    module.add("CHOICES", choices(module.py())?)?;
    module.add_class::<model::Model>()?;
    module.add_class::<index::Index>()?;
    module.add_class::<stored::StoredIndex>()?;
    module.add_class::<baselines::BaselineModel>()?;
    module.add_class::<trials::TrialData>()?;
    module.add_class::<trials::TrialState>()?;
    module.add_class::<trials::SharedTriplets>()?;
    module.add_function(wrap_pyfunction!(command::run_command, module)?)?;
    module.add_function(wrap_pyfunction!(baselines::fit_baseline, module)?)?;
    module.add_function(wrap_pyfunction!(training::train, module)?)?;
    module.add_function(wrap_pyfunction!(tuning::tune, module)?)?;
    module.add_function(wrap_pyfunction!(training::mine, module)?)?;
    module.add_function(wrap_pyfunction!(labels::vote, module)?)?;
    module.add_function(wrap_pyfunction!(report::report, module)?)?;
    module.add_function(wrap_pyfunction!(report::compact, module)?)?;
    module.add_function(wrap_pyfunction!(reading::read_triplets, module)?)?;
    module.add_function(wrap_pyfunction!(reading::read_judgments, module)?)?;
    module.add_class::<cluster::Shard>()?;
    module.add_function(wrap_pyfunction!(cluster::add_column_sums, module)?)?;
    module.add_function(wrap_pyfunction!(cluster::feature_order, module)?)?;
    module.add_function(wrap_pyfunction!(cluster::train_sharded, module)?)?;
    module.add_class::<blocks::Preprocessor>()?;
    module.add_function(wrap_pyfunction!(blocks::block_statistics, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::merge_statistics, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::add_lengths, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::fit_preprocessor, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::resolved, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::class_neighbors, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::merge_lists, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::class_order, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::hold_out, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::sampled_rows, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::check_triplets, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::sampled_anchors, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::hold_out_anchors, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::random_rows, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::rows_to_compare, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::choose, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::base_alone, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::read_svmlight, module)?)?;
    module.add_function(wrap_pyfunction!(reading::read_pairs, module)?)?;
    module.add_function(wrap_pyfunction!(reading::triplets_of_pairs, module)?)?;
    #[cfg(feature = "fetch")]
    {
        module.add_function(wrap_pyfunction!(fetching::fetch_set, module)?)?;
        module.add_function(wrap_pyfunction!(fetching::list_sets, module)?)?;
        module.add_function(wrap_pyfunction!(fetching::data_folder, module)?)?;
        module.add_function(wrap_pyfunction!(fetching::read_file, module)?)?;
    }
    Ok(())
}
