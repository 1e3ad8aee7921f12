//! The times of an index file: to open it, to search it, to add a row. The similarity has made-up atoms of pairs of the most
//! frequent features, since a search does not depend on how they were learned.

use super::{Failure, times};
use hdsl::atoms::Path;
use hdsl::data::{OutputFile, Preprocess, Preprocessor, write_npz};
use hdsl::index::NewRows;
use hdsl::{Atom, Index, Model, ModelParts, Rows};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Rows
    #[arg(long, default_value_t = 1_000_000)]
    rows: usize,
    /// Words per row, with repetitions
    #[arg(long, default_value_t = 100)]
    words: usize,
    /// Words to draw from; the word of rank r is drawn in proportion to 1 / r
    #[arg(long, default_value_t = 200_000)]
    vocabulary: usize,
    /// Half of the words of a row are drawn from one of so many topics, each with 2,000 words of its own; 0 for none
    #[arg(long, default_value_t = 0)]
    topics: usize,
    /// The folder for the index; made if missing
    folder: PathBuf,
    /// The weight of the dot product
    #[arg(long, default_value_t = 0.0)]
    base: f64,
    /// The number of atoms
    #[arg(long, default_value_t = 200)]
    atoms: u32,
    /// The preprocessing
    #[arg(long, default_value = "tfidf")]
    preprocess: Preprocess,
    /// Rows to find
    #[arg(short, default_value_t = 10)]
    k: usize,
    /// Rows that are searched for, and not indexed
    #[arg(long, default_value_t = 50)]
    queries: u32,
    /// Words per query, the first of the row; 0 for all
    #[arg(long, default_value_t = 0)]
    query_words: usize,
    /// Write the preprocessed rows and queries to the folder as `rows.npz` and `queries.npz`, for other software
    #[arg(long)]
    npz: bool,
    /// Compare the results with those of the search without an index
    #[arg(long)]
    check: bool,
    /// Use the index that is in the folder
    #[arg(long)]
    again: bool,
}

/// The seconds that this thread has worked, which other processes do not change; on Linux only.
fn worked() -> f64 {
    let known = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = known
        .split(' ')
        .next()
        .and_then(|first| first.parse::<f64>().ok());
    nanoseconds.unwrap_or(f64::NAN) / 1e9
}

/// Word counts of made-up texts. Words are numbered by frequency, and those of topics come last.
fn texts(args: &Args) -> Rows {
    const TOPIC_WORDS: usize = 2000;
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut uniform = || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let zipf = |n: usize| {
        let mut total = 0.0;
        let sum = |rank: usize| {
            total += 1.0 / rank as f64;
            total
        };
        (1..=n).map(sum).collect::<Vec<f64>>()
    };
    let (common, special) = (zipf(args.vocabulary), zipf(TOPIC_WORDS));
    let draw = |sums: &[f64], u: f64| sums.partition_point(|&sum| sum <= u * sums[sums.len() - 1]);
    let mut rows = Rows::new(args.vocabulary + args.topics * TOPIC_WORDS);
    for _ in 0..args.rows {
        let topic = (uniform() * args.topics as f64) as usize;
        let word = |at: usize| match args.topics > 0 && at % 2 == 1 {
            true => args.vocabulary + topic * TOPIC_WORDS + draw(&special, uniform()),
            false => draw(&common, uniform()),
        };
        let mut words: Vec<u32> = (0..args.words).map(word).map(|word| word as u32).collect();
        words.sort_unstable();
        let counts = words.chunk_by(|a, b| a == b);
        let (indices, values): (Vec<u32>, Vec<f64>) =
            counts.map(|same| (same[0], same.len() as f64)).unzip();
        rows.push(hdsl::SparseRow::new(&indices, &values));
    }
    rows
}

/// Atoms of pairs of the most frequent features.
fn model(args: &Args, rows: &Rows) -> Result<Model, Failure> {
    let atoms = (0..args.atoms).map(|a| {
        let (i, j) = (a / 2, a / 2 + 1 + 7 * (a % 5));
        let atom = if a % 2 == 0 {
            Atom::plus(i, j)
        } else {
            Atom::minus(i, j)
        };
        Ok((atom?, 1.0 / f64::from(args.atoms)))
    });
    let atoms = atoms.collect::<hdsl::Result<Vec<_>>>()?;
    let mut parts = ModelParts::new(rows.n_features(), 10.0, Path::new(atoms, vec![])?);
    parts.base = args.base;
    parts.preprocess = Preprocessor::fit(args.preprocess, rows);
    Ok(Model::new(parts)?)
}

