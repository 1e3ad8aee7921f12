//! Index files: any bytes, and the same bytes in place of some of a valid file. Checksums are not compared here.
#![no_main]

use hdsl::atoms::Path;
use hdsl::index::{Index, NewRows};
use hdsl::{Atom, Labels, Model, ModelParts, Rows, SparseRow};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

/// Two valid files: of a few rows, and of so many that there are columns.
fn valid() -> &'static [Vec<u8>; 2] {
    static FILES: OnceLock<[Vec<u8>; 2]> = OnceLock::new();
    FILES.get_or_init(|| [12u32, 1100].map(file))
}

fn file(n: u32) -> Vec<u8> {
    let path = Path::new(vec![(Atom::minus(0, 1).expect("a pair"), 1.0)], vec![]).expect("a path");
    let mut parts = ModelParts::new(40, 2.0, path);
    parts.base = 1.0;
    let model = Model::new(parts).expect("a model");
    let mut rows = Rows::new(40);
    for row in 0..n {
        rows.push(SparseRow::new(&[row % 3, 3 + row % 37], &[1.0, f64::from(row) + 0.5]));
    }
    let labels = Labels::from_names((0..n).map(|row| if row % 2 == 0 { "a" } else { "b" }));
    let ids: Vec<String> = (0..n).map(|row| format!("id {row}")).collect();
    let new = NewRows { labels: Some(&labels), ids: Some(&ids), texts: Some(&ids), ..NewRows::new(&rows) };
    let mut index = Index::new(model, None);
    index.add(&new).expect("right rows");
    index.remove(&[1]).expect("a row");
    let path = std::env::temp_dir().join(format!("hdsl-fuzz-{}-{n}.index", std::process::id()));
    index.save(&path).expect("a file can be written");
    let bytes = std::fs::read(&path).expect("a file can be read");
    std::fs::remove_file(&path).expect("a file can be removed");
    bytes
}

/// Everything that reads from an index.
fn read(bytes: Vec<u8>) {
    let Ok(mut index) = Index::from_bytes("fuzz", bytes) else {
        return;
    };
    let _ = index.check();
    let query = Rows::from_parts(40, vec![0, 3], vec![0, 1, 7], vec![1.0, -2.0, 1.0]).expect("a row");
    if let Ok(found) = index.search(&query, 5) {
        for row in found[0].iter().map(|n| n.row) {
            let _ = (index.entry(row), index.explain(&query, row));
        }
    }
    let _ = index.find("id 3");
    let _ = index.rows().map(|rows| index.remove(&rows[..rows.len().min(2)]));
    let _ = index.compacted();
}

fuzz_target!(|bytes: &[u8]| {
    read(bytes.to_vec());
    let Some((&[kind, a, b, c], patch)) = bytes.split_first_chunk::<4>() else {
        return;
    };
    let mut file = valid()[usize::from(kind & 1)].clone();
    // Half of the patches are in the data behind the empty header.
    let start = if kind & 2 == 0 { 8192 } else { 0 };
    let at = start + u32::from_le_bytes([a, b, c, 0]) as usize % (file.len() - start);
    let n = patch.len().min(file.len() - at);
    file[at..at + n].copy_from_slice(&patch[..n]);
    read(file);
});
