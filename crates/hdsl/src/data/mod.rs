//! Sparse rows and labels, and the way in and out of files.

mod labels;
mod rows;

pub use labels::Labels;
pub use rows::{Rows, SparseRow};
