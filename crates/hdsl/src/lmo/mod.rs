//! The linear problem of every iteration: which atom points down the gradient best?

mod alternating;
mod exact;

pub(crate) use alternating::alternating;
pub(crate) use exact::exact;
