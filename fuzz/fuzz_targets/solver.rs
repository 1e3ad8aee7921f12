//! The solver on few rows with extreme values, λ, base and weights: it ends, and its objective is a number.
#![no_main]

use hdsl::solver::Search;
use hdsl::{LossKind, Rows, SolverParams, StepRule, Triplets};
use libfuzzer_sys::fuzz_target;

/// A number from a byte, of any magnitude up to 10^limit.
fn number(byte: u8, limit: f64) -> f64 {
    let exponent = (f64::from(byte >> 1) / 63.5 - 1.0) * limit;
    let size = 10f64.powf(exponent);
    if byte & 1 == 0 { size } else { -size }
}

fuzz_target!(|bytes: &[u8]| {
    let [loss, steps, search, lambda, base, batch, rest @ ..] = bytes else {
        return;
    };
    const FEATURES: usize = 4;
    let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in rest.chunks_exact(FEATURES).take(8) {
        for (feature, &byte) in row.iter().enumerate().filter(|entry| *entry.1 != 0) {
            indices.push(feature as u32);
            values.push(number(byte, 49.9));
        }
        starts.push(indices.len());
    }
    let n = starts.len() as u32 - 1;
    let Ok(rows) = Rows::from_parts(FEATURES, starts, indices, values) else {
        return;
    };
    let mut triplets = Triplets::new();
    for (t, byte) in (0..).zip(rest) {
        let (a, b, c) = (t % n.max(1), u32::from(byte >> 4), u32::from(byte & 15));
        if b < n && c < n && b != c {
            triplets.push_weighted(a, b, c, number(byte & !1, 10.0));
        }
    }
    if triplets.is_empty() {
        return;
    }
    let mut params = SolverParams::new(number(lambda & !1, 29.9));
    params.loss = LossKind::ALL[usize::from(*loss) % LossKind::ALL.len()];
    params.steps = StepRule::ALL[usize::from(*steps) % StepRule::ALL.len()];
    params.search = Search::ALL[usize::from(*search) % Search::ALL.len()];
    params.base = if base & 1 == 0 { 0.0 } else { number(base & !1, 29.9) };
    params.batch = (batch & 1 == 1).then_some(usize::from(batch >> 4) + 1);
    params.max_iter = 12;
    params.memory_limit = Some(u64::MAX);
    let solver = params.build().expect("the parameters are in range");
    if let Ok(run) = solver.fit(&rows, &triplets, &mut ()) {
        assert!(!run.objective().is_nan());
    }
});
