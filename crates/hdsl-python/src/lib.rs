//! The compiled half of the Python package: `hdsl._core`.
//!
//! It takes scipy matrices and plain settings, calls the library `hdsl` with the interpreter released, and gives back
//! numpy arrays. All that looks like scikit-learn is Python, in `python/hdsl`.

mod baselines;
mod errors;
#[cfg(feature = "fetch")]
mod fetching;
mod index;
mod labels;
mod listening;
mod matrix;
mod model;
mod report;
mod settings;
mod training;
mod tuning;
mod work;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<model::Model>()?;
    module.add_class::<index::Index>()?;
    module.add_class::<baselines::RivalModel>()?;
    module.add_function(wrap_pyfunction!(baselines::fit_diagonal, module)?)?;
    module.add_function(wrap_pyfunction!(baselines::fit_oasis, module)?)?;
    module.add_function(wrap_pyfunction!(training::train, module)?)?;
    module.add_function(wrap_pyfunction!(tuning::tune, module)?)?;
    module.add_function(wrap_pyfunction!(training::mine, module)?)?;
    module.add_function(wrap_pyfunction!(labels::vote, module)?)?;
    module.add_function(wrap_pyfunction!(report::report, module)?)?;
    module.add_function(wrap_pyfunction!(report::compact, module)?)?;
    #[cfg(feature = "fetch")]
    {
        module.add_function(wrap_pyfunction!(fetching::fetch_set, module)?)?;
        module.add_function(wrap_pyfunction!(fetching::list_sets, module)?)?;
        module.add_function(wrap_pyfunction!(fetching::data_folder, module)?)?;
        module.add_function(wrap_pyfunction!(fetching::read_file, module)?)?;
    }
    Ok(())
}
