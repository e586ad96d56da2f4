//! The web console: what is configured about it, and its files.

mod files;

use std::fmt;
use std::str::FromStr;

pub(crate) use files::{UiFile, UiFiles};

use crate::limits::UI_NAME_CHARS_MAX;

/// How the web console is served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UiOptions {
    /// Whether it is served, and may change something.
    pub mode: UiMode,
    /// The name of the installation, shown on every page.
    pub name: Option<UiName>,
    /// The colour of that name.
    pub color: Option<UiColor>,
}

/// A set of words, one for each value of an enum.
macro_rules! words {
    ($(#[$text:meta])* $name:ident {
        $($(#[$about:meta])* $value:ident = $word:literal),+ $(,)?
    }) => {
        $(#[$text])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$about])* $value),+
        }

        impl $name {
            /// All of them, with their words.
            pub const ALL: &[(&'static str, $name)] = &[$(($word, $name::$value)),+];

            /// Its word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$value => $word),+
                }
            }
        }
    };
}

words! {
    /// Whether the console is served, and may change something.
    #[derive(Default)]
    UiMode {
        /// It is served, and may do what its token may.
        #[default]
        On = "on",
        /// It is served, and may change nothing, whatever its token may.
        View = "view",
        /// It is not served.
        Off = "off",
    }
}

words! {
    /// The colour of an installation, so that nobody mistakes one for another.
    UiColor {
        /// Red.
        Red = "red",
        /// Orange.
        Orange = "orange",
        /// Yellow.
        Yellow = "yellow",
        /// Green.
        Green = "green",
        /// Teal.
        Teal = "teal",
        /// Blue.
        Blue = "blue",
        /// Violet.
        Violet = "violet",
        /// Pink.
        Pink = "pink",
        /// Gray.
        Gray = "gray",
    }
}

/// The name of an installation: a short line of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UiName(String);

impl UiName {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UiName {
    type Err = String;

    fn from_str(text: &str) -> Result<UiName, String> {
        let count = text.chars().count();
        if count == 0 || count > UI_NAME_CHARS_MAX {
            return Err(format!("{count} characters; give 1 to {UI_NAME_CHARS_MAX}"));
        }
        if text.chars().any(char::is_control) {
            return Err("it has a control character; give a line of text".to_owned());
        }
        Ok(UiName(text.to_owned()))
    }
}

impl fmt::Display for UiName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_short_line() {
        for text in ["x", "production (EU)", "Prüfstand", &"é".repeat(UI_NAME_CHARS_MAX)] {
            assert_eq!(text.parse::<UiName>().map(|name| name.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "a\nb", "a\u{7f}", &"x".repeat(UI_NAME_CHARS_MAX + 1)] {
            assert!(text.parse::<UiName>().is_err(), "{text:?}");
        }
    }
}
