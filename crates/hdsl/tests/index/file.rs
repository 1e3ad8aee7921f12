//! Index files: saving, changing, crashing, damage.

use crate::common::{model, rule, signed, texts};
use hdsl::index::{Index, NewRows, is_index};
use hdsl::{Error, Labels, Normalization, Preprocess, Rows};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn numbered(what: &str, rows: std::ops::Range<usize>) -> Vec<String> {
    rows.map(|row| format!("{what} {row}")).collect()
}

/// A file of so many rows with labels, ids and texts.
fn saved(folder: &TempDir, n: usize) -> (PathBuf, Rows, Index) {
    let path = folder.path().join("rows.index");
    let rows = signed(n, 5);
    let mut index = Index::new(
        model(&rows, 0.5, Preprocess::None, rule(Normalization::Dot)),
        None,
    );
    add(&mut index, &rows, 0, false).unwrap();
    index.save(&path).unwrap();
    (path, rows, index)
}

/// Adds rows whose ids are numbered from `first` on.
fn add(index: &mut Index, rows: &Rows, first: usize, replace: bool) -> hdsl::Result<()> {
    let numbers = first..first + rows.n_rows();
    let labels = Labels::from_names(numbers.clone().map(|row| ["x", "y"][row % 2]));
    let (ids, texts) = (numbered("id", numbers.clone()), numbered("text", numbers));
    index.add(&NewRows {
        labels: Some(&labels),
        ids: Some(&ids),
        texts: Some(&texts),
        replace,
        ..NewRows::new(rows)
    })
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn a_file_has_all_that_the_index_has() {
    for n in [3, 1500] {
        let folder = folder();
        let (path, rows, in_memory) = saved(&folder, n);
        let opened = Index::open(&path).unwrap();
        assert!(is_index(&path));
        assert_eq!(opened.model(), in_memory.model());
        assert_eq!(opened.rows().unwrap(), (0..n as u32).collect::<Vec<u32>>());
        let queries = signed(20, 9);
        assert_eq!(
            opened.search(&queries, 3).unwrap(),
            in_memory.search(&queries, 3).unwrap()
        );
        let entry = opened.entry(2).unwrap();
        assert_eq!(
            (entry.id.as_deref(), entry.label.as_deref()),
            (Some("id 2"), Some("x"))
        );
        assert_eq!(entry.text.as_deref(), Some("text 2"));
        assert_eq!(opened.find("id 1").unwrap(), Some(1));
        assert_eq!(opened.find("id").unwrap(), None);
        let prepared = opened.model().prepare(&rows);
        assert_eq!(opened.row(1).unwrap().row(0), prepared.row(1));
        opened.check().unwrap();
        let why = opened.explain(&queries.select(&[3]), 1).unwrap();
        let parts: f64 = why
            .base
            .iter()
            .map(|c| c.value)
            .chain(why.pairs.iter().map(|c| c.value))
            .sum();
        assert!((parts - why.score).abs() < 1e-9);
    }
}

#[test]
fn the_same_rows_give_the_same_bytes_for_any_number_of_threads() {
    let rows = texts(70_000, 60, 3);
    let bytes = |threads: usize| {
        let folder = folder();
        let path = folder.path().join("x.index");
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let model = model(&rows, 0.0, Preprocess::Max, rule(Normalization::Cosine));
            let mut index = Index::new(model, None);
            index.add(&NewRows::new(&rows)).unwrap();
            assert_eq!(index.n_segments(), 2);
            index.save(&path).unwrap();
        });
        std::fs::read(&path).unwrap()
    };
    assert!(bytes(1) == bytes(2));
}

