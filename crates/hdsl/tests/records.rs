//! Records of every format: the same rows, roles of columns, and errors that name the place.

use hdsl::atoms::Path as Steps;
use hdsl::data::{
    Analyzer, ColumnRoles, Frequency, RecordVectorizer, Role, StopWords, TableColumn, TableFormat,
    Vectorizer, write_table,
};
use hdsl::{Atom, Dataset, Error, Format, Model, ModelParts, ReadOptions, parse_dataset};
use proptest::prelude::*;
use std::sync::Arc;

const CSV: &str = "\
id,stars,body,tags,price,genre
r1,5,\"Good, \"\"very\"\" good food — here\",a|b,1.5,thai
r2,1,\"bad food
and slow service today\",b|c,,thai
r3,5,good food and good service,,-3,pizza
r4,1,slow and bad and soggy food,c,0,pizza
";

const JSON: &str = r#"
{"id": "r1", "stars": 5, "body": "Good, \"very\" good food — here", "tags": ["a", "b"], "price": 1.5, "genre": "thai"}

{"id": "r2", "stars": 1, "body": "bad food\nand slow service today", "tags": ["b", "c"], "price": null, "genre": "thai"}
{"id": "r3", "stars": 5, "body": "good food and good service", "tags": [], "price": -3, "genre": "pizza"}
{"id": "r4", "stars": 1, "body": "slow and bad and soggy food", "tags": ["c"], "price": 0.0, "genre": "pizza"}
"#;

