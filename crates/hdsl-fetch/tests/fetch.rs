//! Downloads from a server on the loopback address that has the files of the real ones.

mod server;

use hdsl_fetch::{
    Download, Event, FetchError, FetchOptions, Fetched, Part, Result, Set, fetch, find,
};
use server::{Act, Server, bz2_of, dexter_zip, zip_of};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

const DEXTER: &str = "https://archive.ics.uci.edu/static/public/168/dexter.zip";
const NEWS: &str =
    "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/sector/sector.bz2";
const NEWS_TEST: &str =
    "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/sector/sector.t.bz2";

struct Scene {
    server: Server,
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        Self {
            server: Server::start(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn options(&self) -> FetchOptions {
        FetchOptions {
            folder: Some(self.folder.path().to_owned()),
            base_url: Some(self.server.base()),
            retry_delay: Duration::from_millis(1),
            ..FetchOptions::default()
        }
    }

    fn fetch(&self, name: &str, parts: &[&str]) -> Result<Fetched> {
        fetch(find(name)?, parts, &self.options(), &mut ignore)
    }

    /// The file of the training part of sector.
    fn fetch_news(&self) -> Result<Vec<u8>> {
        let fetched = self.fetch("sector", &["train"])?;
        Ok(fs::read(&fetched.parts[0].data).unwrap())
    }

    /// Fetches the training part of sector, and cancels after so many bytes.
    fn cancel_news_after(&self, bytes: u64) -> FetchError {
        let mut observer = |event: &Event<'_>| match event {
            Event::Received { done, .. } if *done >= bytes => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        let news = find("sector").unwrap();
        fetch(news, &["train"], &self.options(), &mut observer).unwrap_err()
    }

    fn files(&self, set: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.folder.path().join(set))
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != ".lock")
            .collect();
        names.sort();
        names
    }
}

/// An observer that never cancels.
fn ignore(_: &Event<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The files of an interrupted download of sector.
const PARTIAL: [&str; 2] = ["sector.bz2.part", "sector.bz2.part.from"];

/// Pseudorandom bytes after the magic number of bzip2.
fn long_file(n: usize) -> Vec<u8> {
    let mut bytes = b"BZh9".to_vec();
    bytes.extend((0..n as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8));
    bytes
}

#[test]
fn a_zip_is_downloaded_and_unpacked_once() {
    let scene = Scene::new();
    scene.server.serve(DEXTER, dexter_zip());
    let fetched = scene.fetch("dexter", &[]).unwrap();
    let sizes: Vec<_> = fetched
        .parts
        .iter()
        .map(|part| {
            let data = hdsl::read_dataset(&part.data, &hdsl::ReadOptions::default()).unwrap();
            assert!(part.is_new);
            assert_eq!(data.labels.is_some(), part.part.labeled);
            (part.part.name, data.rows.n_rows(), data.rows.nnz())
        })
        .collect();
    assert_eq!(sizes, [("train", 2, 4), ("valid", 3, 4), ("test", 1, 1)]);
    assert_eq!(scene.server.log().len(), 1);
    let again = scene.fetch("dexter", &[]).unwrap();
    assert!(again.parts.iter().all(|part| !part.is_new));
    assert!(scene.server.log().is_empty());
    // The file that `sha256sum -c` checks.
    let sums = fs::read_to_string(fetched.folder.join("SHA256SUMS")).unwrap();
    assert_eq!(sums.lines().count(), 6, "{sums}");
}

#[test]
fn only_requested_parts_are_downloaded() {
    let scene = Scene::new();
    scene.server.serve(NEWS, bz2_of("1 1:1\n2 2:1\n"));
    scene.server.serve(NEWS_TEST, bz2_of("2 2:1\n"));
    scene.fetch("sector", &["test"]).unwrap();
    assert_eq!(scene.files("sector"), ["SHA256SUMS", "sector.t.bz2"]);
    assert_eq!(scene.server.log().len(), 1);
    scene.fetch("sector", &[]).unwrap();
    assert_eq!(scene.server.log().len(), 1);
    let fetched = scene.fetch("sector", &["test", "train"]).unwrap();
    let names: Vec<_> = fetched.parts.iter().map(|part| part.part.name).collect();
    assert_eq!(names, ["test", "train"]);
    let error = scene.fetch("sector", &["valid"]).unwrap_err().to_string();
    assert_eq!(
        error,
        "sector has no part `valid`, expected one of train, test"
    );
}

#[test]
fn a_broken_connection_is_resumed() {
    let scene = Scene::new();
    let bytes = long_file(300_000);
    scene.server.serve(NEWS, bytes.clone());
    scene
        .server
        .act(NEWS, &[Act::Cut(100_000), Act::Cut(120_000)]);
    let mut retries = 0;
    let mut starts = Vec::new();
    let mut observer = |event: &Event<'_>| {
        match event {
            Event::Retrying { .. } => retries += 1,
            Event::Receiving { done, total, .. } => starts.push((*done, *total)),
            _ => {}
        }
        ControlFlow::Continue(())
    };
    let news = find("sector").unwrap();
    let fetched = fetch(news, &["train"], &scene.options(), &mut observer).unwrap();
    assert_eq!(fs::read(&fetched.parts[0].data).unwrap(), bytes);
    assert_eq!(retries, 2);
    let total = Some(300_004);
    assert_eq!(starts, [(0, total), (100_000, total), (220_000, total)]);
    let log = scene.server.log();
    assert!(
        log[1].ends_with("bytes=100000-") && log[2].ends_with("bytes=220000-"),
        "{log:?}"
    );
    assert_eq!(scene.files("sector"), ["SHA256SUMS", "sector.bz2"]);
}

