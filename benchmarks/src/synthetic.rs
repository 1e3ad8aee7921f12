//! Data of any size: rows of a given length over features of Zipf frequencies, two classes, and a few planted features that
//! distinguish the classes.

use hdsl::{Dataset, IndexBase, Labels, Rows, SparseRow};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The parameters of the data.
#[derive(Clone, Debug, clap::Args)]
pub struct Synthetic {
    /// Rows
    #[arg(long, default_value_t = Self::default().rows)]
    pub rows: usize,
    /// Values per row (D in the paper)
    #[arg(long, default_value_t = Self::default().per_row)]
    pub per_row: usize,
    /// Features to draw from (d in the paper)
    #[arg(long, default_value_t = Self::default().features)]
    pub features: usize,
    /// Exponent a of Zipf's law: the feature of rank r is drawn in proportion to r^-a
    #[arg(long, default_value_t = Self::default().zipf)]
    pub zipf: f64,
    /// Planted features per class
    #[arg(long, default_value_t = Self::default().planted)]
    pub planted: usize,
    /// Planted features per row, among its values
    #[arg(long, default_value_t = Self::default().telling)]
    pub telling: usize,
    /// The probability that a planted feature of a row is one of the other class
    #[arg(long, default_value_t = Self::default().stray)]
    pub stray: f64,
    /// Multiply feature indices by this: the same columns in a larger space
    #[arg(long, default_value_t = Self::default().spread)]
    pub spread: usize,
    /// Same seed, same data
    #[arg(long, default_value_t = Self::default().seed)]
    pub seed: u64,
}

impl Default for Synthetic {
    fn default() -> Self {
        Self {
            rows: 100_000,
            per_row: 50,
            features: 1_000_000,
            zipf: 0.8,
            planted: 40,
            telling: 3,
            stray: 0.1,
            spread: 1,
            seed: 0,
        }
    }
}

impl Synthetic {
    /// The data.
    ///
    /// ```
    /// use hdsl_benchmarks::synthetic::Synthetic;
    /// let small = Synthetic { rows: 10, per_row: 5, features: 1_000, ..Synthetic::default() };
    /// let data = small.make();
    /// assert_eq!((data.rows.n_rows(), data.rows.nnz()), (10, 50));
    /// assert_eq!(data.labels.map(|l| l.counts()), Some(vec![5, 5]));
    /// ```
    ///
    /// # Panics
    /// If a row cannot contain so many different features.
    pub fn make(&self) -> Dataset {
        let n_noise = self.features - 2 * self.planted;
        assert!(
            self.telling <= self.planted.min(self.per_row) && self.per_row <= n_noise / 2,
            "rows of {} values, {} of them planted, do not fit {} features",
            self.per_row,
            self.telling,
            self.features
        );
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let number = self.numbers(&mut rng);
        // Ranks are drawn through the inverse of their distribution.
        let mut total = 0.0;
        let cumulative: Vec<f64> = (1..=n_noise)
            .map(|rank| {
                total += (rank as f64).powf(-self.zipf);
                total
            })
            .collect();
        let mut rows = Rows::new(self.features * self.spread);
        let mut classes = Vec::with_capacity(self.rows);
        let mut row: Vec<u32> = Vec::with_capacity(self.per_row);
        let mut values = vec![0.0; self.per_row];
        for at in 0..self.rows {
            let class = at % 2;
            classes.push(class);
            row.clear();
            while row.len() < self.per_row {
                let rank = if row.len() < self.telling {
                    let spoken = class ^ usize::from(uniform(&mut rng) < self.stray);
                    n_noise + spoken * self.planted + below(&mut rng, self.planted)
                } else {
                    let at = uniform(&mut rng) * total;
                    cumulative
                        .partition_point(|&sum| sum <= at)
                        .min(n_noise - 1)
                };
                let feature = number[rank] * self.spread as u32;
                if !row.contains(&feature) {
                    row.push(feature);
                }
            }
            row.sort_unstable();
            for value in &mut values {
                *value = (1 + below(&mut rng, 100)) as f64 / 100.0;
            }
            rows.push(SparseRow::new(&row, &values));
        }
        Dataset {
            rows,
            labels: Some(Labels::from_names(
                classes.iter().map(|class| ["1", "2"][*class]),
            )),
            queries: None,
            index_base: IndexBase::One,
            notes: Vec::new(),
            records: None,
        }
    }

    /// The feature of each rank, in random order, so that indices and frequencies are independent.
    fn numbers(&self, rng: &mut ChaCha8Rng) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..self.features as u32).collect();
        for last in (1..numbers.len()).rev() {
            numbers.swap(last, below(rng, last + 1));
        }
        numbers
    }
}

/// A number in [0, 1).
fn uniform(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

fn below(rng: &mut impl Rng, n: usize) -> usize {
    // Uneven by n / 2^64, which no benchmark can see.
    ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Synthetic {
        Synthetic {
            rows: 2_000,
            per_row: 20,
            features: 10_000,
            ..Synthetic::default()
        }
    }

    #[test]
    fn frequencies_fall_as_the_exponent_says() {
        let params = small();
        let mut rng = ChaCha8Rng::seed_from_u64(params.seed);
        let number = params.numbers(&mut rng);
        let data = params.make();
        let mut counts = vec![0u32; params.features];
        for &feature in data.rows.indices() {
            counts[feature as usize] += 1;
        }
        // Ranks 11 to 100 against 101 to 1000: with r^-0.8 the second hold 10^0.2 times as many.
        let mass = |ranks: std::ops::Range<usize>| -> u32 {
            ranks.map(|rank| counts[number[rank] as usize]).sum()
        };
        let ratio = f64::from(mass(100..1000)) / f64::from(mass(10..100));
        assert!((1.35..1.85).contains(&ratio), "{ratio}");
    }

    #[test]
    fn spreading_moves_columns_and_nothing_else() {
        let (close, wide) = (
            small().make(),
            Synthetic {
                spread: 7,
                ..small()
            }
            .make(),
        );
        let spread: Vec<u32> = close.rows.indices().iter().map(|&i| 7 * i).collect();
        assert_eq!(spread, wide.rows.indices());
        assert_eq!(close.rows.values(), wide.rows.values());
        assert_eq!(wide.rows.n_features(), 70_000);
    }

    #[test]
    fn there_is_something_to_learn() {
        let data = small().make();
        let mut config = hdsl::TrainConfig::new(100.0);
        config.triplets = hdsl::TripletSource::Random { per_row: 5 };
        config.max_iter = 100;
        let trained = hdsl::train(&hdsl::TrainData::new(&data), &config, &mut ()).unwrap();
        assert!(trained.run.objective < 0.4, "{}", trained.run.objective);
    }
}
