//! Margins kept up to date for the piecewise quadratic losses: a step takes time for the triplets it touches, and memory
//! is for the margins alone. Triplets are made again when they are met.

use super::margins::{self, Found, Margins, Sums, Zones};
use super::motion::{Motion, Moving, Placed, Projection};
use super::plain::Keeper;
use crate::atoms::ActiveSet;
use crate::objective::Problem;
use crate::parallel::prelude::*;
use crate::solver::direction::{Direction, line_search};
use crate::triplets::Anchors;
use std::ops::Range;

/// The margins of all triplets, in the order of anchors.
pub(crate) struct Kept<'p> {
    problem: &'p Problem<'p>,
    zones: Zones,
    anchors: Anchors,
    parts: Vec<Part>,
    sigma: f64,
    moving: Moving,
    placed: Placed,
}

/// The triplets of a range of anchors: "sum over my triplets, then merge".
struct Part {
    rows: Range<usize>,
    /// The position of the first.
    first: usize,
    margins: Margins,
    found: Found,
}

impl Part {
    /// Calls `each` with number in this part, anchor, near and far of the triplets whose anchor is one of `rows`.
    fn each_triplet(
        range: &Range<usize>,
        first: usize,
        (problem, anchors): (&Problem<'_>, &Anchors),
        rows: &[u32],
        mut each: impl FnMut(usize, usize, usize, usize),
    ) {
        for &anchor in within(range, rows) {
            let anchor = anchor as usize;
            problem
                .triplets
                .each_of_anchor(anchors, anchor, |position, near, far| {
                    each(position - first, anchor, near as usize, far as usize);
                });
        }
    }
}

impl Part {
    /// Lists what a direction touches.
    fn touch(
        &mut self,
        (problem, anchors): (&Problem<'_>, &Anchors),
        motion: Motion<'_>,
        placed: &Placed,
        sigma: f64,
    ) {
        let Self {
            rows,
            first,
            margins,
            found,
        } = self;
        margins.begin();
        for &anchor in within(rows, motion.rows) {
            let anchor = anchor as usize;
            let push = placed.pushes(motion, problem.scale, anchor);
            found.begin(anchors.range(anchor).len());
            let triplets = problem.triplets;
            triplets.each_place_of_anchor(anchors, anchor, |position, near, far| {
                found.offer(position - *first, push(near, far));
            });
            margins.touch(found, sigma);
        }
    }
}

/// The part of an increasing list of rows that lies in a range.
fn within<'a>(range: &Range<usize>, rows: &'a [u32]) -> &'a [u32] {
    let from = rows.partition_point(|&row| (row as usize) < range.start);
    let to = rows.partition_point(|&row| (row as usize) < range.end);
    &rows[from..to]
}

impl Kept<'_> {
    fn each<T: Send>(&mut self, work: impl Fn(&mut Part) -> T + Sync + Send) -> Vec<T> {
        match &mut self.parts[..] {
            [only] => vec![work(only)],
            parts => parts.par_iter_mut().map(work).collect(),
        }
    }

    /// Zones and sums from the margins, with σ folded into them.
    fn settle(&mut self) {
        let (factor, zones) = (std::mem::replace(&mut self.sigma, 1.0), self.zones);
        self.each(|part| {
            if factor != 1.0 {
                part.margins.rescale(factor);
            }
            part.margins.settle(zones);
        });
    }

    fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        self.parts
            .iter()
            .for_each(|part| sums.merge(&part.margins.sums));
        sums
    }
}

