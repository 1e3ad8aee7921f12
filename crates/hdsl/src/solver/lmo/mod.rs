//! The linear problem of every iteration: which atom points down the gradient best?

mod alternating;
mod exact;
mod pair_rows;
mod panel;

pub(crate) use alternating::alternating;
pub(crate) use exact::Exact;
