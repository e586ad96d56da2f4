//! Random rules: next, previous and count tell of one set, and it is that of the definition.

use dormouse_check::generate::rng::Rng;
use dormouse_check::generate::seed::seed;
use dormouse_core::tick::Cron;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZoneDatabase;

use super::naive::Naive;
use super::random_rule::expression;

const ZONES: [&str; 8] = [
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Pacific/Apia",
    "America/Santiago",
    "+05:45",
];

#[test]
fn next_previous_and_count_agree() {
    let seed = seed();
    println!("DORMOUSE_SEED={seed}");
    let mut rng = Rng::new(seed);
    let zones = TimeZoneDatabase::bundled();
    for _ in 0..1_500 {
        let text = expression(&mut rng);
        let zone = rng.pick(&ZONES).unwrap();
        let Ok(cron) = Cron::new(&text, zone, &zones) else { continue };
        // From 1990 to 2060.
        let at_ms = 631_152_000_000 + rng.below(2_208_988_800_000);
        let Some(next_ms) = cron.next(at_ms) else { continue };
        let about = format!("{text:?} {zone} at {at_ms}");
        assert!(next_ms > at_ms, "{about}");
        assert_eq!(cron.count(at_ms, next_ms), 1, "{about}");
        assert_eq!(cron.count(at_ms, next_ms - 1), 0, "{about}");
        assert_eq!(cron.previous(next_ms), Some(next_ms), "{about}");
        assert_eq!(cron.previous(next_ms - 1), cron.previous(at_ms), "{about}");
        if let Some(previous_ms) = cron.previous(at_ms) {
            assert!(previous_ms <= at_ms, "{about}");
            assert_eq!(cron.next(previous_ms), Some(next_ms), "{about}");
            assert_eq!(cron.next(previous_ms - 1), Some(previous_ms), "{about}");
        }
        let mut last_ms = next_ms;
        let mut walked = 1;
        while let Some(tick_ms) = cron.next(last_ms).filter(|_| walked < 50) {
            (last_ms, walked) = (tick_ms, walked + 1);
        }
        assert_eq!(cron.count(at_ms, last_ms), walked, "{about}");
    }
}

/// Each day of random years in UTC, where only the calendar matters.
#[test]
fn days_are_those_of_the_definition() {
    let seed = seed();
    println!("DORMOUSE_SEED={seed}");
    let mut rng = Rng::new(seed);
    let zones = TimeZoneDatabase::none();
    let mut refused = 0;
    for _ in 0..300 {
        let random = expression(&mut rng);
        let fields: Vec<&str> = random.split(' ').collect();
        let text = format!("0 0 {}", fields[fields.len() - 3..].join(" "));
        let naive = Naive::new(&text);
        let year = 1_970 + rng.below(200) as i16;
        let first = Date::constant(year, 1, 1);
        let expected: Vec<Date> = first
            .series(jiff::Span::new().days(1))
            .take(800)
            .filter(|&day| naive.has_date(day))
            .collect();
        let Ok(cron) = Cron::new(&text, "UTC", &zones) else {
            assert_eq!(expected, [], "{text:?} is refused");
            refused += 1;
            continue;
        };
        let start = first.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp().as_millisecond();
        let end_ms = start as u64 + 800 * 86_400_000;
        let mut found = Vec::new();
        // A midnight before 1970 is not asked for: the first day is found from one ms before.
        let mut at_ms = (start as u64).saturating_sub(1);
        if start == 0 && naive.has_date(first) {
            found.push(first);
        }
        while let Some(tick_ms) = cron.next(at_ms).filter(|&tick_ms| tick_ms < end_ms) {
            let tick = Timestamp::from_millisecond(tick_ms as i64).unwrap();
            found.push(jiff::tz::Offset::UTC.to_datetime(tick).date());
            at_ms = tick_ms;
        }
        assert_eq!(found, expected, "{text:?} from {year}");
    }
    println!("{refused} refused");
}

/// Whatever is written is read or refused, and does not panic.
#[test]
fn any_text_is_read_or_refused() {
    let seed = seed();
    println!("DORMOUSE_SEED={seed}");
    let mut rng = Rng::new(seed);
    let zones = TimeZoneDatabase::none();
    let letters: Vec<char> = "0123456789 */,-#?LWH@=ABCDEFJMNORSTU\t\0é٣".chars().collect();
    for _ in 0..50_000 {
        // Half of them are expressions with a few letters changed.
        let mut text: Vec<char> =
            if rng.chance(50) { expression(&mut rng).chars().collect() } else { Vec::new() };
        for _ in 0..1 + rng.below(6) {
            let place = rng.below(text.len() as u64 + 1) as usize;
            text.insert(place, *rng.pick(&letters).unwrap());
        }
        let text: String = text.into_iter().collect();
        match Cron::new(&text, "UTC", &zones) {
            Ok(cron) => assert!(cron.next(1_800_000_000_000).is_some(), "{text:?}"),
            Err(error) => assert!(error.text.starts_with("cron"), "{text:?}: {error}"),
        }
    }
}
