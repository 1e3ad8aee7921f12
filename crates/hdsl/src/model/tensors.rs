//! Named arrays and a metadata text in safetensors form, with a checksum. Nothing in here knows what a model is.

use safetensors::tensor::{Dtype, Metadata, TensorView};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

/// The one entry of the safetensors metadata. (Several would be written in random order.)
const METADATA_KEY: &str = "hdsl";

/// The tensor with the checksum of the metadata and all other tensors.
const CHECKSUM: &str = "crc32";

/// The reason why a file is refused is text; the caller adds the path.
pub(super) type Read<T> = std::result::Result<T, String>;

/// Type, shape, and data that are little-endian and row by row.
type Tensor<'a> = (Dtype, Vec<usize>, Cow<'a, [u8]>);

/// Arrays by name.
#[derive(Default, PartialEq)]
pub(super) struct Tensors<'a>(BTreeMap<String, Tensor<'a>>);

/// A number that can be in a tensor.
pub(super) trait Element: Copy {
    const DTYPE: Dtype;
    fn append_to(self, data: &mut Vec<u8>);
    fn from_slice(data: &[u8]) -> Self;
}

macro_rules! element {
    ($type:ty, $dtype:ident) => {
        impl Element for $type {
            const DTYPE: Dtype = Dtype::$dtype;

            fn append_to(self, data: &mut Vec<u8>) {
                data.extend_from_slice(&self.to_le_bytes());
            }

            fn from_slice(data: &[u8]) -> Self {
                Self::from_le_bytes(data.try_into().expect("the bytes of one element"))
            }
        }
    };
}
element!(u32, U32);
element!(f64, F64);

/// The shape of an array: one dimension if its rows have one element each, else two.
fn shape_of(n_rows: usize, n_columns: usize) -> Vec<usize> {
    match n_columns {
        1 => vec![n_rows],
        _ => vec![n_rows, n_columns],
    }
}

impl<'a> Tensors<'a> {
    /// Adds an array, by rows of N elements.
    pub(super) fn put<T: Element, const N: usize>(
        &mut self,
        name: &str,
        rows: impl IntoIterator<Item = [T; N]>,
    ) {
        let mut data = Vec::new();
        for element in rows.into_iter().flatten() {
            element.append_to(&mut data);
        }
        let shape = shape_of(data.len() / (N * size_of::<T>()), N);
        self.0.insert(name.into(), (T::DTYPE, shape, data.into()));
    }

    /// Adds a value as JSON in an array of bytes; safetensors limits the length of the metadata.
    pub(super) fn put_json(&mut self, name: &str, value: &impl Serialize) {
        let data = serde_json::to_vec(value).expect("all keys are strings");
        let tensor = (Dtype::U8, vec![data.len()], data.into());
        self.0.insert(name.into(), tensor);
    }

    /// The array of this name, which must have this type and rows of N elements.
    pub(super) fn get<T: Element, const N: usize>(&self, name: &str) -> Read<Vec<[T; N]>> {
        let tensor = self.0.get(name);
        let (dtype, shape, data) =
            tensor.ok_or_else(|| format!("the array `{name}` is missing"))?;
        let (size, wanted) = (size_of::<T>(), T::DTYPE);
        if *dtype != wanted || *shape != shape_of(data.len() / (N * size), N) {
            return Err(format!(
                "the array `{name}` has type {dtype} and shape {shape:?}, expected {wanted} and rows of {N}"
            ));
        }
        let element = |row: &[u8], n: usize| T::from_slice(&row[n * size..(n + 1) * size]);
        let rows = data.chunks_exact(N * size);
        Ok(rows
            .map(|row| std::array::from_fn(|n| element(row, n)))
            .collect())
    }

    /// Whether there is an array of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Two arrays of one element per row, side by side.
    pub(super) fn get_pairs<A: Element, B: Element>(&self, a: &str, b: &str) -> Read<Vec<(A, B)>> {
        let (a, b) = (self.get(a)?, self.get(b)?);
        Ok(a.into_iter().zip(b).map(|([a], [b])| (a, b)).collect())
    }

    /// The value of an array made by [`Self::put_json`].
    pub(super) fn get_json<T: for<'de> Deserialize<'de>>(&self, name: &str) -> Read<T> {
        let data = self.0.get(name).map_or(&[][..], |tensor| &tensor.2);
        serde_json::from_slice(data).map_err(|e| format!("the array `{name}` is not valid: {e}"))
    }

    /// Adds the CRC-32 of the metadata and of the names and data of all tensors, in the order of their names.
    pub(super) fn seal(&mut self, metadata: &str) {
        let sum = self.checksum(metadata);
        self.put(CHECKSUM, [[sum]]);
    }

    fn checksum(&self, metadata: &str) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(metadata.as_bytes());
        for (name, tensor) in self.0.iter().filter(|t| t.0 != CHECKSUM) {
            hasher.update(name.as_bytes());
            hasher.update(&tensor.2);
        }
        hasher.finalize()
    }

    /// The whole file.
    pub(super) fn to_bytes(&self, metadata: String) -> Vec<u8> {
        let metadata = HashMap::from([(METADATA_KEY.to_owned(), metadata)]);
        let views = self.0.iter().map(|(name, (dtype, shape, data))| {
            let view = TensorView::new(*dtype, shape.clone(), data);
            (name, view.expect("the shape fits the data"))
        });
        safetensors::serialize(views, Some(metadata)).expect("the arrays fit into a file")
    }

    /// Metadata and tensors of a sealed file. (The crate's own reader gives no access to the metadata, and adds
    /// offsets of the file without a check for overflow.)
    pub(super) fn from_bytes(bytes: &'a [u8]) -> Read<(String, Self)> {
        let (length, rest) = bytes
            .split_first_chunk()
            .ok_or("not an hdsl model: shorter than the header of one")?;
        let length = u64::from_le_bytes(*length);
        if length > rest.len() as u64 {
            return Err("not an hdsl model, or truncated: the header exceeds the file".into());
        }
        let (header, data) = rest.split_at(length as usize);
        let header: Metadata = serde_json::from_slice(header)
            .map_err(|e| format!("not an hdsl model: no safetensors header: {e}"))?;
        if header.data_len() != data.len() {
            return Err(format!(
                "truncated or damaged: {} bytes of arrays, expected {}",
                data.len(),
                header.data_len()
            ));
        }
        let tensors = header.tensors().into_iter().map(|(name, info)| {
            let data = &data[info.data_offsets.0..info.data_offsets.1];
            (name, (info.dtype, info.shape.clone(), Cow::Borrowed(data)))
        });
        let tensors = Self(tensors.collect());
        let metadata = header.metadata().as_ref();
        let metadata = metadata.and_then(|entries| entries.get(METADATA_KEY));
        let metadata = metadata
            .ok_or_else(|| format!("not an hdsl model: no `{METADATA_KEY}` in its metadata"))?;
        if tensors.get::<u32, 1>(CHECKSUM)? != [[tensors.checksum(metadata)]] {
            return Err("checksum mismatch: the file is damaged".into());
        }
        Ok((metadata.clone(), tensors))
    }
}
