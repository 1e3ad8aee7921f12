//! Memory while fitting: a small multiple of the input, whatever the number of features. Counts real allocations, so
//! the tests of this file take turns: those in other threads would count too.

use hdsl::{Labels, Rows, SolverParams, SparseRow, Triplets};
use peak_alloc::PeakAlloc;
use std::sync::Mutex;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Held by the test that counts: the others would count too.
static COUNTING: Mutex<()> = Mutex::new(());

/// Rows of `nnz` features spread over `n_features`, with popular features first, of two classes.
fn rows(n_rows: usize, nnz: usize, n_features: usize) -> (Rows, Labels) {
    let stretch = (n_features / 20_000) as u32;
    let mut state = 1u64;
    let mut draw = move || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    };
    let mut rows = Rows::new(n_features);
    for _ in 0..n_rows {
        let mut features: Vec<u32> = (0..nnz)
            .map(|_| stretch * (20_000.0 * draw().powi(3)) as u32)
            .collect();
        features.sort_unstable();
        features.dedup();
        let values: Vec<f64> = features.iter().map(|_| 0.1 + 0.9 * draw()).collect();
        rows.push(SparseRow::new(&features, &values));
    }
    let labels = Labels::from_names((0..n_rows).map(|r| if r % 2 == 0 { "even" } else { "odd" }));
    (rows, labels)
}

/// Peak bytes above what was there before, while fitting.
fn peak_of_fit(rows: &Rows, triplets: &Triplets, params: SolverParams) -> usize {
    let solver = params.max_iter(60).build().unwrap();
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let run = solver.fit(rows, triplets, &mut ()).unwrap();
    assert_eq!(run.path.len(), 60);
    ALLOCATED.peak_usage() - before
}

#[test]
fn memory_grows_with_values_and_triplets_and_not_with_features() {
    let _turn = COUNTING.lock();
    let mut peaks = Vec::new();
    for (n_rows, per_row) in [(2_000, 10), (4_000, 10), (2_000, 40)] {
        let (few, labels) = rows(n_rows, 40, 20_000);
        let triplets = Triplets::at_random(&few, &labels, per_row, 1).unwrap();
        let peak = peak_of_fit(&few, &triplets, SolverParams::new(100.0));
        let size = few.nnz() + triplets.len();
        eprintln!(
            "{} values, {} triplets: {} bytes, {} each",
            few.nnz(),
            triplets.len(),
            peak,
            peak / size
        );
        assert!(
            peak < 200 * size,
            "{peak} bytes for {size} values and triplets"
        );
        peaks.push(peak);
        // The same rows among four billion features.
        let (many, _) = rows(n_rows, 40, 4_000_000_000);
        let stretched = peak_of_fit(&many, &triplets, SolverParams::new(100.0));
        assert!(
            stretched < peak + peak / 10,
            "{stretched} bytes against {peak} with fewer features"
        );
        let batch = peak_of_fit(&few, &triplets, SolverParams::new(100.0).batch(500));
        assert!(batch < 200 * size, "{batch} bytes in batches");
    }
    // Twice the rows: twice the memory, and not four times.
    assert!(peaks[1] < 5 * peaks[0] / 2, "{peaks:?}");
}

#[test]
fn a_hundred_million_random_triplets_take_a_few_megabytes() {
    let _turn = COUNTING.lock();
    let n_rows = 100_000;
    let rows = Rows::from_parts(2, vec![0; n_rows + 1], vec![], vec![]).unwrap();
    let labels = Labels::from_names((0..n_rows).map(|r| (r % 7).to_string()));
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let triplets = Triplets::at_random(&rows, &labels, 1_000, 1).unwrap();
    triplets.check(n_rows).unwrap();
    let (anchor, near, far) = triplets.get(triplets.len() - 1);
    assert_eq!(
        (triplets.len(), triplets.total_weight()),
        (100_000_000, 1e8)
    );
    assert_eq!(anchor, 99_999);
    assert!(near % 7 == anchor % 7 && far % 7 != anchor % 7);
    assert_eq!(triplets.clone(), triplets);
    let peak = ALLOCATED.peak_usage() - before;
    assert!(peak < 10_000_000, "{peak} bytes");
}