impl<'p> Keeper<'p> for Kept<'p> {
    fn new(problem: &'p Problem<'p>) -> Self {
        let triplets = problem.triplets;
        let anchors = triplets.by_anchor(problem.rows.n_rows());
        let part = |rows: Range<usize>| {
            let positions = anchors.starts()[rows.start]..anchors.starts()[rows.end];
            let weights = triplets.weights().map(|_| {
                let positions = positions.clone();
                positions.map(|p| triplets.weight_at(&anchors, p)).collect()
            });
            Part {
                rows,
                first: positions.start,
                margins: Margins::new(positions.len(), weights),
                found: Found::default(),
            }
        };
        let parts = anchors.cut(margins::n_shards(triplets.len()));
        let mut kept = Self {
            problem,
            zones: Zones::of_loss(problem.loss).expect("the loss is piecewise quadratic"),
            parts: parts.into_iter().map(part).collect(),
            anchors,
            sigma: 1.0,
            moving: Moving::default(),
            placed: Placed::default(),
        };
        kept.settle();
        kept
    }

    fn start_at(&mut self, active: &ActiveSet) {
        self.sigma = 0.0;
        self.settle();
        let problem = self.problem;
        let anchors = std::mem::take(&mut self.anchors);
        let mut projection = Projection::default();
        for (atom, weight) in active.iter() {
            projection.set(problem, atom);
            let Projection { z, rows } = &projection;
            self.each(|part| {
                let Part {
                    rows: range,
                    first,
                    margins,
                    ..
                } = part;
                let given = (problem, &anchors);
                Part::each_triplet(range, *first, given, rows, |t, anchor, near, far| {
                    margins.add(t, weight * problem.scale * z[anchor] * (z[near] - z[far]));
                });
            });
        }
        self.anchors = anchors;
        self.settle();
    }

    fn objective(&mut self) -> f64 {
        let (sigma, zones) = (self.sigma, self.zones);
        let total = self.sums().value(sigma).unwrap_or_else(|| {
            self.each(|part| part.margins.value(sigma, zones))
                .into_iter()
                .sum()
        });
        total / self.problem.total_weight
    }

    fn all(&self, pushes: &mut Vec<f64>, margins: &mut Vec<f64>) {
        let n = self.problem.triplets.len();
        pushes.resize(n, 0.0);
        margins.resize(n, 0.0);
        for part in &self.parts {
            for (t, m) in part.margins.iter(self.sigma).enumerate() {
                let triplet = self.anchors.triplet(part.first + t);
                pushes[triplet] = self.problem.push(triplet, m);
                margins[triplet] = m;
            }
        }
    }

    fn triplet(&self, position: u32) -> u32 {
        self.anchors.triplet(position as usize) as u32
    }

    fn some(&self, positions: &[u32], pushes: &mut Vec<f64>, margins: &mut Vec<f64>) {
        pushes.clear();
        margins.clear();
        let mut parts = self.parts.iter().peekable();
        for &position in positions {
            let position = position as usize;
            while parts
                .peek()
                .is_some_and(|part| position >= part.first + part.margins.len())
            {
                parts.next();
            }
            let part = parts.peek().expect("every position is in some part");
            let m = part.margins.get(position - part.first, self.sigma);
            margins.push(m);
            pushes.push(self.problem.push(self.anchors.triplet(position), m));
        }
    }

    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64 {
        let mut moving = std::mem::take(&mut self.moving);
        let anchors = std::mem::take(&mut self.anchors);
        let problem = self.problem;
        moving.set(problem, direction);
        let motion = moving.motion();
        let mut placed = std::mem::take(&mut self.placed);
        placed.set(problem, motion);
        let (sigma, zones, rate) = (self.sigma, self.zones, moving.rate);
        self.each(|part| part.touch((problem, &anchors), motion, &placed, sigma));
        self.placed = placed;
        let gamma = line_search(gamma_max, |gamma| {
            self.each(|part| part.margins.along(sigma, rate, gamma, zones))
                .into_iter()
                .fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
        });
        (self.moving, self.anchors) = (moving, anchors);
        gamma
    }

    fn advance(&mut self, gamma: f64, active: &ActiveSet) {
        let rate = self.moving.rate;
        let factor = 1.0 + rate * gamma;
        if factor <= 0.0 {
            return self.start_at(active);
        }
        self.sigma *= factor;
        let (sigma, zones) = (self.sigma, self.zones);
        self.each(|part| part.margins.advance(rate, gamma, sigma, zones, |_, _| {}));
        if !(1e-12..1e12).contains(&self.sigma) {
            self.settle();
        }
    }
}
