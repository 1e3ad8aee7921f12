//! The download of one file over HTTP, with resumption and retries.
//!
//! Bytes are written to `NAME.part`; `NAME.part.from` records their address and the version of the file. Only a complete
//! file with the right checksum gets its final name.

use crate::cache;
use crate::error::{FetchError, Result, without_password};
use crate::fetch::{Event, Observer};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::http::{HeaderMap, Response, StatusCode, Uri, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};

/// The number of attempts in a row that receive no bytes.
const MAX_ATTEMPTS: u32 = 4;

/// The number of redirects in a row that are followed.
const MAX_REDIRECTS: u32 = 5;

/// A file to download.
pub(crate) struct Request<'a> {
    /// The address, on a mirror if there is one.
    pub(crate) url: &'a str,
    /// The original address, for error messages.
    pub(crate) source: &'a str,
    /// The path of the complete file.
    pub(crate) path: &'a Path,
    pub(crate) sha256: Option<&'a str>,
    /// The delay before the first retry. It doubles with each further retry.
    pub(crate) retry_delay: Duration,
}

/// The error of one attempt.
enum AttemptError {
    /// A retry may succeed.
    Temporary(FetchError),
    Permanent(FetchError),
}

impl<E: Into<FetchError>> From<E> for AttemptError {
    fn from(error: E) -> Self {
        AttemptError::Permanent(error.into())
    }
}

/// Downloads and checks a file, gives it its final name, and returns its digest.
pub(crate) fn download(request: &Request<'_>, observer: Observer<'_>) -> Result<String> {
    let agent = agent(request.url)?;
    let part = Partial::of(request);
    let (mut attempts, mut delay) = (0, request.retry_delay);
    loop {
        let before = part.len();
        let (reason, error) = match attempt(&agent, request, &part, observer) {
            Ok(()) => break,
            Err(AttemptError::Permanent(error)) => return Err(error),
            Err(AttemptError::Temporary(error)) => {
                let error = error.without_passwords();
                (error.to_string(), error)
            }
        };
        if part.len() > before {
            (attempts, delay) = (0, request.retry_delay);
        }
        attempts += 1;
        if attempts == MAX_ATTEMPTS {
            return Err(error);
        }
        let reason = &reason;
        notify(observer, Event::Retrying { reason, delay })?;
        wait(delay, observer)?;
        delay *= 2;
    }
    let digest = check(request, &part.bytes).inspect_err(|_| part.remove())?;
    fs::rename(&part.bytes, request.path).map_err(|source| write_error(request.path, source))?;
    part.remove();
    Ok(digest)
}

/// Sleeps in short intervals, so that the observer can cancel.
fn wait(mut delay: Duration, observer: Observer<'_>) -> Result<()> {
    while !delay.is_zero() {
        let interval = delay.min(Duration::from_millis(100));
        std::thread::sleep(interval);
        delay -= interval;
        notify(observer, Event::Waiting)?;
    }
    Ok(())
}

/// Sends an event; an error if the observer cancels.
pub(crate) fn notify(observer: Observer<'_>, event: Event<'_>) -> Result<()> {
    match observer(&event) {
        std::ops::ControlFlow::Continue(()) => Ok(()),
        std::ops::ControlFlow::Break(()) => Err(FetchError::Cancelled),
    }
}

fn is_local(uri: &Uri) -> bool {
    uri.host()
        .is_some_and(|host| ["localhost", "127.0.0.1", "[::1]"].contains(&host))
}

/// Whether an address is encrypted, or on this machine itself.
fn is_safe(uri: &Uri) -> bool {
    match uri.scheme_str() {
        Some("https") => uri.host().is_some(),
        Some("http") => is_local(uri),
        _ => false,
    }
}

