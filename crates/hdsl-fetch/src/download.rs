//! One file over HTTP: it goes on where it stopped, tries again when the line breaks, and gives up in words.
//!
//! Bytes go to `NAME.part`; beside it `NAME.part.from` says where they come from and which version of the file they
//! belong to. Only a complete file gets its name, after its checksum has been looked at.

use crate::cache;
use crate::error::{FetchError, Result};
use crate::fetch::{Event, Watch};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::http::{HeaderMap, Response, StatusCode, Uri, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};

/// How often in a row a line may break without a byte gained.
const TRIES: u32 = 4;

/// What is wanted, and where it goes.
pub(crate) struct Request<'a> {
    /// Where to ask, which is a mirror if there is one.
    pub(crate) url: &'a str,
    /// Where it comes from, for those who download by hand.
    pub(crate) source: &'a str,
    /// The name it will have when it is complete.
    pub(crate) path: &'a Path,
    pub(crate) sha256: Option<&'a str>,
    /// Before the second try; it doubles from then on.
    pub(crate) pause: Duration,
}

/// How one try ended, other than well.
enum Setback {
    /// Worth another try.
    Passing(FetchError),
    Final(FetchError),
}

impl<E: Into<FetchError>> From<E> for Setback {
    fn from(error: E) -> Self {
        Setback::Final(error.into())
    }
}

/// Downloads, checks, gives the file its name, and returns its digest.
pub(crate) fn download(request: &Request<'_>, watch: Watch<'_>) -> Result<String> {
    let agent = agent(request.url)?;
    let part = Partial::of(request);
    let (mut tries, mut pause) = (0, request.pause);
    loop {
        let before = part.len();
        let (reason, error) = match attempt(&agent, request, &part, watch) {
            Ok(()) => break,
            Err(Setback::Final(error)) => return Err(error),
            Err(Setback::Passing(error)) => (error.to_string(), error),
        };
        if part.len() > before {
            (tries, pause) = (0, request.pause);
        }
        tries += 1;
        if tries == TRIES {
            return Err(error);
        }
        tell(
            watch,
            Event::TryingAgain {
                reason: &reason,
                pause,
            },
        )?;
        wait(pause, watch)?;
        pause *= 2;
    }
    let digest = check(request, &part.bytes).inspect_err(|_| part.remove())?;
    fs::rename(&part.bytes, request.path).map_err(|source| write_error(request.path, source))?;
    part.remove();
    Ok(digest)
}

/// Sleeps in short pieces, so that whoever wants to stop need not wait.
fn wait(mut pause: Duration, watch: Watch<'_>) -> Result<()> {
    while !pause.is_zero() {
        let piece = pause.min(Duration::from_millis(100));
        std::thread::sleep(piece);
        pause -= piece;
        tell(watch, Event::Waiting)?;
    }
    Ok(())
}

pub(crate) fn tell(watch: Watch<'_>, event: Event<'_>) -> Result<()> {
    match watch(&event) {
        std::ops::ControlFlow::Continue(()) => Ok(()),
        std::ops::ControlFlow::Break(()) => Err(FetchError::Stopped),
    }
}

