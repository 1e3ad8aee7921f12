//! The paper's fast heuristic (Sec. 3.2.3): the best partner j of a start feature, then the best partner of j.

use super::Scored;
use crate::gradient::{Gradient, Scratch};
use crate::objective::Problem;

/// Two rows of H instead of all of them.
pub(crate) fn alternating(
    problem: &Problem<'_>,
    gradient: &Gradient,
    start: u32,
    scratch: &mut Scratch,
) -> Scored {
    let (first, _) = gradient.best_with(problem, start, scratch);
    let partner = if first.i() == start {
        first.j()
    } else {
        first.i()
    };
    gradient.best_with(problem, partner, scratch)
}
