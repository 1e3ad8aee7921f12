//! A segment: up to 65,536 rows with all that is stored for them. It never changes. `docs/format.md` has the layout.

use super::Read;
use super::codec::{Decoder, SEAL, hash, put_row, put_text, seal, unseal};
use super::columns::{self, Column, ENTRY, Entry};
use super::mapping::Mapping;
use super::source::{Slice, Source};
use crate::data::{Columns, Rows};
use crate::knn::similar_together;
use crate::sort::sort_by_key;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{OnceLock, RwLock};

/// The most rows of a segment: their positions are 16-bit numbers.
pub(super) const MAX_ROWS: usize = 1 << 16;

/// With fewer rows, all scores of a segment are computed, and it has no columns.
pub(super) const MIN_COLUMN_ROWS: usize = 1024;

/// Columns are kept in memory until they take so many bytes in all indexes; then they are read again for each search.
const CACHE_BYTES: usize = 2 << 30;

/// The bytes of all columns that are kept.
static CACHED: AtomicUsize = AtomicUsize::new(0);

/// The code of a row without a label.
const NO_LABEL: u32 = u32::MAX;

/// The sections of a segment, in order.
#[derive(Clone, Copy)]
enum Section {
    Numbers,
    VectorEnds,
    ExtraEnds,
    Classes,
    Ids,
    Directory,
    Vectors,
    Extras,
    Columns,
}

const N_SECTIONS: usize = 9;

/// A checksum, the number of rows, and the lengths of the sections.
const HEADER: usize = SEAL + 8 * (1 + N_SECTIONS);

/// Bytes per id: hash and position.
const ID: usize = 12;

/// What a segment stores, row by row.
#[derive(Default)]
pub(super) struct Contents {
    /// Row numbers, increasing.
    pub(super) numbers: Vec<u32>,
    /// Prepared rows.
    pub(super) rows: Option<Rows>,
    pub(super) extras: Vec<Entered>,
}

/// What is known about a row beside its features.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Entered {
    pub(super) id: Option<String>,
    pub(super) label: Option<String>,
    pub(super) text: Option<String>,
}

/// A segment, of which only the header was read.
#[derive(Debug)]
pub(super) struct Segment {
    source: Source,
    n_rows: usize,
    sections: [Range<u64>; N_SECTIONS],
    numbers: OnceLock<Vec<u32>>,
    vector_ends: OnceLock<Vec<u64>>,
    extra_ends: OnceLock<Vec<u64>>,
    classes: OnceLock<Vec<String>>,
    directory: OnceLock<Slice>,
    /// Mapped rows, if there are no columns.
    mapped: OnceLock<Rows>,
    columns: RwLock<HashMap<usize, Column>>,
}

impl Drop for Segment {
    fn drop(&mut self) {
        let columns = self
            .columns
            .get_mut()
            .map(std::mem::take)
            .unwrap_or_default();
        let n_bytes: usize = columns.values().map(Column::n_bytes).sum();
        CACHED.fetch_sub(n_bytes, Ordering::Relaxed);
    }
}

