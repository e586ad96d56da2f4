//! The stable codes of errors.

use std::borrow::Cow;

use serde::Serialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Every code: those of the rules, and those that only HTTP has.
const CODES: [&str; 14] = [
    "invalid",
    "unauthorized",
    "forbidden",
    "not_found",
    "not_allowed",
    "timeout",
    "conflict",
    "lease_lost",
    "too_large",
    "misdirected",
    "busy",
    "unavailable",
    "unconfirmed",
    "full",
];

/// The code of an error.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct CodeOut(pub(crate) &'static str);

impl PartialSchema for CodeOut {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(CODES))
            .description(Some("What programs look at; it never changes its meaning."))
            .into()
    }
}

impl ToSchema for CodeOut {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("ErrorCode")
    }
}

#[cfg(test)]
mod tests {
    use dormouse_core::error::Code;

    use super::*;

    #[test]
    fn every_code_of_the_rules_is_described() {
        for code in Code::ALL {
            assert!(CODES.contains(&code.as_str()), "{code}");
        }
    }
}
