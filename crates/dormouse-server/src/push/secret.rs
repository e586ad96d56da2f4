//! The secrets that sign pushes: derived from one master key, never stored, never shown by `Debug`.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dormouse_core::topic::TopicName;
use sha2::{Digest, Sha256};

/// Bytes of a block of SHA-256.
const BLOCK_BYTES: usize = 64;

/// The key from which the secrets of all topics are derived.
#[derive(Clone)]
pub struct MasterKey([u8; 32]);

/// The secret of one topic and generation.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl MasterKey {
    /// Of random bytes.
    pub fn new(bytes: [u8; 32]) -> MasterKey {
        MasterKey(bytes)
    }

    /// Reads a key file: 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<MasterKey> {
        let text = text.trim_ascii().as_bytes();
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            *byte = u8::try_from(digit(digits[0])? << 4 | digit(digits[1])?).ok()?;
        }
        Some(MasterKey(bytes))
    }

    /// The name of the installation in the ids of requests: the same wherever the key is.
    pub fn store(&self) -> [u8; 4] {
        let [a, b, c, d, ..] = hmac_sha256(&self.0, &[b"store/1"]);
        [a, b, c, d]
    }

    /// The secret of a topic. The next generation has another one.
    pub fn secret(&self, topic: &TopicName, generation: u64) -> Secret {
        let generation = generation.to_string();
        let parts = [b"push/1\0", topic.as_str().as_bytes(), b"\0", generation.as_bytes()];
        Secret(hmac_sha256(&self.0, &parts))
    }
}

impl Secret {
    /// In the form in which receivers give it to their library. To be shown once.
    pub fn reveal(&self) -> String {
        format!("whsec_{}", STANDARD.encode(self.0))
    }

    /// The authentication code of these bytes, one after another.
    pub(super) fn sign(&self, parts: &[&[u8]]) -> [u8; 32] {
        hmac_sha256(&self.0, parts)
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(***)")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// HMAC of RFC 2104. Keys here are never longer than a block.
fn hmac_sha256(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let pad = |fill: u8| {
        let mut block = [fill; BLOCK_BYTES];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let mut inner = Sha256::new_with_prefix(pad(0x36));
    parts.iter().for_each(|part| inner.update(part));
    let mut outer = Sha256::new_with_prefix(pad(0x5c));
    outer.update(inner.finalize());
    outer.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_code_is_that_of_other_implementations() {
        // Computed with Python's hmac module.
        let mut key = [0; 32];
        key.iter_mut().zip(0..).for_each(|(byte, index)| *byte = index);
        let expected = "53c40272a70c15ca4ee0af4df1f155fd6c41e00ce2307d8987ecd4bb36a7e990";
        assert_eq!(hex(&hmac_sha256(&key, &[b"hel", b"", b"lo"])), expected);
        assert_eq!(hex(&hmac_sha256(&key, &[b"hello"])), expected);
    }

    #[test]
    fn topics_and_generations_have_secrets_of_their_own() {
        let topic = |name| TopicName::new(name).unwrap();
        let key = MasterKey::new([7; 32]);
        let secret = |name, generation| key.secret(&topic(name), generation).reveal();
        let all = [secret("a", 1), secret("a", 2), secret("b", 1), secret("a1", 1)];
        for (index, one) in all.iter().enumerate() {
            assert!(one.starts_with("whsec_") && one.len() == 6 + 44);
            assert!(!all[index + 1..].contains(one));
        }
        assert_eq!(secret("a", 1), all[0]);
    }

    #[test]
    fn a_key_is_read_from_64_digits() {
        let text = format!("{}\n", "0aF1".repeat(16));
        let key = MasterKey::parse(&text).unwrap();
        assert_eq!(key.0[..2], [0x0a, 0xf1]);
        for wrong in ["", "00", &"0".repeat(63), &"0".repeat(65), &"g".repeat(64), &"ä".repeat(32)]
        {
            assert!(MasterKey::parse(wrong).is_none(), "{wrong}");
        }
        assert_ne!(key.store(), MasterKey::new([0; 32]).store());
    }

    #[test]
    fn debug_shows_nothing() {
        let key = MasterKey::new([0xab; 32]);
        let secret = key.secret(&TopicName::new("t").unwrap(), 1);
        assert_eq!(format!("{key:?} {secret:?}"), "MasterKey(***) Secret(***)");
    }
}
