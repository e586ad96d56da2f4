//! What a server tells about itself.

/// The store and the configuration, as the program that starts the server knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Where jobs are kept: `disk`, `memory` or `redis`.
    pub backend: String,
    /// What an answer survives, as it is configured; `None` if there is no choice.
    pub durability: Option<String>,
    /// The options in effect, without secrets.
    pub options: Vec<AboutOption>,
}

/// One option in effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AboutOption {
    /// Its name in a file.
    pub name: String,
    /// Its value as in a file.
    pub value: String,
    /// Where the value comes from.
    pub source: String,
}
