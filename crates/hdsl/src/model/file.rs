//! Models as files: versioned, checked, byte-stable and small. `docs/format.md` has the layout.

use super::saved::{Model, ModelParts, TracePoint};
use crate::atoms::Path;
use crate::atoms::{Atom, Sign, Step};
use crate::data::{Preprocess, Preprocessor};
use crate::error::{Error, Result};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// The newest version of the model format, which this program writes. It reads this one and all before.
pub const FORMAT_VERSION: u16 = 1;

const MAGIC: &[u8; 4] = b"HDSL";
/// The kind of file: a bilinear model. Other learners get other letters.
const KIND: u8 = b'M';
/// Magic, kind, version and the length of the body.
const HEADER: usize = 4 + 1 + 2 + 8;
const CHECKSUM: usize = 4;

/// The most work a file may ask for when its path is replayed: active atoms, added up over the steps. A run of
/// 100,000 steps that each bring a new atom stays below; a hostile file is refused after a few seconds.
const MAX_REPLAY: u64 = 8_000_000_000;

const SHAPE: u8 = 1;
const SCALING: u8 = 2;
const FEATURES: u8 = 3;
const NAMES: u8 = 4;
const PATH: u8 = 5;
const TRACE: u8 = 6;
const EVALUATIONS: u8 = 7;
const SETTINGS: u8 = 8;
const CLASSES: u8 = 9;

impl Model {
    /// Reads a model file.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        match std::fs::read(&path) {
            Ok(bytes) => Self::from_bytes(path, &bytes),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    /// Reads a model from memory; the path is only for messages. Any bytes at all are safe to try: nothing in them
    /// is run, and no length is believed before the bytes it speaks of are there.
    pub fn from_bytes(path: impl Into<PathBuf>, bytes: &[u8]) -> Result<Self> {
        decode(bytes).map_err(|reason| Error::File {
            path: path.into(),
            reason,
        })
    }

    /// The model as a file. The same model always gives the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let body = encode(self.parts());
        let mut out = Vec::with_capacity(HEADER + body.len() + CHECKSUM);
        out.extend_from_slice(MAGIC);
        out.push(KIND);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&(body.len() as u64).to_le_bytes());
        out.extend_from_slice(&body);
        out.extend_from_slice(&crc32fast::hash(&out).to_le_bytes());
        out
    }

    /// The model as text: everything in the file, and the atoms and weights of the iterate in use, which the file
    /// only implies. Numbers that are not finite become `null`.
    pub fn to_json(&self) -> String {
        let value = json_of(self);
        serde_json::to_string_pretty(&value).expect("a value without foreign types becomes text")
    }
}

// Writing.

