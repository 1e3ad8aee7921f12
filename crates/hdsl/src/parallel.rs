//! The part of rayon that the library uses. Without the feature `parallel` the same calls run on the calling thread.

#[cfg(feature = "parallel")]
pub(crate) use rayon::{current_num_threads, join, prelude};

#[cfg(not(feature = "parallel"))]
pub(crate) use sequential::{current_num_threads, join, prelude};

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
