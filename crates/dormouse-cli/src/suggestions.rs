//! Filters clap's suggestions for a mistyped word: it considers `delete` similar to `release`.

use clap::error::{ContextKind, ContextValue};
use dormouse_server::nearest;

/// A kind of mistake, and the suggestion that clap has for it.
const HINTS: [(ContextKind, ContextKind); 3] = [
    (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
    (ContextKind::InvalidArg, ContextKind::SuggestedArg),
    (ContextKind::InvalidValue, ContextKind::SuggestedValue),
];

/// Keeps only suggestions that are as similar as those for topics, keys and verbs must be.
pub(super) fn keep_likely(mut error: clap::Error) -> clap::Error {
    for (wrong, suggested) in HINTS {
        let Some(ContextValue::String(word)) = error.get(wrong).cloned() else { continue };
        let kept = match error.remove(suggested) {
            Some(ContextValue::String(hint)) if is_likely(&word, &hint) => {
                Some(ContextValue::String(hint))
            }
            Some(ContextValue::Strings(mut hints)) => {
                hints.retain(|hint| is_likely(&word, hint));
                (!hints.is_empty()).then_some(ContextValue::Strings(hints))
            }
            _ => None,
        };
        if let Some(kept) = kept {
            error.insert(suggested, kept);
        }
    }
    error
}

fn is_likely(word: &str, hint: &str) -> bool {
    let [word, hint] = [word, hint].map(|word| word.trim_start_matches('-'));
    nearest(word, [hint]).is_some()
}
