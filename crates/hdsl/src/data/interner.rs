//! Distinct texts with numbers.

use hashbrown::HashTable;

/// Distinct texts, numbered from 0 in the order in which they came. All of them are in one block of memory.
///
/// The table has both ends of each text beside its number, which are all of it if it is short: most words are found without a
/// look at the block.
#[derive(Clone, Debug, Default)]
pub(super) struct Interner {
    table: HashTable<Entry>,
    text: String,
    ends: Vec<usize>,
}

/// A text in the table: its number, its length, and its first and last bytes. They overlap in a text of up to 16 bytes,
/// which they tell from all others.
#[derive(Clone, Copy, Debug)]
struct Entry {
    first: u64,
    last: u64,
    length: u32,
    number: u32,
}

/// A text with its hash, to be looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hashed {
    /// Without a number.
    entry: Entry,
    hash: u64,
}

impl Hashed {
    #[inline]
    pub(super) fn new(text: &str) -> Self {
        let entry = Entry::new(text);
        Self {
            entry,
            hash: entry.hash(text),
        }
    }
}

impl Entry {
    #[inline]
    fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let n = bytes.len();
        let (first, last) = match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
                (Some(first), Some(last)) => (
                    u64::from(u32::from_le_bytes(*first)),
                    u64::from(u32::from_le_bytes(*last)),
                ),
                _ if n == 0 => (0, 0),
                _ => {
                    let three = [bytes[0], bytes[n / 2], bytes[n - 1]];
                    (three.iter().fold(0, |all, &b| all << 8 | u64::from(b)), 0)
                }
            },
        };
        Self {
            first,
            last,
            length: n as u32,
            number: 0,
        }
    }

    /// Whether the ends are all of the text.
    fn is_whole(&self) -> bool {
        self.length <= 16
    }

    /// A hash of the text, which is needed only if it is long.
    #[inline]
    fn hash(&self, text: &str) -> u64 {
        let mut hash = mixed(
            self.first ^ 0x9e37_79b9_7f4a_7c15,
            self.last ^ u64::from(self.length) ^ 0xd1b5_4a32_d192_ed03,
        );
        if !self.is_whole() {
            let middle = &text.as_bytes()[8..text.len() - 8];
            for eight in middle.chunks(8) {
                let eight = eight.iter().fold(0, |all, &b| all << 8 | u64::from(b));
                hash = mixed(hash ^ eight, 0x9e37_79b9_7f4a_7c15);
            }
        }
        hash
    }

    /// Whether this is an entry of a text; `get` gives the texts of entries.
    #[inline]
    fn is_of<'a>(&self, wanted: &Self, text: &str, get: impl Fn(u32) -> &'a str) -> bool {
        (self.first, self.last, self.length) == (wanted.first, wanted.last, wanted.length)
            && (self.is_whole() || get(self.number) == text)
    }
}

/// Both halves of a product in one.
#[inline]
fn mixed(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl Interner {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The text of a number.
    pub(super) fn get(&self, number: u32) -> &str {
        get(&self.text, &self.ends, number)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as u32).map(|number| self.get(number))
    }

    /// The number of a text, if it has one.
    pub(super) fn find(&self, text: &str) -> Option<u32> {
        let Hashed { entry, hash } = Hashed::new(text);
        let is_it = |other: &Entry| other.is_of(&entry, text, |n| self.get(n));
        self.table.find(hash, is_it).map(|found| found.number)
    }

    /// The number of a text, a new one if it has none.
    pub(super) fn intern(&mut self, text: &str) -> u32 {
        self.intern_hashed(Hashed::new(text), text)
    }

    /// The number of a text whose hash is known.
    #[inline(always)]
    pub(super) fn intern_hashed(&mut self, hashed: Hashed, text: &str) -> u32 {
        let get = |number| get(&self.text, &self.ends, number);
        let is_it = |other: &Entry| other.is_of(&hashed.entry, text, get);
        match self.table.find(hashed.hash, is_it) {
            Some(found) => found.number,
            None => self.insert(hashed, text),
        }
    }

    #[cold]
    fn insert(&mut self, Hashed { mut entry, hash }: Hashed, text: &str) -> u32 {
        entry.number = self.ends.len() as u32;
        let get = |number| get(&self.text, &self.ends, number);
        let hash_again = |other: &Entry| match other.is_whole() {
            true => other.hash(""),
            false => other.hash(get(other.number)),
        };
        self.table.insert_unique(hash, entry, hash_again);
        self.text.push_str(text);
        self.ends.push(self.text.len());
        entry.number
    }
}

fn get<'a>(text: &'a str, ends: &[usize], number: u32) -> &'a str {
    let number = number as usize;
    let start = if number == 0 { 0 } else { ends[number - 1] };
    &text[start..ends[number]]
}

impl<S: AsRef<str>> FromIterator<S> for Interner {
    fn from_iter<I: IntoIterator<Item = S>>(texts: I) -> Self {
        let mut all = Self::default();
        for text in texts {
            all.intern(text.as_ref());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn equal_texts_have_one_number() {
        let texts: Vec<String> = (0..5000).map(|n| format!("w{}", n % 1000)).collect();
        let all: Interner = texts.iter().collect();
        assert_eq!(all.len(), 1000);
        for (n, text) in texts.iter().enumerate() {
            assert_eq!(all.find(text), Some(n as u32 % 1000));
            assert_eq!(all.get(n as u32 % 1000), text);
        }
        assert_eq!((all.find("w1000"), all.find("")), (None, None));
    }

    proptest! {
        /// Texts of few letters and all lengths, many of which have the same ends.
        #[test]
        fn it_is_a_map(texts in proptest::collection::vec("[ab\0]{0,20}", 0..200)) {
            let mut all = Interner::default();
            let mut map: HashMap<String, u32> = HashMap::new();
            for text in &texts {
                let next = map.len() as u32;
                prop_assert_eq!(all.find(text), map.get(text).copied());
                prop_assert_eq!(all.intern(text), *map.entry(text.clone()).or_insert(next));
            }
            prop_assert_eq!(all.len(), map.len());
            map.iter().for_each(|(text, &number)| assert_eq!(all.get(number), text));
        }
    }
}
