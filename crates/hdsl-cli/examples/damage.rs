//! Damages files at random and reads them, in one process: hundreds of thousands of times where starting the program would
//! allow thousands. Each has to be refused or to be usable.
//!
//! `cargo run --profile unwind -p hdsl-cli --example damage -- N SEED FILE...` reads N damaged copies of each file. The end of a
//! name says what it is: `.hdsl` (a model), `.index`, `.checkpoint` or `.tune` (the journal of a search). Every second
//! copy gets the checksums of its damaged contents, so that these are read, too.
//!
//! It prints one line per file, and ends with status 1 if anything panicked.

use hdsl::index::Index;
use hdsl::{Model, Rows};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// Pseudorandom numbers: splitmix64.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// One to eight changes: a bit, a byte, some bytes less, some bytes more, or an end that is cut off.
fn damaged(draw: &mut Draw, whole: &[u8]) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..draw.one_of(&[1, 1, 2, 8]) {
        let at = draw.below(bytes.len());
        match draw.below(9) {
            _ if bytes.is_empty() => {}
            0..=2 => bytes[at] ^= 1 << draw.below(8),
            3..=4 => bytes[at] = draw.one_of(&[0, 1, 0x7f, 0x80, 0xff]),
            5 => {
                let end = (at + draw.one_of(&[1, 4, 8, 100])).min(bytes.len());
                bytes.drain(at..end);
            }
            6 => {
                let more: Vec<u8> = (0..draw.one_of(&[1, 4, 20]))
                    .map(|_| draw.next() as u8)
                    .collect();
                bytes.splice(at..at, more);
            }
            7 => {
                // A number of eight bytes that is extreme.
                let value = draw.one_of(&[0, u64::MAX, 1 << 63, f64::NAN.to_bits(), 1 << 32]);
                let n = (bytes.len() - at).min(8);
                bytes[at..at + n].copy_from_slice(&value.to_le_bytes()[..n]);
            }
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// A model whose arrays are damaged and whose checksum is right.
fn sealed_model(draw: &mut Draw, whole: &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = whole.split_first_chunk()?;
    let length = u64::from_le_bytes(*length) as usize;
    let (header, data) = rest.split_at_checked(length)?;
    let mut data = data.to_vec();
    for _ in 0..draw.one_of(&[1, 1, 2, 8]) {
        let at = draw.below(data.len());
        data[at] = match draw.below(3) {
            0 => draw.next() as u8,
            1 => data[at] ^ 1 << draw.below(8),
            _ => draw.one_of(&[0, 1, 0x7f, 0x80, 0xff]),
        };
    }
    let header: serde_json::Value = serde_json::from_slice(header).ok()?;
    let place = |name: &str| {
        let offset = |n: usize| header[name]["data_offsets"][n].as_u64().unwrap_or(0) as usize;
        offset(0)..offset(1)
    };
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header["__metadata__"]["hdsl"].as_str()?.as_bytes());
    let mut names: Vec<&String> = header.as_object()?.keys().collect();
    names.sort();
    for name in names {
        if !["__metadata__", "crc32"].contains(&name.as_str()) {
            hasher.update(name.as_bytes());
            hasher.update(data.get(place(name))?);
        }
    }
    data.get_mut(place("crc32"))?
        .copy_from_slice(&hasher.finalize().to_le_bytes());
    Some([&whole[..8 + length], &data].concat())
}

/// A checkpoint ends with the checksum of everything before it.
fn sealed_checkpoint(bytes: &[u8]) -> Vec<u8> {
    let contents = &bytes[..bytes.len().saturating_sub(4)];
    [contents, &crc32fast::hash(contents).to_le_bytes()].concat()
}

/// Each line of a journal begins with the checksum of the rest.
fn sealed_journal(bytes: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::new();
    for line in bytes.split(|&b| b == b'\n').filter(|l| !l.is_empty()) {
        let text = line.get(9..).unwrap_or_default();
        sealed.extend_from_slice(format!("{:08x} ", crc32fast::hash(text)).as_bytes());
        sealed.extend_from_slice(text);
        sealed.push(b'\n');
    }
    sealed
}

/// Reads a file and uses what it contains. False if it is refused.
fn read(kind: &str, bytes: Vec<u8>, journal: &Path, search: &str) -> bool {
    match kind {
        "hdsl" => match Model::from_bytes("damaged", &bytes) {
            Err(_) => false,
            Ok(model) => {
                assert_eq!(model.to_bytes(), bytes, "what is read is what is written");
                let row = Rows::from_parts(1, vec![0, 1], vec![0], vec![1.0]);
                let row = row.expect("a row");
                let _ = (model.score(row.row(0), row.row(0)), model.path().counts());
                true
            }
        },
        "index" => match Index::from_bytes("damaged", bytes) {
            Err(_) => false,
            Ok(index) => {
                let _ = index.check();
                let query = Rows::from_parts(8, vec![0, 3], vec![0, 1, 7], vec![1.0, -2.0, 1.0]);
                let found = index.search(&query.expect("a row"), 3);
                found.is_ok()
            }
        },
        "checkpoint" => hdsl::checkpoint::inspect(&bytes).is_ok(),
        _ => {
            std::fs::write(journal, &bytes).expect("a file can be written");
            hdsl::tune::inspect_journal(journal, search).is_ok()
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [n, seed, files @ ..] = words.as_slice() else {
        eprintln!("damage: expected N SEED FILE...");
        std::process::exit(2);
    };
    let (n, seed): (u64, u64) = (n.parse().expect("a number"), seed.parse().expect("a seed"));
    std::panic::set_hook(Box::new(|_| {}));
    let folder = std::env::temp_dir().join(format!("hdsl-damage-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for a journal");
    let mut panics = 0;
    for file in files {
        let whole = std::fs::read(file).expect("a file that can be read");
        let kind = file.rsplit('.').next().unwrap_or_default();
        let text = String::from_utf8_lossy(&whole);
        let first = text.lines().next().unwrap_or_default();
        let search = first.split("hdsl journal 2 ").nth(1).unwrap_or_default();
        let journal = folder.join("damaged.tune");
        let mut draw = Draw(seed);
        let (mut refused, mut used, mut wrong) = (0u64, 0u64, 0u64);
        let mut longest = Duration::ZERO;
        for number in 0..n {
            let bytes = match (number % 2, kind) {
                (1, "hdsl") => {
                    sealed_model(&mut draw, &whole).expect("a valid model to begin with")
                }
                (1, "checkpoint") => sealed_checkpoint(&damaged(&mut draw, &whole)),
                (1, "tune") => sealed_journal(&damaged(&mut draw, &whole)),
                _ => damaged(&mut draw, &whole),
            };
            let started = Instant::now();
            let copy = bytes.clone();
            match catch_unwind(AssertUnwindSafe(|| read(kind, bytes, &journal, search))) {
                Ok(true) => used += 1,
                Ok(false) => refused += 1,
                Err(_) => {
                    wrong += 1;
                    let kept = std::env::temp_dir().join(format!("panic-{seed}-{number}.{kind}"));
                    std::fs::write(&kept, copy).expect("a file can be written");
                    println!("  panic: {}", kept.display());
                }
            }
            longest = longest.max(started.elapsed());
        }
        panics += wrong;
        let name = Path::new(file)
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        println!(
            "{name}: {n} damaged, {refused} refused, {used} used, {wrong} panics, the longest took {:.3} s",
            longest.as_secs_f64()
        );
    }
    let _ = std::fs::remove_dir_all(&folder);
    std::process::exit(i32::from(panics > 0));
}
