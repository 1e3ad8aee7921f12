//! A shard: a range of training rows with their triplets.
//!
//! Rows, problem and engine belong to a thread of their own, which answers one message after the other.

use super::message::{Answer, Message};
use crate::atoms::{ActiveSet, Atom, Sign};
use crate::cancel::CancelToken;
use crate::data::{Labels, Rows};
use crate::error::{Error, Result};
use crate::knn::{KnnIndex, Neighbor};
use crate::measures::TripletAccuracy;
use crate::objective::{Base, LossKind, Problem};
use crate::similarity::{BilinearModel, Normalization};
use crate::solver::SolverParams;
use crate::solver::sharded::{Request, answer, decode, encode, shard_engine};
use crate::triplets::Triplets;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Triplets with their rows by number among all training rows.
#[derive(Clone, Debug)]
pub enum ShardTriplets {
    /// Random triplets of the shard's rows, given the class of every training row.
    Random {
        /// The class of every training row.
        codes: Vec<u32>,
        /// Triplets per row.
        per_row: usize,
        /// The seed.
        seed: u64,
    },
    /// For each row of the shard, its nearest rows of the same class and of other classes, nearest first.
    Neighbors {
        /// Where the rows of the same class start in the list, and the end.
        target_starts: Vec<usize>,
        /// Rows of the same class.
        targets: Vec<u32>,
        /// Where the rows of other classes start in the list, and the end.
        impostor_starts: Vec<usize>,
        /// Rows of other classes.
        impostors: Vec<u32>,
    },
    /// Triplets of anchors of the shard, with weights if any differs from 1.
    List {
        /// (anchor, near, far).
        triplets: Vec<(u32, u32, u32)>,
        /// The weight of each.
        weights: Option<Vec<f64>>,
    },
}

/// What a shard is made of.
#[derive(Clone, Debug)]
pub struct ShardParts {
    /// The preprocessed rows of the shard and those that its triplets name, by increasing number.
    pub rows: Rows,
    /// The numbers of these rows among all training rows.
    pub numbers: Vec<u32>,
    /// The rows of the shard, among all training rows.
    pub own: Range<u32>,
    /// The number of all training rows.
    pub n_rows: usize,
    /// The features that atoms may use, in internal order.
    pub features: Vec<u32>,
    /// The triplets; several sources are appended to one another.
    pub triplets: Vec<ShardTriplets>,
    /// The loss.
    pub loss: LossKind,
    /// The number of threads.
    pub n_threads: usize,
    /// The largest number of bytes to allocate.
    pub memory_limit: Option<u64>,
}

/// Rows to compute validation errors on.
struct ValidationPart {
    rows: Rows,
    /// The shard's own rows.
    items: Rows,
    first: u32,
    k: usize,
    normalization: Normalization,
}

enum Work {
    Message(Vec<u8>),
    Validation(Box<ValidationPart>),
    HeldOut(Box<(Triplets, Rows, Normalization)>),
}

/// A range of training rows with their triplets, in a thread of its own.
pub struct Shard {
    work: Option<Sender<Work>>,
    /// Locked from a message to its answer.
    answers: Mutex<Receiver<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
    own: Range<u32>,
    /// The rows' numbers among all training rows.
    numbers: Vec<u32>,
    n_triplets: usize,
    total_weight: f64,
}

impl Shard {
    /// A shard of these parts.
    pub fn new(parts: ShardParts) -> Result<Self> {
        let ShardParts {
            rows,
            numbers,
            own,
            n_rows,
            features,
            triplets,
            loss,
            n_threads,
            memory_limit,
        } = parts;
        if numbers.len() != rows.n_rows() || !numbers.is_sorted_by(|a, b| a < b) {
            return Err(Error::data(
                "a shard has one number per row, by increasing number",
            ));
        }
        let triplets = local_triplets(triplets, &numbers, &own, n_rows)?;
        let n_features = rows.n_features();
        let mut params = SolverParams::new(1.0);
        params.loss = loss;
        params.memory_limit = memory_limit;
        let (n_triplets, total_weight) = (triplets.len(), triplets.total_weight());
        if n_triplets > 0 {
            triplets.check(rows.n_rows())?;
            crate::solver::memory::check(&params, &rows, &triplets, false)?;
        }
        let pool = Threads::new(n_threads)?;
        let (work, received) = channel::<Work>();
        let (send, answers) = channel();
        let thread = std::thread::Builder::new().name("hdsl-shard".into());
        let thread = thread.spawn(move || {
            pool.run(move || {
                serve(
                    rows, n_features, features, &triplets, loss, &received, &send,
                );
            });
        });
        let thread =
            thread.map_err(|error| Error::data(format!("no thread for a shard: {error}")))?;
        Ok(Self {
            work: Some(work),
            answers: Mutex::new(answers),
            thread: Some(thread),
            own,
            numbers,
            n_triplets,
            total_weight,
        })
    }

