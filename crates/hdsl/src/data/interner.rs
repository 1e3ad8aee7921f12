//! Distinct texts with numbers.

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;

/// Distinct texts, numbered from 0 in the order in which they came. All of them are in one block of memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Interner {
    table: HashTable<(u32, u32)>,
    text: String,
    ends: Vec<usize>,
}

/// Half of the hash is stored beside the number, so that texts are rarely compared in vain.
fn hash_of(text: &str) -> u64 {
    FxBuildHasher.hash_one(text.as_bytes())
}

/// The stored half again as a hash. The table takes its places from the low bits and its tags from the high ones.
fn spread(half: u32) -> u64 {
    u64::from(half) | u64::from(half) << 32
}

impl Interner {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The text of a number.
    pub(super) fn get(&self, number: u32) -> &str {
        let number = number as usize;
        let start = if number == 0 {
            0
        } else {
            self.ends[number - 1]
        };
        &self.text[start..self.ends[number]]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as u32).map(|number| self.get(number))
    }

    /// The number of a text, if it has one.
    pub(super) fn find(&self, text: &str) -> Option<u32> {
        let half = fold(hash_of(text));
        let found = self.table.find(spread(half), |&(other, n)| {
            other == half && self.get(n) == text
        });
        found.map(|entry| entry.1)
    }

    /// The number of a text, a new one if it has none.
    pub(super) fn intern(&mut self, text: &str) -> u32 {
        let half = fold(hash_of(text));
        let (ends, all) = (&self.ends, &self.text);
        let get = |number: u32| {
            let number = number as usize;
            let start = if number == 0 { 0 } else { ends[number - 1] };
            &all[start..ends[number]]
        };
        let found = self
            .table
            .find(spread(half), |&(other, n)| other == half && get(n) == text);
        if let Some(entry) = found {
            return entry.1;
        }
        let number = self.ends.len() as u32;
        self.table
            .insert_unique(spread(half), (half, number), |entry| spread(entry.0));
        self.text.push_str(text);
        self.ends.push(self.text.len());
        number
    }
}

/// Both halves of a hash in one.
fn fold(hash: u64) -> u32 {
    (hash ^ hash >> 32) as u32
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
}