fn parse(name: &str, bytes: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Dataset, Error> {
    parse_dataset(name.as_ref(), bytes.as_ref(), options)
}

fn read(name: &str, bytes: impl AsRef<[u8]>) -> Dataset {
    parse(name, bytes, &ReadOptions::default()).unwrap()
}

fn with_roles(change: impl FnOnce(&mut ColumnRoles)) -> ReadOptions {
    let mut options = ReadOptions::default();
    change(&mut options.records.roles);
    options
}

fn roles(data: &Dataset) -> Vec<Role> {
    let records = data.records.as_ref().unwrap();
    records.columns.iter().map(|column| column.role).collect()
}

fn vectorizer(data: &Dataset) -> Arc<RecordVectorizer> {
    data.records.as_ref().unwrap().vectorizer.clone()
}

/// The same four records in every format.
fn formats() -> Vec<(&'static str, Vec<u8>)> {
    let mut all = vec![
        ("r.csv", CSV.as_bytes().to_vec()),
        (
            "r.csv",
            CSV.replace('\n', "\r\n")
                .replace("food\r\nand", "food\nand")
                .into_bytes(),
        ),
        (
            "r",
            CSV.replace(',', ";").replace("Good;", "Good,").into_bytes(),
        ),
        ("r.jsonl", JSON.as_bytes().to_vec()),
        ("r", JSON.as_bytes().to_vec()),
    ];
    if cfg!(feature = "columnar") {
        // Written by pyarrow, see testdata/README.md.
        all.push((
            "r",
            include_bytes!("../../../testdata/records.parquet").to_vec(),
        ));
        all.push((
            "r",
            include_bytes!("../../../testdata/records_zstd.parquet").to_vec(),
        ));
        all.push((
            "r",
            include_bytes!("../../../testdata/records.feather").to_vec(),
        ));
        all.push((
            "r",
            include_bytes!("../../../testdata/records.arrows").to_vec(),
        ));
    }
    all
}

#[test]
fn all_formats_give_the_same_rows() {
    let expected = read("r.csv", CSV);
    assert_eq!(
        roles(&expected),
        [
            Role::Id,
            Role::Label,
            Role::Text,
            Role::List,
            Role::Numeric,
            Role::Categorical
        ]
    );
    let names = vectorizer(&expected).feature_names();
    assert_eq!(
        names.join(" "),
        "body:and body:bad body:food body:good body:here body:service body:slow body:soggy body:today body:very \
         tags=a tags=b tags=c price genre=pizza genre=thai"
    );
    let row = expected.rows.row(0);
    let entry = |name: &str| row.get(names.iter().position(|n| n == name).unwrap() as u32);
    assert_eq!(
        ["body:good", "tags=b", "price", "genre=thai"].map(entry),
        [2.0, 1.0, 1.5, 1.0]
    );
    assert_eq!(row.nnz(), 8);
    let ids = expected.records.as_ref().unwrap().ids.as_ref().unwrap();
    assert_eq!(ids, &["r1", "r2", "r3", "r4"]);
    assert_eq!(expected.labels.as_ref().unwrap().names(), ["1", "5"]);
    for (number, (name, bytes)) in formats().into_iter().enumerate() {
        let data = read(name, &bytes);
        assert_eq!(vectorizer(&data).feature_names(), names, "{number}");
        assert_eq!(data.rows, expected.rows, "{number}");
        assert_eq!(data.labels, expected.labels, "{number}");
        assert_eq!(data.records.unwrap().ids.unwrap(), *ids, "{number}");
    }
}

#[test]
fn a_vectorizer_does_the_same_for_other_files_and_after_a_file_of_its_own() {
    let first = read("r.csv", CSV);
    let vectorizer = vectorizer(&first);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    vectorizer.write(&mut file).unwrap();
    assert_eq!(RecordVectorizer::read(file.path()).unwrap(), *vectorizer);
    assert_eq!(
        hdsl::data::read_names(file.path()).unwrap(),
        vectorizer.feature_names()
    );

    // Columns are found by name, in any order; the label is not needed, and unknown words are left out.
    let mut options = ReadOptions::default();
    options.records.vectorizer = Some(vectorizer.clone());
    options.records.keep_texts = true;
    let other =
        "genre,price,unused,tags,body\nthai,1.5,x,a|b,\"Good, good very unknown food here\"\n";
    let data = parse("new.csv", other, &options).unwrap();
    assert_eq!(data.rows.row(0), first.rows.row(0));
    assert_eq!((data.labels, data.rows.n_rows()), (None, 1));
    let texts = data.records.unwrap().texts.unwrap();
    assert_eq!(texts, ["Good, good very unknown food here"]);
    let error = parse("new.csv", "genre,price,tags\nthai,1,a\n", &options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "new.csv: has no column `body`; its columns are `genre`, `price`, `tags`"
    );
    let table = ["Good, very good food here", "a\u{1f}b\u{1f}", "1.5", "thai"];
    let table: Vec<Vec<String>> = table.iter().map(|cell| vec![(*cell).to_owned()]).collect();
    let rows = vectorizer.transform_table("X".as_ref(), &table).unwrap();
    assert_eq!(rows.row(0), first.rows.row(0));
}

#[test]
fn one_text_column_is_what_a_vectorizer_of_texts_gives() {
    let texts = [
        "the cat and the dog",
        "a dog",
        "the fox of the dogs",
        "a cat and a fox",
    ];
    let mut csv = "label,text\n".to_owned();
    texts
        .iter()
        .enumerate()
        .for_each(|(n, text)| csv += &format!("{},{text}\n", n % 2));
    let mut options = with_roles(|roles| {
        roles.label = Some("label".into());
        roles.text = vec!["text".into()];
    });
    options.records.text.min_df = Frequency::Count(2);
    options.records.text.stop_words = StopWords::English;
    for (analyzer, n_grams) in [
        (Analyzer::Word, "1"),
        (Analyzer::Word, "1-2"),
        (Analyzer::Char, "2-3"),
    ] {
        options.records.text.analyzer = analyzer;
        options.records.text.n_grams = n_grams.parse().unwrap();
        if analyzer != Analyzer::Word {
            options.records.text.stop_words = StopWords::None;
        }
        let (words, rows) =
            Vectorizer::fit_transform(&texts, options.records.text.clone()).unwrap();
        let data = parse("t.csv", &csv, &options).unwrap();
        assert_eq!(data.rows, rows);
        let names = words.terms().iter().map(|term| format!("text:{term}"));
        assert_eq!(vectorizer(&data).feature_names(), names.collect::<Vec<_>>());
    }
    // Plain text has no columns, and neither have its features.
    let plain = read("t.txt", texts.join("\n"));
    assert_eq!(vectorizer(&plain).feature_names()[0], "and");
    assert!(vectorizer(&plain).takes_texts());
    let labeled = read("t.txt", "__label__a the cat\n__label__b the dog\n");
    assert_eq!(labeled.labels.unwrap().names(), ["a", "b"]);
    // Also if one of them is given.
    let one_class = "__label__a cat\n__label__a dog\n";
    for given in [
        with_roles(|roles| roles.text = vec!["text".into()]),
        with_roles(|roles| roles.label = Some("label".into())),
    ] {
        let data = parse("t.txt", one_class, &given).unwrap();
        assert_eq!(roles(&data), [Role::Label, Role::Text]);
    }
    // Columns of plain text are what they are, however few the texts and the classes.
    for text in [
        "__label__a the cat\n",
        "ant\nbee\nant\nbee\n",
        "10\n20\n",
        "__label__1 10\n__label__2 20\n",
    ] {
        let first = read("t.txt", text);
        let last = if first.labels.is_some() {
            &[Role::Label, Role::Text][..]
        } else {
            &[Role::Text]
        };
        assert_eq!(roles(&first), last);
        assert_eq!(first.labels.is_some(), text.starts_with("__label__"));
        let mut options = ReadOptions::default();
        options.records.vectorizer = Some(vectorizer(&first));
        let again = parse("t.txt", text, &options).unwrap();
        assert_eq!((again.rows, again.labels), (first.rows, first.labels));
    }
}

#[test]
fn hashed_features_need_no_vocabulary() {
    let mut options = ReadOptions::default();
    options.records.text.hashing = Some(32);
    let data = parse("r.csv", CSV, &options).unwrap();
    assert_eq!(data.rows.n_features(), 32 + 32 + 1 + 2);
    let vectorizer = vectorizer(&data);
    assert_eq!(vectorizer.feature_name(5).unwrap(), "body:#5");
    options.records.vectorizer = Some(vectorizer);
    assert_eq!(parse("r.csv", CSV, &options).unwrap().rows, data.rows);
}

#[test]
fn what_is_not_given_is_guessed() {
    let guess = |name: &str, text: &str| roles(&read(name, text));
    use Role::{Categorical, Ignored, Label, List, Numeric, Text};
    // A numeric CSV without a header has a label at its end.
    let numbers = "5.1,3.5,0\n4.9,3.0,0\n6.2,2.9,1\n5.9,3.2,1\n";
    assert_eq!(guess("x", numbers), [Numeric, Numeric, Label]);
    assert_eq!(read("x.csv", numbers).rows.row(1).values(), [4.9, 3.0]);
    let pairs = "bug\tthe window freezes\nwish\tadd a theme\n";
    assert_eq!(guess("x.tsv", pairs), [Label, Text]);
    assert_eq!(guess("x.txt", pairs), [Label, Text]);
    let nested = "{\"a\": {\"b\": 1}, \"c\": [[1]], \"t\": \"one two three four\"}\n";
    assert_eq!(guess("x.jsonl", nested), [Ignored, Ignored, Text]);
    let given = with_roles(|roles| roles.categorical = vec!["2".into()]);
    let data = parse("x.csv", numbers, &given).unwrap();
    assert_eq!(roles(&data), [Ignored, Categorical, Label]);
    let given =
        with_roles(|roles| (roles.list, roles.separator) = (vec!["1".into()], Some(".".into())));
    assert_eq!(roles(&parse("x.csv", numbers, &given).unwrap())[0], List);
    // Missing numbers are left out.
    let missing = "a,b,y\n1,NA,p\n,2,q\n3,nan,p\n4,,q\n";
    assert_eq!(guess("x.csv", missing), [Numeric, Numeric, Label]);
    assert_eq!(read("x.csv", missing).rows.nnz(), 4);
}

#[test]
fn rows_without_labels_are_fine_until_labels_are_needed() {
    let data = read("r.csv", CSV.replace("r3,5", "r3,"));
    assert_eq!((data.rows.n_rows(), data.labels), (4, None));
    let reason = data.records.unwrap().unlabeled.unwrap();
    assert_eq!(reason, "the label (column `stars`) of line 5 is empty");
}

#[test]
fn bad_records_are_named_by_file_line_and_column() {
    let price = with_roles(|roles| roles.numeric = vec!["price".into()]);
    let none = ReadOptions::default();
    let big = format!("a,b\nx,{}\ny,z\n", "w ".repeat(9 << 20));
    let open = format!("a,b\nx,\"{}\ny,z\n", "w\n".repeat(9 << 20));
    let json = format!("{{\"t\": \"{}\"}}\n", "w ".repeat(9 << 20));
    let line = format!("short\n{}\n", "w ".repeat(9 << 20));
    let utf16: Vec<u8> = CSV.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let marked = [&b"\xff\xfe"[..], &utf16].concat();
    let latin = CSV
        .replace('—', "X")
        .replace("here", "caf\u{1}")
        .into_bytes();
    let latin: Vec<u8> = latin
        .iter()
        .map(|&b| if b == 1 { 0xe9 } else { b })
        .collect();
    let by_id = with_roles(|r| r.id = Some("id".into()));
    let by_class = with_roles(|r| r.label = Some("class".into()));
    let twice = with_roles(|r| (r.label, r.text) = (Some("body".into()), vec!["body".into()]));
    let header = with_header();
    let cases: Vec<(&str, Vec<u8>, &ReadOptions, &str)> = vec![
        (
            "r.csv",
            CSV.replace("-3", "cheap").into(),
            &price,
            "r.csv:5: column `price`: `cheap`, expected a finite number",
        ),
        (
            "r.csv",
            CSV.replace("-3", "inf").into(),
            &price,
            "r.csv:5: column `price`: `inf`, expected a finite number",
        ),
        (
            "r.jsonl",
            JSON.replace("-3", "\"cheap\"").into(),
            &price,
            "r.jsonl:5: column `price`: `cheap`",
        ),
        (
            "r.csv",
            CSV.replace(",c,0,", ",c,").into(),
            &none,
            "r.csv:6: has 5 fields, expected 6, as in the header",
        ),
        (
            "r.csv",
            CSV.replace("r4", "r1").into(),
            &none,
            "r.csv:6: column `id`: id `r1` is repeated, line 2 has it, too",
        ),
        (
            "r.csv",
            CSV.replace("r4", " ").into(),
            &by_id,
            "r.csv:6: column `id`: the id is empty",
        ),
        (
            "r.csv",
            CSV.replace("genre", "tags").into(),
            &none,
            "r.csv:1: two columns are called `tags`",
        ),
        (
            "r.csv",
            latin,
            &none,
            "r.csv:2: column `body`: `Good, \"very\" good food X caf\u{fffd}` is not UTF-8",
        ),
        ("r.csv", marked, &none, "r.csv: is UTF-16, expected UTF-8"),
        ("r.csv", utf16, &none, "r.csv: is UTF-16, expected UTF-8"),
        (
            "r.txt",
            b"fine\ncaf\xe9\n".to_vec(),
            &none,
            "r.txt:2: `caf\u{fffd}` is not UTF-8",
        ),
        (
            "r.csv",
            CSV.into(),
            &by_class,
            "r.csv: has no column `class`; its columns are `id`",
        ),
        (
            "r.csv",
            CSV.into(),
            &twice,
            "column `body` is given as label and as text",
        ),
        (
            "r.csv",
            big.into(),
            &none,
            "r.csv:2: column `b`: the cell is longer than 16 MB",
        ),
        (
            "r.csv",
            open.into(),
            &none,
            "r.csv:2: column `b`: the cell is longer than 16 MB; is a closing quote missing?",
        ),
        (
            "r.csv",
            b"a,b\nx,\"y\nz\n".to_vec(),
            &none,
            "r.csv:2: a quote is opened in this record and not closed",
        ),
        (
            "r.csv",
            b"a,b\nx,\"y z".to_vec(),
            &none,
            "r.csv:2: a quote is opened in this record and not closed",
        ),
        (
            "r.jsonl",
            json.into(),
            &none,
            "r.jsonl:1: column `t`: the text is longer than 16 MB",
        ),
        (
            "r.txt",
            line.into(),
            &none,
            "r.txt:2: the line is longer than 16 MB",
        ),
        (
            "r.csv",
            b"\n \n".to_vec(),
            &none,
            "r.csv: has no records, only blank lines",
        ),
        (
            "r.csv",
            b"a,b\n".to_vec(),
            &header,
            "r.csv: has no records, only a header",
        ),
        (
            "r.jsonl",
            b"[{\"a\": 1}]\n".to_vec(),
            &none,
            "r.jsonl:1: a JSON array, expected JSON lines",
        ),
        (
            "r.jsonl",
            b"{\"a\": \"b c d e\"}\n{\"a\": \n".to_vec(),
            &none,
            "r.jsonl:2: `{\"a\":` is not a JSON object",
        ),
        (
            "r.jsonl",
            b"{\"a\": \"b c d e\"}\n3\n".to_vec(),
            &none,
            "r.jsonl:2: `3` is not a JSON object",
        ),
        (
            "r.txt",
            b"__label__a b c\nno label\n".to_vec(),
            &none,
            "r.txt:2: `no` is not a label",
        ),
        (
            "x",
            b"only words here\nand no more\n".to_vec(),
            &none,
            "x: is of no known format: it starts with `only words here`",
        ),
    ];
    for (name, bytes, options, expected) in cases {
        let error = parse(name, &bytes, options)
            .expect_err(expected)
            .to_string();
        assert!(error.contains(expected), "{error}\nexpected {expected}");
    }
}

fn with_header() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.records.dialect.header = Some(true);
    options
}

