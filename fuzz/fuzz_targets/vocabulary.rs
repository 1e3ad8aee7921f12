//! Vocabularies, lists of names, and texts to apply them to.
#![no_main]

use hdsl::data::{VectorizeOptions, Vectorizer, Weighting, read_names, read_texts};
use hdsl_fuzz::looks_compressed;
use libfuzzer_sys::fuzz_target;
use std::fs;

fuzz_target!(|bytes: &[u8]| {
    if looks_compressed(bytes) {
        return;
    }
    let path = std::env::temp_dir().join(format!("hdsl-fuzz-{}", std::process::id()));
    fs::write(&path, bytes).expect("the folder for temporary files is writable");
    let _ = read_names(&path);
    if let Ok(vectorizer) = Vectorizer::read(&path) {
        vectorizer.transform(&[String::from_utf8_lossy(bytes)]);
    }
    if let Ok(texts) = read_texts(&path) {
        let documents: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
        let options = VectorizeOptions {
            weighting: Weighting::TfIdf,
            ..VectorizeOptions::default()
        };
        if let Ok(vectorizer) = Vectorizer::fit(&documents, options) {
            let mut file = Vec::new();
            vectorizer
                .write(&mut file)
                .expect("memory takes everything");
            fs::write(&path, &file).expect("the folder for temporary files is writable");
            let again = Vectorizer::read(&path).expect("what we write, we read");
            assert_eq!(again, vectorizer);
            vectorizer.transform(&documents);
        }
    }
    let _ = fs::remove_file(&path);
});
