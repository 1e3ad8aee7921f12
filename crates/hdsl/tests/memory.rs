//! Memory while fitting: a small multiple of the input, whatever the number of features. Counts real allocations, so
//! the tests of this file take turns: those in other threads would count too.

use hdsl::{
    Dataset, Dot, Error, IndexBase, Labels, LossKind, Rows, SolverParams, SparseRow, TrainConfig,
    TrainData, Triplets, train,
};
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

/// Peak bytes above what was there before, while working.
fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let done = work();
    (done, ALLOCATED.peak_usage() - before)
}

/// Peak bytes while fitting.
fn peak_of_fit(rows: &Rows, triplets: &Triplets, batch: Option<usize>) -> usize {
    let mut params = SolverParams::new(100.0);
    (params.batch, params.max_iter) = (batch, 60);
    let solver = params.build().unwrap();
    let (run, peak) = peak_of(|| solver.fit(rows, triplets, &mut ()).unwrap());
    assert_eq!(run.path.len(), 60);
    peak
}

#[test]
fn memory_grows_with_values_and_triplets_and_not_with_features() {
    let _turn = COUNTING.lock();
    let mut peaks = Vec::new();
    for (n_rows, per_row) in [(2_000, 10), (4_000, 10), (2_000, 40)] {
        let (few, labels) = rows(n_rows, 40, 20_000);
        let triplets = Triplets::at_random(&few, &labels, per_row, 1).unwrap();
        let peak = peak_of_fit(&few, &triplets, None);
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
        let stretched = peak_of_fit(&many, &triplets, None);
        assert!(
            stretched < peak + peak / 10,
            "{stretched} bytes against {peak} with fewer features"
        );
        let batch = peak_of_fit(&few, &triplets, Some(500));
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
    let (_, peak) = peak_of(|| {
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
    });
    assert!(peak < 10_000_000, "{peak} bytes");
}

#[test]
fn training_keeps_one_copy_of_the_rows_and_no_list_of_all_maxima() {
    let _turn = COUNTING.lock();
    // Counts, nearly all of them 1, of features most of which are in a row or two.
    let (n_rows, nnz) = (20_000, 50);
    let mut data = Rows::new(5_000_000);
    let mut state = 1u64;
    for row in 0..n_rows {
        let mut features: Vec<u32> = (0..nnz)
            .map(|_| {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                let share = (state >> 33) as f64 / (1u64 << 31) as f64;
                (1_000.0 * 5_000f64.powf(share)) as u32
            })
            .collect();
        features.sort_unstable();
        features.dedup();
        let values: Vec<f64> = features
            .iter()
            .map(|f| f64::from(1 + (f + row) % 50 / 49))
            .collect();
        data.push(SparseRow::new(&features, &values));
    }
    let dataset = Dataset {
        rows: data,
        labels: Some(Labels::from_names((0..n_rows).map(|r| (r % 2).to_string()))),
        queries: None,
        index_base: IndexBase::Zero,
        notes: Vec::new(),
        records: None,
    };
    let mut params = TrainConfig::new(100.0);
    params.triplets = "random:5".parse().unwrap();
    params.max_iter = 20;
    let own = 12 * dataset.rows.nnz() + 8 * n_rows as usize;
    let (trained, peak) = peak_of(|| train(&TrainData::new(&dataset), &params, &mut ()).unwrap());
    assert_eq!(trained.run.iterations, 20);
    eprintln!("{:.2} times the rows", peak as f64 / own as f64);
    // It is 2.9. A copy of the rows would be 1 more, and the maxima 0.6.
    assert!(peak < 3 * own, "{peak} bytes for rows of {own}");
}

/// The triplets in another order, with weights.
fn shuffled(triplets: &Triplets) -> Triplets {
    let mut list = Triplets::new();
    for k in 0..triplets.len() {
        let (anchor, near, far) = triplets.get(k * 7919 % triplets.len());
        list.push_weighted(anchor, near, far, 1.0 + (k % 3) as f64);
    }
    list
}

#[test]
fn the_estimate_is_above_the_peak_and_not_far_above() {
    let _turn = COUNTING.lock();
    // Rows, values a row, features, random triplets a row: few rows, few triplets, few features, many of each.
    for (n_rows, nnz, n_features, per_row) in [
        (2_000, 40, 20_000, 10),
        (1_000, 40, 20_000, 300),
        (20_000, 10, 40_000, 20),
        (500, 20, 20_000, 1_000),
        (60_000, 8, 4_000_000_000, 2),
        (300, 2_000, 20_000, 20),
    ] {
        let (rows, labels) = rows(n_rows, nnz, n_features);
        let mut sources = vec![(
            "random",
            Triplets::at_random(&rows, &labels, per_row, 1).unwrap(),
        )];
        if n_rows <= 2_000 {
            let near =
                Triplets::by_neighbors(&Dot, &rows, &labels, [3, 5], hdsl::CancelToken::NEVER)
                    .unwrap();
            sources.push(("shuffled", shuffled(&near)));
            sources.push(("neighbors", near));
        }
        for (source, triplets) in &sources {
            for (engine, loss, batch, base) in [
                ("incremental", LossKind::SmoothedHinge, None, 0.0),
                ("incremental, base", LossKind::SmoothedHinge, None, 0.1),
                ("recomputed", LossKind::Logistic, None, 0.0),
                ("recomputed, base", LossKind::Logistic, None, 0.1),
                ("batch", LossKind::SmoothedHinge, Some(2_000), 0.0),
                ("batch, base", LossKind::SmoothedHinge, Some(2_000), 0.1),
            ] {
                let mut params = SolverParams::new(100.0);
                (params.loss, params.batch, params.max_iter) = (loss, batch, 30);
                params.base = base;
                let solver = params.build().unwrap();
                let estimate = solver.memory_needed(&rows, triplets) as usize;
                let (run, peak) = peak_of(|| solver.fit(&rows, triplets, &mut ()).unwrap());
                assert_eq!(run.path.len(), 30);
                let told = format!(
                    "{engine}, {source}, {n_rows} x {nnz} of {n_features}, {} triplets: {peak} bytes, \
                     {estimate} expected ({:.2} times)",
                    triplets.len(),
                    estimate as f64 / peak as f64
                );
                eprintln!("{told}");
                assert!(estimate >= peak, "too low: {told}");
                assert!(estimate <= 2 * peak + 1_000_000, "too high: {told}");
            }
        }
    }
}

#[test]
fn a_run_that_does_not_fit_is_refused_before_it_takes_anything() {
    let _turn = COUNTING.lock();
    let (rows, labels) = rows(10_000, 40, 20_000);
    let triplets = Triplets::at_random(&rows, &labels, 10_000, 1).unwrap();
    let limit = 1_000_000_000;
    let mut params = SolverParams::new(100.0);
    params.memory_limit = Some(limit);
    let solver = params.build().unwrap();
    let (refused, peak) = peak_of(|| solver.fit(&rows, &triplets, &mut ()).unwrap_err());
    let Error::Memory {
        triplets: 100_000_000,
        needed,
        limit: 1_000_000_000,
        limit_is_set: true,
        fewer: Some(fewer),
        ..
    } = refused
    else {
        panic!("{refused}");
    };
    assert_eq!(needed, solver.memory_needed(&rows, &triplets));
    assert!((1_000_000..100_000_000).contains(&fewer), "{fewer}");
    assert!(peak < 2_000_000, "{peak} bytes to find out");
    // As many as advised are let through: the estimate is all that stands in the way.
    let fewer = Triplets::at_random(&rows, &labels, fewer / 10_000, 1).unwrap();
    assert!(solver.memory_needed(&rows, &fewer) <= limit);
}