#[cfg(feature = "columnar")]
#[test]
fn damaged_columnar_files_are_errors() {
    for (name, bytes) in formats()
        .into_iter()
        .filter(|(_, b)| b.starts_with(b"PAR1") || b.starts_with(b"ARROW1"))
    {
        for length in [
            8,
            bytes.len() / 4,
            bytes.len() / 2,
            bytes.len() - 9,
            bytes.len() - 1,
        ] {
            let error = parse(name, &bytes[..length], &ReadOptions::default()).unwrap_err();
            assert!(
                error.to_string().starts_with("r: truncated or corrupt "),
                "{error}"
            );
        }
    }
    let cell = with_roles(|roles| roles.numeric = vec!["body".into()]);
    let error = parse(
        "r",
        include_bytes!("../../../testdata/records.parquet"),
        &cell,
    )
    .unwrap_err();
    let start = "r: row 0, column `body`: `Good, \"very\" good food";
    assert!(error.to_string().starts_with(start), "{error}");
}

#[test]
fn a_file_that_is_not_what_it_seems_is_refused() {
    // Whole lines of numbers are no labels of empty rows.
    let svmlight = ReadOptions {
        format: Some(Format::Svmlight),
        ..ReadOptions::default()
    };
    let error = parse("x", "1,2,3\n4,5,6\n", &svmlight).unwrap_err();
    assert_eq!(
        error.to_string(),
        "x: has no `index:value` in any row, expected svmlight rows"
    );
    assert!(parse("x.parquet", CSV, &ReadOptions::default()).is_err());
    // Rows of numbered features are seen whatever the name is.
    assert!(read("x.csv", "a 1:2 3:4\nb 2:1\n").records.is_none());
    assert!(read("x.txt", "1 1:2 3:4\n-1\n1 2:1\n").records.is_none());
}

