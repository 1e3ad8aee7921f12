//! Similarities: the plain dot product, the learned bilinear form, its cosine; what it means, how it came about, how
//! classes are decided by it, and how it is kept in a file.

mod bilinear;
mod cosine;
mod decision;
mod explain;
mod file;
mod path;
mod reduced;
mod saved;
mod similarity;

pub use bilinear::BilinearModel;
pub use cosine::{Cosine, Formed};
pub use decision::{Decision, Form, Vote};
pub use explain::{AtomContribution, Explanation, FeatureWeight, PairContribution, PairWeight};
pub use file::FORMAT_VERSION;
pub use path::Path;
pub use reduced::ReducedTransform;
pub use saved::{Model, ModelParts, NUMBERED_BY_POSITION, TracePoint};
pub use similarity::{Dot, Similarity};
