//! A request without fields.

use serde::Deserialize;
use utoipa::ToSchema;

/// No field: any field is an error.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoFields {}