#[test]
fn changes_are_appended_and_readers_keep_their_state() {
    let folder = folder();
    let (path, _, _) = saved(&folder, 1200);
    let before = std::fs::read(&path).unwrap();
    let reader = Index::open(&path).unwrap();
    let mut edit = Index::edit(&path).unwrap();
    edit.index().remove(&[7, 0]).unwrap();
    add(edit.index(), &signed(2, 1), 1200, false).unwrap();
    edit.commit().unwrap();
    let after = std::fs::read(&path).unwrap();
    assert_eq!(
        after[8192..before.len()],
        before[8192..],
        "nothing but a slot is overwritten"
    );
    assert!(
        after.len() < before.len() + 4000,
        "{} {}",
        before.len(),
        after.len()
    );
    let left: Vec<u32> = (0..1202).filter(|row| ![0, 7].contains(row)).collect();
    assert_eq!(Index::open(&path).unwrap().rows().unwrap(), left);
    assert_eq!(reader.n_rows(), 1200);
    assert_eq!(reader.search(&signed(3, 2), 1200).unwrap()[0].len(), 1200);
    let compact = Index::open(&path).unwrap().compacted().unwrap();
    assert_eq!(compact.rows().unwrap(), left);
    assert_eq!(
        (compact.n_segments(), compact.find("id 7").unwrap()),
        (1, None)
    );
}

/// Every state that a process can leave behind when it is killed: a part of what is appended, then a part of the slot.
#[test]
fn a_killed_change_leaves_the_old_or_the_new_state() {
    let folder = folder();
    let (path, _, _) = saved(&folder, 30);
    for change in 0..3 {
        let before = std::fs::read(&path).unwrap();
        let old = Index::open(&path).unwrap().rows().unwrap();
        let mut edit = Index::edit(&path).unwrap();
        add(edit.index(), &signed(2, 1), 100 + 10 * change, false).unwrap();
        edit.index().remove(&[change as u32]).unwrap();
        edit.commit().unwrap();
        let after = std::fs::read(&path).unwrap();
        let new = Index::open(&path).unwrap().rows().unwrap();
        assert_ne!(old, new);
        let killed = folder.path().join("killed.index");
        let rows = |bytes: &[u8]| {
            std::fs::write(&killed, bytes).unwrap();
            Index::open(&killed).unwrap().rows().unwrap()
        };
        for length in (before.len()..=after.len()).step_by(7) {
            assert_eq!(
                rows(&[&before[..], &after[before.len()..length]].concat()),
                old
            );
        }
        let slot: Vec<usize> = (0..8192).filter(|&at| before[at] != after[at]).collect();
        let (mut torn, mut states) = (after.clone(), [0, 0]);
        torn[..8192].copy_from_slice(&before[..8192]);
        for &at in &slot {
            assert_eq!(rows(&torn), old);
            torn[at] = after[at];
            states[usize::from(rows(&torn) == new)] += 1;
        }
        assert_eq!(
            states,
            [slot.len() - 1, 1],
            "only the last byte makes the new state"
        );
        // What was left behind is overwritten by the next change.
        std::fs::write(
            &killed,
            [&before[..], &after[before.len()..after.len() - 3]].concat(),
        )
        .unwrap();
        let mut edit = Index::edit(&killed).unwrap();
        add(edit.index(), &signed(1, 2), 500, false).unwrap();
        edit.commit().unwrap();
        Index::open(&killed).unwrap().check().unwrap();
        assert_eq!(Index::open(&killed).unwrap().n_rows(), old.len() + 1);
    }
}

/// Each byte in turn is damaged: what is read is right or an error, and a full check finds the damage.
#[test]
fn damage_is_found() {
    let folder = folder();
    let (path, _, index) = saved(&folder, 6);
    let queries = signed(2, 3);
    let right = index.search(&queries, 6).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    // The second slot is not in use yet.
    for at in (0..44).chain(8192..bytes.len()) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        let opened = Index::from_bytes("damaged", damaged);
        if let Ok(found) = opened.as_ref().map(|index| index.search(&queries, 6)) {
            assert!(found.is_err() || found.unwrap() == right, "byte {at}");
        }
        let checked = opened.and_then(|index| index.check());
        assert!(matches!(checked, Err(Error::File { .. })), "byte {at}");
    }
    for n in [0, 5, 60, 5000, 8192, bytes.len() - 1] {
        let error = Index::from_bytes("cut", bytes[..n].to_vec())
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("cut: "), "{error}");
    }
    let error = Index::from_bytes("other", b"1 3:1 4:2\n".to_vec()).unwrap_err();
    let error = error.to_string();
    assert!(error.starts_with("other: not an hdsl index"), "{error}");
}

