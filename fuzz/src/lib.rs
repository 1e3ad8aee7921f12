//! What the targets share.

/// Whether these bytes might be taken for compressed data.
///
/// The target `compressed` looks at those. Elsewhere they would only draw the fuzzer into the decoders.
pub fn looks_compressed(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [0x1f, 0x8b, ..]
            | [b'B', b'Z', b'h', ..]
            | [0xfd, b'7', ..]
            | [0x28, 0xb5, ..]
            | [_, 0x2a, 0x4d, 0x18, ..]
    )
}
