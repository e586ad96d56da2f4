//! Time zones by name: those of IANA, UTC, and fixed offsets.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};

use crate::error::Error;
use crate::limits::ZONE_BYTES_MAX;

/// The name of the zone that holds unless another is given.
pub const UTC: &str = "UTC";

/// Names that people write and that are none: what they mean varies, by place or by season.
const ABBREVIATIONS: &[(&str, &str)] = &[
    ("AEST", "Australia/Sydney or Australia/Brisbane"),
    ("AST", "America/Halifax or Asia/Riyadh"),
    ("BST", "Europe/London or Asia/Dhaka"),
    ("CET", "Europe/Berlin or Europe/Paris"),
    ("CEST", "Europe/Berlin or Europe/Paris"),
    ("CST", "America/Chicago or Asia/Shanghai"),
    ("CST6CDT", "America/Chicago"),
    ("EET", "Europe/Athens or Europe/Helsinki"),
    ("EST", "America/New_York or America/Panama"),
    ("EST5EDT", "America/New_York"),
    ("EDT", "America/New_York"),
    ("GB", "Europe/London"),
    ("GMT", "UTC or Europe/London"),
    ("HST", "Pacific/Honolulu"),
    ("IST", "Asia/Kolkata, Europe/Dublin or Asia/Jerusalem"),
    ("JST", "Asia/Tokyo"),
    ("MET", "Europe/Berlin or Europe/Paris"),
    ("MSK", "Europe/Moscow"),
    ("MST", "America/Denver or America/Phoenix"),
    ("MST7MDT", "America/Denver"),
    ("NZ", "Pacific/Auckland"),
    ("PDT", "America/Los_Angeles"),
    ("PRC", "Asia/Shanghai"),
    ("PST", "America/Los_Angeles or Asia/Manila"),
    ("PST8PDT", "America/Los_Angeles"),
    ("WET", "Europe/Lisbon"),
    ("Z", "UTC"),
];

/// A zone and its name.
#[derive(Clone, Debug)]
pub struct Zone {
    name: String,
    pub(super) rules: TimeZone,
}

impl Zone {
    /// Finds `Europe/Berlin`, `UTC` or `+05:30`, in any case.
    pub fn find(name: &str, zones: &TimeZoneDatabase) -> Result<Zone, Error> {
        if name.eq_ignore_ascii_case(UTC) {
            return Ok(Zone { name: UTC.to_owned(), rules: TimeZone::UTC });
        }
        if let Some(rules) = fixed(name) {
            return Ok(Zone { name: name.to_owned(), rules });
        }
        // The database also has abbreviations and, on some machines, files such as `localtime`.
        let may_be = name.contains('/') && name.len() <= ZONE_BYTES_MAX;
        let found = may_be.then(|| zones.get(name).ok()).flatten();
        let rules = found.ok_or_else(|| refusal(name, zones))?;
        let name = rules.iana_name().unwrap_or(name).to_owned();
        Ok(Zone { name, rules })
    }