fn agent(url: &str) -> Result<Agent> {
    let uri: Uri = url.parse().map_err(|_| FetchError::BadBase(url.into()))?;
    let host = uri
        .host()
        .filter(|_| matches!(uri.scheme_str(), Some("http" | "https")))
        .ok_or_else(|| FetchError::BadBase(url.into()))?;
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(Duration::from_secs(20)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        .timeout_per_read(Some(Duration::from_secs(60)))
        .user_agent(concat!("hdsl/", env!("CARGO_PKG_VERSION")));
    // A proxy cannot know what this machine means by itself.
    if ["localhost", "127.0.0.1", "[::1]"].contains(&host) {
        config = config.proxy(None);
    }
    if let Some(certificates) = own_certificates()? {
        config = config.tls_config(TlsConfig::builder().root_certs(certificates).build());
    }
    Ok(Agent::new_with_config(config.build()))
}

/// `SSL_CERT_FILE`, for networks that sign everything anew; otherwise Mozilla's list, which comes with the program.
fn own_certificates() -> Result<Option<RootCerts>> {
    let Some(path) = std::env::var_os("SSL_CERT_FILE").filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let path = PathBuf::from(path);
    let pem = fs::read(&path).map_err(|source| hdsl::Error::Read {
        path: path.clone(),
        source,
    })?;
    let certificates: Vec<_> = ureq::tls::parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(ureq::tls::PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(hdsl::Error::File {
            path,
            reason: "SSL_CERT_FILE names it, but it holds no certificate".into(),
        }
        .into());
    }
    Ok(Some(RootCerts::new_with_certs(&certificates)))
}

/// Asks once, and reads as long as bytes come.
fn attempt(
    agent: &Agent,
    request: &Request<'_>,
    part: &Partial,
    watch: Watch<'_>,
) -> std::result::Result<(), Setback> {
    let known = part.known(request.url);
    let mut call = agent.get(request.url);
    if let Some(known) = &known {
        call = call.header("Range", format!("bytes={}-", known.done));
        if let Some(version) = &known.version {
            // The rest, if the file is still the same one; all of it, if not.
            call = call.header("If-Range", version);
        }
    }
    let mut response = call.call().map_err(|error| no_answer(request, &error))?;
    let (offset, total) = match response.status() {
        StatusCode::OK => (0, response.body().content_length()),
        StatusCode::PARTIAL_CONTENT => match (&known, content_range(response.headers())) {
            (Some(known), Some((first, total)))
                if first == known.done && (known.version.is_some() || known.total == total) =>
            {
                (known.done, total)
            }
            _ => {
                return Err(start_over(
                    part,
                    request,
                    "another piece than the one asked for",
                ));
            }
        },
        StatusCode::RANGE_NOT_SATISFIABLE => match (&known, unsatisfied(response.headers())) {
            // Everything had come, and only the name was missing.
            (Some(known), Some(total)) if total == known.done && known.total == Some(total) => {
                return Ok(());
            }
            _ => return Err(start_over(part, request, "no such piece")),
        },
        status => return Err(bad_status(request, status)),
    };
    let mut out = part.open(request.url, offset, total, &response)?;
    tell(
        watch,
        Event::Receiving {
            url: request.url,
            done: offset,
            total,
        },
    )?;
    receive(request, &mut response, &mut out, offset, total, watch)
}

fn receive(
    request: &Request<'_>,
    response: &mut Response<Body>,
    out: &mut File,
    offset: u64,
    total: Option<u64>,
    watch: Watch<'_>,
) -> std::result::Result<(), Setback> {
    let mut done = offset;
    let cut = |done: u64, reason: String| {
        Setback::Passing(FetchError::Cut {
            host: host(request.url),
            done,
            total: total.map_or("an unknown number of".into(), |n| n.to_string()),
            reason,
        })
    };
    let mut body = response.body_mut().as_reader();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let n = match body.read(&mut buffer) {
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(cut(done, error.to_string())),
        };
        if n == 0 {
            break;
        }
        out.write_all(&buffer[..n])
            .map_err(|source| write_error(request.path, source))?;
        done += n as u64;
        tell(watch, Event::Received { done, total })?;
    }
    match total {
        Some(total) if done != total => Err(cut(done, "it ended too early".into())),
        _ => Ok(out
            .sync_all()
            .map_err(|source| write_error(request.path, source))?),
    }
}

/// The bytes that came so far, and what is known of them.
struct Partial {
    bytes: PathBuf,
    from: PathBuf,
}

/// Bytes that can be gone on from.
struct Known {
    done: u64,
    total: Option<u64>,
    /// The server's word for this very version of the file.
    version: Option<String>,
}

impl Partial {
    fn of(request: &Request<'_>) -> Self {
        let name = request.path.file_name().unwrap_or_default();
        let beside = |end: &str| {
            let mut name = name.to_owned();
            name.push(end);
            request.path.with_file_name(name)
        };
        Self {
            bytes: beside(".part"),
            from: beside(".part.from"),
        }
    }

    fn len(&self) -> u64 {
        fs::metadata(&self.bytes).map_or(0, |about| about.len())
    }

    /// Nothing, if the bytes are of another address or if their version could not be told from the next.
    fn known(&self, url: &str) -> Option<Known> {
        let text = fs::read_to_string(&self.from).ok()?;
        let mut lines = text.lines();
        if lines.next() != Some(url) {
            return None;
        }
        let total = lines.next()?.parse().ok();
        let version = lines.next().filter(|line| !line.is_empty());
        let known = Known {
            done: self.len(),
            total,
            version: version.map(str::to_owned),
        };
        (known.done > 0 && (known.version.is_some() || total.is_some())).then_some(known)
    }

