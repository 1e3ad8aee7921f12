use crate::strategies::*;
use hdsl::atoms::Path;
use hdsl::atoms::Step;
use hdsl::data::{Preprocess, Preprocessor};
use hdsl::model::TracePoint;
use hdsl::{Atom, Error, Model, ModelParts, Rows, SparseRow, StepRule};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::ops::Range;

/// A model with something in every part of the file.
fn example() -> Model {
    let atom = |i, j| Atom::plus(i, j).unwrap();
    let minus = Atom::minus(7, 70_000).unwrap();
    let steps = vec![
        Step::Forward {
            atom: minus,
            gamma: 0.375,
        },
        Step::Away {
            atom: atom(1, 2),
            gamma: 0.0625,
        },
        Step::Pairwise {
            to: atom(2, 7),
            from: minus,
            gamma: 0.125,
        },
        Step::Swap {
            to: atom(1, 300),
            from: atom(1, 2),
        },
        Step::Drop { atom: atom(3, 4) },
    ];
    let start = vec![(atom(1, 2), 0.75), (atom(3, 4), 0.25)];
    let train = Rows::from_parts(
        70_001,
        vec![0, 4, 6],
        vec![1, 2, 7, 9, 3, 70_000],
        vec![999.0, 2.5, -4.0, 1.0, 1e-3, 1e20],
    )
    .unwrap();
    let mut parts = ModelParts::new(70_001, 100.0, Path::new(start, steps).unwrap());
    parts.config.steps = StepRule::Away;
    parts.preprocess = Preprocessor::fit(Preprocess::Max, &train);
    parts.names = vec![
        (2, "tea".into()),
        (9, "unused".into()),
        (300, "µ-metal".into()),
    ];
    parts.chosen = 4;
    parts.trace = (0..6u32)
        .map(|n| TracePoint {
            objective: 0.5 / f64::from(n + 1),
            gap: 0.1 / f64::from(n + 1),
        })
        .collect();
    parts.gap_certified = Some(0.0125);
    parts.evaluations = vec![(0, 0.25), (4, 0.125)];
    parts.config.seed = 1;
    parts.stop = Some(hdsl::Stop::MaxIter);
    parts.classes = Some(vec!["-1".into(), "1".into()]);
    Model::new(parts).unwrap()
}

fn refusal(bytes: &[u8]) -> String {
    match Model::from_bytes("m.hdsl", bytes) {
        Err(Error::File { path, reason }) => {
            assert_eq!(path.to_str(), Some("m.hdsl"));
            reason
        }
        Err(other) => panic!("another kind of error: {other:?}"),
        Ok(_) => panic!("a bad file was accepted"),
    }
}

/// A file taken apart: its header and its data.
fn taken_apart(bytes: &[u8]) -> (Value, Vec<u8>) {
    let (length, rest) = bytes.split_first_chunk().unwrap();
    let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    (serde_json::from_slice(header).unwrap(), data.to_vec())
}

fn put_together(header: &Value, data: &[u8]) -> Vec<u8> {
    let header = serde_json::to_vec(header).unwrap();
    [&(header.len() as u64).to_le_bytes(), &header[..], data].concat()
}

/// Where the data of an array are.
fn place(header: &Value, name: &str) -> Range<usize> {
    let offset = |n: usize| header[name]["data_offsets"][n].as_u64().unwrap() as usize;
    offset(0)..offset(1)
}

/// The file with a correct checksum, as `docs/format.md` defines it: a hostile writer can compute it, too.
fn sealed(header: &Value, mut data: Vec<u8>) -> Vec<u8> {
    let metadata = header["__metadata__"]["hdsl"].as_str().unwrap();
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(metadata.as_bytes());
    let mut names: Vec<&String> = header.as_object().unwrap().keys().collect();
    names.sort();
    for name in names {
        if !["__metadata__", "crc32"].contains(&name.as_str()) {
            hasher.update(name.as_bytes());
            hasher.update(&data[place(header, name)]);
        }
    }
    data[place(header, "crc32")].copy_from_slice(&hasher.finalize().to_le_bytes());
    put_together(header, &data)
}

/// The refusal of the example after a change of its arrays and a correct checksum.
fn refusal_after(change: impl FnOnce(&mut Value, &mut Vec<u8>)) -> String {
    let (mut header, mut data) = taken_apart(&example().to_bytes());
    change(&mut header, &mut data);
    refusal(&sealed(&header, data))
}

/// The same with one number of an array replaced by these bytes.
fn refusal_with(name: &str, at: usize, bytes: &[u8]) -> String {
    refusal_after(|header, data| {
        let from = place(header, name).start + at * bytes.len();
        data[from..from + bytes.len()].copy_from_slice(bytes);
    })
}

