//! The name of a schedule, unique in its topic.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::Error;
use crate::topic::check_name;

/// A schedule's name: as a topic's, 1-200 bytes of `A-Za-z0-9-+/;.$_():`, not starting with `-`.
/// Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScheduleName(Arc<str>);

impl ScheduleName {
    /// Checks a name.
    pub fn new(name: &str) -> Result<ScheduleName, Error> {
        check_name("schedule", name)?;
        Ok(ScheduleName(Arc::from(name)))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ScheduleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ScheduleName {
    type Err = Error;
    fn from_str(name: &str) -> Result<ScheduleName, Error> {
        ScheduleName::new(name)
    }
}