#[test]
fn an_interrupted_download_is_resumed_by_the_next_call() {
    let scene = Scene::new();
    let bytes = long_file(50_000);
    scene.server.serve(NEWS, bytes.clone());
    let mut acts = vec![Act::Cut(20_000)];
    acts.extend(vec![Act::Cut(0); 6]);
    scene.server.act(NEWS, &acts);
    let error = scene.fetch_news().unwrap_err();
    assert!(!error.is_bad_input());
    let text = error.to_string();
    assert!(
        text.contains("broke after 20000 of 50004 bytes") && text.contains("127.0.0.1"),
        "{text}"
    );
    assert_eq!(scene.files("sector"), PARTIAL);
    scene.server.act(NEWS, &[]);
    scene.server.log();
    assert_eq!(scene.fetch_news().unwrap(), bytes);
    assert!(scene.server.log()[0].ends_with("bytes=20000-"));
}

#[test]
fn a_cancelled_download_leaves_no_file_under_the_final_name() {
    let scene = Scene::new();
    let bytes = long_file(2_000_000);
    scene.server.serve(NEWS, bytes.clone());
    let error = scene.cancel_news_after(200_000);
    assert!(matches!(error, FetchError::Cancelled), "{error}");
    assert_eq!(scene.files("sector"), PARTIAL);
    assert_eq!(scene.fetch_news().unwrap(), bytes);
}

#[test]
fn a_file_that_changed_on_the_server_is_not_resumed() {
    let scene = Scene::new();
    scene.server.serve(NEWS, long_file(50_000));
    scene
        .server
        .act(NEWS, &[Act::Cut(20_000), Act::Status(404)]);
    scene.fetch_news().unwrap_err();
    let mut other = long_file(60_000);
    other[100] ^= 1;
    scene.server.serve(NEWS, other.clone());
    assert_eq!(scene.fetch_news().unwrap(), other);
}