fn npz(path: PathBuf, rows: &Rows) -> Result<(), Failure> {
    let mut out = OutputFile::create(&path)?;
    out.fill(|out| write_npz(out, rows))?;
    Ok(out.commit()?)
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    std::fs::create_dir_all(&args.folder)?;
    let file = args.folder.join("bench.index");
    let all = texts(args);
    let n = all.n_rows() as u32 - args.queries;
    let rows = all.select(&(0..n).collect::<Vec<u32>>());
    let queries = short(
        &all.select(&(n..all.n_rows() as u32).collect::<Vec<u32>>()),
        args.query_words,
    );
    drop(all);
    let model = model(args, &rows)?;
    if args.npz {
        npz(args.folder.join("rows.npz"), &model.prepare(&rows))?;
        npz(args.folder.join("queries.npz"), &model.prepare(&queries))?;
    }
    let started = Instant::now();
    if !args.again {
        let mut index = Index::new(model.clone(), None);
        index.add(&NewRows::new(&rows))?;
        index.save(&file)?;
    }
    let build = started.elapsed().as_secs_f64();
    let (open, index) = times(5, || Index::open(&file));
    let index = index.ok_or("nothing was opened")??;
    let one = |query: u32| -> Result<([f64; 2], Vec<hdsl::Neighbor>), Failure> {
        let query = queries.select(&[query]);
        let (started, before) = (Instant::now(), worked());
        let mut found = index.search(&query, args.k)?;
        Ok((
            [started.elapsed().as_secs_f64(), worked() - before],
            found.remove(0),
        ))
    };
    let first = one(0)?.0;
    let (mut later, mut work) = (Vec::new(), Vec::new());
    let mut found = Vec::new();
    // The second time, all columns are in memory.
    for pass in 0..2 {
        for query in 0..args.queries {
            let (seconds, near) = one(query)?;
            if pass == 1 {
                later.push(seconds[0]);
                work.push(seconds[1]);
                found.push(near);
            }
        }
    }
    later.sort_by(f64::total_cmp);
    work.sort_by(f64::total_cmp);
    let row = rows.select(&[0]);
    let before = worked();
    let (add, _) = times(5, || -> Result<(), Failure> {
        let mut edit = Index::edit(&file)?;
        edit.index().add(&NewRows::new(&row))?;
        Ok(edit.commit()?)
    });
    let add_work = (worked() - before) / 5.0;
    let same = match args.check {
        false => None,
        true => {
            let knn = hdsl::KnnIndex::new(model.similarity(), &model.prepare(&rows));
            Some(knn.neighbors(&model.prepare(&queries), args.k)? == found)
        }
    };
    let median = later[later.len() / 2];
    println!(
        "{}",
        json!({
            "rows": n, "values": rows.nnz(), "build": build, "bytes": index.file_size().map(|size| size.0),
            "open": open, "first": first, "median": median, "slowest": later.last(),
            "median_work": work[work.len() / 2], "slowest_work": work.last(), "add": add, "add_work": add_work, "same": same,
        })
    );
    Ok(())
}

/// The first words of each row, or all.
fn short(rows: &Rows, n: usize) -> Rows {
    if n == 0 {
        return rows.clone();
    }
    let mut short = Rows::new(rows.n_features());
    for row in rows.iter() {
        // Features are numbered by frequency; every so many are taken, so that rare words are among them.
        let step = (row.nnz() / n).max(1);
        let some = |at: &usize| at.is_multiple_of(step);
        let indices: Vec<u32> = (0..row.nnz())
            .filter(some)
            .map(|at| row.indices()[at])
            .collect();
        let values: Vec<f64> = (0..row.nnz())
            .filter(some)
            .map(|at| row.values()[at])
            .collect();
        short.push(hdsl::SparseRow::new(&indices, &values));
    }
    short
}
