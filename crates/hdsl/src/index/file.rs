//! Index files: two slots at the start, then the model, segments, lists of removed rows and manifests, each appended once and
//! never changed. `docs/format.md` has the layout.
//!
//! A slot points to a manifest, and the manifest to all the rest. To save changes, everything new is appended and written to
//! disk, and then the older slot is overwritten. Whatever happens in between, one of the slots is complete, and points to
//! the old state or to the new one.

use super::codec::{Decoder, SEAL, seal, unseal};
use super::mapping::Mapping;
use super::segment::Segment;
use super::source::Source;
use super::{Index, Part, Read, Removed};
use crate::data::{INDEX_MAGIC as MAGIC, OutputFile};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::similarity::Normalization;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The version of the format, the only one that is written and read.
const FORMAT_VERSION: u32 = 1;

/// The two slots are so far apart that a disk never writes both at once.
const SLOT_DISTANCE: u64 = 4096;

/// Magic bytes, checksum, version, generation, place and checksum of the manifest.
const SLOT: usize = MAGIC.len() + SEAL + 4 + 8 + 8 + 8 + 4;

/// Where the first data are.
const DATA: u64 = 2 * SLOT_DISTANCE;

/// Bytes of the file: offset and length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Place(u64, u64);

impl Place {
    fn end(self) -> u64 {
        self.0.saturating_add(self.1)
    }
}

/// The state of the file that an index was read from or saved to.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) path: PathBuf,
    slot: Slot,
    model: Place,
    next_row: u32,
    /// The places of segments and of their removed rows.
    places: Vec<(Option<Place>, Option<Place>)>,
}

/// What a slot says.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slot {
    /// Counts the states of a file.
    generation: u64,
    manifest: Place,
    checksum: u32,
}

impl Slot {
    fn bytes(self) -> Vec<u8> {
        let mut block = FORMAT_VERSION.to_le_bytes().to_vec();
        for number in [self.generation, self.manifest.0, self.manifest.1] {
            block.extend(number.to_le_bytes());
        }
        block.extend(self.checksum.to_le_bytes());
        [&MAGIC[..], &seal(&block)].concat()
    }

    /// The slot in these bytes, if it is complete.
    fn parse(bytes: &[u8]) -> Read<Option<Self>> {
        let Some(block) = bytes
            .strip_prefix(&MAGIC)
            .and_then(|rest| unseal(rest).ok())
        else {
            return Ok(None);
        };
        let mut block = Decoder(block);
        let version = block.u32()?;
        if version != FORMAT_VERSION {
            return Err(format!(
                "an index of format version {version}, but this version of hdsl reads {FORMAT_VERSION}"
            ));
        }
        Ok(Some(Self {
            generation: block.u64()?,
            manifest: Place(block.u64()?, block.u64()?),
            checksum: block.u32()?,
        }))
    }

    /// The slot of the newest state of a file.
    fn newest(whole: &Source) -> Read<Self> {
        let mut newest: Option<Self> = None;
        let mut is_index = false;
        for at in [0, SLOT_DISTANCE] {
            // A file of another kind may be shorter.
            let Ok(bytes) = whole.read(at..at + SLOT as u64) else {
                break;
            };
            is_index |= bytes.starts_with(&MAGIC);
            if let Some(slot) = Self::parse(&bytes)? {
                newest = newest
                    .filter(|other| other.generation > slot.generation)
                    .or(Some(slot));
            }
        }
        newest.ok_or_else(|| match is_index {
            true => "checksum mismatch: the file is damaged".into(),
            false => "not an hdsl index; `hdsl index build MODEL ROWS -o INDEX` makes one".into(),
        })
    }

    /// The slot of the newest state of an open file.
    fn of(file: &File) -> Read<Self> {
        let whole = file.try_clone().and_then(Source::of);
        Self::newest(&whole.map_err(|e| format!("cannot read: {e}"))?)
    }

    /// Where the slot of this generation is.
    fn offset(self) -> u64 {
        (self.generation % 2) * SLOT_DISTANCE
    }
}

/// What the file contains.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    normalization: Normalization,
    next_row: u32,
    model: Place,
    segments: Vec<SegmentEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SegmentEntry {
    place: Place,
    first_row: u32,
    removed: Option<Place>,
}