#[test]
fn a_server_without_ranges_sends_the_whole_file_again() {
    let (scene, bytes) = (Scene::new(), long_file(50_000));
    scene.server.serve(NEWS, bytes.clone());
    scene.server.act(NEWS, &[Act::Cut(20_000), Act::NoRange]);
    assert_eq!(scene.fetch_news().unwrap(), bytes);
}

#[test]
fn a_complete_partial_file_gets_its_final_name() {
    let (scene, bytes) = (Scene::new(), long_file(50_000));
    scene.server.serve(NEWS, bytes.clone());
    scene.cancel_news_after(bytes.len() as u64);
    assert_eq!(scene.fetch_news().unwrap(), bytes);
}

/// A set with a known checksum: that of `BZh`.
static SUMMED: Set = Set {
    name: "summed",
    about: "for this test",
    page: "https://example.org",
    downloads: &[Download {
        url: "https://example.org/a.bz2",
        sha256: Some("52db1c0fe993c221429e6cd213de70764d05566ab4cd155092b4a82cf195b530"),
    }],
    parts: &[Part {
        name: "all",
        file: "a.bz2",
        labels: None,
        labeled: true,
        n_rows: 1,
        nnz: None,
    }],
    n_features: 1,
    n_classes: 1,
};

#[test]
fn a_wrong_checksum_is_an_error_and_nothing_is_kept() {
    let scene = Scene::new();
    scene
        .server
        .serve("https://example.org/a.bz2", bz2_of("1 1:1\n"));
    let error = fetch(&SUMMED, &[], &scene.options(), &mut ignore).unwrap_err();
    assert!(matches!(error, FetchError::Checksum { .. }), "{error}");
    assert!(error.to_string().contains("expected 52db1c0f"), "{error}");
    assert!(scene.files("summed").is_empty());
    scene.server.serve("https://example.org/a.bz2", "BZh");
    fetch(&SUMMED, &[], &scene.options(), &mut ignore).unwrap();
    assert_eq!(scene.files("summed"), ["SHA256SUMS", "a.bz2"]);
}

#[test]
fn a_missing_file_is_an_error_and_a_busy_server_is_asked_again() {
    let scene = Scene::new();
    let error = scene.fetch("dexter", &[]).unwrap_err().to_string();
    let zip = scene.folder.path().join("dexter/dexter.zip");
    assert!(
        error.contains("answered 404 Not Found to http://127.0.0.1"),
        "{error}"
    );
    assert!(error.contains(&zip.display().to_string()), "{error}");
    assert_eq!(scene.server.log().len(), 1);
    scene.server.serve(DEXTER, dexter_zip());
    scene
        .server
        .act(DEXTER, &[Act::Status(503), Act::Status(503)]);
    scene.fetch("dexter", &[]).unwrap();
    assert_eq!(scene.server.log().len(), 3);
}

#[test]
fn an_unreachable_server_is_an_error_that_says_what_to_do() {
    let scene = Scene::new();
    let mut options = scene.options();
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    options.base_url = Some(format!("http://127.0.0.1:{port}"));
    let error = fetch(find("dexter").unwrap(), &[], &options, &mut ignore).unwrap_err();
    assert!(matches!(error, FetchError::Unreachable { .. }));
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("cannot reach 127.0.0.1:{port}: ")),
        "{text}"
    );
    assert!(text.contains("on another machine and save it as"), "{text}");
    // A name that RFC 2606 reserves as invalid.
    options.base_url = Some("https://hdsl.invalid".into());
    let text = fetch(find("dexter").unwrap(), &[], &options, &mut ignore)
        .unwrap_err()
        .to_string();
    assert!(
        text.starts_with("cannot reach hdsl.invalid: ") || std::env::var_os("http_proxy").is_some(),
        "{text}"
    );
    for base in ["ftp://x", "x", "http://", "http:// /"] {
        options.base_url = Some(base.into());
        let error = fetch(find("dexter").unwrap(), &[], &options, &mut ignore).unwrap_err();
        assert!(
            matches!(error, FetchError::BadBaseUrl(_)),
            "{base}: {error}"
        );
    }
}

