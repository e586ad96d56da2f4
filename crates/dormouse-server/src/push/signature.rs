//! Signatures of the Standard Webhooks specification, version 1.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dormouse_core::topic::TopicName;

use super::secret::MasterKey;
use super::settings::Generations;

/// The value of `webhook-signature`: the newest secret's first, then that of the one that is being
/// retired. What is signed are the very bytes that are sent.
pub(super) fn signatures(
    key: &MasterKey,
    topic: &TopicName,
    generations: &Generations,
    wall_ms: u64,
    message: &Message<'_>,
) -> String {
    let retiring = generations.retiring.filter(|retiring| wall_ms < retiring.until_ms);
    let all = [Some(generations.newest), retiring.map(|retiring| retiring.generation)];
    let signed = all.into_iter().flatten().map(|generation| {
        let code = key.secret(topic, generation).sign(&message.parts());
        format!("v1,{}", STANDARD.encode(code))
    });
    signed.collect::<Vec<_>>().join(" ")
}

/// What is signed.
pub(super) struct Message<'a> {
    pub(super) id: &'a str,
    /// Seconds since 1970, as in the header.
    pub(super) timestamp: &'a str,
    pub(super) body: &'a [u8],
}

impl<'a> Message<'a> {
    fn parts(&self) -> [&'a [u8]; 5] {
        [self.id.as_bytes(), b".", self.timestamp.as_bytes(), b".", self.body]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::settings::Retiring;

    fn check(retiring: Option<Retiring>, wall_ms: u64, count: usize) -> String {
        let message = Message { id: "dm_0a0b0c0d_42", timestamp: "1700000000", body: b"hello" };
        let generations = Generations { newest: 1, retiring };
        let topic = TopicName::new("orders").unwrap();
        let text = signatures(&MasterKey::new([7; 32]), &topic, &generations, wall_ms, &message);
        assert_eq!(text.split(' ').count(), count);
        text
    }

    #[test]
    fn the_signature_is_that_of_the_specification() {
        // Computed with Python's hmac module.
        let expected = "v1,sqrm3FfC9oJ4LlrvLNhbg+cechvaBzEJjQB46FLfym8=";
        assert_eq!(check(None, 0, 1), expected);
    }

    #[test]
    fn a_retiring_secret_signs_until_its_end() {
        let retiring = Some(Retiring { generation: 0, until_ms: 1_000 });
        let both = check(retiring, 999, 2);
        assert!(both.starts_with(&check(None, 0, 1)));
        assert_eq!(check(retiring, 1_000, 1), check(None, 0, 1));
    }
}
