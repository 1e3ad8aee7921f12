//! A whole set: what is there, what is missing, and where it lies.

use crate::cache::{self, Cache};
use crate::catalogue::{Download, Part, Set};
use crate::download::{self, Request, tell};
use crate::error::{FetchError, Result};
use crate::unpack::unpack;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

/// Where to look, and what may be done.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// The cache; by default [`default_folder`](crate::default_folder). Each set has a folder in it.
    pub folder: Option<PathBuf>,
    /// Fetch from a mirror: `https://host/path` becomes `BASE/host/path`, which is how `wget -x` lays files out. By
    /// default what the environment variable `HDSL_FETCH_BASE` says, if anything.
    pub base_url: Option<String>,
    /// Whether what is missing may be downloaded.
    pub download: bool,
    /// Download again what is there already.
    pub again: bool,
    /// How long to wait before a second try; it doubles from then on.
    pub pause: Duration,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            folder: None,
            base_url: None,
            download: true,
            again: false,
            pause: Duration::from_secs(1),
        }
    }
}

/// What happens on the way.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Another process fetches the same set; we wait for it.
    Locked,
    /// Bytes begin to come, or to come again after a break.
    Receiving {
        /// From where.
        url: &'a str,
        /// How many are there already.
        done: u64,
        /// How many there will be, if the server says.
        total: Option<u64>,
    },
    /// More bytes came.
    Received {
        /// How many are there now.
        done: u64,
        /// How many there will be.
        total: Option<u64>,
    },
    /// The line broke, and we try again after a pause.
    TryingAgain {
        /// What happened.
        reason: &'a str,
        /// How long we wait.
        pause: Duration,
    },
    /// The pause goes on.
    Waiting,
    /// A zip is being unpacked.
    Unpacking {
        /// Its name.
        file: &'a str,
    },
}

/// Who is told, and may ask to stop.
pub(crate) type Watch<'a> = &'a mut dyn FnMut(&Event<'_>) -> ControlFlow<()>;

/// Where a set lies.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The set.
    pub set: &'static Set,
    /// Its folder.
    pub folder: PathBuf,
    /// The parts asked for.
    pub parts: Vec<FetchedPart>,
}

/// Where a part lies.
#[derive(Clone, Debug)]
pub struct FetchedPart {
    /// The part.
    pub part: &'static Part,
    /// Its rows.
    pub data: PathBuf,
    /// Its labels, if they are in a file of their own.
    pub labels: Option<PathBuf>,
    /// Whether it came just now, rather than from the cache.
    pub is_new: bool,
}

/// Brings the parts of a set into the cache, all of them if none is named. `watch` hears what happens, and stops it by
/// breaking.
pub fn fetch(
    set: &'static Set,
    parts: &[&str],
    options: &FetchOptions,
    watch: &mut dyn FnMut(&Event<'_>) -> ControlFlow<()>,
) -> Result<Fetched> {
    let wanted = wanted(set, parts)?;
    let base = base_url(options)?;
    let folder = match &options.folder {
        Some(folder) => folder.clone(),
        None => cache::default_folder()?,
    };
    let folder = folder.join(set.name);
    let mut stop = ControlFlow::Continue(());
    let cache = Cache::open(folder.clone(), || stop = watch(&Event::Locked))?;
    if stop.is_break() {
        return Err(FetchError::Stopped);
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
        let is_new =
            !inside.is_empty() && bring(&cache, file, &inside, options, base.as_deref(), watch)?;
        fetched.extend(inside.into_iter().map(|part| FetchedPart {
            part,
            data: folder.join(part.file),
            labels: part.labels.map(|labels| folder.join(labels)),
            is_new,
        }));
    }
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
            has: set
                .parts
                .iter()
                .map(|p| p.name)
                .collect::<Vec<_>>()
                .join(", "),
        })
    };
    parts.iter().map(known).collect()
}

/// Without a slash at the end.
fn base_url(options: &FetchOptions) -> Result<Option<String>> {
    let base = match &options.base_url {
        Some(base) => Some(base.clone()),
        None => std::env::var("HDSL_FETCH_BASE")
            .ok()
            .filter(|base| !base.is_empty()),
    };
    match base {
        Some(base) if !base.starts_with("http://") && !base.starts_with("https://") => {
            Err(FetchError::BadBase(base))
        }
        Some(base) => Ok(Some(base.trim_end_matches('/').to_owned())),
        None => Ok(None),
    }
}

/// Sees to it that the files of these parts are there. Says whether anything was downloaded.
fn bring(
    cache: &Cache,
    file: &Download,
    parts: &[&Part],
    options: &FetchOptions,
    base: Option<&str>,
    watch: Watch<'_>,
) -> Result<bool> {
    let names: Vec<&str> = parts
        .iter()
        .flat_map(|part| std::iter::once(part.file).chain(part.labels))
        .collect();
    if !options.again && all_there(cache, &names)? {
        return Ok(false);
    }
    let name = file.file_name();
    // A zip that is there already, perhaps put there by hand, needs no network.
    let is_new = !(file.is_zip() && !options.again && cache.has(name)?);
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
            pause: options.pause,
        };
        let digest = download::download(&request, watch)?;
        cache.remember(name, digest)?;
    } else if let Some(want) = file.sha256 {
        let path = cache.path(name);
        let got = cache::digest(&path)?;
        if got != want {
            return Err(FetchError::Changed {
                path,
                want: want.to_owned(),
                got,
            });
        }
    }
    if file.is_zip() {
        tell(watch, Event::Unpacking { file: name })?;
        for name in &names {
            cache.forget(name)?;
        }
        unpack(&cache.path(name), &names, &cache.path(""))?;
        for name in &names {
            cache.remember(name, cache::digest(&cache.path(name))?)?;
        }
    }
    Ok(is_new)
}

fn all_there(cache: &Cache, names: &[&str]) -> Result<bool> {
    for name in names {
        if !cache.has(name)? {
            return Ok(false);
        }
    }
    Ok(true)
}
