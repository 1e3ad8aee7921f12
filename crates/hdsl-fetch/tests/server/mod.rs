//! A small HTTP server on the loopback address, with the paths of the real ones and with faults on demand.
#![allow(dead_code)] // each test file uses a part of it

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How the server treats a request. By default, it serves the file, with `Range` and `ETag`.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Announces the whole file and closes the connection after so many bytes.
    Cut(usize),
    /// Sends so many bytes, and then keeps the connection open.
    Hang(usize),
    /// An error status.
    Status(u16),
    /// 302 to a path.
    Redirect(String),
    /// The whole file for any requested range, without `ETag`.
    NoRange,
    /// A login page.
    LoginPage,
}

#[derive(Default)]
struct State {
    files: BTreeMap<String, Vec<u8>>,
    acts: BTreeMap<String, Vec<Act>>,
    log: Vec<String>,
}

/// A server that runs until the test process ends.
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
                    // Tests also close connections early.
                    let _ = answer(stream, &shared);
                });
            }
        });
        Self { address, state }
    }

    /// The address for `--base-url`.
    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Serves these bytes for `https://HOST/PATH`.
    pub(crate) fn serve(&self, url: &str, bytes: impl Into<Vec<u8>>) {
        let path = url.replacen("https:/", "", 1);
        self.state().files.insert(path, bytes.into());
    }

    /// Treats the next requests for the address in this way, in order.
    pub(crate) fn act(&self, url: &str, acts: &[Act]) {
        let path = url.replacen("https:/", "", 1);
        self.state().acts.insert(path, acts.to_vec());
    }

    /// The requests since the last call: `PATH` or `PATH RANGE`.
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

/// A whole response.
fn whole(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// The response to a request that is not answered with the file.
fn response_without_file(act: &Act) -> Option<String> {
    match act {
        Act::Status(status) => Some(whole(&format!("{status} Sorry"), "", "")),
        Act::Redirect(to) => Some(whole("302 Found", &format!("Location: {to}\r\n"), "")),
        Act::LoginPage => {
            let page = "<html><body>Please log in to the network</body></html>";
            Some(whole("200 OK", "Content-Type: text/html\r\n", page))
        }
        Act::Cut(_) | Act::Hang(_) | Act::NoRange => None,
    }
}

fn respond(
    mut out: TcpStream,
    body: Option<Vec<u8>>,
    act: Option<Act>,
    range: Option<String>,
    if_range: Option<String>,
) -> std::io::Result<()> {
    if let Some(response) = act.as_ref().and_then(response_without_file) {
        return out.write_all(response.as_bytes());
    }
    let Some(body) = body else {
        return out.write_all(whole("404 Not Found", "", "no such file").as_bytes());
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
        return out.write_all(whole("416 Range Not Satisfiable", &more, "").as_bytes());
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

/// Text compressed like the files of LIBSVM.
pub(crate) fn bz2_of(text: &str) -> Vec<u8> {
    let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    out.write_all(text.as_bytes())
        .expect("memory can be written");
    out.finish().expect("memory can be written")
}

/// A small version of dexter.zip, with the paths of the real one: the validation labels are in another folder.
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