impl Index {
    /// Opens an index file. Only its model and the list of its segments are read; searches read the rest where they need it.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        match File::open(&path) {
            Ok(file) => Self::of_file(path, file),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    fn of_file(path: PathBuf, file: File) -> Result<Self> {
        match Source::of(file) {
            Ok(whole) => Self::of_source(path, &whole, None),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    /// An index from the bytes of a file; the path is only for messages. Any bytes are safe to try: memory is allocated only
    /// for data that is there.
    pub fn from_bytes(path: impl Into<PathBuf>, bytes: Vec<u8>) -> Result<Self> {
        let mut index = Self::of_source(path.into(), &Source::Memory(bytes.into()), None)?;
        index.forget_origin();
        Ok(index)
    }

    /// Makes an index that has no file.
    pub(super) fn forget_origin(&mut self) {
        self.origin = None;
        for part in &mut self.parts {
            part.saved_at = None;
        }
    }

    fn of_source(path: PathBuf, whole: &Source, mapping: Option<Arc<Mapping>>) -> Result<Self> {
        let decoded = Self::decode(&path, whole, mapping);
        decoded.map_err(|reason| Error::File { path, reason })
    }

    /// Reads a file, whose model may be known.
    fn decode(path: &Path, whole: &Source, mapping: Option<Arc<Mapping>>) -> Read<Self> {
        let slot = Slot::newest(whole)?;
        let source = |place: Place| match place.0 >= DATA {
            true => whole.part(place.0..place.end()),
            false => Err("damaged: a part of the index is in its header".into()),
        };
        let read = |place: Place| source(place)?.read(0..place.1);
        let manifest = read(slot.manifest)?;
        if crc32fast::hash(&manifest) != slot.checksum && !cfg!(fuzzing) {
            return Err("checksum mismatch: the file is damaged".into());
        }
        let manifest: Manifest = serde_json::from_slice(&manifest)
            .map_err(|e| format!("damaged: the manifest is invalid: {e}"))?;
        let mapping = mapping.map_or_else(
            || {
                let model = Model::from_bytes("its model", &read(manifest.model)?);
                let model = model.map_err(|e| e.to_string())?;
                Ok::<_, String>(Arc::new(Mapping::new(model, manifest.normalization)))
            },
            Ok,
        )?;
        let part = |entry: &SegmentEntry| -> Read<Part> {
            let segment = Segment::open(source(entry.place)?)?;
            let removed = match entry.removed {
                None => Removed::default(),
                Some(place) => {
                    let bits = unseal(&read(place)?)?.to_vec();
                    Removed::new(bits, segment.n_rows(), place)?
                }
            };
            Ok(Part {
                segment: Arc::new(segment),
                first_row: entry.first_row,
                removed: Arc::new(removed),
                saved_at: Some(entry.place),
            })
        };
        let parts = manifest
            .segments
            .iter()
            .map(part)
            .collect::<Read<Vec<Part>>>()?;
        if !parts.is_sorted_by(|a, b| a.first_row < b.first_row) {
            return Err("damaged: the segments are not in the order of their rows".into());
        }
        Ok(Self {
            mapping,
            next_row: manifest.next_row,
            origin: Some(Arc::new(Origin {
                path: path.to_owned(),
                slot,
                model: manifest.model,
                next_row: manifest.next_row,
                places: places(&parts),
            })),
            parts,
            pool: Arc::default(),
        })
    }

    /// Saves the index. If it was read from this file or saved to it, the changes are appended; otherwise, the file is
    /// written anew. It is in its old or in its new state at any time.
    ///
    /// It is an error if another process has changed the file in the meantime.
    pub fn save(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let is_same = |origin: &Arc<Origin>| same_path(&origin.path, path);
        match self.origin.clone().filter(is_same) {
            Some(origin) if path.exists() => self.append_to(&lock(path)?, &origin),
            _ => self.write(OutputFile::create(path)?),
        }
    }

    /// Opens an index file to change it. No other process changes it until the result is dropped.
    pub fn edit(path: impl AsRef<Path>) -> Result<IndexEdit> {
        let path = path.as_ref();
        let file = lock(path)?;
        let again = file.try_clone();
        let again = again.map_err(|source| write_error(path, source))?;
        Ok(IndexEdit {
            index: Self::of_file(path.to_owned(), again)?,
            path: path.to_owned(),
            file,
        })
    }

    /// Writes the index to a new file. The destination can be opened before the work that makes the index.
    pub fn write(&mut self, mut out: OutputFile) -> Result<()> {
        let path = out.path().to_owned();
        let mut places = Appended { end: 0 };
        let mut failed = None;
        out.fill(|out| {
            places.put(out, &[0; DATA as usize])?;
            let model = places.put(out, &self.model().to_bytes())?;
            match self.put_parts(out, &mut places, model, false) {
                Ok((manifest, checksum)) => {
                    let slot = Slot {
                        generation: 2,
                        manifest,
                        checksum,
                    };
                    out.overwrite_start(&slot.bytes())
                }
                Err(Failed::Write(error)) => Err(error),
                Err(Failed::Read(reason)) => {
                    failed = Some(reason);
                    Ok(())
                }
            }
        })?;
        if let Some(reason) = failed {
            return self.read(Err(reason));
        }
        out.commit()?;
        self.adopt(path)
    }

    /// Goes on with the file, which was just written and has the same contents.
    fn adopt(&mut self, path: PathBuf) -> Result<()> {
        let file = File::open(&path).map_err(|source| Error::Read {
            path: path.clone(),
            source,
        })?;
        let whole = Source::of(file).map_err(|source| Error::Read {
            path: path.clone(),
            source,
        })?;
        let mut saved = Self::of_source(path, &whole, Some(self.mapping.clone()))?;
        // What these segments have read is known already.
        for (new, old) in saved.parts.iter_mut().zip(&self.parts) {
            if new.saved_at == old.saved_at {
                new.segment = old.segment.clone();
            }
        }
        saved.pool = self.pool.clone();
        *self = saved;
        Ok(())
    }

    /// Appends what is new to the file, which is locked.
    fn append_to(&mut self, file: &File, origin: &Origin) -> Result<()> {
        let slot = self.read(Slot::of(file))?;
        if slot != origin.slot {
            return Err(Error::file(
                &origin.path,
                "was changed by another process after it was read; open it again",
            ));
        }
        let is_saved = self.parts.iter().all(Part::is_saved);
        if is_saved && self.next_row == origin.next_row && places(&self.parts) == origin.places {
            return Ok(());
        }
        let appended = self.append(file, slot, origin.model);
        appended.map_err(|failed| match failed {
            Failed::Write(source) => write_error(&origin.path, source),
            Failed::Read(reason) => Error::file(&origin.path, reason),
        })?;
        self.adopt(origin.path.clone())
    }

    fn append(&self, file: &File, old: Slot, model: Place) -> std::result::Result<(), Failed> {
        let mut places = Appended {
            end: old.manifest.end(),
        };
        // What a process left behind that ended while it appended is overwritten.
        let mut out = BufWriter::new(file);
        out.seek(SeekFrom::Start(places.end))?;
        let (manifest, checksum) = self.put_parts(&mut out, &mut places, model, true)?;
        out.flush()?;
        file.set_len(places.end)?;
        file.sync_data()?;
        let slot = Slot {
            generation: old.generation + 1,
            manifest,
            checksum,
        };
        out.seek(SeekFrom::Start(slot.offset()))?;
        out.write_all(&slot.bytes())?;
        out.flush()?;
        file.sync_data()?;
        Ok(())
    }

    /// Writes segments, lists of removed rows and the manifest, except for what is in the file already. Returns place and
    /// checksum of the manifest.
    fn put_parts(
        &self,
        out: &mut impl Write,
        places: &mut Appended,
        model: Place,
        is_same_file: bool,
    ) -> std::result::Result<(Place, u32), Failed> {
        let mut segments = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let place = match part.saved_at.filter(|_| is_same_file) {
                Some(place) => place,
                None => places.put(out, &part.segment.bytes().map_err(Failed::Read)?)?,
            };
            let removed = match part.removed.saved_at.filter(|_| is_same_file) {
                _ if part.removed.n == 0 => None,
                Some(place) => Some(place),
                None => Some(places.put(out, &seal(&part.removed.bits))?),
            };
            segments.push(SegmentEntry {
                place,
                first_row: part.first_row,
                removed,
            });
        }
        let manifest = Manifest {
            normalization: self.normalization(),
            next_row: self.next_row,
            model,
            segments,
        };
        let manifest = serde_json::to_vec(&manifest).expect("all keys are strings");
        Ok((places.put(out, &manifest)?, crc32fast::hash(&manifest)))
    }

    /// How many bytes the file of the index has, and how many of them are in use; `None` if it has no file.
    pub fn file_size(&self) -> Option<(u64, u64)> {
        let origin = self.origin.as_ref()?;
        let parts = self
            .parts
            .iter()
            .map(|part| part.segment.n_bytes())
            .sum::<u64>();
        let fixed = DATA + origin.model.1 + origin.slot.manifest.1;
        Some((origin.slot.manifest.end(), fixed + parts))
    }
}

/// A change of an index file. Without [`IndexEdit::commit`], the file stays as it is.
///
/// ```
/// # use hdsl::atoms::Path;
/// # use hdsl::index::{Index, NewRows};
/// # use hdsl::{Atom, Model, ModelParts, Rows};
/// # let folder = std::env::temp_dir().join(format!("hdsl-edit-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let file = folder.join("m.index");
/// # let path = Path::new(vec![(Atom::plus(0, 1)?, 1.0)], vec![])?;
/// # let mut index = Index::new(Model::new(ModelParts::new(3, 2.0, path))?, None);
/// # let rows = Rows::from_parts(3, vec![0, 1, 2], vec![0, 1], vec![1.0, 2.0])?;
/// index.add(&NewRows::new(&rows))?;
/// index.save(&file)?;
/// let mut edit = Index::edit(&file)?;
/// edit.index().remove(&[0])?;
/// edit.commit()?;
/// assert_eq!(Index::open(&file)?.rows()?, [1]);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Debug)]
pub struct IndexEdit {
    index: Index,
    path: PathBuf,
    /// The file, which is locked.
    file: File,
}

impl IndexEdit {
    /// The index, to be changed.
    pub fn index(&mut self) -> &mut Index {
        &mut self.index
    }

