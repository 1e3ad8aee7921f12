//! A small HTTP server on the loopback address that serves the layouts of the real ones, and misbehaves as told.
#![allow(dead_code)] // every test file uses some of this

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How the next request for a path is treated. Without any, it is served properly, with `Range` and `ETag`.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Promises everything and closes the line after so many bytes.
    Cut(usize),
    /// Sends so many bytes and then nothing, with the line open.
    Hang(usize),
    /// Another status than 200.
    Status(u16),
    /// 302 to a path.
    Redirect(String),
    /// All of it, whatever was asked for, and no `ETag`.
    NoRange,
    /// A page that wants a password.
    LoginPage,
}

#[derive(Default)]
struct State {
    files: BTreeMap<String, Vec<u8>>,
    acts: BTreeMap<String, Vec<Act>>,
    log: Vec<String>,
}

/// Runs until the test process ends, or until it is dropped as far as new requests go.
pub(crate) struct Server {
    address: String,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    // A client that goes away is part of the tests.
                    let _ = answer(stream, &shared);
                });
            }
        });
        Self { address, state }
    }

    /// For `--base-url`.
    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Serves this at `https://HOST/PATH` of the real world.
    pub(crate) fn serve(&self, url: &str, bytes: impl Into<Vec<u8>>) {
        let path = url.replacen("https:/", "", 1);
        self.state().files.insert(path, bytes.into());
    }

    /// Does this for the next requests of the address, in this order.
    pub(crate) fn act(&self, url: &str, acts: &[Act]) {
        let path = url.replacen("https:/", "", 1);
        self.state().acts.insert(path, acts.to_vec());
    }

    /// What was asked since the last call: `PATH` or `PATH Range`, one a request.
    pub(crate) fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.state().log)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no test panics in here")
    }
}

fn answer(stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or("/").to_owned();
    let (mut range, mut if_range) = (None, None);
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = header.trim().split_once(": ") {
            match name.to_lowercase().as_str() {
                "range" => range = Some(value.to_owned()),
                "if-range" => if_range = Some(value.to_owned()),
                _ => {}
            }
        }
    }
    let (body, act) = {
        let mut state = state.lock().expect("no test panics in here");
        let shown = range.as_ref().map_or(String::new(), |r| format!(" {r}"));
        state.log.push(format!("{path}{shown}"));
        let acts = state.acts.entry(path.clone()).or_default();
        let act = (!acts.is_empty()).then(|| acts.remove(0));
        (state.files.get(&path).cloned(), act)
    };
    respond(stream, body, act, range, if_range)
}

fn respond(
    mut out: TcpStream,
    body: Option<Vec<u8>>,
    act: Option<Act>,
    range: Option<String>,
    if_range: Option<String>,
) -> std::io::Result<()> {
    let plain = |status: &str, more: &str, body: &str| {
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
    };
    match &act {
        Some(Act::Status(status)) => {
            return out.write_all(plain(&format!("{status} Sorry"), "", "").as_bytes());
        }
        Some(Act::Redirect(to)) => {
            return out
                .write_all(plain("302 Found", &format!("Location: {to}\r\n"), "").as_bytes());
        }
        Some(Act::LoginPage) => {
            let page = "<html><body>Please log in to the network</body></html>";
            return out.write_all(plain("200 OK", "Content-Type: text/html\r\n", page).as_bytes());
        }
        _ => {}
    }
    let Some(body) = body else {
        return out.write_all(plain("404 Not Found", "", "no such file").as_bytes());
    };
    let sum: u64 = body
        .iter()
        .fold(7, |sum, &b| sum.wrapping_mul(31).wrapping_add(b.into()));
    let tag = format!("\"{sum:x}\"");
    let no_range = matches!(act, Some(Act::NoRange));
    let first: usize = range
        .filter(|_| !no_range && if_range.is_none_or(|wanted| wanted == tag))
        .and_then(|r| r.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok())
        .unwrap_or(0);
    let total = body.len();
    if first >= total && first > 0 {
        let more = format!("Content-Range: bytes */{total}\r\n");
        return out.write_all(plain("416 Range Not Satisfiable", &more, "").as_bytes());
    }
    let mut head = match first {
        0 => "HTTP/1.1 200 OK\r\n".to_owned(),
        _ => format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {first}-{}/{total}\r\n",
            total - 1
        ),
    };
    if !no_range {
        head += &format!("ETag: {tag}\r\n");
    }
    head += &format!(
        "Content-Length: {}\r\nConnection: close\r\n\r\n",
        total - first
    );
    out.write_all(head.as_bytes())?;
    let end = match act {
        Some(Act::Cut(n) | Act::Hang(n)) => (first + n).min(total),
        _ => total,
    };
    out.write_all(&body[first..end])?;
    out.flush()?;
    if let Some(Act::Hang(_)) = act {
        thread::sleep(Duration::from_secs(30));
    }
    Ok(())
}

/// A zip with these members.
pub(crate) fn zip_of(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in members {
        zip.start_file(*name, zip::write::SimpleFileOptions::default())
            .expect("memory can be written");
        zip.write_all(bytes).expect("memory can be written");
    }
    zip.finish().expect("memory can be written").into_inner()
}

/// Text as the LIBSVM collection packs it.
pub(crate) fn bz2_of(text: &str) -> Vec<u8> {
    let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    out.write_all(text.as_bytes())
        .expect("memory can be written");
    out.finish().expect("memory can be written")
}

/// The zip of dexter, with few rows and the layout of the real one: validation labels lie above the other files.
pub(crate) fn dexter_zip() -> Vec<u8> {
    zip_of(&[
        (
            "DEXTER/dexter_train.data",
            b"1:5 7:3 \n2:1 20000:9 \n".as_slice(),
        ),
        ("DEXTER/dexter_train.labels", b"1\n-1\n"),
        ("DEXTER/dexter_valid.data", b"7:1 \n2:4 \n1:1 2:1 \n"),
        ("dexter_valid.labels", b"1\n-1\n-1\n"),
        ("DEXTER/dexter_test.data", b"3:1 \n"),
        ("DEXTER/dexter.param", b"Data type: sparse\n"),
    ])
}
