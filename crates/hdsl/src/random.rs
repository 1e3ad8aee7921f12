//! Random numbers from a seed and a stream, the same on every machine: ChaCha8 for sequences, a hash for numbers that are
//! looked up by their position.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The generator of a seed. Independent parts of one run use different streams.
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

/// A number from 0 to below 1, a multiple of 2^-53.
pub(crate) fn unit(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Puts a list in random order, each order as likely as the others (Fisher-Yates).
pub(crate) fn shuffle<T>(rng: &mut impl Rng, list: &mut [T]) {
    for last in (1..list.len()).rev() {
        list.swap(last, below(rng, last + 1));
    }
}

/// `size` different numbers in `0..n`, each such set as likely as the others, in increasing order. Time and memory
/// depend on `size`, not on `n`.
pub(crate) fn sample(rng: &mut impl Rng, n: usize, size: usize) -> Vec<u32> {
    // Draw until there are enough different ones; if more than half are wanted, draw those to leave out.
    let few = size.min(n - size);
    let mut drawn: Vec<u32> = Vec::with_capacity(few);
    while drawn.len() < few {
        // Those that are there already and come again are left out, as if each were drawn until it is new.
        let mut new: Vec<u32> = (drawn.len()..few).map(|_| below(rng, n) as u32).collect();
        new.sort_unstable();
        drawn.append(&mut new);
        drawn.sort();
        drawn.dedup();
    }
    if few == size {
        return drawn;
    }
    let mut left_out = drawn.into_iter().peekable();
    (0..n as u32)
        .filter(|k| left_out.next_if_eq(k).is_none())
        .collect()
}

/// Lists of random numbers with random access: each number is a hash of its position, computed in a nanosecond or two.
///
/// This is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), whose state is a counter, so that any number of its output
/// can be computed directly. Each list starts at a place in its cycle that is a hash of seed, stream and list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lists {
    key: u64,
}

impl Lists {
    /// The lists of a seed and a stream.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self {
            key: mix(mix(seed).wrapping_add(stream.wrapping_mul(STRIDE))),
        }
    }

    /// One of them.
    #[inline]
    pub(crate) fn list(self, number: u64) -> Numbered {
        Numbered {
            start: mix(self.key.wrapping_add(number.wrapping_mul(STRIDE))),
        }
    }
}

/// One of the [`Lists`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbered {
    start: u64,
}

impl Numbered {
    /// Number `k`, in `0..n`. None is more likely than another by more than n parts in 2^64.
    #[inline]
    pub(crate) fn below(self, k: u64, n: u32) -> u32 {
        scale(self.hash(k), n).0
    }

    /// Number `k` as two, in `0..m` and `0..n`: what the first leaves of the hash is the second. No two of them are more
    /// likely than others by more than mn parts in 2^64.
    #[inline]
    pub(crate) fn two_below(self, k: u64, m: u32, n: u32) -> (u32, u32) {
        let (first, rest) = scale(self.hash(k), m);
        (first, scale(rest, n).0)
    }

    #[inline]
    fn hash(self, k: u64) -> u64 {
        mix(self.start.wrapping_add(k.wrapping_mul(STRIDE)))
    }
}

/// A fraction of 2^64, times n: whole part and fraction.
#[inline]
fn scale(fraction: u64, n: u32) -> (u32, u64) {
    debug_assert!(n > 0, "there is no number below 0");
    let wide = u128::from(fraction) * u128::from(n);
    ((wide >> 64) as u32, wide as u64)
}

/// 2^64 divided by the golden ratio: a counter in such steps visits every number, its bits well spread.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// A bijection under which every bit of the input changes about half the bits of the output.
#[inline]
fn mix(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(STRIDE);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_sets_and_each_is_as_likely() {
        let mut rng = rng(3, 4);
        for (n, size) in [
            (1, 0),
            (1, 1),
            (9, 3),
            (9, 6),
            (9, 9),
            (1000, 400),
            (1000, 700),
        ] {
            let drawn = sample(&mut rng, n, size);
            assert_eq!(drawn.len(), size);
            assert!(drawn.is_sorted_by(|a, b| a < b));
            assert!(drawn.iter().all(|&k| (k as usize) < n));
        }
        // Of 6 numbers there are 20 sets of 3 and 15 of 4, the latter drawn by what they leave out.
        for (size, sets) in [(3, 20), (4, 15)] {
            let mut counts = std::collections::BTreeMap::new();
            for _ in 0..1000 * sets {
                *counts.entry(sample(&mut rng, 6, size)).or_insert(0u32) += 1;
            }
            assert_eq!(counts.len(), sets);
            // Five standard deviations of about 31.
            assert!(
                counts.values().all(|n| n.abs_diff(1000) < 160),
                "{counts:?}"
            );
        }
    }

    #[test]
    fn mixing_is_splitmix64() {
        // The first outputs from state 1234567, as every implementation gives them.
        let first = [0, 1, 2].map(|k: u64| mix(1_234_567u64.wrapping_add(k.wrapping_mul(STRIDE))));
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    /// Pearson's statistic of counts that should be equal, as standard deviations from its mean.
    fn unevenness(counts: &[u32]) -> f64 {
        let expected = counts.iter().sum::<u32>() as f64 / counts.len() as f64;
        let statistic: f64 = counts
            .iter()
            .map(|&n| (f64::from(n) - expected).powi(2) / expected)
            .sum();
        let freedom = counts.len() as f64 - 1.0;
        (statistic - freedom) / (2.0 * freedom).sqrt()
    }

    #[test]
    fn numbered_draws_are_even_and_do_not_follow_each_other() {
        for n in [2u32, 3, 7, 64, 1000] {
            // Down one list, the second of two, across the first numbers of many lists, and across seeds.
            let ways: [&dyn Fn(u64) -> u32; 4] = [
                &|k| Lists::new(1, 2).list(3).below(k, n),
                &|k| Lists::new(1, 2).list(3).two_below(k, 5, n).1,
                &|k| Lists::new(1, 2).list(k).below(0, n),
                &|k| Lists::new(k, 2).list(0).below(5, n),
            ];
            for way in ways {
                let mut seen = vec![0u32; n as usize];
                // Each number with the one after it, and with the one two after it, in 4 x 4 bins.
                let mut after = [vec![0u32; 16], vec![0u32; 16]];
                let bin = |x: u32| (u64::from(x) * 4 / u64::from(n)) as usize;
                for k in 0..200_000 {
                    let x = way(k);
                    seen[x as usize] += 1;
                    for (lag, after) in after.iter_mut().enumerate() {
                        after[4 * bin(x) + bin(way(k + 1 + lag as u64))] += 1;
                    }
                }
                assert!(unevenness(&seen).abs() < 5.0, "{n}: {}", unevenness(&seen));
                if n % 4 == 0 {
                    for after in &after {
                        assert!(unevenness(after).abs() < 5.0, "{n}: {after:?}");
                    }
                }
            }
        }
        assert_eq!(Lists::new(0, 0).list(0).below(9, 1), 0);
    }

    #[test]
    fn the_two_of_a_number_know_nothing_of_each_other() {
        for (m, n) in [(1u32, 8u32), (2, 3), (7, 64), (100, 10)] {
            let mut seen = vec![0u32; (m * n) as usize];
            for k in 0..200_000 {
                let (a, b) = Lists::new(5, 2).list(k % 100).two_below(k / 100, m, n);
                seen[(a * n + b) as usize] += 1;
            }
            assert!(unevenness(&seen).abs() < 5.0, "{m} x {n}: {seen:?}");
        }
    }

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
