//! The host of a URL.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use super::{Fault, Host};

/// Bytes of a name, and of a label of it: the bounds of DNS.
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// Reads a host in its normal form.
pub(super) fn read(text: &str) -> Result<Host, Fault> {
    if text.is_empty() {
        return Err(Fault::new("host", "there is none"));
    }
    if text.starts_with('[') {
        return read_ipv6(text);
    }
    if let Some(plain) = text.strip_suffix('.') {
        return Err(Fault::new("host", format!("write `{plain}`, without a dot at its end")));
    }
    if ends_in_number(text) {
        return read_ipv4(text);
    }
    check_name(text)?;
    Ok(Host::Name(Arc::from(text)))
}

fn read_ipv6(text: &str) -> Result<Host, Fault> {
    let inner = text.trim_start_matches('[').trim_end_matches(']');
    let address: Ipv6Addr = inner
        .parse()
        .map_err(|_| Fault::new("host", format!("`{text}` is not an IPv6 address")))?;
    if let Some(address) = address.to_ipv4_mapped() {
        return Err(Fault::new("host", format!("write the IPv4 address, `{address}`")));
    }
    if text != format!("[{address}]") {
        return Err(Fault::new("host", format!("write `[{address}]`")));
    }
    Ok(Host::Ip(IpAddr::V6(address)))
}

/// Whether other parsers read it as an IPv4 address: its last label is a number.
fn ends_in_number(text: &str) -> bool {
    let last = text.rsplit('.').next().unwrap_or(text);
    let is_hex = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let hex = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()) || hex.is_some_and(is_hex)
}

fn read_ipv4(text: &str) -> Result<Host, Fault> {
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(Host::Ip(IpAddr::V4(address)));
    }
    Err(match loose_ipv4(text) {
        Some(address) => {
            Fault::new("host", format!("`{text}` is read as `{address}` by some; write that"))
        }
        None => Fault::new("host", format!("`{text}` is neither a name nor an IPv4 address")),
    })
}

/// The address that old parsers read: one to four numbers, decimal, octal or hexadecimal, the last
/// one for all bytes that are left.
fn loose_ipv4(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<&str> = text.split('.').collect();
    let (last, first) = parts.split_last()?;
    if first.len() > 3 {
        return None;
    }
    let mut address = 0_u32;
    for (part, shift) in first.iter().zip([24, 16, 8]) {
        address |= u32::from(u8::try_from(loose_number(part)?).ok()?) << shift;
    }
    let last = loose_number(last)?;
    let bits_left = 32 - 8 * first.len();
    (last >> bits_left == 0).then(|| Ipv4Addr::from(address | last as u32))
}

fn loose_number(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None if lower.len() > 1 && lower.starts_with('0') => (&lower[1..], 8),
        None => (&*lower, 10),
    };
    match digits {
        "" if radix == 16 => Some(0),
        _ => u64::from_str_radix(digits, radix).ok().filter(|number| *number <= u32::MAX.into()),
    }
}

fn check_name(text: &str) -> Result<(), Fault> {
    if text.len() > NAME_BYTES_MAX {
        let reason = format!("the name has {} bytes; at most {NAME_BYTES_MAX}", text.len());
        return Err(Fault::new("host", reason));
    }
    let lower = text.to_ascii_lowercase();
    if lower != text {
        return Err(Fault::new("host", format!("write it in lower case, `{lower}`")));
    }
    for label in text.split('.') {
        let reason = match label {
            "" => "the name has an empty label".to_owned(),
            _ if label.len() > LABEL_BYTES_MAX => {
                format!("a label of the name has {} bytes; at most {LABEL_BYTES_MAX}", label.len())
            }
            _ if label.starts_with('-') || label.ends_with('-') => {
                format!("the label `{label}` begins or ends with `-`")
            }
            _ => match label.chars().find(|c| !c.is_ascii_alphanumeric() && !"-_".contains(*c)) {
                Some(c) => format!("`{c}` has no place in a name; write it plainly"),
                None => continue,
            },
        };
        return Err(Fault::new("host", reason));
    }
    Ok(())
}