#[test]
fn a_newer_version_is_refused_by_name() {
    let folder = folder();
    let (path, _, _) = saved(&folder, 3);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[12] = 9;
    let sum = crc32fast::hash(&bytes[12..44]).to_le_bytes();
    bytes[8..12].copy_from_slice(&sum);
    let error = Index::from_bytes("new", bytes).unwrap_err().to_string();
    assert!(error.contains("format version 9"), "{error}");
}

#[test]
fn a_change_of_another_process_is_not_lost() {
    let folder = folder();
    let (path, _, _) = saved(&folder, 10);
    let mut mine = Index::open(&path).unwrap();
    let mut other = Index::open(&path).unwrap();
    other.remove(&[3]).unwrap();
    other.save(&path).unwrap();
    mine.remove(&[4]).unwrap();
    let error = mine.save(&path).unwrap_err().to_string();
    assert!(error.contains("changed by another process"), "{error}");
    assert_eq!(Index::open(&path).unwrap().n_rows(), 9);
    // To another file, it can be saved.
    mine.save(folder.path().join("mine.index")).unwrap();
    assert_eq!(
        Index::open(folder.path().join("mine.index"))
            .unwrap()
            .rows()
            .unwrap()[3..5],
        [3, 5]
    );
}

#[test]
fn ids_are_different_and_can_be_replaced() {
    let folder = folder();
    let (path, _, mut index) = saved(&folder, 1100);
    let more = signed(2, 8);
    let error = add(&mut index, &more, 5, false).unwrap_err().to_string();
    assert_eq!(
        error,
        "row 5 of the index has the id `id 5` already; pass --replace to replace it"
    );
    assert_eq!(index.n_rows(), 1100);
    add(&mut index, &more, 5, true).unwrap();
    assert_eq!(
        (index.n_rows(), index.find("id 5").unwrap()),
        (1100, Some(1100))
    );
    index.save(&path).unwrap();
    assert_eq!(
        Index::open(&path).unwrap().find("id 6").unwrap(),
        Some(1101)
    );
    let twice = ["a", "a"].map(str::to_owned);
    let new = NewRows {
        ids: Some(&twice),
        ..NewRows::new(&more)
    };
    let error = index.add(&new).unwrap_err().to_string();
    assert!(
        error.contains("rows 0 and 1 have the same id `a`"),
        "{error}"
    );
    let error = index.add(&NewRows::new(&more)).unwrap_err().to_string();
    assert!(error.contains("have ids, but none are given"), "{error}");
    let error = index.remove(&[9, 5]).unwrap_err().to_string();
    assert_eq!(error, "row 5 is not in the index");
    assert!(index.entry(9).is_ok(), "nothing was removed");
}

#[test]
fn an_index_without_rows_can_be_saved() {
    let folder = folder();
    let path = folder.path().join("empty.index");
    let rows = signed(4, 1);
    let model = model(&rows, 0.5, Preprocess::None, rule(Normalization::Dot));
    let mut index = Index::new(model, None);
    index.save(&path).unwrap();
    let mut index = Index::open(&path).unwrap();
    assert!(index.search(&rows, 3).unwrap().iter().all(Vec::is_empty));
    index.add(&NewRows::new(&rows)).unwrap();
    index.remove(&[0, 1, 2, 3]).unwrap();
    index.save(&path).unwrap();
    index.add(&NewRows::new(&rows)).unwrap();
    index.save(&path).unwrap();
    assert_eq!(Index::open(&path).unwrap().rows().unwrap(), [4, 5, 6, 7]);
}

#[test]
fn what_is_no_file_cannot_be_an_index() {
    let rows = signed(4, 1);
    let model = model(&rows, 0.5, Preprocess::None, rule(Normalization::Dot));
    assert!(Index::new(model, None).save("/dev/null").is_err());
    assert!(matches!(
        Index::open(Path::new("/no/such.index")),
        Err(Error::Read { .. })
    ));
}
