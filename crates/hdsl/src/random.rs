//! The one source of chance: ChaCha8, from a seed and a stream, the same on every machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The generator of a seed. Parts of one run that must not disturb each other take different streams.
pub(crate) fn rng(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

/// A number in `0..n`, each as likely as the others (Lemire's multiplication with rejection).
///
/// # Panics
/// If `n` is 0.
pub(crate) fn below(rng: &mut impl Rng, n: usize) -> usize {
    assert!(n > 0, "there is no number below 0");
    let n = n as u64;
    loop {
        let wide = u128::from(rng.next_u64()) * u128::from(n);
        // The lowest 2^64 mod n products of a bin are one too many; they are drawn again.
        if wide as u64 >= n || wide as u64 >= n.wrapping_neg() % n {
            return (wide >> 64) as usize;
        }
    }
}

/// Puts a list in random order, each order as likely as the others (Fisher-Yates).
pub(crate) fn shuffle<T>(rng: &mut impl Rng, list: &mut [T]) {
    for last in (1..list.len()).rev() {
        list.swap(last, below(rng, last + 1));
    }
}

/// `size` different numbers in `0..n`, each such set as likely as the others (Floyd), in increasing order. Takes time
/// and memory for `size` numbers, whatever `n`.
pub(crate) fn sample(rng: &mut impl Rng, n: usize, size: usize) -> Vec<u32> {
    let mut taken = std::collections::HashSet::with_capacity(size);
    for last in n - size..n {
        let drawn = below(rng, last + 1) as u32;
        if !taken.insert(drawn) {
            taken.insert(last as u32);
        }
    }
    let mut list: Vec<u32> = taken.into_iter().collect();
    list.sort_unstable();
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_even_and_within_bounds() {
        let mut rng = rng(1, 0);
        let mut seen = [0u32; 7];
        for _ in 0..70_000 {
            seen[below(&mut rng, 7)] += 1;
        }
        assert!(
            seen.iter().all(|&n| (9_500..10_500).contains(&n)),
            "{seen:?}"
        );
        assert_eq!(below(&mut rng, 1), 0);
    }

    #[test]
    fn seed_and_stream_fix_the_draws() {
        let draw = |seed, stream| {
            let mut rng = rng(seed, stream);
            let mut list: Vec<u32> = (0..20).collect();
            shuffle(&mut rng, &mut list);
            list
        };
        assert_eq!(draw(3, 1), draw(3, 1));
        assert_ne!(draw(3, 1), draw(3, 2));
        assert_ne!(draw(3, 1), draw(4, 1));
        let mut sorted = draw(3, 1);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<u32>>());
    }
}