/// The bytes of a segment.
pub(super) fn encode(contents: Contents, mapping: &Mapping) -> Vec<u8> {
    let rows = contents.rows.expect("a segment has rows");
    let n = rows.n_rows();
    let (order, directory, columns) = match n < MIN_COLUMN_ROWS {
        true => ((0..n as u32).collect(), Vec::new(), Vec::new()),
        false => {
            let mapped = mapping.map(&rows);
            let order = similar_together(&Columns::of(&mapped).compact(mapped.clone()), None);
            let (directory, columns) = columns::encode(&mapped.select(&order));
            (order, directory, columns)
        }
    };
    let mut classes: Vec<&str> = Vec::new();
    let mut codes: HashMap<&str, u32> = HashMap::new();
    for label in contents.extras.iter().filter_map(|e| e.label.as_deref()) {
        codes.entry(label).or_insert_with(|| {
            classes.push(label);
            classes.len() as u32 - 1
        });
    }
    let (mut numbers, mut ids) = (Vec::with_capacity(4 * n), Vec::new());
    let (mut vectors, mut vector_ends) = (Vec::new(), Vec::with_capacity(8 * n));
    let (mut extras, mut extra_ends) = (Vec::new(), Vec::with_capacity(8 * n));
    for (position, &row) in (0u32..).zip(&order) {
        let (at, extra) = (row as usize, &contents.extras[row as usize]);
        numbers.extend(contents.numbers[at].to_le_bytes());
        let mut block = Vec::new();
        put_row(&mut block, rows.row(at));
        vectors.extend(seal(&block));
        vector_ends.extend((vectors.len() as u64).to_le_bytes());
        block.clear();
        let label = extra
            .label
            .as_deref()
            .map_or(NO_LABEL, |label| codes[label]);
        block.extend(label.to_le_bytes());
        put_text(&mut block, extra.id.as_deref());
        put_text(&mut block, extra.text.as_deref());
        extras.extend(seal(&block));
        extra_ends.extend((extras.len() as u64).to_le_bytes());
        if let Some(id) = &extra.id {
            ids.push((hash(id), position));
        }
    }
    ids.sort_unstable();
    let ids = ids.iter().flat_map(|(hash, position)| {
        let (hash, position) = (hash.to_le_bytes(), position.to_le_bytes());
        hash.into_iter().chain(position)
    });
    let classes = serde_json::to_vec(&classes).expect("texts become JSON");
    let sections: [Vec<u8>; N_SECTIONS] = [
        seal(&numbers),
        seal(&vector_ends),
        seal(&extra_ends),
        seal(&classes),
        ids.collect(),
        seal(&directory),
        vectors,
        extras,
        columns,
    ];
    let mut header = (n as u64).to_le_bytes().to_vec();
    sections
        .iter()
        .for_each(|section| header.extend((section.len() as u64).to_le_bytes()));
    let mut bytes = seal(&header);
    sections
        .iter()
        .for_each(|section| bytes.extend_from_slice(section));
    bytes
}

impl Segment {
    /// Reads the header of a segment.
    pub(super) fn open(source: Source) -> Read<Self> {
        let header = source.read(0..HEADER as u64)?;
        let mut header = Decoder(unseal(&header)?);
        let n_rows = header.u64()?;
        if !(1..=MAX_ROWS as u64).contains(&n_rows) {
            return Err(format!("damaged: a segment of {n_rows} rows"));
        }
        let (mut sections, mut end) = ([const { 0..0 }; N_SECTIONS], HEADER as u64);
        for section in &mut sections {
            let start = end;
            end = end.saturating_add(header.u64()?);
            *section = start..end;
        }
        let segment = Self {
            source,
            n_rows: n_rows as usize,
            sections,
            numbers: OnceLock::new(),
            vector_ends: OnceLock::new(),
            extra_ends: OnceLock::new(),
            classes: OnceLock::new(),
            directory: OnceLock::new(),
            mapped: OnceLock::new(),
            columns: RwLock::default(),
        };
        let length = |section: Section| {
            let range = segment.range(section);
            range.end - range.start
        };
        let ids = length(Section::Ids);
        let fits = end == segment.source.len()
            && length(Section::Numbers) == SEAL as u64 + 4 * n_rows
            && length(Section::VectorEnds) == SEAL as u64 + 8 * n_rows
            && length(Section::ExtraEnds) == SEAL as u64 + 8 * n_rows
            && (ids == 0 || ids == ID as u64 * n_rows)
            && length(Section::Directory) % ENTRY as u64 == SEAL as u64;
        match fits {
            true => Ok(segment),
            false => Err("damaged: the parts of a segment do not fit together".into()),
        }
    }

    /// All bytes of the segment.
    pub(super) fn bytes(&self) -> Read<Slice> {
        self.source.read(0..self.source.len())
    }

    /// How many bytes it takes in a file.
    pub(super) fn n_bytes(&self) -> u64 {
        self.source.len()
    }

    pub(super) fn n_rows(&self) -> usize {
        self.n_rows
    }

    pub(super) fn has_ids(&self) -> bool {
        !self.range(Section::Ids).is_empty()
    }

    fn range(&self, section: Section) -> Range<u64> {
        self.sections[section as usize].clone()
    }

