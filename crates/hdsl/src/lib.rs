//! Learn which features make two things similar, from very high-dimensional sparse data.

pub mod atoms;
pub mod data;
pub mod error;
pub mod knn;
pub mod model;
pub(crate) mod random;
pub mod triplets;

pub use atoms::{ActiveSet, Atom, Sign, Step};
pub use data::{
    Dataset, Format, IndexBase, Labels, ReadOptions, Rows, Scaling, ScalingKind, SparseRow,
    parse_dataset, read_dataset,
};
pub use error::{Error, Result};
pub use knn::{KnnIndex, Neighbor, Neighbors};
pub use model::{BilinearModel, Dot, Model, ModelParts, Path, Similarity};
pub use triplets::Triplets;
