//! Sparse rows and labels, and the way in and out of files.

mod columns;
mod labels;
mod rows;

pub use columns::{ColumnLists, Columns};
pub use labels::Labels;
pub use rows::{Rows, SparseRow};
