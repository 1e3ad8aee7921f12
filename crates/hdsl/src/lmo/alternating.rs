//! The paper's fast heuristic (Sec. 3.2.3): the best partner j of a start feature, then the best partner of j.

use crate::objective::Scored;
use crate::solver::Engine;

/// Two rows of H instead of all of them.
pub(crate) fn alternating<'p>(engine: &mut impl Engine<'p>, start: u32) -> Scored {
    let (first, _) = engine.best_with(start);
    engine.best_with(if first.i() == start {
        first.j()
    } else {
        first.i()
    })
}
