//! Errors as clients of Redis meet them.

use dormouse_core::error::{Code, Error};

use super::encode::Out;

/// The code of what Redis has a text for, which clients look for.
pub(super) const ERR: &str = "ERR";

/// The word in front of an error's text. Where Redis has a word for it, that one, because clients
/// know it. None of them is one that makes a client do something by itself that does not fit here:
/// ask again at once, go to another server, wait until data is loaded.
pub(super) fn word_of(code: Code) -> &'static str {
    match code {
        Code::Invalid => "INVALID",
        Code::Unauthorized => "NOAUTH",
        Code::Forbidden => "NOPERM",
        Code::NotFound => "NOTFOUND",
        Code::Conflict => "CONFLICT",
        Code::LeaseLost => "LEASELOST",
        Code::TooLarge => "TOOLARGE",
        // `BUSY` is a script that does not end.
        Code::Busy => "OVERLOADED",
        Code::Full => "FULL",
        Code::Unconfirmed => "UNCONFIRMED",
        Code::Unavailable => "UNAVAILABLE",
    }
}

/// Writes an error.
pub(super) fn write(out: &mut Out<'_>, error: &Error) {
    out.error(word_of(error.code), &error.text);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What clients act on by themselves.
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
    fn no_word_is_one_that_clients_act_on() {
        for code in Code::ALL {
            let word = word_of(code);
            assert!(word.bytes().all(|byte| byte.is_ascii_uppercase()), "{word}");
            assert!(TAKEN.iter().all(|taken| !word.starts_with(taken)), "{word}");
            assert_eq!(Code::ALL.iter().filter(|&&other| word_of(other) == word).count(), 1);
        }
    }
}
