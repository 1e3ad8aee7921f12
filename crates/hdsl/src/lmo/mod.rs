//! The linear problem of every iteration: which atom points down the gradient best?

mod alternating;
mod exact;

pub(crate) use alternating::alternating;
pub(crate) use exact::exact;

use crate::atoms::Atom;

/// An atom and its score D_i + D_j ± H_ij.
pub(crate) type Scored = (Atom, f64);

/// The better of two, and of equals the first in the order of atoms, so that every search settles ties alike.
pub(crate) fn better(a: Scored, b: Scored) -> Scored {
    if b.1 > a.1 || (b.1 == a.1 && b.0 < a.0) {
        b
    } else {
        a
    }
}
