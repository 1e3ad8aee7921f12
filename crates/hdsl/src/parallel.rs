//! The part of rayon that the library uses. Without the feature `parallel` the same calls run on the calling thread.

#[cfg(feature = "parallel")]
use rayon::prelude::*;
#[cfg(feature = "parallel")]
pub(crate) use rayon::{current_num_threads, join};

#[cfg(not(feature = "parallel"))]
use sequential::run;
#[cfg(not(feature = "parallel"))]
pub(crate) use sequential::{current_num_threads, join};

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

// rayon's iterators are compiled anew for every closure, to thousands of lines for LLVM. The functions below share one loop, and
// fill their lists in loops, which compile to less code than iterators. They suit pieces of work that take far longer than a lock.

/// `of(0)`, ..., `of(n - 1)`, computed by all threads.
pub(crate) fn map<R: Send>(n: usize, of: impl Fn(usize) -> R + Sync) -> Vec<R> {
    map_with_min_len(n, 1, of)
}

fn map_with_min_len<R: Send>(n: usize, min_len: usize, of: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let mut results = Vec::with_capacity(n);
    for _ in 0..n {
        results.push(None);
    }
    let results = Mutex::new(results);
    run(n, min_len, &|at| {
        let result = in_piece(n, || of(at));
        lock(&results)[at] = Some(result);
    });
    let mut list = Vec::with_capacity(n);
    for result in results.into_inner().expect(UNPOISONED) {
        list.push(result.expect("every piece has run"));
    }
    list
}

/// [`map`] of items.
pub(crate) fn map_each<T: Send, R: Send>(items: Vec<T>, of: impl Fn(T) -> R + Sync) -> Vec<R> {
    let items = Items::new(items);
    map(items.n, |at| of(items.take(at)))
}

/// [`map`] for pieces so small that `block` of them are done as one.
pub(crate) fn map_blocks<R: Send>(
    n: usize,
    block: usize,
    of: impl Fn(usize) -> R + Sync,
) -> Vec<R> {
    let blocks = map(n.div_ceil(block), |b| -> Vec<R> {
        (b * block..n.min((b + 1) * block)).map(&of).collect()
    });
    joined(n, blocks)
}

/// [`map`] for pieces that may fail, of which a thread takes at least `min_len`. After an error no other begins.
pub(crate) fn try_map<R: Send, E: Send>(
    n: usize,
    min_len: usize,
    of: impl Fn(usize) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let failed = AtomicBool::new(false);
    let results = map_with_min_len(n, min_len, |at| {
        if failed.load(Ordering::Relaxed) {
            return None;
        }
        let result = of(at);
        if result.is_err() {
            failed.store(true, Ordering::Relaxed);
        }
        Some(result)
    });
    let mut list = Vec::with_capacity(n);
    for result in results.into_iter().flatten() {
        list.push(result?);
    }
    Ok(list)
}

/// [`try_map`] of items.
pub(crate) fn try_map_each<T: Send, R: Send, E: Send>(
    items: Vec<T>,
    min_len: usize,
    of: impl Fn(T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let items = Items::new(items);
    try_map(items.n, min_len, |at| of(items.take(at)))
}

/// Calls `of` for each item; an item begins after those before it. The results are in no particular order. After an error no
/// other item begins.
///
/// A thread that waits inside an item begins no other one, which rayon's `par_bridge` takes care of. The other functions do not:
/// there, a thread that waits for a loop inside a piece may begin another piece, so a piece must not wait with a lock.
pub(crate) fn try_map_in_order<T: Send, R: Send, E: Send>(
    items: Vec<T>,
    of: impl Fn(T) -> Result<R, E> + Sync + Send,
) -> Result<Vec<R>, E> {
    let n = items.len();
    let items = items.into_iter();
    #[cfg(feature = "parallel")]
    let items = items.par_bridge();
    items.map(|item| in_piece(n, || of(item))).collect()
}

/// [`try_map`] of pieces that work in a scratch space. A thread takes `block` pieces with one scratch space, which others use
/// afterwards.
pub(crate) fn try_map_with<S: Default + Send, R: Send, E: Send>(
    n: usize,
    block: usize,
    of: impl Fn(&mut S, usize) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let free = Mutex::new(Vec::new());
    let blocks = try_map(n.div_ceil(block), 1, |b| -> Result<Vec<R>, E> {
        let mut scratch = lock(&free).pop().unwrap_or_default();
        let found = (b * block..n.min((b + 1) * block)).map(|at| of(&mut scratch, at));
        let found = found.collect();
        lock(&free).push(scratch);
        found
    })?;
    Ok(joined(n, blocks))
}

/// The results of all blocks.
fn joined<R>(n: usize, blocks: Vec<Vec<R>>) -> Vec<R> {
    let mut results = Vec::with_capacity(n);
    blocks.into_iter().for_each(|block| results.extend(block));
    results
}

thread_local! {
    /// Whether this thread is inside a piece of one of the loops above, where other threads have pieces of their own.
    static IS_IN_PIECE: Cell<bool> = const { Cell::new(false) };
}

/// Calls a piece of a loop over `n`.
fn in_piece<R>(n: usize, piece: impl FnOnce() -> R) -> R {
    let outside = IS_IN_PIECE.replace(n > 1 || IS_IN_PIECE.get());
    let result = piece();
    IS_IN_PIECE.set(outside);
    result
}

/// Calls both, by two threads unless this thread is inside a piece of a loop. There, other threads have work already, and one
/// that waits for the second call might begin another piece.
pub(crate) fn join_outside_loops(a: impl FnOnce() + Send, b: impl FnOnce() + Send) {
    if current_num_threads() == 1 || IS_IN_PIECE.get() {
        a();
        b();
    } else {
        join(a, b);
    }
}

/// Items that are taken by their numbers.
struct Items<T> {
    n: usize,
    left: Mutex<Vec<Option<T>>>,
}

impl<T> Items<T> {
    fn new(items: Vec<T>) -> Self {
        let n = items.len();
        let mut left = Vec::with_capacity(n);
        for item in items {
            left.push(Some(item));
        }
        Self {
            n,
            left: Mutex::new(left),
        }
    }

    fn take(&self, at: usize) -> T {
        lock(&self.left)[at].take().expect("a piece runs once")
    }
}

#[cfg(feature = "parallel")]
fn run(n: usize, min_len: usize, piece: &(dyn Fn(usize) + Sync)) {
    let pieces = (0..n).into_par_iter();
    pieces.with_min_len(min_len).for_each(piece);
}

const UNPOISONED: &str = "no thread panics with a lock";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect(UNPOISONED)
}

