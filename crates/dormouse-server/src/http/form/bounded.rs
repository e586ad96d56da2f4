//! Lists that are parsed only up to their limit.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};

/// A list of which at most one item more than `MAX` is kept: enough for the rules to refuse it, and
/// a request of millions of empty items takes no memory.
#[derive(Clone, Debug)]
pub(crate) struct Bounded<T, const MAX: usize>(pub(crate) Vec<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for Bounded<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bounded<T, MAX>, D::Error> {
        deserializer.deserialize_seq(BoundedVisitor::<T, MAX>(PhantomData)).map(Bounded)
    }
}

struct BoundedVisitor<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for BoundedVisitor<T, MAX> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX} items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut kept = Vec::new();
        while kept.len() <= MAX {
            match items.next_element()? {
                Some(item) => kept.push(item),
                None => return Ok(kept),
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_too_many_is_seen_and_no_more_is_kept() {
        let read = |text: &str| serde_json::from_str::<Bounded<u8, 3>>(text).map(|list| list.0);
        assert_eq!(read("[]").unwrap(), Vec::<u8>::new());
        assert_eq!(read("[1,2,3]").unwrap(), [1, 2, 3]);
        assert_eq!(read("[1,2,3,4,5,6,7]").unwrap(), [1, 2, 3, 4]);
        assert!(read("[1,2,3,4,5,6,7").is_err());
        assert!(read("{}").is_err());
    }
}
