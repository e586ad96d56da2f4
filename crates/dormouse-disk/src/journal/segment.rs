//! Names and numbers of segments.

use crate::damage::Damage;
use crate::disk::Disk;

const PREFIX: &str = "journal-";
const SUFFIX: &str = ".dmj";
/// Enough for every u64, so that names sort as numbers.
const DIGITS: usize = 20;

/// The file name of a segment.
pub fn segment_name(segment: u64) -> String {
    format!("{PREFIX}{segment:0DIGITS$}{SUFFIX}")
}

/// The number of the segment that has this file name, if it is one.
pub fn segment_number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let fits = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if fits { digits.parse().ok() } else { None }
}

/// The numbers of all segments there are, ascending.
pub fn segments(disk: &dyn Disk) -> Result<Vec<u64>, Damage> {
    let names = disk.list().map_err(|source| Damage::io("data directory", source))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| segment_number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}
