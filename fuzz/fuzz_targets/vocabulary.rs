//! Vocabularies, lists of names, and texts to apply them to.
#![no_main]

use hdsl::data::{VectorizeOptions, Vectorizer, Vocabulary, Weighting, parse_names, parse_texts};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let name = "fuzz".as_ref();
    let _ = parse_names(name, bytes);
    if let Ok(vocabulary) = Vocabulary::parse(name, bytes)
        && let Ok(vectorizer) = Vectorizer::new(vocabulary)
    {
        vectorizer.transform(&[String::from_utf8_lossy(bytes)]);
    }
    if let Ok(texts) = parse_texts(name, bytes) {
        let documents: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
        let options = VectorizeOptions {
            weighting: Weighting::TfIdf,
            ..VectorizeOptions::default()
        };
        if let Ok(vectorizer) = Vectorizer::fit(&documents, options) {
            let mut file = Vec::new();
            let vocabulary = vectorizer.vocabulary();
            vocabulary
                .write(&mut file)
                .expect("memory takes everything");
            let again = Vocabulary::parse("again".as_ref(), &file).expect("what we write, we read");
            assert_eq!(&again, vocabulary);
            vectorizer.transform(&documents);
        }
    }
});