/// The same with one entry of the metadata replaced.
fn refusal_with_entry(key: &str, value: Value) -> String {
    refusal_after(|header, _| {
        let text = header["__metadata__"]["hdsl"].as_str().unwrap();
        let mut metadata: Value = serde_json::from_str(text).unwrap();
        metadata[key] = value;
        header["__metadata__"]["hdsl"] = metadata.to_string().into();
    })
}

proptest! {
    #[test]
    fn what_is_saved_is_what_is_loaded(parts in parts(), raw in rows(2)) {
        let model = Model::new(parts).unwrap();
        let bytes = model.to_bytes();
        let loaded = Model::from_bytes("m", &bytes).unwrap();
        prop_assert_eq!(&loaded, &model);
        prop_assert_eq!(loaded.to_bytes(), bytes);
        let (a, b) = (raw.row(0), raw.row(1));
        prop_assert_eq!(loaded.score(a, b).to_bits(), model.score(a, b).to_bits());
        let json: serde_json::Value = serde_json::from_str(&model.to_json()).unwrap();
        prop_assert_eq!(json["atoms"].as_array().unwrap().len(), model.similarity().atoms().len());
        prop_assert_eq!(json["path"]["steps"].as_array().unwrap().len(), model.path().len());
    }

    /// Forgetting what is not on the path must not change any score of any iterate.
    #[test]
    fn saved_preprocess_is_enough(parts in parts(), raw in rows(2)) {
        let full = parts.preprocess.clone();
        let model = Model::new(parts).unwrap();
        let scaled = full.apply(&raw);
        let want = model.similarity().score(scaled.row(0), scaled.row(1));
        prop_assert_eq!(model.score(raw.row(0), raw.row(1)), want);
        prop_assert_eq!(model.transform_rows(&raw), model.similarity().transform_rows(&scaled));
    }

    #[test]
    fn any_bytes_are_safe_to_try(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        refusal(&bytes);
        let mut framed = (bytes.len() as u64).to_le_bytes().to_vec();
        framed.extend_from_slice(&bytes);
        refusal(&framed);
    }

    /// A file that was tampered with either is refused or holds a model like any other.
    #[test]
    fn tampering_with_a_good_checksum_is_safe(
        parts in parts(), edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let (header, mut data) = taken_apart(&Model::new(parts).unwrap().to_bytes());
        for (at, byte) in edits {
            let at = at.index(data.len());
            data[at] = byte;
        }
        let bytes = sealed(&header, data);
        if let Ok(model) = Model::from_bytes("m", &bytes) {
            prop_assert_eq!(taken_apart(&model.to_bytes()), taken_apart(&bytes));
        }
    }
}

#[test]
fn every_flipped_byte_and_every_cut_is_refused() {
    let bytes = example().to_bytes();
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            refusal(&damaged);
        }
        refusal(&bytes[..at]);
    }
}

#[test]
fn refusals_say_what_is_wrong() {
    let bytes = example().to_bytes();
    let says = |reason: String, part: &str| assert!(reason.contains(part), "{reason}");
    says(refusal(b""), "not an hdsl model");
    says(refusal(b"1 3:4 7:1\n"), "not an hdsl model");
    says(
        refusal(b"HDSLM\x01\0"),
        "format version 1, which is no longer read",
    );
    says(refusal(&bytes[..bytes.len() - 9]), "truncated");
    says(refusal(&bytes[..100]), "truncated");
    says(refusal(&[&bytes[..], &[0]].concat()), "damaged");
    let mut flipped = bytes.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 4;
    says(refusal(&flipped), "checksum mismatch");
    assert_eq!(
        refusal_with_entry("format_version", 3.into()),
        "a model of format version 3, but this version of hdsl reads 2"
    );
    says(
        refusal_with_entry("surprise", 3.into()),
        "unknown field `surprise`",
    );
    says(refusal_with_entry("n_features", (-1).into()), "invalid");
    says(refusal_with_entry("n_features", 7.into()), "7 features");
    says(
        refusal_with_entry("chosen", 6.into()),
        "the path has 5 steps",
    );
    says(refusal_with_entry("preprocess", "log".into()), "log");
    says(refusal_with_entry("base", (-2.5).into()), "`base` is -2.5");
    says(
        refusal_with_entry("preprocess", "tfidf".into()),
        "needs term statistics",
    );
    let terms = json!({ "n_rows": 2, "is_counts": true, "mean_length": 3.0 });
    says(
        refusal_with_entry("term_statistics", terms),
        "`frequency_features` is missing",
    );
    let (mut header, data) = taken_apart(&bytes);
    header.as_object_mut().unwrap().remove("__metadata__");
    says(
        refusal(&put_together(&header, &data)),
        "no `hdsl` in its metadata",
    );
    assert!(matches!(
        Model::read("no/such/file.hdsl"),
        Err(Error::Read { .. })
    ));
}