    /// Saves the changes.
    pub fn commit(mut self) -> Result<()> {
        match self.index.origin.clone() {
            Some(origin) => self.index.append_to(&self.file, &origin),
            // Written anew, as after `Index::compacted`.
            None => self.index.write(OutputFile::create(&self.path)?),
        }
    }
}

/// Whether a file is an index, by its first bytes.
pub fn is_index(path: &Path) -> bool {
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let file = is_file.then(|| File::open(path).ok()).flatten();
    let whole = file.and_then(|file| Source::of(file).ok());
    whole.is_some_and(|whole| {
        [0, SLOT_DISTANCE].into_iter().any(|at| {
            let start = whole.read(at..at + MAGIC.len() as u64);
            start.is_ok_and(|start| *start == MAGIC)
        })
    })
}

/// Why an index could not be written.
enum Failed {
    Write(io::Error),
    /// What is to be copied is damaged.
    Read(String),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Failed::Write(error)
    }
}

/// The end of what was written so far.
struct Appended {
    end: u64,
}

impl Appended {
    fn put(&mut self, out: &mut impl Write, bytes: &[u8]) -> io::Result<Place> {
        out.write_all(bytes)?;
        let place = Place(self.end, bytes.len() as u64);
        self.end += place.1;
        Ok(place)
    }
}