fn encode(parts: &ModelParts) -> Vec<u8> {
    let features = parts.path.features();
    let mut body = Vec::new();
    section(&mut body, SHAPE, |out| {
        put(out, parts.n_features as u64);
        put_f64(out, parts.scale);
        out.push(u8::from(parts.zero_based));
        put(out, parts.chosen as u64);
        match parts.gap_certified {
            Some(gap) => {
                out.push(1);
                put_f64(out, gap);
            }
            None => out.push(0),
        }
    });
    section(&mut body, SCALING, |out| {
        out.push(match parts.preprocess.kind() {
            Preprocess::None => 0,
            Preprocess::Max => 1,
            Preprocess::Unit => 2,
            Preprocess::MaxUnit => 3,
        });
        put(out, parts.preprocess.maxima().len() as u64);
        put_maxima(out, parts.preprocess.maxima());
    });
    section(&mut body, FEATURES, |out| {
        put(out, features.len() as u64);
        put_increasing(out, features.iter().copied());
    });
    let number = |feature: u32| -> u64 {
        features
            .binary_search(&feature)
            .expect("every feature of the path is listed") as u64
    };
    section(&mut body, NAMES, |out| {
        put(out, parts.names.len() as u64);
        put_increasing(out, parts.names.iter().map(|n| number(n.0) as u32));
        put_names(out, parts.names.iter().map(|n| n.1.as_str()));
    });
    section(&mut body, PATH, |out| {
        put(out, parts.path.start().len() as u64);
        for &(atom, weight) in parts.path.start() {
            put_atom(out, atom, &number);
            put_f64(out, weight);
        }
        put(out, parts.path.len() as u64);
        for step in parts.path.steps() {
            put_step(out, step, &number);
        }
    });
    section(&mut body, TRACE, |out| {
        put(out, parts.trace.len() as u64);
        put_smooth(out, parts.trace.iter().map(|t| t.objective));
        put_smooth(out, parts.trace.iter().map(|t| t.gap));
    });
    section(&mut body, EVALUATIONS, |out| {
        put(out, parts.evaluations.len() as u64);
        put_increasing(out, parts.evaluations.iter().map(|e| e.0));
        parts.evaluations.iter().for_each(|e| put_f64(out, e.1));
    });
    section(&mut body, SETTINGS, |out| {
        put(out, parts.settings.len() as u64);
        for (key, text) in &parts.settings {
            put_text(out, key);
            put_text(out, text);
        }
    });
    section(&mut body, CLASSES, |out| match &parts.classes {
        None => out.push(0),
        Some(classes) => {
            out.push(1);
            put(out, classes.len() as u64);
            classes.iter().for_each(|c| put_text(out, c));
        }
    });
    body
}

fn section(body: &mut Vec<u8>, tag: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut content = Vec::new();
    fill(&mut content);
    body.push(tag);
    put(body, content.len() as u64);
    body.extend_from_slice(&content);
}

/// Seven bits a byte, the low ones first; the top bit says that more follow.
fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_f64(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Strictly increasing numbers as differences less one.
fn put_increasing(out: &mut Vec<u8>, numbers: impl Iterator<Item = u32>) {
    let mut next = 0;
    for number in numbers {
        put(out, u64::from(number) - next);
        next = u64::from(number) + 1;
    }
}

/// Names share up to fifteen bytes with the name before. (More would let a small file ask for much memory.)
fn put_names<'a>(out: &mut Vec<u8>, names: impl Iterator<Item = &'a str>) {
    let mut before: &[u8] = &[];
    for name in names {
        let name = name.as_bytes();
        let shared = shared_prefix(before, name);
        put(out, ((name.len() - shared) as u64) << 4 | shared as u64);
        out.extend_from_slice(&name[shared..]);
        before = name;
    }
}

fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take(15).take_while(|(x, y)| x == y).count()
}

/// Numbers that resemble the one before: the bits in which they differ, which are the low ones.
fn put_smooth(out: &mut Vec<u8>, numbers: impl Iterator<Item = f64>) {
    let mut before = 0;
    for number in numbers {
        put(out, number.to_bits() ^ before);
        before = number.to_bits();
    }
}

/// Feature and maximum in one number, two bytes for most counts up to 4,095: the maximum if it is whole (0 if not,
/// and eight bytes follow), then two bits for the features skipped (3 if it is three or more, and the rest follows).
fn put_maxima(out: &mut Vec<u8>, maxima: impl Iterator<Item = (u32, f64)>) {
    let mut next = 0;
    for (feature, max) in maxima {
        let skipped = u64::from(feature) - next;
        next = u64::from(feature) + 1;
        let whole = if is_whole(max) { max as u64 } else { 0 };
        put(out, whole << 2 | skipped.min(3));
        if skipped >= 3 {
            put(out, skipped - 3);
        }
        if whole == 0 {
            put_f64(out, max);
        }
    }
}

fn is_whole(max: f64) -> bool {
    (1.0..1e15).contains(&max) && max.fract() == 0.0
}

fn put_atom(out: &mut Vec<u8>, atom: Atom, number: &impl Fn(u32) -> u64) {
    let minus = u64::from(atom.sign() == Sign::Minus);
    put(out, number(atom.i()) << 1 | minus);
    put(out, number(atom.j()));
}

