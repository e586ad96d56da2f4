//! Words that protocols share: conflict modes, backoffs and rates.

use dormouse_core::backoff::{Backoff, Delays};
use dormouse_core::op::OnConflict;
use dormouse_core::rate::Rate;

/// The word of a mode.
pub fn on_conflict_word(on_conflict: OnConflict) -> &'static str {
    match on_conflict {
        OnConflict::Keep => "keep",
        OnConflict::Reject => "reject",
        OnConflict::Replace => "replace",
        OnConflict::Earliest => "earliest",
        OnConflict::Latest => "latest",
    }
}

/// The value whose word this is.
pub fn find_word<T: Copy>(
    values: impl IntoIterator<Item = T>,
    word_of: impl Fn(T) -> &'static str,
    word: &str,
) -> Option<T> {
    values.into_iter().find(|value| word_of(*value) == word)
}

/// A backoff as commands have it: `fixed:10000ms`.
pub fn backoff_words(backoff: &Backoff) -> String {
    let words = match &backoff.delays {
        Delays::Fixed { delay_ms } => format!("fixed:{delay_ms}ms"),
        Delays::Exponential { base_ms, factor, cap_ms } => {
            format!("exponential:{base_ms}:{factor}:{cap_ms}")
        }
        Delays::List { delays_ms } => {
            let delays: Vec<String> = delays_ms.iter().map(ToString::to_string).collect();
            format!("list:{}", delays.join(","))
        }
    };
    let usual = backoff.jitter_permille == backoff.delays.default_jitter_permille();
    if usual { words } else { format!("{words}:jitter={}", backoff.jitter()) }
}

/// A rate as commands have it: `100/1m:burst=5`.
pub fn rate_words(rate: Rate) -> String {
    if rate.burst == 1 { rate.to_string() } else { format!("{rate}:burst={}", rate.burst) }
}
