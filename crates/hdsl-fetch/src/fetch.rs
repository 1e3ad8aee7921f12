//! The parts of a data set: found in the cache, or downloaded.

use crate::cache::{self, Cache};
use crate::catalogue::{Download, Part, Set};
use crate::download::{self, Request, notify};
use crate::error::{FetchError, Result};
use crate::unpack::unpack;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

/// Options of [`fetch`].
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// The cache folder, with one subfolder per data set; by default [`default_folder`](crate::default_folder).
    pub folder: Option<PathBuf>,
    /// A mirror: `https://host/path` becomes `BASE/host/path`, the layout of `wget -x`. By default, the environment
    /// variable `HDSL_FETCH_BASE`, if it is set.
    pub base_url: Option<String>,
    /// Whether missing files may be downloaded.
    pub download: bool,
    /// Whether to download files again that are in the cache.
    pub again: bool,
    /// The delay before the first retry. It doubles with each further retry.
    pub retry_delay: Duration,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            folder: None,
            base_url: None,
            download: true,
            again: false,
            retry_delay: Duration::from_secs(1),
        }
    }
}

/// The progress of [`fetch`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Another process fetches the same set. The call waits for it.
    Locked,
    /// A download starts or is resumed.
    Receiving {
        /// The address.
        url: &'a str,
        /// Bytes received before.
        done: u64,
        /// The size of the file, if the server reports it.
        total: Option<u64>,
    },
    /// More bytes were received.
    Received {
        /// Bytes received so far.
        done: u64,
        /// The size of the file, if the server reports it.
        total: Option<u64>,
    },
    /// An attempt failed and is retried after a delay.
    Retrying {
        /// The error.
        reason: &'a str,
        /// The delay.
        delay: Duration,
    },
    /// The delay has not yet passed. Sent regularly, so that the observer can cancel.
    Waiting,
    /// A zip archive is being extracted.
    Unpacking {
        /// Its name.
        file: &'a str,
    },
}

/// The observer of a download, which cancels it by returning `Break`.
pub(crate) type Observer<'a> = &'a mut dyn FnMut(&Event<'_>) -> ControlFlow<()>;

/// The files of a data set in the cache.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The data set.
    pub set: &'static Set,
    /// Its folder in the cache.
    pub folder: PathBuf,
    /// The requested parts, in the requested order.
    pub parts: Vec<FetchedPart>,
}

/// The files of one part in the cache.
#[derive(Clone, Debug)]
pub struct FetchedPart {
    /// The part.
    pub part: &'static Part,
    /// The file with its rows.
    pub data: PathBuf,
    /// The file with its labels, if it is a separate one.
    pub labels: Option<PathBuf>,
    /// Whether it was downloaded by this call.
    pub is_new: bool,
}