fn put_step(out: &mut Vec<u8>, step: &Step, number: &impl Fn(u32) -> u64) {
    match *step {
        Step::Forward { atom, gamma } => {
            out.push(0);
            put_atom(out, atom, number);
            put_f64(out, gamma);
        }
        Step::Away { atom, gamma } => {
            out.push(1);
            put_atom(out, atom, number);
            put_f64(out, gamma);
        }
        Step::Drop { atom } => {
            out.push(2);
            put_atom(out, atom, number);
        }
        Step::Pairwise { to, from, gamma } => {
            out.push(3);
            put_atom(out, to, number);
            put_atom(out, from, number);
            put_f64(out, gamma);
        }
        Step::Swap { to, from } => {
            out.push(4);
            put_atom(out, to, number);
            put_atom(out, from, number);
        }
    }
}

// Reading. The reason why a file is refused is text; the caller adds the path.

type Read<T> = std::result::Result<T, String>;

fn decode(bytes: &[u8]) -> Read<Model> {
    let seen = bytes.len().min(MAGIC.len());
    if seen == 0 || bytes[..seen] != MAGIC[..seen] {
        return Err(if bytes.is_empty() {
            "not an hdsl model: the file is empty".into()
        } else {
            "not an hdsl model: it does not begin with HDSL".into()
        });
    }
    if bytes.len() < HEADER {
        return Err(format!(
            "cut short: {} bytes, not even a whole header",
            bytes.len()
        ));
    }
    if bytes[4] != KIND {
        return Err(format!(
            "an hdsl file of another kind ({:#04x}), expected a model ({KIND:#04x})",
            bytes[4]
        ));
    }
    let version = u16::from_le_bytes([bytes[5], bytes[6]]);
    if version > FORMAT_VERSION {
        return Err(format!(
            "made by a newer hdsl: format version {version}, this program reads up to {FORMAT_VERSION}"
        ));
    }
    if version == 0 {
        return Err("format version 0 was never written".into());
    }
    let length = u64::from_le_bytes(bytes[7..HEADER].try_into().expect("eight bytes"));
    let there = (bytes.len() - HEADER) as u64;
    let wanted = length.saturating_add(CHECKSUM as u64);
    if there < wanted {
        return Err(format!(
            "cut short: {there} bytes after the header, expected {wanted}"
        ));
    }
    if there > wanted {
        return Err(format!(
            "{} bytes too many after the end of the model",
            there - wanted
        ));
    }
    let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM);
    if crc32fast::hash(content).to_le_bytes() != *checksum {
        return Err("checksum mismatch: the file was damaged".into());
    }
    let parts = decode_body(&content[HEADER..])?;
    let sizes = |p: &ModelParts| (p.names.len(), p.preprocess.maxima().len());
    let (announced, settings) = (sizes(&parts), parts.settings.clone());
    let model = Model::new(parts).map_err(|e| e.to_string())?;
    // Only what `to_bytes` writes is accepted, so a file that loads is written back to the same bytes.
    if sizes(model.parts()) != announced || model.parts().settings != settings {
        return Err("it holds names, maxima or settings that no model keeps".into());
    }
    Ok(model)
}