    /// An instant by the clock of the zone, RFC 3339 to the second; `None` if that is UTC.
    pub(super) fn local(&self, at_ms: u64) -> Option<String> {
        let instant = Timestamp::from_millisecond(i64::try_from(at_ms).ok()?).ok()?;
        let local = instant.to_zoned(self.rules.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z");
        (self.name != UTC).then(|| local.to_string())
    }

    /// Its name, as IANA spells it.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A zone like `+05:30`.
fn fixed(name: &str) -> Option<TimeZone> {
    let (sign, rest) = match name.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let part = |text: &str, end: i32| {
        let is_plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|&number: &i32| is_plain && number < end)
    };
    let seconds = part(hours, 24)? * 3_600 + part(minutes, 60)? * 60;
    Offset::from_seconds(sign * seconds).ok().map(TimeZone::fixed)
}

fn refusal(name: &str, zones: &TimeZoneDatabase) -> Error {
    const FORM: &str = "write an IANA name like \"Europe/Berlin\", \"UTC\", or an offset like \
                        \"+05:30\"";
    if name.is_empty() {
        return Error::invalid(format!("zone is empty: {FORM}, or leave it out for UTC"));
    }
    if name.len() > ZONE_BYTES_MAX {
        let size = name.len();
        return Error::invalid(format!("zone has {size} bytes, at most {ZONE_BYTES_MAX}: {FORM}"));
    }
    if ["local", "localtime"].iter().any(|word| name.eq_ignore_ascii_case(word)) {
        let why = "the server's own zone is not used, because it may change";
        return Error::invalid(format!("zone {name:?}: {why}: {FORM}"));
    }
    let meant = ABBREVIATIONS.iter().find(|(short, _)| name.eq_ignore_ascii_case(short));
    if let Some((_, meant)) = meant {
        let why = "an abbreviation does not say which rules hold";
        return Error::invalid(format!("zone {name:?}: {why}: write {meant}"));
    }
    match nearest(name, zones) {
        Some(meant) => Error::invalid(format!("zone {name:?} is unknown: did you mean {meant:?}?")),
        None => Error::invalid(format!("zone {name:?} is unknown: {FORM}")),
    }
}

/// The name that was probably meant: at most one letter in four is wrong, or it is the city alone.
fn nearest(name: &str, zones: &TimeZoneDatabase) -> Option<String> {
    let wanted = name.to_ascii_lowercase().replace(' ', "_");
    let rated = zones.available().filter_map(|known| {
        let lower = known.as_str().to_ascii_lowercase();
        let (_, city) = lower.rsplit_once('/')?;
        let is_near = |distance: usize, text: &str| distance * 4 <= text.len();
        // No distance is below the difference of the lengths, which costs less to see.
        let distance = |text: &str| {
            let may_be = is_near(wanted.len().abs_diff(text.len()), text);
            let distance = may_be.then(|| strsim::damerau_levenshtein(&wanted, text))?;
            is_near(distance, text).then_some(distance)
        };
        let rated = distance(&lower).or_else(|| distance(city))?;
        Some((rated, known.as_str().to_owned()))
    });
    rated.min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str) -> Result<String, String> {
        let zone = Zone::find(name, &TimeZoneDatabase::bundled());
        zone.map(|zone| zone.name).map_err(|error| error.text.into_owned())
    }

    #[test]
    fn a_zone_is_found_by_its_name() {
        let check = |name: &str, found: &str| assert_eq!(find(name), Ok(found.to_owned()));
        check("Europe/Berlin", "Europe/Berlin");
        check("europe/berlin", "Europe/Berlin");
        check("America/Argentina/Buenos_Aires", "America/Argentina/Buenos_Aires");
        check("utc", "UTC");
        check("Etc/UTC", "Etc/UTC");
        check("+05:30", "+05:30");
        check("-12:00", "-12:00");
    }

    #[test]
    fn another_name_is_refused_with_the_fix() {
        let check = |name: &str, part: &str| {
            let text = find(name).unwrap_err();
            assert!(text.starts_with("zone") && text.contains(part), "{name}: {text}");
        };
        check("Europe/Berln", "did you mean \"Europe/Berlin\"?");
        check("Berlin", "did you mean \"Europe/Berlin\"?");
        check("new york", "did you mean \"America/New_York\"?");
        check("Local", "the server's own zone is not used");
        check("localtime", "the server's own zone is not used");
        check("EST", "write America/New_York or America/Panama");
        check("cst", "America/Chicago or Asia/Shanghai");
        check("", "zone is empty");
        check("+5:30", "write an IANA name");
        check("+24:00", "write an IANA name");
        check("+05:60", "write an IANA name");
        check("++5:30", "write an IANA name");
        check("+05:3０", "write an IANA name");
        check("../../etc/passwd", "write an IANA name");
        check("/etc/localtime", "write an IANA name");
        check(&"x".repeat(10_000), "zone has 10000 bytes, at most 64");
    }
}
