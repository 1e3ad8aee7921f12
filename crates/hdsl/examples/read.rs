//! Reads a data set, says what is in it, and writes it again as npz or svmlight if asked.
//!
//! `cargo run --release --example read -- train.svm.bz2 [train.npz]`

use hdsl::data::{OutputFile, write_npz, write_svmlight};
use hdsl::{ReadOptions, read_dataset};
use std::path::PathBuf;
use std::time::Instant;

fn main() -> hdsl::Result<()> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let Some(path) = args.next() else {
        eprintln!("usage: read <DATA> [<OUT.npz or OUT.svm>]");
        std::process::exit(2);
    };
    let started = Instant::now();
    let data = read_dataset(&path, &ReadOptions::default())?;
    let seconds = started.elapsed().as_secs_f64();
    let rows = &data.rows;
    println!(
        "{}: {} rows x {} features, {} non-zeros, read in {seconds:.3} s",
        path.display(),
        rows.n_rows(),
        rows.n_features(),
        rows.nnz()
    );
    if let Some(labels) = &data.labels {
        for (name, count) in labels.names().iter().zip(labels.counts()).take(10) {
            println!("  {name}: {count} rows");
        }
    }
    for note in &data.notes {
        println!("  {note}");
    }
    if let Some(out) = args.next() {
        let npz = out.extension().is_some_and(|e| e == "npz");
        let mut out = OutputFile::create(&out)?;
        out.fill(|out| {
            if npz {
                write_npz(out, rows)
            } else {
                let (labels, queries) = (data.labels.as_ref(), data.queries.as_deref());
                write_svmlight(out, rows, labels, queries, data.index_base)
            }
        })?;
        out.commit()?;
    }
    Ok(())
}
