//! Varints and byte strings.

/// Bytes of the longest varint.
const VARINT_BYTES_MAX: usize = 10;

/// Appends a LEB128 varint.
#[inline]
pub fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    if value < 0x80 {
        out.push(value as u8);
        return;
    }
    // One append of a small array is several times faster than a push per byte.
    let mut bytes = [0; VARINT_BYTES_MAX];
    let mut len = 0;
    while value >= 0x80 {
        bytes[len] = value as u8 | 0x80;
        value >>= 7;
        len += 1;
    }
    bytes[len] = value as u8;
    // A copy of a length that the compiler knows needs no call.
    match bytes {
        [first @ .., _, _, _, _, _, _, _, _] if len == 1 => out.extend_from_slice(&first),
        [first @ .., _, _, _, _, _, _, _] if len == 2 => out.extend_from_slice(&first),
        [first @ .., _, _, _, _, _, _] if len == 3 => out.extend_from_slice(&first),
        [first @ .., _, _, _, _, _] if len == 4 => out.extend_from_slice(&first),
        [first @ .., _, _, _, _] if len == 5 => out.extend_from_slice(&first),
        _ => out.extend_from_slice(&bytes[..=len]),
    }
}

/// Appends a signed number so that small ones of either sign are short.
#[inline]
pub fn put_zigzag(value: i64, out: &mut Vec<u8>) {
    put_varint((value << 1 ^ value >> 63) as u64, out);
}

/// Appends a byte string with its length in front.
#[inline]
pub fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends what `write` appends as a byte string with its length in front, without a buffer.
#[inline]
pub fn put_sized(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    write(out);
    let end = out.len();
    // The length is known only now: it is written behind and turned to the front.
    put_varint((end - start) as u64, out);
    let length_bytes = out.len() - end;
    out[start..].rotate_right(length_bytes);
}

/// Reads from the front of a slice; every method gives `None` if the bytes do not fit.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from their beginning.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// Bytes not read yet.
    #[inline]
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    /// Whether all is read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte, left where it is.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Everything that is left.
    #[inline]
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// The next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*taken)
    }

    /// One byte.
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// A fixed 32-bit number, little-endian.
    #[inline]
    pub fn fixed_u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// A fixed 64-bit number, little-endian.
    #[inline]
    pub fn fixed_u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A varint.
    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
        let first = *self.rest.first()?;
        if first < 0x80 {
            self.rest = &self.rest[1..];
            return Some(u64::from(first));
        }
        self.varint_long()
    }

    fn varint_long(&mut self) -> Option<u64> {
        let mut value = 0;
        for (index, &byte) in self.rest.iter().take(VARINT_BYTES_MAX).enumerate() {
            // The tenth byte has room for the one bit that is left of 64.
            if index == VARINT_BYTES_MAX - 1 && byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Some(value);
            }
        }
        None
    }

    /// A varint of at most 32 bits.
    #[inline]
    pub fn varint_u32(&mut self) -> Option<u32> {
        u32::try_from(self.varint()?).ok()
    }

    /// Reads what [`put_zigzag`] wrote.
    #[inline]
    pub fn zigzag(&mut self) -> Option<i64> {
        self.varint().map(|value| (value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads what [`put_bytes`] wrote.
    #[inline]
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.varint()?).ok()?;
        self.take(len)
    }

    /// A byte string that is UTF-8.
    pub fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// The declared number of items that take at least `item_bytes` each, refused if there cannot
    /// hold that many: safe to allocate for.
    pub fn count(&mut self, item_bytes: usize) -> Option<usize> {
        let count = usize::try_from(self.varint()?).ok()?;
        (count <= self.len() / item_bytes.max(1)).then_some(count)
    }
}
