//! Little-endian fields of structures, at the offsets at which the specifications draw them.

/// A field of `N` bytes; zeros where the structure is shorter.
fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<N>()).copied().unwrap_or([0; N])
}

/// A field of 16 bits.
#[inline]
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(field(bytes, at))
}

/// A field of 32 bits.
#[inline]
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(field(bytes, at))
}

/// A field of 64 bits.
#[inline]
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(field(bytes, at))
}

/// Puts a field into a structure that is long enough for it.
#[inline]
pub fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

/// Puts text into a field that is padded with spaces, cut where it is longer.
pub fn put_text(bytes: &mut [u8], at: usize, len: usize, text: &str) {
    let ascii = text.bytes().map(|byte| if byte.is_ascii_graphic() || byte == b' ' { byte } else { b'?' });
    for (slot, byte) in bytes[at..at + len].iter_mut().zip(ascii.chain(std::iter::repeat(b' '))) {
        *slot = byte;
    }
}

/// Text in a field that ends with its first zero; nothing where it is no UTF-8 or has no end.
pub fn text_at(bytes: &[u8], at: usize, len: usize) -> Option<&str> {
    let field = bytes.get(at..at + len)?;
    let end = field.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&field[..end]).ok()
}