fn decode_body(body: &[u8]) -> Read<ModelParts> {
    let mut body = Reader(body);

    let mut shape = body.section(SHAPE, "shape")?;
    let n_features = shape.size("number of features")?;
    let scale = shape.f64()?;
    let zero_based = shape.flag()?;
    let chosen = shape.size("iteration in use")?;
    let gap_certified = if shape.flag()? {
        Some(shape.f64()?)
    } else {
        None
    };
    shape.end()?;

    let mut s = body.section(SCALING, "preprocess")?;
    let kind = match s.byte()? {
        0 => Preprocess::None,
        1 => Preprocess::Max,
        2 => Preprocess::Unit,
        3 => Preprocess::MaxUnit,
        other => return Err(format!("the preprocess has the unknown kind {other}")),
    };
    let n_maxima = s.count(1)?;
    let maxima = s.maxima(n_maxima)?;
    s.end()?;
    let preprocess =
        Preprocessor::from_parts(kind, n_features, maxima).map_err(|e| e.to_string())?;

    let mut s = body.section(FEATURES, "features")?;
    let n = s.count(1)?;
    let features = s.increasing(n)?;
    s.end()?;

    let mut s = body.section(NAMES, "names")?;
    let n = s.count(2)?;
    let named = s.increasing(n)?;
    let names = s.names(n)?;
    let names = named
        .into_iter()
        .zip(names)
        .map(|(number, name)| Ok((feature(&features, number.into())?, name)))
        .collect::<Read<Vec<_>>>()?;
    s.end()?;

    let mut s = body.section(PATH, "path")?;
    let n_start = s.count(10)?;
    let start = (0..n_start)
        .map(|_| Ok((s.atom(&features)?, s.f64()?)))
        .collect::<Read<Vec<_>>>()?;
    let n_steps = s.count(3)?;
    let steps = (0..n_steps)
        .map(|_| s.step(&features))
        .collect::<Read<Vec<_>>>()?;
    s.end()?;
    let path = Path::within_work(start, steps, MAX_REPLAY).map_err(|e| e.to_string())?;
    if path.features() != features {
        return Err("the list of features is not that of the path".into());
    }

    let mut s = body.section(TRACE, "trace")?;
    let n = s.count(2)?;
    let objectives = s.smooth(n)?;
    let gaps = s.smooth(n)?;
    s.end()?;
    let trace = objectives
        .into_iter()
        .zip(gaps)
        .map(|(objective, gap)| TracePoint { objective, gap })
        .collect();

    let mut s = body.section(EVALUATIONS, "evaluations")?;
    let n = s.count(9)?;
    let iterations = s.increasing(n)?;
    let errors = s.f64s(n)?;
    s.end()?;
    let evaluations = iterations.into_iter().zip(errors).collect();

    let mut s = body.section(SETTINGS, "settings")?;
    let n = s.count(2)?;
    let settings = (0..n)
        .map(|_| Ok((s.text()?, s.text()?)))
        .collect::<Read<Vec<_>>>()?;
    s.end()?;

    let mut s = body.section(CLASSES, "classes")?;
    let classes = if s.flag()? {
        let n = s.count(1)?;
        Some((0..n).map(|_| s.text()).collect::<Read<Vec<_>>>()?)
    } else {
        None
    };
    s.end()?;
    body.end()?;

    Ok(ModelParts {
        n_features,
        scale,
        preprocess,
        zero_based,
        names,
        path,
        chosen,
        trace,
        gap_certified,
        evaluations,
        settings,
        classes,
    })
}

fn feature(features: &[u32], number: u64) -> Read<u32> {
    usize::try_from(number)
        .ok()
        .and_then(|n| features.get(n))
        .copied()
        .ok_or_else(|| format!("feature number {number} of a list of {}", features.len()))
}

fn text(bytes: Vec<u8>) -> Read<String> {
    String::from_utf8(bytes).map_err(|_| "a text is not valid UTF-8".into())
}