#[test]
fn a_model_carries_its_vectorizer_and_its_training_rows() {
    let data = read("r.csv", CSV);
    let vectorizer = vectorizer(&data);
    let path = Steps::new(vec![(Atom::plus(1, 3).unwrap(), 1.0)], vec![]).unwrap();
    let model = Model::new(ModelParts::new(data.rows.n_features(), 4.0, path)).unwrap();
    let plain = model.to_bytes();
    let model = model.with_vectorizer(vectorizer.clone()).unwrap();
    let ids = data.records.unwrap().ids;
    let model = model
        .with_training_rows(data.rows.view(), data.labels.clone(), ids)
        .unwrap();
    assert_eq!(
        (model.name(3), model.name(13)),
        ("body:good".into(), "price".into())
    );
    let again = Model::from_bytes("m", &model.to_bytes()).unwrap();
    assert_eq!(again, model);
    assert_eq!(again.at(0).unwrap().vectorizer(), Some(&vectorizer));
    let training = again.training_rows().unwrap();
    // Only the features of the path matter under this preprocessing.
    assert_eq!(training.rows.row(0).indices(), [3]);
    assert_eq!(
        (
            training.labels.clone(),
            training.ids.as_ref().unwrap().len()
        ),
        (data.labels, 4)
    );
    assert!(
        Model::from_bytes("m", &plain)
            .unwrap()
            .vectorizer()
            .is_none()
    );
    let other =
        RecordVectorizer::of_texts(Vectorizer::fit(&["one two"], Default::default()).unwrap());
    assert!(model.with_vectorizer(Arc::new(other)).is_err());
}

