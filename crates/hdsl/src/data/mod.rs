//! Sparse rows and labels, and the way in and out of files.

mod columns;
mod labels;
mod map;
mod rows;
mod scaling;

pub use columns::{ColumnLists, Columns};
pub use labels::Labels;
pub(crate) use map::map_rows;
pub use rows::{Rows, SparseRow};
pub use scaling::{Scaling, ScalingKind, ScalingReport};
