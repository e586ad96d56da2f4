//! Errors in the form that Redis clients know.

use dormouse_core::error::{Code, Error};

use super::encode::Out;

/// The code of errors whose text is known to clients.
pub(super) const ERR: &str = "ERR";

/// The word in front of an error's text: the one of Redis where it has one, because clients know
/// it. None of them makes a client act on its own in a way that does not fit here: retry at once,
/// go to another server, wait until data is loaded.
pub(super) fn word_of(code: Code) -> &'static str {
    match code {
        Code::Invalid => "INVALID",
        Code::Unauthorized => "NOAUTH",
        Code::Forbidden => "NOPERM",
        Code::NotFound => "NOTFOUND",
        Code::Conflict => "CONFLICT",
        Code::LeaseLost => "LEASELOST",
        Code::TooLarge => "TOOLARGE",
        // In Redis, `BUSY` means a script that does not end.
        Code::Busy => "OVERLOADED",
        Code::Full => "FULL",
        Code::Unconfirmed => "UNCONFIRMED",
        Code::Unavailable => "UNAVAILABLE",
    }
}

pub(super) fn write(out: &mut Out<'_>, error: &Error) {
    out.error(word_of(error.code), &error.text);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that clients act on.
    const TAKEN: [&str; 12] = [
        "BUSY",
        "LOADING",
        "MOVED",
        "ASK",
        "TRYAGAIN",
        "CLUSTERDOWN",
        "READONLY",
        "NOSCRIPT",
        "MASTERDOWN",
        "EXECABORT",
        "CROSSSLOT",
        "BUSYGROUP",
    ];

    #[test]
    fn no_word_makes_clients_act() {
        for code in Code::ALL {
            let word = word_of(code);
            assert!(word.bytes().all(|byte| byte.is_ascii_uppercase()), "{word}");
            assert!(TAKEN.iter().all(|taken| !word.starts_with(taken)), "{word}");
            assert_eq!(Code::ALL.iter().filter(|&&other| word_of(other) == word).count(), 1);
        }
    }
}
