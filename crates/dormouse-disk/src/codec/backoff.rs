//! Backoff rules: a tag, then the rule's numbers.

use dormouse_core::backoff::Backoff;

use super::raw::{Reader, put_varint};

const FIXED: u8 = 0;
const EXPONENTIAL: u8 = 1;
const LIST: u8 = 2;

pub(super) fn encode_backoff(backoff: &Backoff, out: &mut Vec<u8>) {
    match backoff {
        Backoff::Fixed { delay_ms } => {
            out.push(FIXED);
            put_varint(*delay_ms, out);
        }
        Backoff::Exponential { base_ms, factor, cap_ms } => {
            out.push(EXPONENTIAL);
            put_varint(*base_ms, out);
            put_varint(u64::from(*factor), out);
            put_varint(*cap_ms, out);
        }
        Backoff::List { delays_ms } => {
            out.push(LIST);
            put_varint(delays_ms.len() as u64, out);
            delays_ms.iter().for_each(|delay_ms| put_varint(*delay_ms, out));
        }
    }
}

pub(super) fn decode_backoff(reader: &mut Reader<'_>) -> Option<Backoff> {
    match reader.byte()? {
        FIXED => Some(Backoff::Fixed { delay_ms: reader.varint()? }),
        EXPONENTIAL => Some(Backoff::Exponential {
            base_ms: reader.varint()?,
            factor: reader.varint_u32()?,
            cap_ms: reader.varint()?,
        }),
        LIST => {
            let count = reader.count(1)?;
            let delays_ms = (0..count).map(|_| reader.varint()).collect::<Option<_>>()?;
            Some(Backoff::List { delays_ms })
        }
        _ => None,
    }
}