impl Removed {
    /// The removed rows of a file.
    fn new(bits: Vec<u8>, n_rows: usize, place: Place) -> Read<Self> {
        let n = bits.iter().map(|byte| byte.count_ones() as usize).sum();
        let last = n_rows % 8;
        let spare = bits
            .last()
            .map_or(0, |byte| if last == 0 { 0 } else { byte >> last });
        match bits.len() == n_rows.div_ceil(8) && spare == 0 && n < n_rows {
            true => Ok(Self {
                bits,
                n,
                saved_at: Some(place),
            }),
            false => Err("damaged: a list of removed rows does not fit its segment".into()),
        }
    }
}

fn write_error(path: &Path, source: io::Error) -> Error {
    Error::Write {
        path: path.to_owned(),
        source,
    }
}

/// Whether two paths lead to the same file.
fn same_path(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

/// Opens a file that no other process changes until the result is dropped.
fn lock(path: &Path) -> Result<File> {
    let open = || File::options().read(true).write(true).open(path);
    loop {
        let file = open().map_err(|source| write_error(path, source))?;
        file.lock().map_err(|source| write_error(path, source))?;
        // Another process may have put a new file in its place before it gave up the lock.
        let newer = File::open(path).map_err(|source| write_error(path, source))?;
        if is_same_file(&file, &newer) {
            return Ok(file);
        }
    }
}

/// Whether two open files are the same one.
#[cfg(unix)]
fn is_same_file(a: &File, b: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (a.metadata(), b.metadata()) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => true,
    }
}

/// Whether two open files are in the same state.
#[cfg(not(unix))]
fn is_same_file(a: &File, b: &File) -> bool {
    Slot::of(a).ok() == Slot::of(b).ok()
}

impl Part {
    /// Whether all of it is in the file of the index.
    fn is_saved(&self) -> bool {
        self.saved_at.is_some() && (self.removed.n == 0 || self.removed.saved_at.is_some())
    }
}

/// Where parts are in the file of the index.
fn places(parts: &[Part]) -> Vec<(Option<Place>, Option<Place>)> {
    let place = |part: &Part| {
        (
            part.saved_at,
            part.removed.saved_at.filter(|_| part.removed.n > 0),
        )
    };
    parts.iter().map(place).collect()
}
