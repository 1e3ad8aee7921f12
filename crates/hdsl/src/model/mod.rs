//! Similarities: the plain dot product, the learned bilinear form, what it means, how it came about and how it is
//! kept in a file.

mod bilinear;
mod explain;
mod file;
mod path;
mod reduced;
mod saved;
mod similarity;

pub use bilinear::BilinearModel;
pub use explain::{AtomContribution, Explanation, FeatureWeight, PairContribution, PairWeight};
pub use file::FORMAT_VERSION;
pub use path::Path;
pub use reduced::ReducedTransform;
pub use saved::{Model, ModelParts, NUMBERED_BY_POSITION, TracePoint};
pub use similarity::{Dot, Similarity};