fn cell() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z ]{0,8}",
        "[a,\"\n\r;\t|é ]{0,6}",
        Just("NA".to_owned())
    ]
}

proptest! {
    /// What is written as CSV is read again, cell by cell, whatever the cells contain.
    #[test]
    fn written_tables_are_read_again(
        rows in prop::collection::vec((cell(), cell()), 1..40),
        tabs in any::<bool>(),
    ) {
        let column = |of: fn(&(String, String)) -> String| TableColumn::texts(rows.iter().map(of));
        let table = [("one", column(|r| r.0.clone())), ("two", column(|r| format!("w{}", r.1)))];
        let format = if tabs { TableFormat::Tsv } else { TableFormat::Csv };
        let mut out = Vec::new();
        write_table(&mut out, format, &table).unwrap();
        let mut options = with_roles(|roles| roles.text = vec!["one".into(), "two".into()]);
        options.records.dialect.header = Some(true);
        options.records.dialect.delimiter = Some(if tabs { b'\t' } else { b',' });
        options.records.keep_texts = true;
        options.records.text.analyzer = Analyzer::Char;
        options.format = Some(Format::Csv);
        let data = parse("t", &out, &options).unwrap();
        prop_assert_eq!(data.rows.n_rows(), rows.len());
        let texts = data.records.unwrap().texts.unwrap();
        for ((one, two), text) in rows.iter().zip(texts) {
            let shown = [one.trim().to_owned(), format!("w{two}").trim().to_owned()];
            let shown: Vec<String> = shown.into_iter().filter(|t| !t.is_empty()).collect();
            prop_assert_eq!(text, shown.join(" | "));
        }
    }
}