/// The bytes still to be read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: u64) -> Read<&'a [u8]> {
        if n > self.0.len() as u64 {
            return Err(format!(
                "a part of {n} bytes is announced where {} are left",
                self.0.len()
            ));
        }
        let (taken, rest) = self.0.split_at(n as usize);
        self.0 = rest;
        Ok(taken)
    }

    fn end(&self) -> Read<()> {
        match self.0.len() {
            0 => Ok(()),
            n => Err(format!("{n} bytes too many at the end of a part")),
        }
    }

    fn section(&mut self, tag: u8, name: &str) -> Read<Reader<'a>> {
        let found = self.byte()?;
        if found != tag {
            return Err(format!(
                "part {found} is where part {tag} ({name}) is expected"
            ));
        }
        let length = self.varint()?;
        Ok(Reader(self.take(length)?))
    }

    fn byte(&mut self) -> Read<u8> {
        Ok(self.take(1)?[0])
    }

    fn flag(&mut self) -> Read<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(format!("a flag is {other}, expected 0 or 1")),
        }
    }

    fn varint(&mut self) -> Read<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // No bits lost at the top, no zeros that could have been left out.
            if bits << shift >> shift != bits || (shift > 0 && byte == 0) {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number is not written as it should be".into())
    }

    fn size(&mut self, what: &str) -> Read<usize> {
        let value = self.varint()?;
        usize::try_from(value).map_err(|_| format!("the {what} is {value}, too large"))
    }

    /// A number of things that take at least `least` bytes each.
    fn count(&mut self, least: u64) -> Read<usize> {
        let count = self.varint()?;
        if count > self.0.len() as u64 / least {
            return Err(format!(
                "{count} entries are announced where {} bytes are left",
                self.0.len()
            ));
        }
        Ok(count as usize)
    }

    fn increasing(&mut self, n: usize) -> Read<Vec<u32>> {
        let mut next = 0u64;
        let mut numbers = Vec::with_capacity(n);
        for _ in 0..n {
            let number = next
                .checked_add(self.varint()?)
                .and_then(|n| u32::try_from(n).ok())
                .ok_or("a number in an increasing list is too large")?;
            numbers.push(number);
            next = u64::from(number) + 1;
        }
        Ok(numbers)
    }

    fn f64(&mut self) -> Read<f64> {
        let bytes = self.take(8)?;
        Ok(f64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }

    fn f64s(&mut self, n: usize) -> Read<Vec<f64>> {
        (0..n).map(|_| self.f64()).collect()
    }

    fn text(&mut self) -> Read<String> {
        let length = self.varint()?;
        text(self.take(length)?.to_vec())
    }

    fn names(&mut self, n: usize) -> Read<Vec<String>> {
        let mut names: Vec<String> = Vec::with_capacity(n);
        for _ in 0..n {
            let before = names.last().map_or(&[][..], |name| name.as_bytes());
            let head = self.varint()?;
            let shared = (head & 15) as usize;
            let rest = self.take(head >> 4)?;
            let mut name = before
                .get(..shared)
                .ok_or("a name shares more than there is with the one before")?
                .to_vec();
            name.extend_from_slice(rest);
            if shared_prefix(before, &name) != shared {
                return Err("a name is not written as it should be".into());
            }
            names.push(text(name)?);
        }
        Ok(names)
    }

    fn smooth(&mut self, n: usize) -> Read<Vec<f64>> {
        let mut bits = 0;
        (0..n)
            .map(|_| {
                bits ^= self.varint()?;
                Ok(f64::from_bits(bits))
            })
            .collect()
    }

    fn maxima(&mut self, n: usize) -> Read<Vec<(u32, f64)>> {
        let mut next = 0u64;
        let mut maxima = Vec::with_capacity(n);
        for _ in 0..n {
            let head = self.varint()?;
            let (whole, mut skipped) = (head >> 2, head & 3);
            if skipped == 3 {
                skipped = self.varint()?.saturating_add(3);
            }
            let feature = u32::try_from(next.saturating_add(skipped))
                .map_err(|_| "a maximum is given for a feature out of range")?;
            next = u64::from(feature) + 1;
            let max = if whole == 0 {
                self.f64()?
            } else {
                whole as f64
            };
            if is_whole(max) != (whole != 0) {
                return Err(format!("the maximum {max} is not written as it should be"));
            }
            maxima.push((feature, max));
        }
        Ok(maxima)
    }

    fn atom(&mut self, features: &[u32]) -> Read<Atom> {
        let first = self.varint()?;
        let (i, j) = (
            feature(features, first >> 1)?,
            feature(features, self.varint()?)?,
        );
        if i >= j {
            return Err(format!(
                "an atom has features {i} and {j}, expected the lower one first"
            ));
        }
        let sign = if first & 1 == 1 {
            Sign::Minus
        } else {
            Sign::Plus
        };
        Atom::new(i, j, sign).map_err(|e| e.to_string())
    }

    fn step(&mut self, features: &[u32]) -> Read<Step> {
        Ok(match self.byte()? {
            0 => Step::Forward {
                atom: self.atom(features)?,
                gamma: self.f64()?,
            },
            1 => Step::Away {
                atom: self.atom(features)?,
                gamma: self.f64()?,
            },
            2 => Step::Drop {
                atom: self.atom(features)?,
            },
            3 => Step::Pairwise {
                to: self.atom(features)?,
                from: self.atom(features)?,
                gamma: self.f64()?,
            },
            4 => Step::Swap {
                to: self.atom(features)?,
                from: self.atom(features)?,
            },
            other => return Err(format!("a step has the unknown kind {other}")),
        })
    }
}

