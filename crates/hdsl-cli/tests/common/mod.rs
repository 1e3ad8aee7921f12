//! The program as a process, and a small planted problem to run it on.
#![allow(dead_code)] // every test file uses some of this

use hdsl::data::{PlantedParams, planted, write_svmlight};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// What a finished run left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Standard output after a run that ended well.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.status, Some(0), "{}", self.stderr);
        self.stdout
    }

    /// Standard output as one JSON object.
    #[track_caller]
    pub(crate) fn json(self) -> serde_json::Value {
        let text = self.ok();
        let value: serde_json::Value = serde_json::from_str(&text).expect("one JSON object");
        assert!(value.is_object());
        value
    }
}

/// A scratch folder with a planted problem: train.svm.bz2, valid.svm.bz2, test.svm.bz2 and vocab.txt.
pub(crate) struct Scratch {
    folder: TempDir,
}

impl Scratch {
    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir().expect("a scratch folder");
        Self { folder }
    }

    pub(crate) fn planted() -> Self {
        let scratch = Self::empty();
        let params = PlantedParams {
            n_train: 160,
            n_valid: 80,
            n_test: 80,
            n_features: 400,
            noise_words: 10,
        };
        let problem = planted(5, &params).expect("parameters are right");
        for (name, part) in [
            ("train", &problem.train),
            ("valid", &problem.valid),
            ("test", &problem.test),
        ] {
            let mut text = Vec::new();
            write_svmlight(
                &mut text,
                &part.rows,
                part.labels.as_ref(),
                None,
                part.index_base,
            )
            .expect("memory can be written");
            let file = std::fs::File::create(scratch.path(&format!("{name}.svm.bz2")));
            let mut out =
                bzip2::write::BzEncoder::new(file.expect("a file"), bzip2::Compression::fast());
            out.write_all(&text).expect("a file can be written");
            out.finish().expect("a file can be written");
            scratch.write(&format!("{name}.svm"), &text);
        }
        scratch.write("vocab.txt", problem.names.join("\n").as_bytes());
        scratch
    }

    /// A planted problem and a model trained on it, `m.hdsl`.
    pub(crate) fn trained() -> Self {
        let scratch = Self::planted();
        scratch
            .hdsl("train train.svm --valid valid.svm --lambda 10 --max-iter 60 -o m.hdsl")
            .ok();
        scratch
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).expect("the scratch folder can be written");
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("a file that should be there")
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).expect("UTF-8")
    }

    /// Names of all files, sorted: to see that nothing was left behind.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.folder())
            .expect("the scratch folder can be listed")
            .map(|e| e.expect("an entry").file_name().to_string_lossy().into())
            .collect();
        names.sort();
        names
    }

    /// Runs `hdsl` with words between blanks, in the folder.
    pub(crate) fn hdsl(&self, line: &str) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hdsl"));
        command.args(line.split_whitespace());
        self.run(&mut command)
    }

    /// Runs a line of shell in the folder; `hdsl` is on the path.
    pub(crate) fn shell(&self, line: &str) -> Ran {
        let bin = Path::new(env!("CARGO_BIN_EXE_hdsl"));
        let bin = bin.parent().expect("a program lies in a folder").display();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("bash");
        command
            .args(["-c", line])
            .env("PATH", format!("{bin}:{path}"));
        self.run(&mut command)
    }

    fn run(&self, command: &mut Command) -> Ran {
        let out = command
            .current_dir(self.folder())
            .stdin(Stdio::null())
            .output()
            .expect("the program starts");
        Ran {
            status: out.status.code(),
            stdout: String::from_utf8_lossy(&out.stdout).into(),
            stderr: String::from_utf8_lossy(&out.stderr).into(),
        }
    }
}

/// Real data beside the repository, if it is there. Tests that need it say that they skip.
pub(crate) fn shared(file: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data")
        .join(file);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: {file} is not beside the repository");
    None
}
