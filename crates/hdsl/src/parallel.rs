//! The part of rayon that the library uses. Without the feature `parallel` the same calls run on the calling thread.

#[cfg(feature = "parallel")]
pub(crate) use rayon::{current_num_threads, join, prelude};

#[cfg(not(feature = "parallel"))]
pub(crate) use sequential::{current_num_threads, join, prelude};

use prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

// rayon's iterators are compiled anew for every closure, to about 4 KB. The functions below share one loop. They suit pieces
// of work that take far longer than a lock.

/// `of(0)`, ..., `of(n - 1)`, computed by all threads.
pub(crate) fn map<R: Send>(n: usize, of: impl Fn(usize) -> R + Sync) -> Vec<R> {
    map_with_min_len(n, 1, of)
}

fn map_with_min_len<R: Send>(n: usize, min_len: usize, of: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let results = Mutex::new((0..n).map(|_| None).collect::<Vec<Option<R>>>());
    run(n, min_len, &|at| {
        let result = of(at);
        lock(&results)[at] = Some(result);
    });
    let results = results.into_inner().expect(UNPOISONED).into_iter();
    results
        .map(|result| result.expect("every piece has run"))
        .collect()
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
    let mut results = Vec::with_capacity(n);
    blocks.into_iter().for_each(|block| results.extend(block));
    results
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
    results.into_iter().flatten().collect()
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

/// Items that are taken by their numbers.
struct Items<T> {
    n: usize,
    left: Mutex<Vec<Option<T>>>,
}

impl<T> Items<T> {
    fn new(items: Vec<T>) -> Self {
        Self {
            n: items.len(),
            left: Mutex::new(items.into_iter().map(Some).collect()),
        }
    }

    fn take(&self, at: usize) -> T {
        lock(&self.left)[at].take().expect("a piece runs once")
    }
}

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
    pub(crate) mod prelude {
        pub(crate) use super::{
            IntoParallelIterator, ParallelBridge, ParallelIterator, ParallelSlice,
        };
    }

    pub(crate) fn current_num_threads() -> usize {
        1
    }

    pub(crate) fn join<A, B>(a: impl FnOnce() -> A, b: impl FnOnce() -> B) -> (A, B) {
        (a(), b())
    }

    pub(crate) trait IntoParallelIterator: IntoIterator + Sized {
        fn into_par_iter(self) -> Self::IntoIter {
            self.into_iter()
        }
    }

    impl<I: IntoIterator> IntoParallelIterator for I {}

    pub(crate) trait ParallelBridge: Iterator + Sized {
        fn par_bridge(self) -> Self {
            self
        }
    }

    impl<I: Iterator> ParallelBridge for I {}

    pub(crate) trait ParallelSlice<T>: AsRef<[T]> + AsMut<[T]> {
        fn par_iter(&self) -> std::slice::Iter<'_, T> {
            self.as_ref().iter()
        }

        fn par_iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
            self.as_mut().iter_mut()
        }

        fn par_chunks(&self, size: usize) -> std::slice::Chunks<'_, T> {
            self.as_ref().chunks(size)
        }

        fn par_chunks_mut(&mut self, size: usize) -> std::slice::ChunksMut<'_, T> {
            self.as_mut().chunks_mut(size)
        }
    }

    impl<T> ParallelSlice<T> for [T] {}

    /// The methods of rayon's iterators that [`Iterator`] lacks.
    pub(crate) trait ParallelIterator: Iterator + Sized {
        fn with_min_len(self, _: usize) -> Self {
            self
        }

        fn map_init<S, R>(
            self,
            init: impl FnOnce() -> S,
            mut f: impl FnMut(&mut S, Self::Item) -> R,
        ) -> impl Iterator<Item = R> {
            let mut state = init();
            self.map(move |item| f(&mut state, item))
        }

        fn fold_with<S>(self, init: S, f: impl FnMut(S, Self::Item) -> S) -> std::iter::Once<S> {
            std::iter::once(self.fold(init, f))
        }

        fn reduce_with(
            self,
            f: impl FnMut(Self::Item, Self::Item) -> Self::Item,
        ) -> Option<Self::Item> {
            self.reduce(f)
        }
    }

    impl<I: Iterator> ParallelIterator for I {}
}