#[test]
fn hostile_arrays_are_refused() {
    let says = |reason: String, part: &str| assert!(reason.contains(part), "{reason}");
    let weight = |value: f64| refusal_with("start_weights", 0, &value.to_le_bytes());
    says(weight(f64::NAN), "weight NaN");
    says(weight(-0.5), "weight -0.5");
    says(weight(0.5), "sum to 0.75");
    let number = |name: &str, at: usize, value: u32| refusal_with(name, at, &value.to_le_bytes());
    says(number("atoms", 1, u32::MAX), "feature 4294967295");
    says(number("atoms", 0, 2), "feature 2 with itself");
    says(number("atoms", 0, 99), "not those that hdsl writes"); // the higher feature first
    says(number("atoms", 2, 7), "not those that hdsl writes"); // neither plus nor minus
    says(number("steps", 0, 5), "unknown kind 5");
    says(number("steps", 1, 99), "atom 99");
    says(number("maxima_features", 0, 70_001), "70001");
    says(number("evaluation_iterations", 1, 6), "iteration 6");
    says(refusal_with("gammas", 0, &f64::NAN.to_le_bytes()), "step 1");
    says(
        refusal_with("gammas", 3, &0.5f64.to_le_bytes()),
        "not those",
    ); // a swap has no γ
    says(refusal_with("maxima", 0, &0f64.to_le_bytes()), "maximum");
    says(refusal_with("classes", 0, b"{"), "`classes` is not valid");
}

/// Shapes and offsets of the header promise data that are not there.
#[test]
fn hostile_headers_are_refused() {
    let says = |reason: String, part: &str| assert!(reason.contains(part), "{reason}");
    let bytes = example().to_bytes();
    let changed = |change: &dyn Fn(&mut Value)| {
        let (mut header, data) = taken_apart(&bytes);
        change(&mut header);
        refusal(&put_together(&header, &data))
    };
    let huge = u64::MAX / 2;
    says(
        changed(&|h| h["atoms"]["shape"] = json!([huge, 3])),
        "safetensors header",
    );
    says(
        changed(&|h| h["trace"]["shape"] = json!([0, huge])),
        "safetensors header",
    );
    says(changed(&|h| h["trace"]["shape"] = json!([12])), "`trace`");
    says(
        changed(&|h| h["gammas"]["dtype"] = json!("I64")),
        "`gammas` has type I64",
    );
    // Eight arrays of the largest size, whose end is near the largest offset.
    let largest = (1u64 << 61) - 1;
    let array = |n: u64| {
        let offsets = [n * largest, (n + 1) * largest];
        let info = json!({ "dtype": "U8", "shape": [largest], "data_offsets": offsets });
        (n.to_string(), info)
    };
    let header = Value::Object((0..8).map(array).collect());
    says(refusal(&put_together(&header, &[])), "damaged");
    let mut long = u64::MAX.to_le_bytes().to_vec();
    long.extend_from_slice(b"{}");
    says(refusal(&long), "the header exceeds the file");
    // Names are not lists of anything.
    let (mut header, mut data) = taken_apart(&bytes);
    let end = data.len();
    data.extend_from_slice(&[0; 4]);
    header["extra"] = json!({ "dtype": "U8", "shape": [4], "data_offsets": [end, end + 4] });
    says(
        refusal(&sealed(&header, data)),
        "not those that hdsl writes",
    );
}

/// Files of the current version must load as long as it is the current one. `HDSL_BLESS=1` writes it anew.
#[test]
fn version_2_still_loads_to_the_same_values() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/model-v2.hdsl");
    if std::env::var_os("HDSL_BLESS").is_some() {
        std::fs::write(path, example().to_bytes()).unwrap();
    }
    let model = Model::read(path).unwrap();
    assert_eq!(model, example());
    assert_eq!(model.to_bytes(), std::fs::read(path).unwrap());
    assert_eq!(model.name(2), "tea");
    assert_eq!(model.name(1), "f2");
    assert_eq!(model.name(9), "f10"); // its name was not worth keeping
    assert_eq!(model.parts().config.seed, 1);
    let (a, b) = (
        SparseRow::new(&[1, 7], &[999.0, 2.0]),
        SparseRow::new(&[2, 7, 300], &[5.0, 8.0, 1.0]),
    );
    // Feature 300 has no maximum; 5 / 2.5 and 8 / 4 are cut to 1.
    let want = 100.0
        * (model.similarity().weight_of(7, 70_000) * 0.5
            + model.similarity().weight_of(2, 7) * 0.5 * 2.0);
    assert!((model.score(a, b) - want).abs() < 1e-12 * want.abs());
}