    /// The number of triplets.
    pub fn n_triplets(&self) -> usize {
        self.n_triplets
    }

    /// The sum of their weights.
    pub fn total_weight(&self) -> f64 {
        self.total_weight
    }

    /// The sum of |<x_a, x_n> - <x_a, x_f>| over the triplets whose number among those of all shards is a multiple of
    /// `every`, and how many these are. The first triplet of this shard has number `offset`.
    pub fn base_margins(&self, every: usize, offset: usize) -> Result<(f64, usize)> {
        let message = encode(&Message::BaseMargins { every, offset });
        match decode(&self.answer(&message)?)? {
            Answer::BaseMargins(sum, count) => Ok((sum, count)),
            Answer::Failed(reason) => Err(Error::data(reason)),
            other => Err(Error::data(format!(
                "a shard gave an unexpected answer: {other:?}"
            ))),
        }
    }

    /// Sets the rows that validation errors are computed on, and the preprocessed rows of the shard, which are searched for
    /// their `k` nearest.
    pub fn set_validation(
        &self,
        rows: Rows,
        items: Rows,
        k: usize,
        normalization: Normalization,
    ) -> Result<()> {
        let n_own = self.own.len();
        if items.n_rows() != n_own {
            return Err(Error::data(format!(
                "there are {} rows to search, but the shard has {n_own} rows",
                items.n_rows()
            )));
        }
        self.send(Work::Validation(Box::new(ValidationPart {
            rows,
            items,
            first: self.own.start,
            k,
            normalization,
        })))
    }

    /// Sets held-out triplets that errors are computed on, and the rows that they name: `rows` are by the numbers of the
    /// shard's rows.
    pub fn set_held_out(
        &self,
        rows: Rows,
        triplets: &[(u32, u32, u32)],
        weights: Option<&[f64]>,
        normalization: Normalization,
    ) -> Result<()> {
        let mut local = Triplets::new();
        for (t, &(a, near, far)) in triplets.iter().enumerate() {
            let [a, near, far] = [a, near, far].map(|row| local_number(&self.numbers, row));
            local.push_weighted(a?, near?, far?, weights.map_or(1.0, |w| w[t]));
        }
        self.send(Work::HeldOut(Box::new((local, rows, normalization))))
    }

    /// Answers a message of the coordinator. Failures are answers, too.
    pub fn answer(&self, message: &[u8]) -> Result<Vec<u8>> {
        let answers = self.answers.lock().map_err(|_| ended())?;
        self.send(Work::Message(message.to_vec()))?;
        answers.recv().map_err(|_| ended())
    }

    fn send(&self, work: Work) -> Result<()> {
        let sender = self.work.as_ref().ok_or_else(ended)?;
        sender.send(work).map_err(|_| ended())
    }
}

fn ended() -> Error {
    Error::data("the thread of a shard has ended")
}

impl Drop for Shard {
    fn drop(&mut self) {
        drop(self.work.take());
        if let Some(thread) = self.thread.take() {
            // A panic has been reported as a missing answer.
            let _ = thread.join();
        }
    }
}

/// The threads of a shard.
struct Threads {
    #[cfg(feature = "parallel")]
    pool: rayon::ThreadPool,
}

impl Threads {
    #[cfg(feature = "parallel")]
    fn new(n: usize) -> Result<Self> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build();
        let pool = pool.map_err(|error| Error::data(format!("no threads for a shard: {error}")))?;
        Ok(Self { pool })
    }

    #[cfg(feature = "parallel")]
    fn run(&self, work: impl FnOnce() + Send) {
        self.pool.install(work);
    }

    #[cfg(not(feature = "parallel"))]
    fn new(_: usize) -> Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(feature = "parallel"))]
    fn run(&self, work: impl FnOnce() + Send) {
        work();
    }
}

/// The place of a row among the rows of a shard.
fn local_number(numbers: &[u32], row: u32) -> Result<u32> {
    // Where a shard has all rows, numbers are places.
    if numbers.get(row as usize) == Some(&row) {
        return Ok(row);
    }
    let place = numbers.binary_search(&row);
    place.map(|place| place as u32).map_err(|_| {
        Error::data(format!(
            "a triplet names row {row}, which is not among the rows of its shard"
        ))
    })
}