/// The stand-in: the same names and results, one thing after the other.
#[cfg(not(feature = "parallel"))]
mod sequential {
    pub(crate) fn current_num_threads() -> usize {
        1
    }

    pub(crate) fn join<A, B>(a: impl FnOnce() -> A, b: impl FnOnce() -> B) -> (A, B) {
        (a(), b())
    }

    pub(super) fn run(n: usize, _: usize, piece: &(dyn Fn(usize) + Sync)) {
        (0..n).for_each(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn results_are_in_the_order_of_the_pieces() {
        for n in [0, 1, 7, 8, 9, 1000] {
            let squares: Vec<usize> = (0..n).map(|at| at * at).collect();
            assert_eq!(map(n, |at| at * at), squares);
            assert_eq!(map_each((0..n).collect(), |at| at * at), squares);
            assert_eq!(map_blocks(n, 8, |at| at * at), squares);
            let squared = |_: &mut (), at: usize| Ok::<_, ()>(at * at);
            assert_eq!(try_map_with(n, 8, squared).as_ref(), Ok(&squares));
        }
    }

    #[test]
    fn items_begin_in_their_order_and_not_inside_another() {
        let begun = Mutex::new(Vec::new());
        let begin = |item: usize| {
            lock(&begun).push((item, std::thread::current().id()));
            // Waits for a loop of its own.
            map(8, |_| {
                std::thread::sleep(std::time::Duration::from_micros(200))
            });
            let mut begun = lock(&begun);
            let own = begun.iter_mut().rev();
            let mut own = own.filter(|last| last.1 == std::thread::current().id());
            assert_eq!(own.next().expect("it has begun").0, item);
            Ok::<_, ()>(())
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build();
        let items = (0..100).collect();
        let found = pool.unwrap().install(|| try_map_in_order(items, begin));
        assert_eq!(found.map(|found| found.len()), Ok(100));
        // Each of the other three threads may have taken an item without having recorded it.
        let begun = begun.into_inner().unwrap().into_iter();
        assert!(begun.enumerate().all(|(at, (item, _))| item <= at + 3));
    }

    /// Whether two calls go on at the same time.
    fn joins() -> bool {
        let begun = AtomicUsize::new(0);
        let meet = || {
            begun.fetch_add(1, Ordering::SeqCst);
            let started = std::time::Instant::now();
            while begun.load(Ordering::SeqCst) < 2 && started.elapsed().as_secs() < 2 {
                std::thread::yield_now();
            }
            begun.load(Ordering::SeqCst) == 2
        };
        let (mut first, mut second) = (false, false);
        join_outside_loops(|| first = meet(), || second = meet());
        // One after the other, only the second sees that both have begun.
        assert!(second);
        first
    }

    #[test]
    fn two_calls_are_joined_outside_loops_only() {
        let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build();
        assert!(pool(2).unwrap().install(joins));
        assert!(!pool(1).unwrap().install(joins));
        let inside = pool(4).unwrap().install(|| map(2, |_| joins()));
        assert_eq!(inside, [false, false]);
        let in_order = || try_map_in_order(vec![(), ()], |()| Ok::<_, ()>(joins()));
        assert_eq!(pool(4).unwrap().install(in_order), Ok(vec![false, false]));
        // A loop over a single piece leaves the other threads without work.
        assert_eq!(pool(2).unwrap().install(|| map(1, |_| joins())), [true]);
        assert!(pool(2).unwrap().install(joins), "the loops have ended");
    }

    #[test]
    fn a_scratch_space_is_used_again_and_an_error_ends_the_work() {
        #[derive(Default)]
        struct Used(usize);
        let most = AtomicUsize::new(0);
        let count = |used: &mut Used, at: usize| {
            used.0 += 1;
            most.fetch_max(used.0, Ordering::SeqCst);
            if at < 5000 { Ok(at) } else { Err(at) }
        };
        assert_eq!(
            try_map_with(5000, 1, count).map(|found| found.len()),
            Ok(5000)
        );
        assert!(most.load(Ordering::SeqCst) >= 5000 / current_num_threads());
        assert!(try_map_with(10_000, 1, count).is_err_and(|at| at >= 5000));
    }
}
