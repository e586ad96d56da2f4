//! config: the options in effect.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::about::AboutOption;
use crate::access::Verb;
use crate::http::App;
use crate::http::api::Problems;
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::response::{HttpResult, ok};

/// All options in effect.
#[derive(Serialize, ToSchema)]
#[schema(as = Config)]
pub(crate) struct ConfigOut<'a> {
    options: Vec<OptionOut<'a>>,
}

/// An option.
#[derive(Serialize, ToSchema)]
#[schema(as = ConfigOption)]
pub(crate) struct OptionOut<'a> {
    name: &'a str,
    /// As in a file; without secrets.
    value: &'a str,
    /// Where it comes from.
    source: &'a str,
}

impl<'a> From<&'a AboutOption> for OptionOut<'a> {
    fn from(option: &'a AboutOption) -> OptionOut<'a> {
        let AboutOption { name, value, source } = option;
        OptionOut { name, value, source }
    }
}

/// Read the options in effect, without secrets and tokens.
#[utoipa::path(
    get,
    path = "/v1/config",
    tag = "server",
    responses((status = 200, description = "The options", body = ConfigOut<'static>), Problems)
)]
pub(super) async fn config(State(app): State<App>, caller: Caller, params: Params) -> HttpResult {
    caller.check_verb(Verb::Inspect)?;
    params.finish()?;
    ok(&ConfigOut { options: app.about.options.iter().map(OptionOut::from).collect() })
}
