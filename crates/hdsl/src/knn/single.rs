//! Single precision that errs to the safe side, and what is quick in it.

/// Not below, with room for the roundings of a product in single precision.
pub(super) fn above(value: f64) -> f32 {
    (value * 1.000_01) as f32
}

/// The largest that is not above.
pub(super) fn below(value: f64) -> f32 {
    let rounded = value as f32;
    if f64::from(rounded) <= value {
        rounded
    } else {
        rounded.next_down()
    }
}

pub(super) fn max(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; 8];
    let chunks = values.chunks_exact(8);
    for &value in chunks.remainder() {
        lanes[0] = if value > lanes[0] { value } else { lanes[0] };
    }
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = if value > *lane { value } else { *lane };
        }
    }
    lanes.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b))
}

/// Dense columns waiting to be added to sums: four at a time spare loads and stores of the sums.
pub(super) struct Fours<'a> {
    waiting: [(f32, &'a [f32]); 4],
    n: usize,
}

impl<'a> Fours<'a> {
    pub(super) fn new() -> Self {
        Self {
            waiting: [(0.0, &[]); 4],
            n: 0,
        }
    }

    /// Adds x times a column of the length of the sums, sooner or later.
    #[inline]
    pub(super) fn add(&mut self, sums: &mut [f32], x: f32, column: &'a [f32]) {
        self.waiting[self.n] = (x, column);
        self.n += 1;
        if self.n == 4 {
            add_four(sums, self.waiting);
            self.n = 0;
        }
    }

    /// Adds what still waits.
    pub(super) fn finish(self, sums: &mut [f32]) {
        for &(x, column) in &self.waiting[..self.n] {
            for (sum, &y) in sums.iter_mut().zip(column) {
                *sum += x * y;
            }
        }
    }
}

fn add_four(sums: &mut [f32], columns: [(f32, &[f32]); 4]) {
    let [(a, p), (b, q), (c, r), (d, s)] = columns;
    let n = sums.len();
    let (p, q, r, s) = (&p[..n], &q[..n], &r[..n], &s[..n]);
    for i in 0..n {
        sums[i] += (a * p[i] + b * q[i]) + (c * r[i] + d * s[i]);
    }
}