#[test]
fn a_redirect_is_followed() {
    let scene = Scene::new();
    scene
        .server
        .serve("https://elsewhere/moved.zip", dexter_zip());
    scene
        .server
        .act(DEXTER, &[Act::Redirect("/elsewhere/moved.zip".into())]);
    scene.fetch("dexter", &["train"]).unwrap();
    assert_eq!(scene.server.log()[1], "/elsewhere/moved.zip");
}

#[test]
fn a_login_page_is_an_error() {
    let scene = Scene::new();
    scene.server.act(DEXTER, &[Act::LoginPage]);
    let error = scene.fetch("dexter", &[]).unwrap_err().to_string();
    assert!(
        error.contains("is not a zip file: it starts with \"<html>"),
        "{error}"
    );
    assert!(scene.files("dexter").is_empty());
}

#[test]
fn a_changed_file_is_an_error_and_can_be_downloaded_again() {
    let scene = Scene::new();
    scene.server.serve(NEWS, bz2_of("1 1:1\n2 2:1\n"));
    let fetched = scene.fetch("sector", &["train"]).unwrap();
    let path = &fetched.parts[0].data;
    let mut bytes = fs::read(path).unwrap();
    bytes[10] ^= 1;
    fs::write(path, &bytes).unwrap();
    let error = scene.fetch_news().unwrap_err();
    assert!(error.is_bad_input());
    assert!(
        error
            .to_string()
            .contains("sector.bz2 has changed since it was fetched"),
        "{error}"
    );
    let options = FetchOptions {
        again: true,
        ..scene.options()
    };
    fetch(find("sector").unwrap(), &["train"], &options, &mut ignore).unwrap();
    assert!(!scene.fetch("sector", &["train"]).unwrap().parts[0].is_new);
}

#[test]
fn a_zip_placed_in_the_cache_needs_no_network() {
    let scene = Scene::new();
    let options = FetchOptions {
        download: false,
        ..scene.options()
    };
    let missing = fetch(find("dexter").unwrap(), &[], &options, &mut ignore).unwrap_err();
    assert!(matches!(missing, FetchError::NotCached { .. }), "{missing}");
    let zip = scene.folder.path().join("dexter/dexter.zip");
    fs::create_dir_all(zip.parent().unwrap()).unwrap();
    fs::write(&zip, dexter_zip()).unwrap();
    let fetched = fetch(find("dexter").unwrap(), &["valid"], &options, &mut ignore).unwrap();
    assert!(!fetched.parts[0].is_new && fetched.parts[0].data.is_file());
    assert!(scene.server.log().is_empty());
}

#[test]
fn a_corrupt_zip_or_one_of_another_set_is_an_error() {
    let scene = Scene::new();
    scene
        .server
        .serve(DEXTER, zip_of(&[("readme", b"hello".as_slice())]));
    let error = scene.fetch("dexter", &[]).unwrap_err().to_string();
    assert!(
        error.contains("dexter.zip: has no file `dexter_train.data`"),
        "{error}"
    );
    let mut cut = dexter_zip();
    cut.truncate(cut.len() / 2);
    let folder = scene.folder.path().join("dexter");
    fs::remove_dir_all(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("dexter.zip"), cut).unwrap();
    let error = scene.fetch("dexter", &[]).unwrap_err().to_string();
    assert!(error.contains("dexter.zip: not a zip file"), "{error}");
    assert!(!Path::new(&folder).join("dexter_train.data").exists());
}

#[test]
fn concurrent_calls_download_once() {
    let scene = Scene::new();
    scene.server.serve(NEWS, long_file(1_000_000));
    let new: usize = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| scene.fetch("sector", &["train"]).unwrap().parts[0].is_new))
            .collect();
        runs.into_iter()
            .map(|run| usize::from(run.join().unwrap()))
            .sum()
    });
    assert_eq!((new, scene.server.log().len()), (1, 1));
}

