//! Learn which features make two things similar, from very high-dimensional sparse data.

pub mod atoms;
pub mod data;
pub mod error;
mod gradient;
pub mod knn;
mod lmo;
pub mod loss;
pub mod model;
mod objective;
pub(crate) mod random;
pub mod solver;
mod step;
pub mod train;
pub mod triplets;

pub use atoms::{ActiveSet, Atom, Sign, Step};
pub use data::{
    Dataset, Format, IndexBase, Labels, ReadOptions, Rows, Scaling, ScalingKind, SparseRow,
    parse_dataset, read_dataset,
};
pub use error::{Error, Result};
pub use knn::{KnnIndex, Neighbor, Neighbors};
pub use loss::LossKind;
pub use model::{BilinearModel, Dot, Model, ModelParts, Path, Similarity};
pub use solver::{Gap, Iteration, Observer, Run, Search, Solver, SolverParams, StepRule, Stop};
pub use train::{Event, GridPoint, TrainParams, Trained, TripletSource, Watcher, train};
pub use triplets::Triplets;
