//! Random expressions of the whole grammar.

use dormouse_check::generate::rng::Rng;

/// An expression; it may be one that never comes.
pub(crate) fn expression(rng: &mut Rng) -> String {
    let mut fields = Vec::new();
    if rng.chance(30) {
        fields.push(field(rng, 0, 59, number));
    }
    fields.push(field(rng, 0, 59, number));
    fields.push(field(rng, 0, 23, number));
    let (days, weekdays) = (rng.chance(50), rng.chance(50));
    fields.push(if days { field(rng, 1, 31, day) } else { star(rng) });
    fields.push(if rng.chance(30) { field(rng, 1, 12, month) } else { "*".to_owned() });
    fields.push(if weekdays { field(rng, 0, 7, weekday) } else { star(rng) });
    fields.join(" ")
}

fn star(rng: &mut Rng) -> String {
    if rng.chance(20) { "?".to_owned() } else { "*".to_owned() }
}

type Special = fn(&mut Rng) -> Option<String>;

fn field(rng: &mut Rng, min: u64, max: u64, special: Special) -> String {
    let items: Vec<String> = (0..1 + rng.below(3)).map(|_| item(rng, min, max, special)).collect();
    items.join(",")
}

fn item(rng: &mut Rng, min: u64, max: u64, special: Special) -> String {
    if let Some(special) = special(rng) {
        return special;
    }
    let value = |rng: &mut Rng| min + rng.below(max - min + 1);
    match rng.below(10) {
        0..=4 => value(rng).to_string(),
        5 => format!("*/{}", 1 + rng.below(max)),
        6 => "*".to_owned(),
        kind => {
            let (a, b) = (value(rng), value(rng));
            let range = format!("{}-{}", a.min(b), a.max(b));
            if kind == 7 { format!("{range}/{}", 1 + rng.below(max)) } else { range }
        }
    }
}

fn number(_: &mut Rng) -> Option<String> {
    None
}

fn day(rng: &mut Rng) -> Option<String> {
    match rng.below(8) {
        0 => Some("L".to_owned()),
        1 => Some("LW".to_owned()),
        2 => Some(format!("{}W", 1 + rng.below(31))),
        _ => None,
    }
}

fn month(rng: &mut Rng) -> Option<String> {
    let names = ["JAN", "feb", "Mar", "MAY-AUG", "oct", "NOV-DEC"];
    rng.chance(40).then(|| rng.pick(&names).map(|name| (*name).to_owned()))?
}

fn weekday(rng: &mut Rng) -> Option<String> {
    match rng.below(8) {
        0 => Some(format!("{}#{}", rng.below(8), 1 + rng.below(5))),
        1 => Some(format!("{}L", rng.below(8))),
        2 => rng.pick(&["MON", "tue-Thu", "FRI", "SUN"]).map(|name| (*name).to_owned()),
        _ => None,
    }
}
