//! Texts into rows, held against scikit-learn.

use hdsl::data::{Frequency, VectorizeOptions, Vectorizer, Vocabulary, Weighting, parse_names};

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
        vectorizer.vocabulary().terms(),
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
    let vectorizer = Vectorizer::fit(&DOCUMENTS, options).unwrap();
    assert_eq!(vectorizer.vocabulary().terms(), ["cat"]);
    let none = VectorizeOptions {
        min_df: Frequency::Count(3),
        ..options
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
        let mut file = Vec::new();
        vectorizer.vocabulary().write(&mut file).unwrap();
        let again = Vocabulary::parse("v".as_ref(), &file).unwrap();
        assert_eq!(&again, vectorizer.vocabulary());
        assert_eq!(
            parse_names("v".as_ref(), &file).unwrap(),
            vectorizer.vocabulary().terms()
        );
        let later = ["cat dog unicorn cat", "", "nothing known"];
        let rows = Vectorizer::new(again).unwrap().transform(&later);
        assert_eq!(rows, vectorizer.transform(&later));
        assert_eq!(
            (rows.row(0).nnz(), rows.row(1).nnz(), rows.row(2).nnz()),
            (2, 0, 0)
        );
    }
}

#[test]
fn a_plain_list_is_a_vocabulary_without_frequencies() {
    let plain = Vocabulary::parse("v".as_ref(), b"dog\ncat\n").unwrap();
    assert_eq!(plain.terms(), ["dog", "cat"]);
    let vectorizer = Vectorizer::new(plain).unwrap();
    assert_eq!(vectorizer.transform(&["cat Cat"]).row(0).get(1), 2.0);
    let binary = vectorizer
        .clone()
        .with_weighting(Weighting::Binary)
        .unwrap();
    assert_eq!(binary.transform(&["cat Cat"]).row(0).get(1), 1.0);
    assert!(vectorizer.with_weighting(Weighting::TfIdf).is_err());
    let names = parse_names("v".as_ref(), b"first feature\r\n\n#3\n").unwrap();
    assert_eq!(names, ["first feature", "", "#3"]);
}