    /// A part of a section, counted from its start.
    fn read(&self, section: Section, part: Range<u64>) -> Read<Slice> {
        let whole = self.range(section);
        let [start, end] = [part.start, part.end].map(|at| whole.start.saturating_add(at));
        match end <= whole.end {
            true => self.source.read(start..end),
            false => Err("damaged: a record is outside of its section".into()),
        }
    }

    /// A section with a checksum.
    fn sealed(&self, section: Section) -> Read<Slice> {
        let bytes = self.source.read(self.range(section))?;
        unseal(&bytes)?;
        Ok(bytes)
    }

    /// Row numbers by position.
    pub(super) fn numbers(&self) -> Read<&[u32]> {
        once(&self.numbers, || {
            let bytes = self.sealed(Section::Numbers)?;
            let numbers = bytes[SEAL..].as_chunks::<4>().0.iter();
            Ok(numbers.map(|bytes| u32::from_le_bytes(*bytes)).collect())
        })
        .map(Vec::as_slice)
    }

    fn ends<'a>(&self, cell: &'a OnceLock<Vec<u64>>, section: Section) -> Read<&'a [u64]> {
        once(cell, || {
            let bytes = self.sealed(section)?;
            let ends = bytes[SEAL..].as_chunks::<8>().0.iter();
            Ok(ends.map(|bytes| u64::from_le_bytes(*bytes)).collect())
        })
        .map(Vec::as_slice)
    }

    fn classes(&self) -> Read<&[String]> {
        once(&self.classes, || {
            let bytes = self.sealed(Section::Classes)?;
            let classes = serde_json::from_slice(&bytes[SEAL..]);
            classes.map_err(|e| format!("damaged: the classes are invalid: {e}"))
        })
        .map(Vec::as_slice)
    }

    /// The prepared rows at some positions.
    pub(super) fn rows(
        &self,
        positions: impl IntoIterator<Item = usize>,
        n_features: usize,
    ) -> Read<Rows> {
        let ends = self.ends(&self.vector_ends, Section::VectorEnds)?;
        let mut rows = Rows::new(n_features);
        for position in positions {
            let record = self.read(Section::Vectors, record(ends, position))?;
            Decoder(unseal(&record)?).row(&mut rows)?;
        }
        Ok(rows)
    }

    /// Id, label and text at a position.
    pub(super) fn entered(&self, position: usize) -> Read<Entered> {
        let ends = self.ends(&self.extra_ends, Section::ExtraEnds)?;
        let record = self.read(Section::Extras, record(ends, position))?;
        let mut decoder = Decoder(unseal(&record)?);
        let label = match decoder.u32()? {
            NO_LABEL => None,
            code => {
                let label = self.classes()?.get(code as usize);
                Some(label.ok_or("damaged: a label has no class")?.clone())
            }
        };
        Ok(Entered {
            id: decoder.text()?.map(str::to_owned),
            text: decoder.text()?.map(str::to_owned),
            label,
        })
    }

    /// The positions of rows with this id that are wanted; there may be removed ones among them.
    pub(super) fn find(&self, id: &str, is_wanted: impl Fn(usize) -> bool) -> Read<Option<usize>> {
        if !self.has_ids() {
            return Ok(None);
        }
        let wanted = hash(id);
        let entry = |at: usize| -> Read<(u64, usize)> {
            let start = (at * ID) as u64;
            let bytes = self.read(Section::Ids, start..start + ID as u64)?;
            let mut decoder = Decoder(&bytes);
            Ok((decoder.u64()?, decoder.u32()? as usize))
        };
        // The first entry whose hash is not below the wanted one.
        let (mut low, mut high) = (0, self.n_rows);
        while low < high {
            let middle = low.midpoint(high);
            match entry(middle)?.0 < wanted {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        for at in low..self.n_rows {
            let (hash, position) = entry(at)?;
            if hash != wanted {
                break;
            }
            if position < self.n_rows
                && is_wanted(position)
                && self.entered(position)?.id.as_deref() == Some(id)
            {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }

    /// Whether it has columns; without, the scores of all rows are computed.
    pub(super) fn has_columns(&self) -> bool {
        self.n_rows >= MIN_COLUMN_ROWS
    }

    /// The mapped rows of a segment without columns, by position.
    pub(super) fn mapped(&self, mapping: &Mapping) -> Read<&Rows> {
        once(&self.mapped, || {
            let rows = self.rows(0..self.n_rows, mapping.model.n_features())?;
            Ok(mapping.map(&rows))
        })
    }

    /// The columns of a coordinate: those of values above 0 and below. The flag says whether it is below.
    pub(super) fn columns(&self, coordinate: u32, found: &mut Vec<(Column, bool)>) -> Read<()> {
        let directory = once(&self.directory, || self.sealed(Section::Directory))?;
        let entries = directory[SEAL..].as_chunks::<ENTRY>().0;
        let first = entries.partition_point(|entry| Entry::get(entry).coordinate < coordinate);
        for (at, entry) in entries.iter().enumerate().skip(first).take(2) {
            let entry = Entry::get(entry);
            if entry.coordinate != coordinate {
                break;
            }
            let start = at
                .checked_sub(1)
                .map_or(0, |before| Entry::get(&entries[before]).end);
            found.push((self.column(at, start, entry)?, entry.is_negative));
        }
        Ok(())
    }

    fn column(&self, at: usize, start: u64, entry: Entry) -> Read<Column> {
        let known = self.columns.read().expect("no thread panics with it");
        if let Some(column) = known.get(&at) {
            return Ok(column.clone());
        }
        drop(known);
        let bytes = self.read(Section::Columns, start..entry.end)?;
        let column = Column::new(bytes, entry.is_dense, self.n_rows)?;
        let n_bytes = column.n_bytes();
        if CACHED.load(Ordering::Relaxed) + n_bytes <= CACHE_BYTES {
            let mut known = self.columns.write().expect("no thread panics with it");
            if known.insert(at, column.clone()).is_none() {
                CACHED.fetch_add(n_bytes, Ordering::Relaxed);
            }
        }
        Ok(column)
    }

    /// Reads everything, and compares all checksums.
    pub(super) fn check(&self, n_features: usize) -> Read<()> {
        self.rows(0..self.n_rows, n_features)?;
        let numbers = self.numbers()?;
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        if !sorted.is_sorted_by(|a, b| a < b) {
            return Err("damaged: two rows have the same number".into());
        }
        for (position, number) in numbers.iter().enumerate() {
            let known = self.entered(position)?;
            let is_found = match &known.id {
                Some(id) => self.find(id, |at| at == position)?.is_some(),
                None => !self.has_ids(),
            };
            if !is_found {
                return Err(format!("damaged: row {number} is not among the ids"));
            }
        }
        let directory = self.sealed(Section::Directory)?;
        let mut start = 0;
        for entry in directory[SEAL..].as_chunks::<ENTRY>().0 {
            let entry = Entry::get(entry);
            let bytes = self.read(Section::Columns, start..entry.end)?;
            Column::new(bytes, entry.is_dense, self.n_rows)?;
            start = entry.end;
        }
        Ok(())
    }

    /// The contents of the rows at some positions, by increasing row number.
    pub(super) fn contents(
        &self,
        keep: impl Fn(usize) -> bool,
        n_features: usize,
    ) -> Read<Contents> {
        let numbers = self.numbers()?;
        let mut positions: Vec<usize> = (0..self.n_rows).filter(|&at| keep(at)).collect();
        sort_by_key(&mut positions, |&at| numbers[at]);
        let extras = positions.iter().map(|&at| self.entered(at));
        Ok(Contents {
            numbers: positions.iter().map(|&at| numbers[at]).collect(),
            extras: extras.collect::<Read<_>>()?,
            rows: Some(self.rows(positions, n_features)?),
        })
    }
}

/// Where the record of a position is in its section.
fn record(ends: &[u64], position: usize) -> Range<u64> {
    let start = position.checked_sub(1).map_or(0, |before| ends[before]);
    start..ends[position]
}

/// The value of a cell, which is computed the first time.
fn once<T>(cell: &OnceLock<T>, compute: impl FnOnce() -> Read<T>) -> Read<&T> {
    if cell.get().is_none() {
        // Another thread may have been faster; the values are the same.
        let _ = cell.set(compute()?);
    }
    Ok(cell.get().expect("it was set just now"))
}