    /// The file to write on in, at this place.
    fn open(
        &self,
        url: &str,
        offset: u64,
        total: Option<u64>,
        response: &Response<Body>,
    ) -> Result<File> {
        let failed = |source| write_error(&self.bytes, source);
        if offset == 0 {
            // Out of date from here on; a note without bytes is harmless, bytes under a wrong note are not.
            self.remove();
            let total = total.map_or(String::new(), |n| n.to_string());
            let version = version(response.headers()).unwrap_or_default();
            fs::write(&self.from, format!("{url}\n{total}\n{version}\n")).map_err(failed)?;
        }
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&self.bytes)
            .map_err(failed)?;
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        Ok(file)
    }

    fn remove(&self) {
        // The bytes first: see `open`. What cannot be removed is found out when it is written.
        let _ = fs::remove_file(&self.bytes);
        let _ = fs::remove_file(&self.from);
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// A word that changes when the file does. Weak tags may stay the same for other bytes.
fn version(headers: &HeaderMap) -> Option<&str> {
    text(headers, &header::ETAG)
        .filter(|tag| tag.starts_with('"'))
        .or_else(|| text(headers, &header::LAST_MODIFIED))
}

/// First byte and total of `bytes FIRST-LAST/TOTAL`.
fn content_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let range = text(headers, &header::CONTENT_RANGE)?.strip_prefix("bytes ")?;
    let (piece, total) = range.split_once('/')?;
    Some((piece.split_once('-')?.0.parse().ok()?, total.parse().ok()))
}

/// Total of `bytes */TOTAL`.
fn unsatisfied(headers: &HeaderMap) -> Option<u64> {
    let range = text(headers, &header::CONTENT_RANGE)?;
    range.strip_prefix("bytes */")?.parse().ok()
}

fn start_over(part: &Partial, request: &Request<'_>, found: &str) -> Setback {
    part.remove();
    Setback::Passing(FetchError::Cut {
        host: host(request.url),
        done: 0,
        total: "an unknown number of".into(),
        reason: format!("the server sent {found}"),
    })
}

fn no_answer(request: &Request<'_>, error: &ureq::Error) -> Setback {
    let reason = match error {
        ureq::Error::HostNotFound => "its address could not be found".to_owned(),
        ureq::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    };
    let setback = FetchError::Unreachable {
        host: host(request.url),
        source_url: request.source.to_owned(),
        path: request.path.to_owned(),
        reason,
    };
    match error {
        // A line may break; a name that is unknown, a closed port or a bad certificate stay so for the next seconds.
        ureq::Error::Timeout(_) | ureq::Error::Protocol(_) => Setback::Passing(setback),
        ureq::Error::Io(error)
            if matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::TimedOut
            ) =>
        {
            Setback::Passing(setback)
        }
        _ => Setback::Final(setback),
    }
}

fn bad_status(request: &Request<'_>, status: StatusCode) -> Setback {
    let error = FetchError::Status {
        host: host(request.url),
        status: status.to_string(),
        url: request.url.to_owned(),
        source_url: request.source.to_owned(),
        path: request.path.to_owned(),
    };
    match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => Setback::Passing(error),
        status if status.is_server_error() => Setback::Passing(error),
        _ => Setback::Final(error),
    }
}

/// Of the right kind, and with the right checksum where that is known.
fn check(request: &Request<'_>, path: &Path) -> Result<String> {
    let (want, magic): (_, &[u8]) = match request.path.extension().and_then(|e| e.to_str()) {
        Some("zip") => ("zip", b"PK"),
        Some("bz2") => ("bzip2", b"BZh"),
        _ => ("", b""),
    };
    let mut start = Vec::new();
    File::open(path)
        .and_then(|file| file.take(24).read_to_end(&mut start))
        .map_err(|source| hdsl::Error::Read {
            path: path.to_owned(),
            source,
        })?;
    if !start.starts_with(magic) {
        return Err(FetchError::NotTheFile {
            url: request.url.to_owned(),
            want,
            found: String::from_utf8_lossy(&start).into_owned(),
        });
    }
    let got = cache::digest(path)?;
    match request.sha256 {
        Some(want) if want != got => Err(FetchError::Checksum {
            url: request.url.to_owned(),
            want: want.to_owned(),
            got,
        }),
        _ => Ok(got),
    }
}

fn host(url: &str) -> String {
    let authority = |uri: Uri| uri.authority().map(|a| a.to_string());
    url.parse()
        .ok()
        .and_then(authority)
        .unwrap_or_else(|| url.to_owned())
}

fn write_error(path: &Path, source: io::Error) -> FetchError {
    let path = path.to_owned();
    hdsl::Error::Write { path, source }.into()
}