/// Downloads the named parts of a data set that are not in the cache, or all parts if none is named. `observer` receives
/// progress events and cancels the call by returning `Break`.
pub fn fetch(
    set: &'static Set,
    parts: &[&str],
    options: &FetchOptions,
    observer: &mut dyn FnMut(&Event<'_>) -> ControlFlow<()>,
) -> Result<Fetched> {
    fetch_parts(set, parts, options, observer).map_err(FetchError::without_passwords)
}

fn fetch_parts(
    set: &'static Set,
    parts: &[&str],
    options: &FetchOptions,
    observer: Observer<'_>,
) -> Result<Fetched> {
    let wanted = wanted(set, parts)?;
    let base = base_url(options)?;
    let folder = match &options.folder {
        Some(folder) => folder.clone(),
        None => cache::default_folder()?,
    };
    let folder = folder.join(set.name);
    let mut flow = ControlFlow::Continue(());
    let mut cache = Cache::open(folder.clone(), || flow = observer(&Event::Locked))?;
    if options.again {
        cache.repair();
    }
    if flow.is_break() {
        return Err(FetchError::Cancelled);
    }
    let mut fetched = Vec::new();
    for file in set.downloads {
        let is_inside = |part: &Part| {
            set.download_of(part)
                .is_some_and(|from| from.url == file.url)
        };
        let inside: Vec<_> = wanted
            .iter()
            .copied()
            .filter(|part| is_inside(part))
            .collect();
        let is_new = !inside.is_empty()
            && ensure_files(&cache, file, &inside, options, base.as_deref(), observer)?;
        fetched.extend(inside.into_iter().map(|part| FetchedPart {
            part,
            data: folder.join(part.file),
            labels: part.labels.map(|labels| folder.join(labels)),
            is_new,
        }));
    }
    // In the requested order.
    fetched.sort_by_key(|f| wanted.iter().position(|part| part.name == f.part.name));
    Ok(Fetched {
        set,
        parts: fetched,
        folder,
    })
}

fn wanted(set: &'static Set, parts: &[&str]) -> Result<Vec<&'static Part>> {
    if parts.is_empty() {
        return Ok(set.parts.iter().collect());
    }
    let known = |&name: &&str| {
        set.part(name).ok_or_else(|| FetchError::UnknownPart {
            set: set.name,
            part: name.to_owned(),
            expected: set
                .parts
                .iter()
                .map(|p| p.name)
                .collect::<Vec<_>>()
                .join(", "),
        })
    };
    parts.iter().map(known).collect()
}

/// The address of the mirror without a slash at the end.
fn base_url(options: &FetchOptions) -> Result<Option<String>> {
    let base = match &options.base_url {
        Some(base) => Some(base.clone()),
        None => std::env::var("HDSL_FETCH_BASE")
            .ok()
            .filter(|base| !base.is_empty()),
    };
    match base {
        Some(base) if !base.starts_with("http://") && !base.starts_with("https://") => {
            Err(FetchError::BadBaseUrl(base))
        }
        Some(base) => Ok(Some(base.trim_end_matches('/').to_owned())),
        None => Ok(None),
    }
}

/// Makes sure that the files of these parts are in the cache. Returns whether anything was downloaded.
fn ensure_files(
    cache: &Cache,
    file: &Download,
    parts: &[&Part],
    options: &FetchOptions,
    base: Option<&str>,
    observer: Observer<'_>,
) -> Result<bool> {
    let names: Vec<&str> = parts
        .iter()
        .flat_map(|part| std::iter::once(part.file).chain(part.labels))
        .collect();
    if !options.again && contains_all(cache, &names)? {
        return Ok(false);
    }
    let name = file.file_name();
    // A zip archive that is in the cache, perhaps placed by the user, needs no network.
    let is_new = !(file.is_zip() && !options.again && cache.contains(name)?);
    if is_new {
        let url = match base {
            Some(base) => file.url.replacen("https:/", base, 1),
            None => file.url.to_owned(),
        };
        let path = cache.path(name);
        if !options.download {
            return Err(FetchError::NotCached { path, url });
        }
        let request = Request {
            url: &url,
            source: file.url,
            path: &path,
            sha256: file.sha256,
            retry_delay: options.retry_delay,
        };
        let digest = download::download(&request, observer)?;
        cache.record(name, digest)?;
    } else if let Some(expected) = file.sha256 {
        let path = cache.path(name);
        let found = cache::digest(&path)?;
        if found != expected {
            return Err(FetchError::Changed {
                path,
                expected: expected.to_owned(),
                found,
            });
        }
    }
    if file.is_zip() {
        notify(observer, Event::Unpacking { file: name })?;
        for name in &names {
            cache.remove_record(name)?;
        }
        unpack(&cache.path(name), &names, &cache.path(""))?;
        for name in &names {
            cache.record(name, cache::digest(&cache.path(name))?)?;
        }
    }
    Ok(is_new)
}

fn contains_all(cache: &Cache, names: &[&str]) -> Result<bool> {
    for name in names {
        if !cache.contains(name)? {
            return Ok(false);
        }
    }
    Ok(true)
}
