//! A request that says all in its path.

use serde::Deserialize;
use utoipa::ToSchema;

/// Nothing: a field that is sent all the same is a mistake.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoFields {}
