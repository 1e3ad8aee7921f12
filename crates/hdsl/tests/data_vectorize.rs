//! Texts into rows, held against scikit-learn.

use hdsl::data::{
    Frequency, Stem, StopWords, VectorizeOptions, Vectorizer, Weighting, read_names, read_texts,
};

const DOCUMENTS: [&str; 3] = [
    "The cat sat on the mat, the Cat!",
    "A dog_1 and a cat; naïve Élan",
    "dog dog bird x yy",
];

fn fit(weighting: Weighting) -> Vectorizer {
    let options = VectorizeOptions {
        weighting,
        ..VectorizeOptions::default()
    };
    Vectorizer::fit(&DOCUMENTS, options).unwrap()
}

#[test]
fn tfidf_works_like_scikit_learn() {
    // TfidfVectorizer().fit_transform(DOCUMENTS), scikit-learn 1.9
    let vectorizer = fit(Weighting::TfIdf);
    assert_eq!(
        vectorizer.terms(),
        [
            "and", "bird", "cat", "dog", "dog_1", "mat", "naïve", "on", "sat", "the", "yy", "élan"
        ]
    );
    let rows = vectorizer.transform(&DOCUMENTS);
    let (a, b, c) = (0.2643173033298467, 0.4673509818107163, 0.4082482904638631);
    for (row, indices, values) in [
        (
            0,
            &[2, 5, 7, 8, 9][..],
            &[0.40204024416126977, a, a, a, 0.7929519099895401][..],
        ),
        (1, &[0, 2, 4, 6, 11], &[b, 0.35543246785041743, b, b, b]),
        (2, &[1, 3, 10], &[c, 0.8164965809277261, c]),
    ] {
        assert_eq!(rows.row(row).indices(), indices);
        for (ours, theirs) in rows.row(row).values().iter().zip(values) {
            assert!((ours - theirs).abs() < 1e-15, "{ours} {theirs}");
        }
    }
}

#[test]
fn document_frequency_bounds_work_like_scikit_learn() {
    let options = VectorizeOptions {
        min_df: Frequency::Count(2),
        max_df: Frequency::Fraction(0.67),
        ..VectorizeOptions::default()
    };
    let vectorizer = Vectorizer::fit(&DOCUMENTS, options.clone()).unwrap();
    assert_eq!(vectorizer.terms(), ["cat"]);
    let none = VectorizeOptions {
        min_df: Frequency::Count(3),
        ..options.clone()
    };
    let error = Vectorizer::fit(&DOCUMENTS, none).unwrap_err().to_string();
    assert!(
        error.contains("none of the 12 words of 3 documents"),
        "{error}"
    );
    let wrong = VectorizeOptions {
        max_df: Frequency::Fraction(f64::NAN),
        ..options
    };
    assert!(Vectorizer::fit(&DOCUMENTS, wrong).is_err());
}

#[test]
fn a_written_vocabulary_does_the_same_later() {
    for weighting in [Weighting::Counts, Weighting::Binary, Weighting::TfIdf] {
        let vectorizer = fit(weighting);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        vectorizer.write(&mut file).unwrap();
        let again = Vectorizer::read(file.path()).unwrap();
        assert_eq!(again, vectorizer);
        assert_eq!(read_names(file.path()).unwrap(), vectorizer.terms());
        let later = ["cat dog unicorn cat", "", "nothing known"];
        let rows = again.transform(&later);
        assert_eq!(rows, vectorizer.transform(&later));
        assert_eq!(
            (rows.row(0).nnz(), rows.row(1).nnz(), rows.row(2).nnz()),
            (2, 0, 0)
        );
    }
}

#[test]
fn stems_and_stop_words_are_part_of_a_vocabulary() {
    let list = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&list, "flowing of\nthe\n").unwrap();
    for (stem, stop_words, terms) in [
        (
            Stem::English,
            StopWords::None,
            &["flow", "of", "the", "wing"][..],
        ),
        (Stem::English, StopWords::English, &["flow", "wing"]),
        (
            Stem::None,
            StopWords::read(list.path()).unwrap(),
            &["flows", "wing", "wings"],
        ),
    ] {
        let options = VectorizeOptions {
            stem,
            stop_words,
            ..VectorizeOptions::default()
        };
        let texts = ["The flows of wings", "wing of the flowing"];
        let vectorizer = Vectorizer::fit(&texts, options).unwrap();
        assert_eq!(vectorizer.terms(), terms);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        vectorizer.write(&mut file).unwrap();
        let again = Vectorizer::read(file.path()).unwrap();
        assert_eq!(again, vectorizer);
        let later = ["FLOWS, flowing, flowed of the winged"];
        assert_eq!(again.transform(&later), vectorizer.transform(&later));
        // `flowing` is a stop word of the list, and otherwise has the stem of `flows`.
        let n = if stem == Stem::English { 3.0 } else { 1.0 };
        assert_eq!(again.transform(&later).row(0).get(0), n);
    }
    assert!(StopWords::read("no such file".as_ref()).is_err());
}

#[test]
fn documents_of_a_test_collection_are_texts_with_ids_as_labels() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, ".I 7\n.T\nthin wings\n.W\nthin wings\nin flow\n").unwrap();
    let of = |label: &str, text: &str| vec![(label.to_owned(), text.to_owned())];
    assert_eq!(
        read_texts(file.path()).unwrap(),
        of("7", "thin wings in flow")
    );
    std::fs::write(
        &file,
        "{\"_id\": 4, \"title\": \"Heat\", \"text\": \"in flow\"}\n",
    )
    .unwrap();
    assert_eq!(read_texts(file.path()).unwrap(), of("4", "Heat in flow"));
}

#[test]
fn a_plain_list_is_a_vocabulary_without_frequencies() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "dog\ncat\n").unwrap();
    let vectorizer = Vectorizer::read(file.path()).unwrap();
    assert_eq!(vectorizer.terms(), ["dog", "cat"]);
    assert_eq!(vectorizer.transform(&["cat Cat"]).row(0).get(1), 2.0);
    let binary = vectorizer
        .clone()
        .with_weighting(Weighting::Binary)
        .unwrap();
    assert_eq!(binary.transform(&["cat Cat"]).row(0).get(1), 1.0);
    assert!(vectorizer.with_weighting(Weighting::TfIdf).is_err());
    std::fs::write(&file, "first feature\r\n\n#3\n").unwrap();
    let names = read_names(file.path()).unwrap();
    assert_eq!(names, ["first feature", "", "#3"]);
}