/// A damaged list of digests is an error that says what to do, and fetching again repairs it.
#[test]
fn a_damaged_list_of_digests_is_repaired() {
    let scene = Scene::new();
    scene.server.serve(NEWS, bz2_of("1 1:1\n2 2:1\n"));
    let fetched = scene.fetch("sector", &["train"]).unwrap();
    let sums = fetched.folder.join("SHA256SUMS");
    let whole = fs::read(&sums).unwrap();
    for damaged in [
        b"\xff\xfe\0".as_slice(),
        b"short  sector.bz2\n",
        &whole[..40],
    ] {
        fs::write(&sums, damaged).unwrap();
        let error = scene.fetch("sector", &["train"]).unwrap_err().to_string();
        assert!(error.contains("SHA256SUMS: line 1 is damaged"), "{error}");
        assert!(error.ends_with("fetch it again to replace it"), "{error}");
        let options = FetchOptions {
            again: true,
            ..scene.options()
        };
        fetch(find("sector").unwrap(), &["train"], &options, &mut ignore).unwrap();
        assert_eq!(fs::read(&sums).unwrap(), whole);
    }
}

#[test]
fn redirects_that_are_not_encrypted_are_refused() {
    let scene = Scene::new();
    let to = |address: &str| Act::Redirect(address.to_owned());
    scene
        .server
        .act(NEWS, &[to("http://me:secret@example.org/sector.bz2")]);
    let error = scene.fetch_news().unwrap_err().to_string();
    assert!(
        error.contains("it redirects to http://example.org/sector.bz2, which is not encrypted"),
        "{error}"
    );
    scene.server.serve(NEWS, bz2_of("1 1:1\n"));
    let path = NEWS.replacen("https:/", "", 1);
    // Round and round.
    scene.server.act(NEWS, &vec![to(&path); 20]);
    let error = scene.fetch_news().unwrap_err().to_string();
    assert!(error.contains("it redirects more than 5 times"), "{error}");
    scene.server.act(NEWS, &[to(&path), to(&path)]);
    scene.fetch_news().unwrap();
}

/// Neither messages nor files contain the password of a mirror.
#[test]
fn passwords_are_not_shown() {
    let scene = Scene::new();
    let address = scene
        .server
        .base()
        .replacen("http://", "http://me:secret@", 1);
    let with = |base: &str| FetchOptions {
        base_url: Some(base.to_owned()),
        ..scene.options()
    };
    let mut shown = Vec::new();
    let mut tell = |base: &str| {
        let mut events = Vec::new();
        let mut observer = |event: &Event<'_>| {
            events.push(format!("{event:?}"));
            ControlFlow::Continue(())
        };
        let done = fetch(
            find("sector").unwrap(),
            &["train"],
            &with(base),
            &mut observer,
        );
        shown.extend(events);
        shown.extend(done.err().map(|error| format!("{error} {error:?}")));
    };
    for base in [
        &address,
        "ftp://me:secret@a.org",
        "me:secret@a.org",
        "http://me:secret@a.org",
        "https://me:secret@127.0.0.1:9",
        "https://me:secret@",
    ] {
        tell(base);
    }
    scene.server.act(NEWS, &[Act::LoginPage]);
    tell(&address);
    scene.server.serve(NEWS, long_file(100_000));
    scene.server.act(NEWS, &[Act::Cut(1000), Act::Status(500)]);
    tell(&address);
    assert!(shown.len() > 9, "{shown:?}");
    scene.server.serve(NEWS_TEST, long_file(100_000));
    for file in scene.files("sector") {
        let text = fs::read(scene.folder.path().join("sector").join(file)).unwrap();
        shown.push(String::from_utf8_lossy(&text).into_owned());
    }
    for text in &shown {
        assert!(!text.contains("secret"), "{text}");
    }
}
