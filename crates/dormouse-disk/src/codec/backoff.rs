//! Backoffs: a tag, the numbers of the delays, and the jitter if it is not the usual one. Records
//! that were written before there was a choice have none.

use dormouse_core::backoff::{Backoff, Delays};

use super::raw::{Reader, put_varint};

const FIXED: u8 = 0;
const EXPONENTIAL: u8 = 1;
const LIST: u8 = 2;
/// Added to a tag: the jitter follows.
const JITTER: u8 = 4;

pub(super) fn encode_backoff(backoff: &Backoff, out: &mut Vec<u8>) {
    let jitter = backoff.jitter_permille;
    let flag = if jitter == backoff.delays.default_jitter_permille() { 0 } else { JITTER };
    match &backoff.delays {
        Delays::Fixed { delay_ms } => {
            out.push(FIXED | flag);
            put_varint(*delay_ms, out);
        }
        Delays::Exponential { base_ms, factor, cap_ms } => {
            out.push(EXPONENTIAL | flag);
            put_varint(*base_ms, out);
            put_varint(u64::from(*factor), out);
            put_varint(*cap_ms, out);
        }
        Delays::List { delays_ms } => {
            out.push(LIST | flag);
            put_varint(delays_ms.len() as u64, out);
            delays_ms.iter().for_each(|delay_ms| put_varint(*delay_ms, out));
        }
    }
    if flag != 0 {
        put_varint(u64::from(jitter), out);
    }
}

pub(super) fn decode_backoff(reader: &mut Reader<'_>) -> Option<Backoff> {
    let tag = reader.byte()?;
    let delays = match tag & !JITTER {
        FIXED => Delays::Fixed { delay_ms: reader.varint()? },
        EXPONENTIAL => Delays::Exponential {
            base_ms: reader.varint()?,
            factor: reader.varint_u32()?,
            cap_ms: reader.varint()?,
        },
        LIST => {
            let count = reader.count(1)?;
            let delays_ms = (0..count).map(|_| reader.varint()).collect::<Option<_>>()?;
            Delays::List { delays_ms }
        }
        _ => return None,
    };
    let mut backoff = Backoff::from(delays);
    if tag & JITTER != 0 {
        backoff.jitter_permille = u16::try_from(reader.varint()?).ok()?;
    }
    Some(backoff)
}