trait WeightOf {
    fn weight_of(&self, i: u32, j: u32) -> f64;
}

impl WeightOf for hdsl::BilinearModel {
    fn weight_of(&self, i: u32, j: u32) -> f64 {
        let mut pairs = self.atoms().iter().zip(self.weights());
        pairs
            .find(|(a, _)| (a.i(), a.j()) == (i, j))
            .map_or(0.0, |(_, w)| *w)
    }
}

#[test]
fn budgets_choose_earlier_iterates() {
    let model = example();
    let counts = model.path().counts();
    assert_eq!(counts, [(2, 4), (3, 6), (3, 6), (4, 6), (4, 7), (3, 5)]);
    assert_eq!(model.with_max_features(5).unwrap().chosen(), 0); // iterate 5 comes after the one in use
    assert_eq!(model.with_max_features(6).unwrap().chosen(), 3);
    assert_eq!(model.with_max_atoms(3).unwrap().chosen(), 2);
    assert_eq!(
        model.at(5).unwrap().with_max_features(5).unwrap().chosen(),
        5
    );
    let message = model.with_max_features(3).unwrap_err().to_string();
    assert_eq!(
        message,
        "at most 3 features are asked for, but no iterate uses fewer than 4"
    );
    assert!(model.at(6).is_err());
    let again = Model::from_bytes("m", &model.at(2).unwrap().to_bytes()).unwrap();
    assert_eq!(again.similarity(), model.at(2).unwrap().similarity());
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let good = example().parts().clone();
    let refused = |change: &dyn Fn(&mut ModelParts)| {
        let mut parts = good.clone();
        change(&mut parts);
        assert!(matches!(
            Model::new(parts),
            Err(Error::Data(_) | Error::Param { .. })
        ));
    };
    refused(&|p| p.scale = f64::INFINITY);
    refused(&|p| p.base = -1.0);
    refused(&|p| p.base = f64::NAN);
    refused(&|p| p.n_features = 70_000);
    refused(&|p| p.chosen = 6);
    refused(&|p| p.names.reverse());
    refused(&|p| p.trace.truncate(2));
    refused(&|p| p.evaluations.push((6, 0.5)));
    refused(&|p| p.evaluations[0].1 = f64::NAN);
    refused(&|p| p.gap_certified = Some(f64::NAN));
    refused(&|p| p.config.max_iter = 0);
}

/// A model as large as one of dexter. Arrays that any tool can read take more than the packed format before, which
/// stayed under 60 KiB: `docs/decisions.md` has the trade.
#[test]
fn a_thousand_steps_stay_small() {
    for (kind, limit) in [(Preprocess::Max, 104), (Preprocess::MaxUnit, 176)] {
        let bytes = large(kind).to_bytes();
        assert!(bytes.len() < limit * 1024, "{kind}: {} bytes", bytes.len());
        assert_eq!(Model::from_bytes("m", &bytes).unwrap().to_bytes(), bytes);
    }
}

/// 7,751 of 20,000 features seen, whole values up to 999, 1,000 steps, every feature named.
fn large(kind: Preprocess) -> Model {
    let mut state = 1u64;
    let mut random = move |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let seen: Vec<u32> = (0..7_751).map(|n| n * 20_000 / 7_751).collect();
    let values = seen.iter().map(|_| (1 + random(999)) as f64).collect();
    let train = Rows::from_parts(20_000, vec![0, seen.len()], seen.clone(), values).unwrap();
    let mut pick = || {
        // A few features come up again and again, as in real runs.
        let (a, b) = (random(7_751) * random(7_751) / 7_751, random(7_751));
        seen[(if random(2) == 0 { a } else { b }) as usize]
    };
    let mut atoms = Vec::new();
    while atoms.len() < 1_001 {
        if let Ok(atom) = Atom::plus(pick(), pick()) {
            atoms.push(atom);
        }
    }
    let start = vec![(atoms[0], 1.0)];
    let steps: Vec<Step> = (1..=1_000)
        .map(|n| Step::Forward {
            atom: atoms[n],
            gamma: 1.7 / (n as f64 + 3.0),
        })
        .collect();
    let mut parts = ModelParts::new(20_000, 100.0, Path::new(start, steps).unwrap());
    parts.preprocess = Preprocessor::fit(kind, &train);
    parts.names = seen.iter().map(|&f| (f, format!("word{f}"))).collect();
    parts.trace = (0..=1_000)
        .map(|n| TracePoint {
            objective: 0.5 / f64::from(n + 3).sqrt(),
            gap: 3.0 / f64::from(n + 7),
        })
        .collect();
    parts.evaluations = (0..=1_000).step_by(10).map(|n| (n, 0.1)).collect();
    Model::new(parts).unwrap()
}