/// Where a redirect leads, if it may be followed: it must not leave encryption, nor this machine without it.
fn redirected(from: &Uri, location: &str) -> std::result::Result<Uri, String> {
    let scheme = from.scheme_str().unwrap_or("https");
    let authority = from.authority().map_or("", |authority| authority.as_str());
    let absolute = match location {
        l if l.contains("://") => l.to_owned(),
        l if l.starts_with("//") => format!("{scheme}:{l}"),
        l if l.starts_with('/') => format!("{scheme}://{authority}{l}"),
        l => {
            let folder = from.path().rsplit_once('/').map_or("", |path| path.0);
            format!("{scheme}://{authority}{folder}/{l}")
        }
    };
    let shown = without_password(&absolute);
    let to: Uri = absolute
        .parse()
        .map_err(|_| format!("it redirects to `{shown}`, which is no address"))?;
    let is_encrypted = |uri: &Uri| uri.scheme_str() == Some("https");
    match is_safe(&to) && (is_encrypted(&to) || !is_encrypted(from)) {
        true => Ok(to),
        false => Err(format!(
            "it redirects to {shown}, which is not encrypted (https)"
        )),
    }
}

fn agent(url: &str) -> Result<Agent> {
    let uri: Uri = url
        .parse()
        .map_err(|_| FetchError::BadBaseUrl(url.into()))?;
    // Without encryption only from this machine itself.
    if !is_safe(&uri) {
        return Err(FetchError::BadBaseUrl(url.into()));
    }
    let mut config = Agent::config_builder()
        .https_only(uri.scheme_str() == Some("https"))
        // Redirects are followed here, after a look at where they lead.
        .max_redirects(0)
        .http_status_as_error(false)
        .timeout_connect(Some(Duration::from_secs(20)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        .timeout_per_read(Some(Duration::from_secs(60)))
        .user_agent(concat!("hdsl/", env!("CARGO_PKG_VERSION")));
    // A proxy cannot reach the loopback address of this machine.
    if is_local(&uri) {
        config = config.proxy(None);
    }
    if let Some(certificates) = custom_certificates()? {
        config = config.tls_config(TlsConfig::builder().root_certs(certificates).build());
    }
    Ok(Agent::new_with_config(config.build()))
}

/// The certificates in `SSL_CERT_FILE`, for networks with their own authority; by default, Mozilla's list is compiled in.
fn custom_certificates() -> Result<Option<RootCerts>> {
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
            reason: "contains no certificate (environment variable SSL_CERT_FILE)".into(),
        }
        .into());
    }
    Ok(Some(RootCerts::new_with_certs(&certificates)))
}

/// One request: receives the file, or its remaining bytes.
fn attempt(
    agent: &Agent,
    request: &Request<'_>,
    part: &Partial,
    observer: Observer<'_>,
) -> std::result::Result<(), AttemptError> {
    let resume = part.resume_point(request.url);
    let mut response = ask(agent, request, resume.as_ref())?;
    let (offset, total) = match response.status() {
        StatusCode::OK => (0, response.body().content_length()),
        StatusCode::PARTIAL_CONTENT => match (&resume, content_range(response.headers())) {
            (Some(resume), Some((first, total)))
                if first == resume.done && (resume.version.is_some() || resume.total == total) =>
            {
                (resume.done, total)
            }
            _ => {
                return Err(start_over(
                    part,
                    request,
                    "the server sent another range than requested",
                ));
            }
        },
        StatusCode::RANGE_NOT_SATISFIABLE => match (&resume, unsatisfied(response.headers())) {
            // All bytes had been received; only the renaming was missing.
            (Some(resume), Some(total)) if total == resume.done && resume.total == Some(total) => {
                return Ok(());
            }
            _ => return Err(start_over(part, request, "the server rejected the range")),
        },
        status => return Err(bad_status(request, status)),
    };
    let mut out = part.open(request.url, offset, total, &response)?;
    let (url, done) = (&*without_password(request.url), offset);
    notify(observer, Event::Receiving { url, done, total })?;
    receive(request, &mut response, &mut out, offset, total, observer)
}