/// The triplets of a shard, by the places of its rows.
fn local_triplets(
    sources: Vec<ShardTriplets>,
    numbers: &[u32],
    own: &Range<u32>,
    n_rows: usize,
) -> Result<Triplets> {
    let has_all = numbers.len() == n_rows;
    let mut sources = sources;
    // Random triplets of a shard with all rows are not stored.
    if has_all
        && let [ShardTriplets::Random { .. }] = &sources[..]
        && let Some(ShardTriplets::Random {
            codes,
            per_row,
            seed,
        }) = sources.pop()
    {
        return random(codes, n_rows, per_row, seed, own);
    }
    let mut all = Triplets::new();
    let place = |row: u32| local_number(numbers, row);
    for source in sources {
        match source {
            ShardTriplets::Random {
                codes,
                per_row,
                seed,
            } => {
                for (a, near, far) in random(codes, n_rows, per_row, seed, own)?.iter() {
                    all.push(place(a)?, place(near)?, place(far)?);
                }
            }
            ShardTriplets::Neighbors {
                target_starts,
                targets,
                impostor_starts,
                impostors,
            } => {
                let list = |starts: &[usize], rows: &[u32], k: usize| {
                    let range = starts.get(k).copied().zip(starts.get(k + 1).copied());
                    let list = range.and_then(|(from, to)| rows.get(from..to).map(<[u32]>::to_vec));
                    list.ok_or_else(|| Error::data("a list of neighbors does not match the rows"))
                };
                for (k, anchor) in own.clone().enumerate() {
                    let impostors = list(&impostor_starts, &impostors, k)?;
                    for near in list(&target_starts, &targets, k)? {
                        for &far in &impostors {
                            all.push(place(anchor)?, place(near)?, place(far)?);
                        }
                    }
                }
            }
            ShardTriplets::List { triplets, weights } => {
                for (t, (a, near, far)) in triplets.into_iter().enumerate() {
                    if !own.contains(&a) {
                        return Err(Error::data(format!(
                            "anchor {a} of a triplet is not a row of its shard"
                        )));
                    }
                    let weight = weights.as_ref().map_or(1.0, |w| w[t]);
                    all.push_weighted(place(a)?, place(near)?, place(far)?, weight);
                }
            }
        }
    }
    Ok(all)
}

/// The random triplets of a range of anchors.
fn random(
    codes: Vec<u32>,
    n_rows: usize,
    per_row: usize,
    seed: u64,
    own: &Range<u32>,
) -> Result<Triplets> {
    let n_classes = codes.iter().max().map_or(0, |&most| most as usize + 1);
    let names = (0..n_classes).map(|class| class.to_string()).collect();
    let labels = Labels::from_codes(names, codes)?;
    let rows = Rows::from_parts(1, vec![0; n_rows + 1], Vec::new(), Vec::new())?;
    let triplets = Triplets::at_random(&rows, &labels, per_row, seed)?;
    Ok(triplets.restricted_to(own.start as usize..own.end as usize))
}

/// The sum of |<x_a, x_n> - <x_a, x_f>| over some triplets, and their number.
fn base_margins(problem: &Problem<'_>, every: usize, offset: usize) -> (f64, usize) {
    let dot = |a: u32, b: u32| {
        let [a, b] = [a, b].map(|row| problem.rows.row(row as usize));
        let (mut p, mut q, mut sum) = (0, 0, 0.0);
        while let (Some(i), Some(j)) = (a.indices().get(p), b.indices().get(q)) {
            match i.cmp(j) {
                Ordering::Less => p += 1,
                Ordering::Greater => q += 1,
                Ordering::Equal => {
                    sum += a.values().at(p) * b.values().at(q);
                    (p, q) = (p + 1, q + 1);
                }
            }
        }
        sum
    };
    let wanted = (0..problem.triplets.len()).filter(|t| (offset + t).is_multiple_of(every.max(1)));
    let margins = wanted.map(|t| {
        let (a, near, far) = problem.triplets.get(t);
        (dot(a, near) - dot(a, far)).abs()
    });
    margins.fold((0.0, 0), |(sum, n), margin| (sum + margin, n + 1))
}

/// Answers messages until the shard is dropped.
fn serve(
    rows: Rows,
    n_features: usize,
    features: Vec<u32>,
    triplets: &Triplets,
    loss: LossKind,
    received: &Receiver<Work>,
    send: &Sender<Vec<u8>>,
) {
    let mut desk = Desk {
        n_features,
        validation: None,
        held_out: None,
    };
    let reply = |answer: &Answer| send.send(encode(answer)).is_ok();
    let problem = Problem::in_order(rows, features, triplets, 1.0, loss, CancelToken::NEVER);
    let mut problem = match problem {
        Ok(problem) => problem,
        Err(error) => {
            // Every message gets the reason.
            while let Ok(work) = received.recv() {
                if matches!(work, Work::Message(_)) && !reply(&Answer::Failed(error.to_string())) {
                    return;
                }
            }
            return;
        }
    };
    let mut next = desk.next(&problem, received, &reply);
    while let Some(message) = next {
        next = match message {
            Message::Begin { lambda, base } => {
                problem.lambda = lambda;
                problem.base = Base::new(base);
                run(&problem, &mut desk, received, &reply)
            }
            _ => {
                reply(&Answer::NotBegun);
                desk.next(&problem, received, &reply)
            }
        };
    }
}