// JSON.

fn json_of(model: &Model) -> Value {
    let parts = model.parts();
    let similarity = model.similarity();
    let text_map = |pairs: &mut dyn Iterator<Item = (String, Value)>| -> Value {
        Value::Object(pairs.collect::<Map<_, _>>())
    };
    json!({
        "format": "hdsl model",
        "version": FORMAT_VERSION,
        "n_features": parts.n_features,
        "scale": parts.scale,
        "index_base": u8::from(!parts.zero_based),
        "preprocess": {
            "kind": parts.preprocess.kind().name(),
            "maxima": parts.preprocess.maxima().map(|(f, max)| json!([f, max])).collect::<Vec<_>>(),
        },
        "classes": parts.classes,
        "settings": text_map(&mut parts.settings.iter().map(|(k, v)| (k.clone(), json!(v)))),
        "chosen": parts.chosen,
        "n_atoms": similarity.atoms().len(),
        "n_features_used": similarity.n_features_used(),
        "gap_certified": parts.gap_certified,
        "atoms": similarity
            .atoms()
            .iter()
            .zip(similarity.weights())
            .map(|(atom, weight)| json_weighted(*atom, *weight))
            .collect::<Vec<_>>(),
        "names": text_map(&mut parts.names.iter().map(|(f, n)| (f.to_string(), json!(n)))),
        "evaluations": parts
            .evaluations
            .iter()
            .map(|(iteration, error)| json!({ "iteration": iteration, "valid_error": error }))
            .collect::<Vec<_>>(),
        "path": {
            "start": parts
                .path
                .start()
                .iter()
                .map(|&(atom, weight)| json_weighted(atom, weight))
                .collect::<Vec<_>>(),
            "steps": parts.path.steps().iter().map(json_step).collect::<Vec<_>>(),
        },
        "trace": parts
            .trace
            .iter()
            .map(|t| json!({ "objective": t.objective, "gap": t.gap }))
            .collect::<Vec<_>>(),
    })
}

fn json_atom(atom: Atom) -> Value {
    let sign = match atom.sign() {
        Sign::Plus => "+",
        Sign::Minus => "-",
    };
    json!({ "i": atom.i(), "j": atom.j(), "sign": sign })
}

fn json_weighted(atom: Atom, weight: f64) -> Value {
    let mut value = json_atom(atom);
    value["weight"] = json!(weight);
    value
}

fn json_step(step: &Step) -> Value {
    match *step {
        Step::Forward { atom, gamma } => {
            json!({ "step": "forward", "atom": json_atom(atom), "gamma": gamma })
        }
        Step::Away { atom, gamma } => {
            json!({ "step": "away", "atom": json_atom(atom), "gamma": gamma })
        }
        Step::Drop { atom } => json!({ "step": "drop", "atom": json_atom(atom) }),
        Step::Pairwise { to, from, gamma } => json!({
            "step": "pairwise", "to": json_atom(to), "from": json_atom(from), "gamma": gamma
        }),
        Step::Swap { to, from } => {
            json!({ "step": "swap", "to": json_atom(to), "from": json_atom(from) })
        }
    }
}
