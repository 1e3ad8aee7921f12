//! The part of rayon that the library uses. Without the feature `parallel` the same calls run on the calling thread.

#[cfg(feature = "parallel")]
pub(crate) use rayon::{current_num_threads, join, prelude};

#[cfg(not(feature = "parallel"))]
pub(crate) use sequential::{current_num_threads, join, prelude};

/// The stand-in: the same names and results, one thing after the other.
#[cfg(not(feature = "parallel"))]
mod sequential {
    pub(crate) mod prelude {
        pub(crate) use super::{IntoParallelIterator, ParallelBridge, ParallelSlice};
    }

    pub(crate) fn current_num_threads() -> usize {
        1
    }

    pub(crate) fn join<A, B>(a: impl FnOnce() -> A, b: impl FnOnce() -> B) -> (A, B) {
        (a(), b())
    }

    pub(crate) trait IntoParallelIterator: IntoIterator + Sized {
        fn into_par_iter(self) -> Sequential<Self::IntoIter> {
            Sequential(self.into_iter())
        }
    }

    impl<I: IntoIterator> IntoParallelIterator for I {}

    pub(crate) trait ParallelBridge: Iterator + Sized {
        fn par_bridge(self) -> Sequential<Self> {
            Sequential(self)
        }
    }

    impl<I: Iterator> ParallelBridge for I {}

    pub(crate) trait ParallelSlice<T> {
        fn slice(&self) -> &[T];
        fn slice_mut(&mut self) -> &mut [T];

        fn par_iter(&self) -> Sequential<std::slice::Iter<'_, T>> {
            Sequential(self.slice().iter())
        }

        fn par_iter_mut(&mut self) -> Sequential<std::slice::IterMut<'_, T>> {
            Sequential(self.slice_mut().iter_mut())
        }

        fn par_chunks(&self, size: usize) -> Sequential<std::slice::Chunks<'_, T>> {
            Sequential(self.slice().chunks(size))
        }

        fn par_chunks_mut(&mut self, size: usize) -> Sequential<std::slice::ChunksMut<'_, T>> {
            Sequential(self.slice_mut().chunks_mut(size))
        }
    }

    impl<T> ParallelSlice<T> for [T] {
        fn slice(&self) -> &[T] {
            self
        }

        fn slice_mut(&mut self) -> &mut [T] {
            self
        }
    }

    /// An iterator with the methods of rayon's, several of which differ from those of [`Iterator`].
    pub(crate) struct Sequential<I>(I);

    impl<I: Iterator> Sequential<I> {
        pub(crate) fn with_min_len(self, _: usize) -> Self {
            self
        }

        pub(crate) fn enumerate(self) -> Sequential<std::iter::Enumerate<I>> {
            Sequential(self.0.enumerate())
        }

        pub(crate) fn map<R>(
            self,
            f: impl FnMut(I::Item) -> R,
        ) -> Sequential<impl Iterator<Item = R>> {
            Sequential(self.0.map(f))
        }

        pub(crate) fn filter_map<R>(
            self,
            f: impl FnMut(I::Item) -> Option<R>,
        ) -> Sequential<impl Iterator<Item = R>> {
            Sequential(self.0.filter_map(f))
        }

        pub(crate) fn map_init<S, R>(
            self,
            init: impl FnOnce() -> S,
            mut f: impl FnMut(&mut S, I::Item) -> R,
        ) -> Sequential<impl Iterator<Item = R>> {
            let mut state = init();
            Sequential(self.0.map(move |item| f(&mut state, item)))
        }

        pub(crate) fn fold<S>(
            self,
            init: impl FnOnce() -> S,
            f: impl FnMut(S, I::Item) -> S,
        ) -> Sequential<std::iter::Once<S>> {
            Sequential(std::iter::once(self.0.fold(init(), f)))
        }

        pub(crate) fn reduce_with(
            self,
            f: impl FnMut(I::Item, I::Item) -> I::Item,
        ) -> Option<I::Item> {
            self.0.reduce(f)
        }

        pub(crate) fn for_each(self, f: impl FnMut(I::Item)) {
            self.0.for_each(f);
        }

        pub(crate) fn collect<C: FromIterator<I::Item>>(self) -> C {
            self.0.collect()
        }
    }
}