/// The response to a request for the file or its remaining bytes, after redirects.
fn ask(
    agent: &Agent,
    request: &Request<'_>,
    resume: Option<&ResumePoint>,
) -> std::result::Result<Response<Body>, AttemptError> {
    let refused = |reason: String| {
        AttemptError::Permanent(FetchError::Unreachable {
            host: host(request.url),
            source_url: request.source.to_owned(),
            path: request.path.to_owned(),
            reason,
        })
    };
    let mut uri: Uri =
        (request.url.parse()).map_err(|_| FetchError::BadBaseUrl(request.url.into()))?;
    for _ in 0..=MAX_REDIRECTS {
        let mut call = agent.get(uri.clone());
        if let Some(resume) = resume {
            call = call.header("Range", format!("bytes={}-", resume.done));
            if let Some(version) = &resume.version {
                // The server sends the whole file if its version has changed.
                call = call.header("If-Range", version);
            }
        }
        let response = call.call().map_err(|error| unreachable(request, &error))?;
        if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(response);
        }
        let location = text(response.headers(), &header::LOCATION)
            .ok_or_else(|| refused("it redirects to no address".to_owned()))?;
        uri = redirected(&uri, location).map_err(refused)?;
    }
    Err(refused(format!(
        "it redirects more than {MAX_REDIRECTS} times"
    )))
}

/// Writes the body of a response to the partial file.
fn receive(
    request: &Request<'_>,
    response: &mut Response<Body>,
    out: &mut File,
    offset: u64,
    total: Option<u64>,
    observer: Observer<'_>,
) -> std::result::Result<(), AttemptError> {
    let mut done = offset;
    let interrupted = |done: u64, reason: String| {
        AttemptError::Temporary(FetchError::Interrupted {
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
            Err(error) => return Err(interrupted(done, error.to_string())),
        };
        if n == 0 {
            break;
        }
        out.write_all(&buffer[..n])
            .map_err(|source| write_error(request.path, source))?;
        done += n as u64;
        notify(observer, Event::Received { done, total })?;
    }
    match total {
        Some(total) if done != total => {
            Err(interrupted(done, "unexpected end of the response".into()))
        }
        _ => Ok(out
            .sync_all()
            .map_err(|source| write_error(request.path, source))?),
    }
}

/// The files of an incomplete download.
struct Partial {
    bytes: PathBuf,
    from: PathBuf,
}

/// Where a download can be resumed.
struct ResumePoint {
    done: u64,
    total: Option<u64>,
    /// The version of the file, as reported by the server.
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

    /// `None` if the bytes come from another address or cannot be assigned to a version of the file.
    fn resume_point(&self, url: &str) -> Option<ResumePoint> {
        let text = fs::read_to_string(&self.from).ok()?;
        let mut lines = text.lines();
        if lines.next() != Some(&without_password(url)) {
            return None;
        }
        let total = lines.next()?.parse().ok();
        let version = lines.next().filter(|line| !line.is_empty());
        let point = ResumePoint {
            done: self.len(),
            total,
            version: version.map(str::to_owned),
        };
        (point.done > 0 && (point.version.is_some() || total.is_some())).then_some(point)
    }

    /// Opens the partial file at an offset; at 0, after replacing the record of its origin.
    fn open(
        &self,
        url: &str,
        offset: u64,
        total: Option<u64>,
        response: &Response<Body>,
    ) -> Result<File> {
        let failed = |source| write_error(&self.bytes, source);
        if offset == 0 {
            // The bytes are removed first: a record without bytes is harmless, bytes with a wrong record are not.
            self.remove();
            let total = total.map_or(String::new(), |n| n.to_string());
            let version = version(response.headers()).unwrap_or_default();
            let url = without_password(url);
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
        // The bytes first: see `open`. An error here shows up when the file is written.
        let _ = fs::remove_file(&self.bytes);
        let _ = fs::remove_file(&self.from);
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// A string that changes with the file. Weak tags are ignored, since they may be the same for different bytes.
fn version(headers: &HeaderMap) -> Option<&str> {
    text(headers, &header::ETAG)
        .filter(|tag| tag.starts_with('"'))
        .or_else(|| text(headers, &header::LAST_MODIFIED))
}

/// First byte and total of `bytes FIRST-LAST/TOTAL`.
fn content_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let range = text(headers, &header::CONTENT_RANGE)?.strip_prefix("bytes ")?;
    let (range, total) = range.split_once('/')?;
    Some((range.split_once('-')?.0.parse().ok()?, total.parse().ok()))
}

/// Total of `bytes */TOTAL`.
fn unsatisfied(headers: &HeaderMap) -> Option<u64> {
    let range = text(headers, &header::CONTENT_RANGE)?;
    range.strip_prefix("bytes */")?.parse().ok()
}

/// Discards the partial file, so that the next attempt starts at the first byte.
fn start_over(part: &Partial, request: &Request<'_>, reason: &str) -> AttemptError {
    part.remove();
    AttemptError::Temporary(FetchError::Interrupted {
        host: host(request.url),
        done: 0,
        total: "an unknown number of".into(),
        reason: reason.into(),
    })
}

fn unreachable(request: &Request<'_>, error: &ureq::Error) -> AttemptError {
    let reason = match error {
        ureq::Error::HostNotFound => "unknown host".to_owned(),
        ureq::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    };
    let fetch_error = FetchError::Unreachable {
        host: host(request.url),
        source_url: request.source.to_owned(),
        path: request.path.to_owned(),
        reason,
    };
    match error {
        // Timeouts and broken connections are temporary; unknown hosts, closed ports and bad certificates are not.
        ureq::Error::Timeout(_) | ureq::Error::Protocol(_) => AttemptError::Temporary(fetch_error),
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
            AttemptError::Temporary(fetch_error)
        }
        _ => AttemptError::Permanent(fetch_error),
    }
}

fn bad_status(request: &Request<'_>, status: StatusCode) -> AttemptError {
    let error = FetchError::Status {
        host: host(request.url),
        status: status.to_string(),
        url: request.url.to_owned(),
        source_url: request.source.to_owned(),
        path: request.path.to_owned(),
    };
    match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
            AttemptError::Temporary(error)
        }
        status if status.is_server_error() => AttemptError::Temporary(error),
        _ => AttemptError::Permanent(error),
    }
}

