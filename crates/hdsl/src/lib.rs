//! Learn which features make two things similar, from very high-dimensional sparse data.

pub mod atoms;
pub mod data;
pub mod error;
pub mod triplets;

pub use atoms::{ActiveSet, Atom, Sign, Step};
pub use data::{Labels, Rows, SparseRow};
pub use error::{Error, Result};
pub use triplets::Triplets;
