//! Bodies that know which put they come from, byte by byte.

use bytes::Bytes;

use crate::generate::rng::Rng;

const NUMBER_BYTES: usize = 8;
const LEN_MAX: u64 = 400;

/// The body of the put with this number.
pub fn body(number: u64) -> Bytes {
    let mut rng = Rng::new(number);
    let len = rng.below(LEN_MAX) as usize;
    let mut bytes = number.to_le_bytes().to_vec();
    while bytes.len() < NUMBER_BYTES + len {
        bytes.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    bytes.truncate(NUMBER_BYTES + len);
    Bytes::from(bytes)
}

/// The put that this body comes from, if it is whole.
pub fn number_of(bytes: &Bytes) -> Option<u64> {
    let number = u64::from_le_bytes(bytes.get(..NUMBER_BYTES)?.try_into().ok()?);
    (body(number) == *bytes).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_body_comes_from_no_put() {
        let whole = body(77);
        assert_eq!(number_of(&whole), Some(77));
        for at in 0..whole.len() {
            let mut changed = whole.to_vec();
            changed[at] ^= 1;
            assert_eq!(number_of(&Bytes::from(changed)), None, "byte {at}");
        }
        assert_eq!(number_of(&whole.slice(..whole.len() - 1)), None);
    }
}