/// Checks the format and, if it is known, the checksum of a complete file. Returns its digest.
fn check(request: &Request<'_>, path: &Path) -> Result<String> {
    let (expected, magic): (_, &[u8]) = match request.path.extension().and_then(|e| e.to_str()) {
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
        return Err(FetchError::WrongFormat {
            url: request.url.to_owned(),
            expected,
            start: String::from_utf8_lossy(&start).into_owned(),
        });
    }
    let found = cache::digest(path)?;
    match request.sha256 {
        Some(expected) if expected != found => Err(FetchError::Checksum {
            url: request.url.to_owned(),
            expected: expected.to_owned(),
            found,
        }),
        _ => Ok(found),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_encrypted() {
        let follow = |from: &str, location: &str| {
            let to = redirected(&from.parse().unwrap(), location);
            to.map(|uri| uri.to_string())
        };
        let from = "https://a.org/x/file.zip";
        for (location, to) in [
            ("https://b.org/y.zip", "https://b.org/y.zip"),
            ("//b.org/y.zip", "https://b.org/y.zip"),
            ("/y.zip?v=2", "https://a.org/y.zip?v=2"),
            ("y.zip", "https://a.org/x/y.zip"),
        ] {
            assert_eq!(follow(from, location).unwrap(), to);
        }
        for location in [
            "http://a.org/x/file.zip",
            "http://localhost/x/file.zip",
            "ftp://a.org/file.zip",
        ] {
            let refusal = follow(from, location).unwrap_err();
            assert!(refusal.contains("not encrypted"), "{refusal}");
        }
        let refusal = follow(from, "file:///etc/passwd").unwrap_err();
        assert!(refusal.contains("which is no address"), "{refusal}");
        let local = "http://localhost:8000/file.zip";
        assert!(follow(local, "http://127.0.0.1:9000/file.zip").is_ok());
        assert!(follow(local, "http://a.org/file.zip").is_err());
        let refusal = follow(from, "http://me:secret@a.org/").unwrap_err();
        assert!(!refusal.contains("secret"), "{refusal}");
    }
}