/// Answers the requests of one run. Returns the message that begins the next one.
fn run(
    problem: &Problem<'_>,
    desk: &mut Desk,
    received: &Receiver<Work>,
    reply: &impl Fn(&Answer) -> bool,
) -> Option<Message> {
    if problem.triplets.is_empty() {
        return run_without_triplets(problem, desk, received, reply);
    }
    let mut engine = match shard_engine(problem, CancelToken::NEVER) {
        Ok(engine) => engine,
        Err(error) => {
            reply(&Answer::Failed(error.to_string()));
            return None;
        }
    };
    reply(&Answer::Begun);
    loop {
        match desk.next(problem, received, reply)? {
            Message::Solve(requests) => {
                let answer = match answer(&mut *engine, problem, &requests) {
                    Ok(replies) => Answer::Solved(replies),
                    Err(error) => Answer::Failed(error.to_string()),
                };
                if !reply(&answer) {
                    return None;
                }
            }
            begin => return Some(begin),
        }
    }
}

/// The same for a shard without triplets: all its sums are 0.
fn run_without_triplets(
    problem: &Problem<'_>,
    desk: &mut Desk,
    received: &Receiver<Work>,
    reply: &impl Fn(&Answer) -> bool,
) -> Option<Message> {
    reply(&Answer::Begun);
    loop {
        match desk.next(problem, received, reply)? {
            Message::Solve(requests) => {
                let replies = requests.iter().map(|request: &Request| {
                    crate::solver::sharded::empty_reply(request, problem.n_columns())
                });
                if !reply(&Answer::Solved(replies.collect())) {
                    return None;
                }
            }
            begin => return Some(begin),
        }
    }
}

/// What a shard evaluates iterates on.
struct Desk {
    n_features: usize,
    validation: Option<Box<ValidationPart>>,
    held_out: Option<Box<(Triplets, Rows, Normalization)>>,
}

impl Desk {
    /// The next message for the solver; evaluations are answered here. `None` if the shard was dropped.
    fn next(
        &mut self,
        problem: &Problem<'_>,
        received: &Receiver<Work>,
        reply: &impl Fn(&Answer) -> bool,
    ) -> Option<Message> {
        loop {
            match received.recv().ok()? {
                Work::Validation(part) => self.validation = Some(part),
                Work::HeldOut(part) => self.held_out = Some(part),
                Work::Message(bytes) => match decode::<Message>(&bytes) {
                    Ok(Message::Evaluate {
                        lambda,
                        base,
                        atoms,
                    }) => {
                        let answer = self.evaluate(lambda, base, &atoms);
                        let failed = |error: Error| Answer::Failed(error.to_string());
                        if !reply(&answer.unwrap_or_else(failed)) {
                            return None;
                        }
                    }
                    Ok(Message::BaseMargins { every, offset }) => {
                        let (sum, count) = base_margins(problem, every, offset);
                        if !reply(&Answer::BaseMargins(sum, count)) {
                            return None;
                        }
                    }
                    Ok(message) => return Some(message),
                    Err(error) => {
                        if !reply(&Answer::Failed(error.to_string())) {
                            return None;
                        }
                    }
                },
            }
        }
    }

    fn evaluate(&self, lambda: f64, base: f64, atoms: &[(u32, u32, bool, f64)]) -> Result<Answer> {
        let weighted = atoms.iter().map(|&(i, j, is_minus, weight)| {
            let sign = if is_minus { Sign::Minus } else { Sign::Plus };
            Ok((Atom::new(i, j, sign)?, weight))
        });
        let active = ActiveSet::from_weighted(&weighted.collect::<Result<Vec<_>>>()?)?;
        let similarity = BilinearModel::on_base(self.n_features, lambda, &active, base)?;
        if let Some(part) = &self.held_out {
            let (triplets, rows, normalization) = &**part;
            let counts = TripletAccuracy::of(&normalization.of(&similarity), rows, triplets);
            return Ok(Answer::HeldOut([
                counts.satisfied,
                counts.tied,
                counts.total,
            ]));
        }
        let Some(part) = &self.validation else {
            return Err(Error::data("a shard has nothing to evaluate on"));
        };
        let normalized = part.normalization.of(&similarity);
        let k = part.k.min(part.items.n_rows());
        if k == 0 {
            return Ok(Answer::Neighbors(vec![Vec::new(); part.rows.n_rows()]));
        }
        let near = KnnIndex::new(&normalized, &part.items).neighbors(&part.rows, k)?;
        let global = |n: &Neighbor| (n.row + part.first, n.score);
        let lists = near.iter().map(|list| list.iter().map(global).collect());
        Ok(Answer::Neighbors(lists.collect()))
    }
}
